// This file sends the lines of the log to a receiver on another system, in order and at least once.

package audit

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/kit/retry"
	"understudy/kit/wal"
)

// SendOptions say to which receiver the log is sent. Without a URL it is not sent.
type SendOptions struct {
	URL    string            // the address of the receiver, see CheckSend
	Secret understudy.Secret // the bearer token for an HTTP collector (RFC 6750), or empty
	Roots  *x509.CertPool    // the trusted roots for syslog over TLS; nil means the roots of the system
	Host   string            // the name of this machine in syslog messages, or ""
	KV     understudy.KV     // stores how many lines the receiver has
	Folder string            // tells the log from the logs of other processes that use the same KV, or ""
}

// receiver receives lines. If its method returns nil, the receiver has all these lines.
type receiver interface {
	take(ctx context.Context, lines [][]byte) error
	close()
}

// The limits of a batch of lines, and the intervals of sending.
const (
	maxLines       = 500
	maxBytes       = 256 << 10
	takeTimeout    = 30 * time.Second // the maximum time for sending one batch
	sendInterval   = time.Second      // the time between two checks of the chain of this process
	othersInterval = time.Minute      // the time between two checks of the chains of other processes
	maxPause       = time.Minute      // the maximum time between two attempts
)

// errNotTaken means that the receiver has not confirmed a batch.
var errNotTaken = errors.New("the receiver has not accepted the entries")

// SendStatus is the state of sending the log to a receiver.
type SendStatus struct {
	Sent    int64      `json:"sent"`              // lines sent since the process began
	Behind  int64      `json:"behind"`            // lines that are not yet sent
	TakenAt *time.Time `json:"taken,omitempty"`   // when the receiver confirmed the last lines
	Trouble string     `json:"trouble,omitempty"` // why the receiver does not confirm lines, or ""
}

// sender sends the chains of a folder. Only its loop changes the fields sent and ends.
type sender struct {
	o        SendOptions
	to       receiver
	every    time.Duration
	loaded   bool      // whether the stored progress was read
	saved    bool      // whether the stored progress equals sent
	othersAt time.Time // when the chains of other processes were last checked

	mu        lockwatch.Mutex
	sentLines map[string]uint64 // the number of the last line of each chain that the receiver has
	lastLines map[string]uint64 // the number of the last line of each chain
	now       SendStatus
}

func newSender(o SendOptions) *sender {
	if o.URL == "" {
		return nil
	}
	return &sender{o: o, every: sendInterval, sentLines: map[string]uint64{}, lastLines: map[string]uint64{}}
}

// Send sends lines until ctx ends. No caller waits for it. If the receiver is down, Send tries again after a minute at
// most, and lines that were not sent stay in the log. Send returns an error only for an address that CheckSend refuses.
//
// Sending is not a job: it has no end, its progress is a single value, and a stored job for each batch would add nothing.
func (l *Log) Send(ctx context.Context) error {
	s := l.sender
	if s == nil {
		<-ctx.Done()
		return nil
	}
	to, err := newReceiver(s.o)
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
		l.setTrouble(err)
		if failed++; err == nil {
			failed = 0
		}
		_ = retry.Wait(ctx, retry.Backoff(s.every, maxPause, failed))
	}
	return nil
}

// setTrouble stores the outcome of an attempt, and logs when it changes.
func (l *Log) setTrouble(err error) {
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

// sendAll sends all lines that the receiver does not have. If a chain cannot be read, it continues with the other chains.
func (l *Log) sendAll(ctx context.Context) error {
	s := l.sender
	if err := s.load(ctx); err != nil {
		return err
	}
	errs := []error{l.findEnds()}
	for _, id := range s.unsentChains() {
		err := l.sendChain(ctx, id)
		errs = append(errs, err)
		if errors.Is(err, errNotTaken) || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(errs, s.save(ctx))...)
}

// unsentChains returns the chains with lines that were not sent, the oldest first.
func (s *sender) unsentChains() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, end := range s.lastLines {
		if s.sentLines[id] < end {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// findEnds finds the ends of the chains. It checks the chain of this process at every call, and other chains once a minute.
func (l *Log) findEnds() error {
	s, own := l.sender, ""
	_, _ = l.getChain() // opened first, because findEnd may lock the chain that getChain would continue
	l.mu.Lock()
	if c := l.chain; c != nil {
		own = c.id
		s.end(own, c.wal.LastNumber())
	}
	l.mu.Unlock()
	now := l.o.Now()
	if !s.othersAt.IsZero() && now.Sub(s.othersAt) < othersInterval {
		return nil
	}
	ids, err := ListChains(l.o.Dir)
	if err != nil {
		return err
	}
	s.othersAt = now
	l.forget(ids)
	var errs []error
	for _, id := range ids {
		if id != own {
			errs = append(errs, l.findEnd(id))
		}
	}
	return errors.Join(errs...)
}

// findEnd finds the end of a chain that this process does not write. It skips a chain that another process is writing. The
// last lines of such a chain may not be on the disk yet, and after a power loss other lines would get their numbers.
func (l *Log) findEnd(id string) error {
	files, err := wal.ListFiles(filepath.Join(l.o.Dir, id))
	if err != nil {
		return nil // the chain is just being created, or it is damaged, which verify reports
	}
	c, err := l.o.tryOpen(id)
	if errors.Is(err, wal.ErrDamaged) { // no process writes the chain, so its readable lines are sent
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

// end stores the number of a chain's last line. If the chain has fewer lines than were sent, sending continues
// after its last line. The lines at the receiver then show that some are missing.
func (s *sender) end(id string, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastLines[id], s.sentLines[id] = last, min(s.sentLines[id], last)
}

// forget drops the progress of chains that were removed because they are too old.
func (l *Log) forget(ids []string) {
	s := l.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, end := range s.lastLines {
		if slices.Contains(ids, id) {
			continue
		}
		if lost := end - s.sentLines[id]; lost > 0 {
			l.logLost(id, lost)
		}
		delete(s.lastLines, id)
	}
	for id := range s.sentLines {
		if !slices.Contains(ids, id) {
			delete(s.sentLines, id)
			s.saved = false
		}
	}
}

func (l *Log) logLost(id string, lines uint64) {
	l.o.Logger.Error("audit: entries were removed because of their age before they were sent; raise audit.keep", "chain", id, "entries", lines)
}

// sendChain sends a chain in batches, up to its end.
func (l *Log) sendChain(ctx context.Context, id string) error {
	s := l.sender
	s.mu.Lock()
	from, end := s.sentLines[id]+1, s.lastLines[id]
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
			l.logLost(id, e.Number-from)
			s.setSent(id, e.Number-1)
		}
		if len(lines) == maxLines || size+len(e.Data) >= maxBytes {
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

// sendBatch sends lines of a chain. last is the number of the last line.
func (l *Log) sendBatch(ctx context.Context, id string, last uint64, lines [][]byte) error {
	if len(lines) == 0 {
		return nil
	}
	s := l.sender
	limited, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	if err := s.to.take(limited, lines); err != nil {
		return fmt.Errorf("%w: %w", errNotTaken, err)
	}
	s.setSent(id, last)
	now := l.o.Now().UTC()
	s.mu.Lock()
	s.now.Sent += int64(len(lines))
	s.now.TakenAt = &now
	s.mu.Unlock()
	return s.save(ctx)
}
