// Send: the lines of the log go to a receiver elsewhere, in order, at least once.

package audit

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/kit/retry"
	"understudy/kit/wal"
)

// SendOptions say where the log is sent. Without a URL it is sent nowhere.
type SendOptions struct {
	URL    string            // see CheckSend
	Secret understudy.Secret // the bearer token of an HTTP collector (RFC 6750); empty: none
	Roots  *x509.CertPool    // who may vouch for a syslog receiver by TLS; nil: whom the system trusts
	Host   string            // the name of this machine in syslog; "": none is said
	KV     understudy.KV     // keep how far the receiver has come
}

// receiver takes lines. A nil error means that it has all of them.
type receiver interface {
	take(ctx context.Context, lines [][]byte) error
	close()
}

// The bounds of a batch and of its times.
const (
	mostLines   = 500
	mostBytes   = 256 << 10
	takeTime    = 30 * time.Second // for one batch
	sendEvery   = time.Second      // between two looks at the chain of this process
	othersEvery = time.Minute      // and at those of others
	mostPause   = time.Minute      // between two tries
)

// errNotTaken is the error of a batch.
var errNotTaken = errors.New("the receiver has not taken it")

// Sending says how sending goes.
type Sending struct {
	Sent    int64      `json:"sent"`              // lines since the process began
	Behind  int64      `json:"behind"`            // lines that are not yet sent
	TakenAt *time.Time `json:"taken,omitempty"`   // when the receiver took the last ones
	Trouble string     `json:"trouble,omitempty"` // why it takes none
}

// sender sends the chains of a folder. The loop alone changes sent and ends.
type sender struct {
	o     SendOptions
	to    receiver
	every time.Duration
	known bool      // the value was read
	saved bool      // the value says what sent does
	looks time.Time // when the chains of other processes were looked at

	mu   sync.Mutex
	sent map[string]uint64 // the last line of each chain that the receiver has
	ends map[string]uint64 // the last line that each chain has
	now  Sending
}

func newSender(o SendOptions) *sender {
	if o.URL == "" {
		return nil
	}
	return &sender{o: o, every: sendEvery, sent: map[string]uint64{}, ends: map[string]uint64{}}
}

// Send sends lines until ctx ends. Nothing waits for it: a receiver that is down is tried
// again, after a minute at most, and what it has not had stays in the log. The error is
// that of an address that CheckSend refuses.
//
// It is no job: its work has no end, how far it has come is one value, and a row of the
// store for each batch would say no more.
func (l *Log) Send(ctx context.Context) error {
	s := l.sender
	if s == nil {
		<-ctx.Done()
		return nil
	}
	to, err := receiverOf(s.o)
	if err != nil {
		return err
	}
	defer to.close()
	s.to = to
	for failed := 0; ctx.Err() == nil; {
		err := l.sendAll(ctx)
		if ctx.Err() != nil {
			break
		}
		l.tell(err)
		if failed++; err == nil {
			failed = 0
		}
		_ = retry.Sleep(ctx, retry.Backoff(s.every, mostPause, failed))
	}
	return nil
}

// tell keeps the outcome of a try, and logs when it is another than before.
func (l *Log) tell(err error) {
	s, text := l.sender, ""
	if err != nil {
		text = err.Error()
	}
	s.mu.Lock()
	was := s.now.Trouble
	s.now.Trouble = text
	s.mu.Unlock()
	switch {
	case was == "" && err != nil:
		l.o.Logger.Error("the audit log is not sent on; it is tried again", "err", err)
	case was != "" && err == nil:
		l.o.Logger.Info("the audit log is sent on again")
	}
}

// sendAll sends what the receiver has not had. A chain that cannot be read does not keep
// the others.
func (l *Log) sendAll(ctx context.Context) error {
	s := l.sender
	if err := s.load(ctx); err != nil {
		return err
	}
	errs := []error{l.look()}
	for _, id := range s.waiting() {
		err := l.sendChain(ctx, id)
		errs = append(errs, err)
		if errors.Is(err, errNotTaken) || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(errs, s.save(ctx))...)
}

// waiting are the chains with lines that were not sent, the oldest first.
func (s *sender) waiting() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, end := range s.ends {
		if s.sent[id] < end {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// look finds the ends of the chains: of the one this process writes always, of others
// once a minute.
func (l *Log) look() error {
	s, own := l.sender, ""
	_, _ = l.current() // it is opened first: lookAt may hold the chain it would go on with
	l.mu.Lock()
	if c := l.chain; c != nil {
		own = c.id
		s.end(own, c.wal.LastNumber())
	}
	l.mu.Unlock()
	now := l.o.Now()
	if !s.looks.IsZero() && now.Sub(s.looks) < othersEvery {
		return nil
	}
	ids, err := Chains(l.o.Dir)
	if err != nil {
		return err
	}
	s.looks = now
	l.forget(ids)
	var errs []error
	for _, id := range ids {
		if id != own {
			errs = append(errs, l.lookAt(id))
		}
	}
	return errors.Join(errs...)
}

// lookAt finds the end of a chain that this process does not write. Lines of a process
// that writes are not looked at until it has ended: they may not be on the disk yet, and
// another line would get the number of one that a power loss takes.
func (l *Log) lookAt(id string) error {
	files, err := wal.ListFiles(filepath.Join(l.o.Dir, id))
	if err != nil {
		return nil // it is being begun, or verify says what is wrong
	}
	c, err := l.o.take(id)
	if errors.Is(err, wal.ErrDamaged) { // nobody writes it: what can be read is sent
		last := files[len(files)-1] - 1
		for e, bad := range (Reader{Dir: l.o.Dir}).Lines(id, last+1) {
			if bad == nil {
				last = e.Number
			}
		}
		l.sender.end(id, last)
		return nil
	}
	if c == nil || err != nil {
		return err
	}
	l.sender.end(id, c.wal.LastNumber())
	return c.close()
}

// end keeps the end of a chain. One that is shorter than what was sent goes on from its
// end: what the receiver has shows that lines are missing.
func (s *sender) end(id string, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[id], s.sent[id] = last, min(s.sent[id], last)
}

// forget leaves out the chains that were too old and went.
func (l *Log) forget(ids []string) {
	s := l.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, end := range s.ends {
		if slices.Contains(ids, id) {
			continue
		}
		if lost := end - s.sent[id]; lost > 0 {
			l.lost(id, lost)
		}
		delete(s.ends, id)
	}
	for id := range s.sent {
		if !slices.Contains(ids, id) {
			delete(s.sent, id)
			s.saved = false
		}
	}
}

func (l *Log) lost(id string, lines uint64) {
	l.o.Logger.Error("audit: entries were too old and went before they were sent; raise audit.keep", "chain", id, "entries", lines)
}

// sendChain sends a chain in batches, up to its end.
func (l *Log) sendChain(ctx context.Context, id string) error {
	s := l.sender
	s.mu.Lock()
	from, end := s.sent[id]+1, s.ends[id]
	s.mu.Unlock()
	var lines [][]byte
	size := 0
	for e, err := range (Reader{Dir: l.o.Dir}).Lines(id, from) {
		if err != nil {
			return errors.Join(l.sendBatch(ctx, id, from-1, lines), fmt.Errorf("audit: chain %s: %w", id, err))
		}
		if e.Number > end {
			break
		}
		if e.Number > from && len(lines) == 0 {
			l.lost(id, e.Number-from)
			s.reached(id, e.Number-1)
		}
		if len(lines) == mostLines || size+len(e.Data) >= mostBytes {
			if err := l.sendBatch(ctx, id, e.Number-1, lines); err != nil {
				return err
			}
			lines, size = lines[:0], 0
		}
		lines, size = append(lines, bytes.Clone(e.Data)), size+len(e.Data)+1
		from = e.Number + 1
	}
	return l.sendBatch(ctx, id, from-1, lines)
}

// sendBatch sends lines of a chain, of which the last has this number.
func (l *Log) sendBatch(ctx context.Context, id string, last uint64, lines [][]byte) error {
	if len(lines) == 0 {
		return nil
	}
	s := l.sender
	limited, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	if err := s.to.take(limited, lines); err != nil {
		return fmt.Errorf("%w: %w", errNotTaken, err)
	}
	s.reached(id, last)
	now := l.o.Now().UTC()
	s.mu.Lock()
	s.now.Sent += int64(len(lines))
	s.now.TakenAt = &now
	s.mu.Unlock()
	return s.save(ctx)
}
