// This file contains the job that sends new changes to a webhook.

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
	"understudy/internal/publish"
	"understudy/internal/webhook"
	"understudy/kit/jsonspan"
)

const (
	maxBatch      = 100       // the maximum number of changes in one request
	maxBatchBytes = 256 << 10 // the maximum size of the changes in one request
	maxScanned    = 10_000    // the maximum number of changes that are read before the position is saved
)

// Deliver sends all new changes to the webhook that the job's key names, in order and in batches. After a 2xx
// answer the position advances. An error means that a batch must be sent again. Deliver returns nil when the
// webhook has received the newest change, is paused, or no longer exists.
func (f *Feed) Deliver(ctx context.Context, run outbox.Run) error {
	one := f.hooks.get(run.Job().Key)
	if one == nil {
		return nil
	}
	r := f.readers[one.settings.Source]
	err := r.readNew(ctx) // another process may have added the job
	if err == nil {
		err = one.progress.line.Deliver(ctx, func() error { return f.deliver(ctx, run, one) })
	}
	if err == nil {
		r.notify() // changes may have been stored while the job was ending
	}
	return err
}

// deliver sends batch after batch. It also ends when new settings apply; then a new job delivers the remaining changes.
func (f *Feed) deliver(ctx context.Context, run outbox.Run, one *hook) error {
	for delivered := 0; ; {
		state := one.progress.load()
		if f.hooks.get(one.settings.Name) != one || state.Paused != "" || f.o.SharedNow().Before(state.NotBefore) {
			return nil
		}
		b, err := f.gatherBatch(ctx, one, state)
		if err != nil {
			return err
		}
		if b.until == state.After {
			one.progress.mu.Lock()
			if one.progress.scanned <= b.until { // if scanned is greater, enqueueDue has read later changes meanwhile
				one.progress.scanned, one.progress.due = b.until, false
			}
			one.progress.mu.Unlock()
			return nil
		}
		taken := true
		if b.count > 0 {
			taken, err = f.send(ctx, one, b, &state)
		}
		if taken {
			err = f.updateState(ctx, one, &state, func(s *hookState) {
				s.After, s.BatchEnd = b.until, 0
				if b.count > 0 {
					s.Error, s.Failing, s.NotBefore = "", time.Time{}, time.Time{}
					s.Delivered += int64(b.count)
					s.At = f.o.SharedNow().UTC()
				}
			})
		}
		switch {
		case errors.Is(err, errMoved) && one.progress.load().Replays != state.Replays:
			continue // a person has moved it
		case errors.Is(err, errMoved): // another process delivers, because this one was paused
			return nil
		case err != nil || !taken:
			return err
		}
		head, err := f.readers[one.settings.Source].readLast(ctx, b.until)
		if err != nil {
			return err
		}
		delivered += b.count
		run.SetProgress(b.until, head, fmt.Sprintf("%d changes delivered", delivered))
	}
}

// batch is the content of one request to a webhook.
type batch struct {
	after, until int64 // the batch has the changes with numbers in (after, until]
	count        int
	ids          []string // the ids of the changed records
	body         bytes.Buffer
	messages     []publish.Message // the changes, if they are published
}

// gatherBatch gathers the next changes. If a batch was sent before without success, it gathers the same changes,
// else as many as fit.
func (f *Feed) gatherBatch(ctx context.Context, one *hook, state hookState) (*batch, error) {
	a, err := f.findRoleGroup(one.policy, one.settings.Source, one.settings.Role)
	if err != nil {
		return nil, err
	}
	s := &Subscription{
		feed: f, policy: &policy{}, group: a, reader: f.readers[one.settings.Source], caller: a.caller, query: one.query, start: state.After,
	}
	s.query.limit, s.query.wait = 0, -1
	b := &batch{after: state.After, until: state.After}
	for e, err := range s.Follow(ctx) {
		if err != nil {
			return nil, err
		}
		if state.BatchEnd > 0 && e.at > state.BatchEnd {
			b.until = state.BatchEnd
			break
		}
		if b.until = e.at; e.Kind == EventChange {
			b.add(&e)
			if one.publisher != nil {
				id := f.messageID(one, e.at-1, e.at, state.Replays)
				b.messages = append(b.messages, publish.Message{ID: id, Key: e.Change.ID, At: e.Change.At, Data: e.JSON})
			}
		}
		isFull := b.count == maxBatch || b.body.Len() > maxBatchBytes
		isTired := state.BatchEnd == 0 && b.until-b.after >= maxScanned
		if isFull || e.Kind == EventRead && (!e.hasMore || isTired) {
			break
		}
	}
	return b.finish(f, one, a), nil
}

// add appends a change to the batch.
func (b *batch) add(e *Event) {
	if b.count > 0 {
		b.body.WriteByte(',')
	}
	b.body.Write(e.JSON)
	b.ids = append(b.ids, e.Change.ID)
	b.count++
}

// finish completes the message of the batch around the changes.
func (b *batch) finish(f *Feed, one *hook, a *roleGroup) *batch {
	changes := bytes.Clone(b.body.Bytes())
	b.body.Reset()
	name, source := jsonspan.Quote(nil, one.settings.Name), jsonspan.Quote(nil, one.settings.Source)
	next := jsonspan.Quote(nil, a.cursor(b.until))
	fmt.Fprintf(&b.body, `{"type":"changes","timestamp":%q,"data":{"webhook":%s,"source":%s,"changes":[`,
		f.o.Now().UTC().Format(time.RFC3339Nano), name, source)
	b.body.Write(changes)
	fmt.Fprintf(&b.body, `],"next":%s}}`, next)
	return b
}

// send sends a batch and reports whether the receiver accepted it. It saves the end of the batch first, so that a
// retry sends the same batch. If taken is false and err is nil, the webhook was paused.
func (f *Feed) send(ctx context.Context, one *hook, b *batch, state *hookState) (taken bool, err error) {
	if state.BatchEnd != b.until {
		if err := f.updateState(ctx, one, state, func(s *hookState) { s.BatchEnd = b.until }); err != nil {
			return false, err
		}
		state.BatchEnd = b.until
	}
	h := &one.settings
	err = understudy.RecordAudit(ctx, f.o.Audit, understudy.AuditEntry{
		Caller: understudy.Caller{Name: "webhook " + h.Name, Source: h.Source, Grant: &understudy.Grant{Role: h.Role}},
		Action: understudy.ActionList, What: "feed", Source: h.Source, IDs: b.ids, Rows: b.count})
	if err != nil { // the error is not the receiver's, so the webhook's state does not change
		return false, fmt.Errorf("feed: webhook %s: %w", h.Name, err)
	}
	answer, err := one.send(ctx, f.messageID(one, b.after, b.until, state.Replays), b.body.Bytes(), b.messages)
	if err == nil {
		return true, nil
	}
	if ctx.Err() != nil { // the job was cancelled, so the failure is not the receiver's
		return false, ctx.Err()
	}
	now := f.o.SharedNow()
	paused := ""
	switch since := state.Failing; {
	case answer.IsGone():
		paused = "the receiver answered 410: it accepts no more changes"
	case !since.IsZero() && now.Sub(since) >= f.o.Limits.Pause:
		paused = fmt.Sprintf("every attempt has failed since %s; the last error: %v", since.UTC().Format(time.RFC3339), err)
	}
	kept := f.updateState(ctx, one, state, func(s *hookState) {
		if s.Error = understudy.PlainText(err); s.Paused == "" { // if Paused is already set, a person has paused the webhook meanwhile
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

// messageID returns the id of a message with the changes (after, until].
func (f *Feed) messageID(one *hook, after, until, replays int64) string {
	return outbox.MessageID(f.places.key, "webhook\x00%s\x00%s\x00%d\x00%d\x00%d", one.settings.Name, one.settings.Source,
		after, until, replays).ShortString()
}

// send sends a body, or publishes messages in its place.
func (one *hook) send(ctx context.Context, id string, body []byte, messages []publish.Message) (webhook.Answer, error) {
	if one.publisher != nil {
		return webhook.Answer{}, one.publisher.Publish(ctx, messages)
	}
	return one.sender.Send(ctx, id, body)
}

// updateState changes a webhook's state and saves it, even if the job is cancelled. If a person or another process has
// moved the position since the state before, it returns errMoved.
func (f *Feed) updateState(ctx context.Context, one *hook, before *hookState, change func(*hookState)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	err := f.hooks.changeState(ctx, one, func(s *hookState) error {
		if s.After != before.After || s.BatchEnd != before.BatchEnd || s.Replays != before.Replays {
			return errMoved
		}
		change(s)
		return nil
	})
	if err != nil {
		return fmt.Errorf("feed: save the position of webhook %s: %w", one.settings.Name, err)
	}
	return nil
}

// errMoved means that a person or another process has moved the position of a webhook.
var errMoved = errors.New("the position was moved meanwhile")

// saveTimeout is the time limit for saving the position of a webhook.
const saveTimeout = 5 * time.Second

// SendMessage sends a webhook a message that is not about changes. Its id depends on key alone, so the receiver can
// detect a retry. It returns ErrInvalid if the webhook does not exist, is paused or answers 410. After any other error
// the caller may try again.
func (f *Feed) SendMessage(ctx context.Context, webhook, sort, key string, data any) error {
	one := f.hooks.get(webhook)
	if one == nil {
		return fmt.Errorf("feed: %w: no webhook is called %q", understudy.ErrInvalid, understudy.Clip(webhook))
	}
	if paused := one.progress.load().Paused; paused != "" {
		return fmt.Errorf("feed: %w: webhook %s is paused: %s", understudy.ErrInvalid, one.settings.Name, paused)
	}
	body, err := json.Marshal(map[string]any{"type": sort, "timestamp": f.o.Now().UTC(), "data": data})
	if err != nil {
		return fmt.Errorf("feed: webhook %s: %w", one.settings.Name, err)
	}
	id := outbox.MessageID(f.places.key, "told\x00%s\x00%s\x00%s", one.settings.Name, sort, key).ShortString()
	answer, err := one.send(ctx, id, body, []publish.Message{{ID: id, Key: sort, At: f.o.Now(), Data: body}})
	switch {
	case err == nil:
		return nil
	case answer.IsGone():
		return fmt.Errorf("feed: %w: webhook %s: the receiver answered 410: it accepts no more changes", understudy.ErrInvalid, one.settings.Name)
	case answer.Wait > 0:
		return &understudy.Snooze{Wait: answer.Wait, Err: err}
	}
	return fmt.Errorf("feed: webhook %s: %w", one.settings.Name, err)
}
