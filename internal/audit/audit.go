// Log: what callers did, durable before they are answered.

// Package audit keeps the audit log.
//
// The log is a folder of chains, one for each process that writes at the same time. A
// chain is a write-ahead log of lines of JSON; each line holds the SHA-256 of the one
// before. Every so often a line is a checkpoint: the head of the chain, signed by a key
// that lies elsewhere.
//
//	begin <- entry <- entry <- checkpoint <- entry ...
//	                           signs the hash of the line before it
//
// Who can write to the folder can write a whole chain anew, but not its checkpoints.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
)

// Options of a log. Dir and Key must be set.
type Options struct {
	Dir    string        // the folder of the chains; it is made when it is not there
	Heads  string        // the file with the newest checkpoint of each chain, outside Dir
	Key    Key           // signs checkpoints and hashes values
	Keep   time.Duration // how long entries are kept; 0: for ever
	Policy Policy        // what is listed
	Send   SendOptions   // where Log.Send sends it
	// SegmentSize is when a chain begins a new file, in bytes; 0 = 8 MiB.
	SegmentSize int64
	Now         func() time.Time // nil: time.Now
	Logger      *slog.Logger     // nil: discard
}

// The bounds between checkpoints, and how soon a log that failed is tried again.
const (
	signEvery  = 1000 // entries
	signWithin = time.Minute
	tryAgain   = time.Second
	segment    = 8 << 20
)

// doneTime bounds the entry of what was done already: its answer waits for it.
const doneTime = 5 * time.Second

// Log is the audit log, as one process writes it. It is safe for concurrent use.
type Log struct {
	o      Options
	policy atomic.Pointer[Policy]
	counts counts

	entries, refused atomic.Int64 // since the process began

	sign   chan struct{} // there are enough entries for a checkpoint
	sender *sender       // nil: the log is not sent on

	mu     sync.Mutex
	chain  *chain // nil: the log cannot be written
	failed error  // why
	left   string // the chain that was damaged when this process began
	tried  time.Time
	closed bool
}

// Stats are figures of a log.
type Stats struct {
	Entries  int64      `json:"entries"`           // written since the process began
	Refused  int64      `json:"refused"`           // answers that were not given, as their entry could not be written
	Counted  int64      `json:"counted"`           // answers that are counted and not listed
	Unsigned int64      `json:"unsigned"`          // entries behind the newest checkpoint
	SignedAt *time.Time `json:"signed,omitempty"`  // the newest checkpoint
	Trouble  string     `json:"trouble,omitempty"` // why the log cannot be written
	Damaged  string     `json:"damaged,omitempty"` // the chain that this process found damaged and left as it is
	Sending  *Sending   `json:"sending,omitempty"` // how it is sent on; nil: it is not
}

// New makes the log of a folder, which is opened by its first entry. A log that cannot be
// written is tried again from time to time; until then what must be listed is
// ErrNotAudited.
func New(o Options) *Log {
	understudy.SetDefaults(&o.Logger, &o.Now)
	o.SegmentSize = cmp.Or(o.SegmentSize, segment)
	l := &Log{o: o, sign: make(chan struct{}, 1), sender: newSender(o.Send)}
	l.policy.Store(&o.Policy)
	return l
}

// SetPolicy replaces what is listed.
func (l *Log) SetPolicy(p Policy) { l.policy.Store(&p) }

// Lists reports whether what a caller does is listed, rather than counted or nothing.
func (l *Log) Lists(c understudy.Caller, a understudy.Action) bool {
	return l.policy.Load().lists(c, a, c.Source != "")
}

// Audit implements understudy.Auditor. What is not listed is counted.
func (l *Log) Audit(ctx context.Context, e understudy.AuditEntry) error {
	program := e.Caller.Source != "" && !e.AsPerson
	if !l.policy.Load().lists(e.Caller, e.Action, program) {
		if !e.Done() { // it was counted before it was done
			l.counts.add(e)
		}
		return nil
	}
	body, err := l.encode(e)
	if err != nil {
		return err
	}
	if e.Done() { // its caller may have left
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), doneTime)
		defer cancel()
		if err := l.append(limited, body); err != nil {
			l.o.Logger.Error("audit: what was done is not listed", "action", e.Action, "what", e.What, "request",
				l.o.Key.request(e.Request), "err", err)
		}
		return nil
	}
	if err := l.append(ctx, body); err != nil {
		l.refused.Add(1)
		return fmt.Errorf("audit: %s: %w: %w", e.Action, understudy.ErrNotAudited, err)
	}
	return nil
}

// append makes a line durable.
func (l *Log) append(ctx context.Context, body []byte) error {
	c, err := l.current()
	if err != nil {
		return err
	}
	n, err := c.append(ctx, body)
	if err != nil {
		if ctx.Err() == nil {
			l.fail(c, err)
		}
		return err
	}
	l.entries.Add(1)
	if n-c.signed.Load() >= signEvery {
		select {
		case l.sign <- struct{}{}:
		default: // it has been told
		}
	}
	return nil
}

// current is the chain that is written. One that failed is opened again, once a second
// at most.
func (l *Log) current() (*chain, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.chain != nil:
		return l.chain, nil
	case l.closed:
		return nil, understudy.ErrClosed
	case l.failed != nil && l.o.Now().Sub(l.tried) < tryAgain:
		return nil, l.failed
	}
	l.tried = l.o.Now()
	c, err := openChain(&l.o)
	if err != nil {
		if l.failed == nil || l.failed.Error() != err.Error() {
			l.o.Logger.Error("the audit log cannot be written; what must be in it is answered with 503", "dir", l.o.Dir, "err", err)
		}
		l.failed = err
		return nil, err
	}
	if l.failed != nil {
		l.o.Logger.Info("the audit log can be written again", "dir", l.o.Dir)
	}
	l.chain, l.failed, l.left = c, nil, cmp.Or(c.left, l.left)
	return c, nil
}

// fail gives up a chain that could not be written.
func (l *Log) fail(c *chain, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.chain != c {
		return
	}
	l.o.Logger.Error("the audit log cannot be written; what must be in it is answered with 503", "dir", l.o.Dir, "err", err)
	l.chain, l.failed, l.tried = nil, err, l.o.Now()
	_ = c.close() // its error is the one at hand
}

// Stats are the figures of now.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{Entries: l.entries.Load(), Refused: l.refused.Load(), Counted: l.counts.total.Load(), Damaged: l.left}
	if l.failed != nil {
		s.Trouble = l.failed.Error()
	}
	own, last := "", uint64(0)
	if c := l.chain; c != nil {
		own, last = c.id, c.wal.LastNumber()
		s.Unsigned = max(0, int64(last)-int64(c.signed.Load()))
		s.SignedAt = c.signedAt.Load()
	}
	if l.sender != nil {
		s.Sending = l.sender.stats(own, last)
	}
	return s
}

// Run signs, counts and removes what is too old, until ctx ends.
func (l *Log) Run(ctx context.Context) error {
	every := time.NewTicker(signWithin)
	defer every.Stop()
	var cut time.Time
	for {
		l.housekeep(ctx)
		if now := l.o.Now(); l.o.Keep > 0 && now.Sub(cut) >= cutEvery {
			cut = now
			if err := l.cut(ctx, now.Add(-l.o.Keep)); err != nil && ctx.Err() == nil {
				l.o.Logger.Error("audit: entries that are too old stay", "err", err)
			}
		}
		select {
		case <-l.sign:
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// housekeep writes the counts since the last time, then a checkpoint of what was written.
func (l *Log) housekeep(ctx context.Context) {
	for _, e := range l.counts.take() {
		body, err := l.line(e)
		if err == nil {
			err = l.append(ctx, body)
		}
		if err != nil {
			l.counts.restore(e)
		}
	}
	c, err := l.current()
	if err != nil {
		return
	}
	if err := c.checkpoint(ctx); err != nil && ctx.Err() == nil {
		l.fail(c, err)
	}
}

// closeTime bounds the last checkpoint.
const closeTime = 5 * time.Second

// Close signs what was written and closes the log. What comes later is ErrNotAudited.
func (l *Log) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	l.mu.Lock()
	used := l.chain != nil
	l.mu.Unlock()
	if used {
		l.housekeep(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.chain == nil {
		return nil
	}
	err := l.chain.close()
	l.chain = nil
	if err != nil {
		return errors.Join(errors.New("audit: close"), err)
	}
	return nil
}
