// Tell: the job that sends what a watch has found.

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

// Kind is the kind of the jobs that tell; their key is the watch's id.
const Kind = "tell matches"

// most is how many matches one message is about.
func most(c Channel) int {
	if c == Webhook {
		return 100 // it lists them all
	}
	return 500
}

// Tell sends what the watch of its job's key has found, message by message. An error is a
// message that must be tried again. nil: all is told, or the watch is stopped or gone.
func (b *Book) Tell(ctx context.Context, run outbox.Run) error {
	e, err := b.find(run.Job().Key)
	if err != nil {
		return nil // it was removed
	}
	err = e.line.Deliver(ctx, func() error {
		err := b.tell(ctx, run, e)
		if errors.Is(err, understudy.ErrNotFound) {
			return nil
		}
		return err
	})
	if err == nil {
		b.Ring() // something may have come while the job was ending
	}
	return err
}

func (b *Book) tell(ctx context.Context, run outbox.Run, e *entry) error {
	for told := int64(0); ; {
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
		n, err := b.message(ctx, p, e)
		if err != nil {
			return err
		}
		told += n
		run.SetProgress(told, 0, fmt.Sprintf("%d matches told", told))
	}
}

// message sends the next message of a watch and returns how many matches it was about.
func (b *Book) message(ctx context.Context, p *Policy, e *entry) (n int64, err error) {
	w, err := b.watcher(ctx, e)
	if err != nil {
		return 0, err
	}
	if w == nil {
		return 0, errStopped
	}
	batch, err := b.batch(ctx, e)
	if err != nil || len(batch) == 0 {
		return 0, err
	}
	s := e.status()
	note, err := b.compose(ctx, p, w, &s, batch)
	if err != nil {
		return 0, err
	}
	if len(note.Matches) > 0 {
		if err := b.audit(ctx, w.caller, note); err != nil {
			return 0, fmt.Errorf("watch %s: %w", e.id, err)
		}
		if err := b.send(ctx, p, e, &s, note); err != nil {
			return 0, err
		}
	}
	return int64(len(note.Matches)), b.change(ctx, e, func(k *kept) {
		k.Pending, k.Batch = slices.Delete(k.Pending, 0, min(len(batch), len(k.Pending))), 0
		k.Told += int64(len(note.Matches))
	})
}

// batch is what the next message is about. Its length is kept first, so that another try
// sends the same.
func (b *Book) batch(ctx context.Context, e *entry) (batch []match, err error) {
	e.mu.Lock()
	n, pending, channel := e.kept.Batch, slices.Clone(e.kept.Pending), e.kept.To.Channel
	e.mu.Unlock()
	if n == 0 {
		n = min(len(pending), most(channel))
		err = b.change(ctx, e, func(k *kept) { k.Batch = min(n, len(k.Pending)) })
	}
	return pending[:min(n, len(pending))], err
}

// compose reads the records of a batch as the owner sees them now. Those that do not match
// any more are left out.
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
			continue // it was erased
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

// audit lists the records that a message takes away, as an export of the watch's owner. An
// error is a message that must not be sent now: the receiver is not to blame.
func (b *Book) audit(ctx context.Context, owner understudy.Caller, note *notification) error {
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

// send sends a message and logs what became of it. An error is a message that must be
// tried again; a watch that is stopped for it ends the job with none.
func (b *Book) send(ctx context.Context, p *Policy, e *entry, s *Status, note *notification) error {
	d, wait, err := b.try(ctx, p, &s.Watch, note)
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // the job was ended: the receiver is not to blame
	}
	if err == nil {
		return b.change(ctx, e, func(k *kept) {
			k.log(d)
			k.Failing, k.Sent = time.Time{}, d.At
		})
	}
	why := ""
	switch {
	case d.Outcome == Refused:
		why = "The receiver refused a message: " + d.Said
	case !s.State.Failing.IsZero() && d.At.Sub(s.State.Failing) >= p.Rules.Pause:
		why = fmt.Sprintf("Every try has failed since %s; the last: %s", s.State.Failing.Format(time.RFC3339), d.Said)
	}
	kept := b.change(ctx, e, func(k *kept) {
		k.log(d)
		if k.Stopped, k.Goes = why, why != ""; k.Failing.IsZero() {
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

// errStopped ends a job of a watch that was stopped for what its receiver said. It is not
// found any more, as one that was removed.
var errStopped = fmt.Errorf("%w: it is stopped", understudy.ErrNotFound)

// log adds a delivery. Another try of the newest takes its place.
func (k *kept) log(d Delivery) {
	if len(k.Log) > 0 && k.Log[0].ID == d.ID {
		d.Tries += k.Log[0].Tries
		k.Log[0] = d
		return
	}
	k.Log = slices.Insert(k.Log, 0, d)
	k.Log = k.Log[:min(len(k.Log), mostLog)]
}

// try sends a message and returns what became of it. The outcome is Refused when no other try would change it.
func (b *Book) try(ctx context.Context, p *Policy, w *Watch, note *notification) (d Delivery, wait time.Duration, err error) {
	said, wait, err := b.deliver(ctx, p, w, note)
	d = Delivery{At: b.o.Now().UTC(), ID: note.ID, Test: note.Test, Matches: len(note.Matches), Outcome: Delivered, Said: said, Tries: 1}
	if err != nil {
		d.Outcome, d.Said = Failed, sentence(err)
	}
	if refused := new(refusedError); errors.As(err, &refused) || errors.Is(err, understudy.ErrInvalid) {
		d.Outcome = Refused
	}
	return d, wait, err
}

// deliver sends a message where the watch tells, if the settings still permit it. An error
// is a *refusedError or ErrInvalid when no other try would change it.
func (b *Book) deliver(ctx context.Context, p *Policy, w *Watch, note *notification) (said string, wait time.Duration, err error) {
	if err := p.check(w.To); err != nil {
		return "", 0, err
	}
	if w.To.Channel == Mail {
		said, err = p.Mailer.send(ctx, note.letter())
		return said, 0, err
	}
	o := webhook.Options{URL: w.To.To, AllowPrivate: p.Rules.AllowPrivate, Now: b.o.Now}
	body := note.slack()
	if w.To.Channel == Webhook {
		o.Secret, body = understudy.NewSecret(w.To.Secret), note.json()
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
	case a.Gone():
		return said, 0, &refusedError{"410: it wants no more."}
	case err != nil && said != "":
		err = errors.New("it answered " + said)
	}
	return said, a.Wait, err
}
