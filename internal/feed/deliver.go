// Deliver: the job that sends a webhook its new changes.

package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"understudy"
	"understudy/internal/outbox"
)

const (
	maxBatch      = 100       // changes in one request
	maxBatchBytes = 256 << 10 // of them
	maxScan       = 10_000    // looked through before the position is kept
)

// Deliver sends the webhook of its job's key all new changes, batch by batch and in
// order. A 2xx answer moves its position. An error is a batch that must be tried again.
// nil: it has reached the newest change, or is paused, or no longer exists.
func (f *Feed) Deliver(ctx context.Context, run outbox.Run) error {
	one := f.hooks.get(run.Job().Key)
	if one == nil {
		return nil
	}
	err := one.progress.line.Deliver(ctx, func() error { return f.deliver(ctx, run, one) })
	if err == nil {
		f.readers[one.settings.Source].ring() // something may have come while the job was ending
	}
	return err
}

// deliver also ends when other settings come into force: the rest is delivered by
// these.
func (f *Feed) deliver(ctx context.Context, run outbox.Run, one *hook) error {
	for delivered := 0; ; {
		one.progress.mu.Lock()
		state, moves := one.progress.state, one.progress.moves
		one.progress.mu.Unlock()
		if f.hooks.get(one.settings.Name) != one || state.Paused != "" || f.o.Now().Before(state.NotBefore) {
			return nil
		}
		b, err := f.batch(ctx, one, state)
		if err != nil {
			return err
		}
		if b.until == state.After {
			one.progress.mu.Lock()
			if one.progress.scanned <= b.until { // else look knows of later changes
				one.progress.scanned, one.progress.due = b.until, false
			}
			one.progress.mu.Unlock()
			return nil
		}
		if b.count > 0 {
			if taken, err := f.send(ctx, one, b, state, moves); !taken {
				return err
			}
		}
		err = f.change(ctx, one, moves, func(s *hookState) {
			s.After, s.Until = b.until, 0
			if b.count > 0 {
				s.Error, s.Failing, s.NotBefore = "", time.Time{}, time.Time{}
				s.Delivered += int64(b.count)
				s.At = f.o.Now().UTC()
			}
		})
		if err != nil {
			return err
		}
		head, err := f.readers[one.settings.Source].last(ctx, b.until)
		if err != nil {
			return err
		}
		delivered += b.count
		run.SetProgress(b.until, head, fmt.Sprintf("%d changes delivered", delivered))
	}
}

// batch is what one request carries.
type batch struct {
	after, until int64 // the changes in (after, until] that are wanted
	count        int
	ids          []string // of their records
	body         bytes.Buffer
}

// batch gathers the next changes: those of a batch that was sent before, or as
// many as fit.
func (f *Feed) batch(ctx context.Context, one *hook, state hookState) (*batch, error) {
	a, err := f.roleGroup(one.policy, one.settings.Source, one.settings.Role)
	if err != nil {
		return nil, err
	}
	b, at := &batch{after: state.After, until: state.After}, f.positionAt(f.readers[one.settings.Source], state.After)
	for scanned := 0; scanned < maxScan || state.Until > 0; {
		rows, recent, _, err := at.next(ctx)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			if state.Until > 0 && rows[i].N > state.Until {
				return b.close(f, one, a), nil
			}
			b.until = rows[i].N
			scanned++
			sight := a.view(&rows[i], recent)
			if !sight.shown || !one.query.wants(&sight.seen) {
				continue
			}
			if b.count > 0 {
				b.body.WriteByte(',')
			}
			b.body.Write(sight.data)
			b.ids = append(b.ids, sight.seen.ID)
			if b.count++; b.count == maxBatch || b.body.Len() > maxBatchBytes {
				return b.close(f, one, a), nil
			}
		}
	}
	return b.close(f, one, a), nil
}

// close puts the rest of the message around the changes.
func (b *batch) close(f *Feed, one *hook, a *roleGroup) *batch {
	changes := bytes.Clone(b.body.Bytes())
	b.body.Reset()
	name, source := quote(one.settings.Name), quote(one.settings.Source)
	next := quote(a.cursor(b.until))
	fmt.Fprintf(&b.body, `{"type":"changes","timestamp":%q,"data":{"webhook":%s,"source":%s,"changes":[`,
		f.o.Now().UTC().Format(time.RFC3339Nano), name, source)
	b.body.Write(changes)
	fmt.Fprintf(&b.body, `],"next":%s}}`, next)
	return b
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil { // a string marshals
		panic("feed: " + err.Error())
	}
	return string(text)
}

// send sends a batch and reports whether it was taken. Its end is kept first: another try sends the same one. A nil
// error without that means that the webhook was paused.
func (f *Feed) send(ctx context.Context, one *hook, b *batch, state hookState, moves int) (taken bool, err error) {
	if state.Until != b.until {
		if err := f.change(ctx, one, moves, func(s *hookState) { s.Until = b.until }); err != nil {
			return false, err
		}
	}
	h := &one.settings
	err = understudy.RecordAudit(ctx, f.o.Audit, understudy.AuditEntry{
		Caller: understudy.Caller{Name: "webhook " + h.Name, Source: h.Source, Grant: &understudy.Grant{Role: h.Role}},
		Action: understudy.ActionList, What: "feed", Source: h.Source, IDs: b.ids, Rows: b.count})
	if err != nil { // the receiver is not to blame
		return false, fmt.Errorf("feed: webhook %s: %w", h.Name, err)
	}
	id := outbox.MessageID(f.places.key, "webhook\x00%s\x00%s\x00%d\x00%d\x00%d", one.settings.Name, one.settings.Source,
		b.after, b.until, state.Round)
	answer, err := one.sender.Send(ctx, id.ShortString(), b.body.Bytes())
	if err == nil {
		return true, nil
	}
	if ctx.Err() != nil { // the job was ended: the receiver is not to blame
		return false, ctx.Err()
	}
	now := f.o.Now()
	paused := ""
	switch since := state.Failing; {
	case answer.Gone():
		paused = "the receiver answered 410: it wants no more"
	case !since.IsZero() && now.Sub(since) >= f.o.Limits.Pause:
		paused = fmt.Sprintf("every try has failed since %s; the last: %v", since.UTC().Format(time.RFC3339), err)
	}
	kept := f.change(ctx, one, moves, func(s *hookState) {
		if s.Error = understudy.PlainText(err); s.Paused == "" { // else it was paused by hand meanwhile
			s.Paused = paused
		}
		if s.Failing.IsZero() {
			s.Failing = now
		}
		s.NotBefore = time.Time{}
		if answer.Wait > 0 {
			s.NotBefore = now.Add(answer.Wait)
		}
	})
	if paused != "" {
		f.o.Logger.Warn("webhook paused", "webhook", one.settings.Name, "why", paused)
		return false, nil
	}
	return false, fmt.Errorf("feed: webhook %s: %w", one.settings.Name, errors.Join(err, kept))
}

// change changes the state and saves it. If the position was set from outside
// meanwhile, the change is dropped. The state is saved even while the job is ended.
func (f *Feed) change(ctx context.Context, one *hook, moves int, change func(*hookState)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	one.progress.mu.Lock()
	defer one.progress.mu.Unlock()
	if one.progress.moves != moves {
		return nil
	}
	if err := f.hooks.update(ctx, one, change); err != nil {
		return fmt.Errorf("feed: keep the place of webhook %s: %w", one.settings.Name, err)
	}
	return nil
}

// keepTime bounds saving a position.
const keepTime = 5 * time.Second

// Tell sends a webhook a message that is no change: once, under an id that is the same for
// the same key. The error is one that another try may mend, but for ErrInvalid: there is
// no such webhook, or it is paused.
func (f *Feed) Tell(ctx context.Context, webhook, sort, key string, data any) error {
	one := f.hooks.get(webhook)
	if one == nil {
		return fmt.Errorf("feed: %w: no webhook is called %q", understudy.ErrInvalid, understudy.Clip(webhook))
	}
	one.progress.mu.Lock()
	paused := one.progress.state.Paused
	one.progress.mu.Unlock()
	if paused != "" {
		return fmt.Errorf("feed: %w: webhook %s is paused: %s", understudy.ErrInvalid, one.settings.Name, paused)
	}
	body, err := json.Marshal(map[string]any{"type": sort, "timestamp": f.o.Now().UTC(), "data": data})
	if err != nil {
		return fmt.Errorf("feed: webhook %s: %w", one.settings.Name, err)
	}
	id := outbox.MessageID(f.places.key, "told\x00%s\x00%s\x00%s", one.settings.Name, sort, key)
	answer, err := one.sender.Send(ctx, id.ShortString(), body)
	switch {
	case err == nil:
		return nil
	case answer.Gone():
		return fmt.Errorf("feed: %w: webhook %s: the receiver answered 410: it wants no more", understudy.ErrInvalid, one.settings.Name)
	case answer.Wait > 0:
		return &understudy.Snooze{Wait: answer.Wait, Err: err}
	}
	return fmt.Errorf("feed: webhook %s: %w", one.settings.Name, err)
}
