// This file contains the job that sends the matches of a watch.

package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/outbox"
	"understudy/internal/query"
	"understudy/internal/webhook"
)

// Kind is the kind of jobs that send matches. The key of such a job is the watch's id.
const Kind = "tell matches"

// Deliver sends the matches of the watch that the job's key names, message by message. An error means that a message
// must be sent again. Deliver returns nil when everything was sent, or when the watch is stopped or removed.
func (b *Book) Deliver(ctx context.Context, run outbox.Run) error {
	e, err := b.find(run.Job().Key)
	if err != nil {
		return nil // the watch was removed
	}
	err = e.line.Deliver(ctx, func() error {
		err := b.sendPending(ctx, run, e)
		if errors.Is(err, understudy.ErrNotFound) {
			return nil
		}
		return err
	})
	if err == nil {
		b.Notify() // more matches may have been found while the job was ending
	}
	return err
}

// sendPending sends messages until no matches are pending.
func (b *Book) sendPending(ctx context.Context, run outbox.Run, e *entry) error {
	for sent := int64(0); ; {
		s := e.status()
		if s.Pending == 0 || s.State.Stopped != "" {
			return nil
		}
		p := b.policy.Load()
		if s.Watch.To.Channel != Webhook {
			if wait := s.State.Sent.Add(p.Rules.Every).Sub(b.o.Now()); wait > 0 && !s.State.Sent.IsZero() {
				return &understudy.Snooze{Wait: wait, Err: errors.New("one message was sent a moment ago")}
			}
		}
		n, err := b.sendNext(ctx, p, e)
		if err != nil {
			return err
		}
		sent += n
		run.SetProgress(sent, 0, fmt.Sprintf("%d matches sent", sent))
	}
}

// sendNext sends the next message of a watch and returns the number of matches in it.
func (b *Book) sendNext(ctx context.Context, p *Policy, e *entry) (n int64, err error) {
	w, err := b.newWatcher(ctx, e)
	if err != nil {
		return 0, err
	}
	if w == nil {
		return 0, errStopped
	}
	batch, err := b.chooseBatch(ctx, e)
	if err != nil || len(batch) == 0 {
		return 0, err
	}
	s := e.status()
	note, err := b.compose(ctx, p, w, &s, batch)
	if err != nil {
		return 0, err
	}
	if len(note.Matches) > 0 {
		if err := b.recordAudit(ctx, w.caller, note); err != nil {
			return 0, fmt.Errorf("watch %s: %w", e.id, err)
		}
		if err := b.send(ctx, p, e, &s, note); err != nil {
			return 0, err
		}
	}
	return int64(len(note.Matches)), b.update(ctx, e, func(k *kept) {
		k.Pending, k.Batch = slices.DeleteFunc(k.Pending, func(m match) bool { return slices.Contains(batch, m) }), 0
		k.Told += int64(len(note.Matches))
	})
}

// chooseBatch returns the matches of the next message. It saves their number first, so that a retry sends the same message.
func (b *Book) chooseBatch(ctx context.Context, e *entry) (batch []match, err error) {
	e.mu.Lock()
	n, pending, channel := e.kept.Batch, slices.Clone(e.kept.Pending), e.kept.To.Channel
	e.mu.Unlock()
	if n == 0 {
		n = min(len(pending), 500)
		if channel == Webhook {
			n = min(n, 100) // a webhook message lists every match
		}
		err = b.update(ctx, e, func(k *kept) { k.Batch = min(n, len(k.Pending)) })
	}
	return pending[:min(n, len(pending))], err
}

// compose reads the records of a batch as the owner sees them now. It leaves out records that no longer match.
func (b *Book) compose(ctx context.Context, p *Policy, w *watcher, s *Status, batch []match) (*notification, error) {
	var matches strings.Builder
	for _, m := range batch {
		fmt.Fprintf(&matches, "\x00%s\x00%d", m.Source, m.N)
	}
	id := outbox.MessageID(b.o.Key, "watch\x00%s\x00%d%s", s.Watch.ID, len(batch), &matches)
	note := &notification{ID: id.String(), Watch: s.Watch, Request: w.request, At: b.o.Now().UTC(), URL: p.URL, sources: b.o.Sources}
	type group struct{ source, kind string }
	ids, order := map[group][]string{}, map[query.NamedTarget]int{}
	for i, m := range batch {
		changes, err := b.o.Records.ReadChanges(ctx, m.Source, m.N-1, 1)
		if err != nil {
			return nil, err
		}
		if len(changes) == 0 || changes[0].N != m.N {
			continue // the change that made the record match was erased
		}
		c := &changes[0]
		key := query.NamedTarget{Source: m.Source, Kind: c.Kind, ID: c.ID}
		if _, twice := order[key]; !twice {
			order[key] = i
			g := group{m.Source, c.Kind}
			ids[g] = append(ids[g], c.ID)
		}
	}
	for g, some := range ids {
		err := b.policy.Load().Search.Show(ctx, w.caller, w.request, g.source, g.kind, some, func(h query.SearchHit) {
			h.Body = slices.Clone(h.Body)
			note.Matches = append(note.Matches, h)
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(note.Matches, func(x, y query.SearchHit) int {
		return order[query.NamedTarget{Source: x.Source, Kind: x.Kind, ID: x.ID}] -
			order[query.NamedTarget{Source: y.Source, Kind: y.Kind, ID: y.ID}]
	})
	return note, nil
}

// recordAudit records the records in a message as an export by the watch's owner. After an error the message must not
// be sent now; the error is not the receiver's.
func (b *Book) recordAudit(ctx context.Context, owner understudy.Caller, note *notification) error {
	var all []understudy.AuditEntry
	for _, h := range note.Matches {
		i := slices.IndexFunc(all, func(e understudy.AuditEntry) bool { return e.Source == h.Source && e.Kind == h.Kind })
		if i < 0 {
			i, all = len(all), append(all, understudy.AuditEntry{Caller: owner, Action: understudy.ActionExport, Source: h.Source, Kind: h.Kind,
				What: fmt.Sprintf("watch %s to %s", note.Watch.ID, note.Watch.To.Channel)})
		}
		all[i].IDs = append(all[i].IDs, h.ID)
		all[i].Rows++
	}
	for _, e := range all {
		if err := understudy.RecordAudit(ctx, b.o.Audit, e); err != nil {
			return err
		}
	}
	return nil
}

// send sends a message and adds the delivery to the log. An error means that the message must be sent again. If the
// watch is stopped because of its receiver, send returns errStopped.
func (b *Book) send(ctx context.Context, p *Policy, e *entry, s *Status, note *notification) error {
	d, wait, err := b.try(ctx, p, &s.Watch, note)
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // the job was cancelled, so the failure is not the receiver's
	}
	if err == nil {
		return b.update(ctx, e, func(k *kept) {
			k.addDelivery(d)
			k.Failing, k.Sent = time.Time{}, d.At
		})
	}
	why := ""
	switch {
	case d.Outcome == Refused:
		why = "The receiver refused a message: " + d.Said
	case !s.State.Failing.IsZero() && d.At.Sub(s.State.Failing) >= p.Rules.Pause:
		why = fmt.Sprintf("Every attempt has failed since %s; the last error: %s", s.State.Failing.Format(time.RFC3339), d.Said)
	}
	kept := b.update(ctx, e, func(k *kept) {
		k.addDelivery(d)
		if why != "" && k.Stopped == "" {
			k.Stopped, k.Continues = why, true
		}
		if k.Failing.IsZero() {
			k.Failing = d.At
		}
	})
	switch {
	case kept != nil:
		return kept
	case why != "":
		b.o.Logger.Warn("watch stopped", "watch", e.id, "why", d.Outcome)
		return errStopped
	case wait > 0:
		return &understudy.Snooze{Wait: wait, Err: err}
	}
	return fmt.Errorf("watch %s: %w", e.id, err)
}

// errStopped ends the job of a stopped watch. It wraps ErrNotFound, so Deliver ends the job without an error.
var errStopped = fmt.Errorf("%w: it is stopped", understudy.ErrNotFound)

// addDelivery adds a delivery to the log. A retry replaces the delivery of the same message in the log.
func (k *kept) addDelivery(d Delivery) {
	if len(k.Log) > 0 && k.Log[0].ID == d.ID {
		d.Tries += k.Log[0].Tries
		k.Log[0] = d
		return
	}
	k.Log = slices.Insert(k.Log, 0, d)
	k.Log = k.Log[:min(len(k.Log), maxLogged)]
}

// try sends a message and returns the result as a Delivery. Its outcome is Refused if a retry cannot succeed.
func (b *Book) try(ctx context.Context, p *Policy, w *Watch, note *notification) (d Delivery, wait time.Duration, err error) {
	said, wait, err := b.post(ctx, p, w, note)
	d = Delivery{At: b.o.Now().UTC(), ID: note.ID, Test: note.Test, Matches: len(note.Matches), Outcome: Delivered, Said: said, Tries: 1}
	if err != nil {
		d.Outcome, d.Said = Failed, understudy.PlainText(err)
		d.Said = d.Said[:min(len(d.Said), 300)]
	}
	if refused := new(refusedError); errors.As(err, &refused) || errors.Is(err, understudy.ErrInvalid) {
		d.Outcome = Refused
	}
	return d, wait, err
}

// post sends a message to the watch's destination if the settings still permit it. The error is a *refusedError or
// ErrInvalid if a retry cannot succeed.
func (b *Book) post(ctx context.Context, p *Policy, w *Watch, note *notification) (said string, wait time.Duration, err error) {
	if err := p.checkDestination(w.To); err != nil {
		return "", 0, err
	}
	if w.To.Channel == Mail {
		said, err = p.Mailer.send(ctx, note.letter())
		return said, 0, err
	}
	if w.To.Channel == Push {
		all, err := p.Push.List(ctx, w.Owner)
		if err != nil {
			return "", 0, err
		}
		return p.Push.Send(ctx, all, note.pushMessage())
	}
	o := webhook.Options{URL: w.To.To, AllowPrivate: p.Rules.AllowPrivate, Now: b.o.Now}
	body := note.slackBody()
	if w.To.Channel == Webhook {
		o.Secret, body = understudy.NewSecret(w.To.Secret), note.webhookBody()
	}
	sender, err := webhook.New(o)
	if err != nil {
		return "", 0, err
	}
	defer sender.Close()
	a, err := sender.Send(ctx, note.ID, body)
	if a.Status != 0 {
		said = fmt.Sprintf("%d %s", a.Status, a.Text)
	}
	switch {
	case a.IsGone():
		return said, 0, &refusedError{"410: it accepts no more messages."}
	case err != nil && said != "":
		err = errors.New("it answered " + said)
	}
	return said, a.Wait, err
}
