// This file contains the log, which records the actions of callers durably before the callers get their responses.

// Package audit writes the audit log.
//
// The log is a folder of chains, one chain for each process that writes at the same time. A chain is a write-ahead
// log of JSON lines. Each line contains the SHA-256 of the line before. From time to time a line is a checkpoint:
// the head of the chain, signed by a key that is stored elsewhere.
//
//	begin <- entry <- entry <- checkpoint <- entry ...
//	                           signs the hash of the line before it
//
// An attacker who can write to the folder can replace a whole chain by another one, but can't forge its checkpoints.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
)

// Options are the options of a log. Dir and Key must be set.
type Options struct {
	Dir    string        // the folder of the chains; it is created if missing
	Heads  string        // the file with the newest checkpoint of each chain, outside Dir
	Key    Key           // signs checkpoints and hashes values
	Keep   time.Duration // how long entries are kept; 0 means without limit
	Policy Policy        // which actions are listed
	Send   SendOptions   // where Log.Send sends the log
	// SegmentSize is the size in bytes at which a chain begins a new file; 0 means 8 MiB.
	SegmentSize int64
	Now         func() time.Time // the clock; nil means time.Now
	Logger      *slog.Logger     // receives log messages; nil means no log
}

// When a checkpoint is written, and the pause before a log is reopened after an error.
const (
	entriesPerCheckpoint = 1000 // the number of entries after which a checkpoint is written
	signInterval         = time.Minute
	reopenInterval       = time.Second
	segmentBytes         = 8 << 20
)

// doneTimeout is the maximum time for recording an action that was already performed. The action's response waits
// for the record.
const doneTimeout = 5 * time.Second

// Log is the audit log as one process writes it. It is safe for concurrent use.
type Log struct {
	o      Options
	policy atomic.Pointer[Policy]
	counts counts

	entries, refused atomic.Int64 // the number of entries written, and of actions refused because of the log, since the process began

	sign   chan struct{} // signals that there are enough entries for a new checkpoint
	sender *sender       // nil if the log is not sent to a receiver

	mu           lockwatch.Mutex
	chain        *chain // nil if no chain is open
	failed       error  // the error because of which the log cannot be written
	damagedChain string // the chain that was damaged when this process began
	triedAt      time.Time
	closed       bool
}

// Stats are the counters and the state of a log.
type Stats struct {
	Entries  int64       `json:"entries"`           // entries written since the process began
	Refused  int64       `json:"refused"`           // responses refused because their entry could not be written
	Counted  int64       `json:"counted"`           // responses that were counted and not listed one by one
	Unsigned int64       `json:"unsigned"`          // the number of entries after the newest checkpoint
	SignedAt *time.Time  `json:"signed,omitempty"`  // the time of the newest checkpoint
	Trouble  string      `json:"trouble,omitempty"` // why the log cannot be written; "" if it can
	Damaged  string      `json:"damaged,omitempty"` // the chain that this process found damaged at its start and left unchanged
	Sending  *SendStatus `json:"sending,omitempty"` // the state of sending; nil if the log is not sent
}

// New returns the log of a folder. The first entry opens the log. If the log cannot be written, it is reopened from
// time to time. Until then RecordAction returns ErrNotAudited for actions that must be listed.
func New(o Options) *Log {
	understudy.SetDefaults(&o.Logger, &o.Now)
	o.SegmentSize = cmp.Or(o.SegmentSize, segmentBytes)
	l := &Log{o: o, sign: make(chan struct{}, 1), sender: newSender(o.Send)}
	l.policy.Store(&o.Policy)
	return l
}

// SetPolicy replaces the policy that says which actions are listed.
func (l *Log) SetPolicy(p Policy) { l.policy.Store(&p) }

// MustList reports whether an action of a caller is listed. Other actions are only counted or ignored.
func (l *Log) MustList(c understudy.Caller, a understudy.Action) bool {
	return l.policy.Load().mustList(c, a, c.Source != "")
}

// RecordAction implements understudy.Auditor. An action that is not listed is counted.
func (l *Log) RecordAction(ctx context.Context, e understudy.AuditEntry) error {
	program := e.Caller.Source != "" && !e.AsPerson
	if !l.policy.Load().mustList(e.Caller, e.Action, program) {
		if !e.IsFollowUp() { // the action was already counted before it was performed
			l.counts.total.Add(1)
			l.counts.put(countKey{e.Caller.Name, e.Caller.Role(), e.Source, e.Kind, e.Action}, count{1, int64(e.Rows)})
		}
		return nil
	}
	body, err := l.encode(e)
	if err != nil {
		return err
	}
	if e.IsFollowUp() { // the caller of an action that was already performed may have left
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), doneTimeout)
		defer cancel()
		if err := l.append(limited, body); err != nil {
			l.o.Logger.Error("audit: an action could not be written to the audit log", "action", e.Action, "what", e.What, "request",
				l.o.Key.hashIfPhone(e.Request), "err", err)
		}
		return nil
	}
	if err := l.append(ctx, body); err != nil {
		l.refused.Add(1)
		return fmt.Errorf("audit: %s: %w: %w", e.Action, understudy.ErrNotAudited, err)
	}
	return nil
}

// append writes a line and waits until it is durable.
func (l *Log) append(ctx context.Context, body []byte) error {
	c, err := l.getChain()
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
	if n-c.signed.Load() >= entriesPerCheckpoint {
		understudy.Wake(l.sign)
	}
	return nil
}

// getChain returns the chain that is being written. After a failure it opens the log again, at most once a second.
func (l *Log) getChain() (*chain, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.chain != nil:
		return l.chain, nil
	case l.closed:
		return nil, understudy.ErrClosed
	case l.failed != nil && l.o.Now().Sub(l.triedAt) < reopenInterval:
		return nil, l.failed
	}
	l.triedAt = l.o.Now()
	c, err := openChain(&l.o)
	if err != nil {
		if l.failed == nil || l.failed.Error() != err.Error() {
			l.o.Logger.Error("the audit log cannot be written; requests that need an entry are answered with 503", "dir", l.o.Dir, "err", err)
		}
		l.failed = err
		return nil, err
	}
	if l.failed != nil {
		l.o.Logger.Info("the audit log can be written again", "dir", l.o.Dir)
	}
	l.chain, l.failed, l.damagedChain = c, nil, cmp.Or(c.damagedChain, l.damagedChain)
	return c, nil
}

// fail closes a chain that could not be written.
func (l *Log) fail(c *chain, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.chain != c {
		return
	}
	l.o.Logger.Error("the audit log cannot be written; requests that need an entry are answered with 503", "dir", l.o.Dir, "err", err)
	l.chain, l.failed, l.triedAt = nil, err, l.o.Now()
	_ = c.close() // its error is ignored, because err is the cause
}

// Stats returns the current counters and the state of the log.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{Entries: l.entries.Load(), Refused: l.refused.Load(), Counted: l.counts.total.Load(), Damaged: l.damagedChain}
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

// Run writes checkpoints and counts, and removes old entries, until ctx ends.
func (l *Log) Run(ctx context.Context) error {
	every := time.NewTicker(signInterval)
	defer every.Stop()
	var cut time.Time
	for {
		l.writeCountsAndSign(ctx)
		if now := l.o.Now(); l.o.Keep > 0 && now.Sub(cut) >= cutInterval {
			cut = now
			if err := l.cut(ctx, now.Add(-l.o.Keep)); err != nil && ctx.Err() == nil {
				l.o.Logger.Error("audit: old entries could not be removed; this is tried again", "err", err)
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

// writeCountsAndSign writes the counts of unlisted actions since the last call, and then a checkpoint.
func (l *Log) writeCountsAndSign(ctx context.Context) {
	for _, e := range l.counts.take() {
		body, err := l.encodeEntry(e)
		if err == nil {
			err = l.append(ctx, body)
		}
		if err != nil {
			l.counts.put(countKey{e.Caller, e.Role, e.Source, e.Kind, e.Action}, count{e.Count, e.Rows})
		}
	}
	c, err := l.getChain()
	if err != nil {
		return
	}
	if err := c.writeCheckpoint(ctx); err != nil && ctx.Err() == nil {
		l.fail(c, err)
	}
}

// closeTimeout is the maximum time for writing the last checkpoint.
const closeTimeout = 5 * time.Second

// Close writes a last checkpoint and closes the log. Later calls of RecordAction return ErrNotAudited.
func (l *Log) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	l.mu.Lock()
	used := l.chain != nil
	l.mu.Unlock()
	if used {
		l.writeCountsAndSign(ctx)
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
