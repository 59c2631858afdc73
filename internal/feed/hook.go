// Hook: an address that changes are delivered to, and its position.

package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/outbox"
	"understudy/internal/webhook"
	"understudy/request"
	"understudy/spec"
)

// DeliverKind is the kind of the jobs that deliver; their key is the webhook's
// name.
const DeliverKind = "deliver changes"

// Hook is one webhook out, as the settings say.
type Hook struct {
	Name   string
	URL    string
	Secret understudy.Secret // whsec_ and base64, or base64 alone
	Source string
	Kinds  []string // only these; none: all the role sees
	Fields []string // as the parameter field of the feed
	Role   string   // as which the changes pass the gate
	// AllowPrivate permits http and addresses of private networks and of this
	// machine.
	AllowPrivate bool
}

// CheckHook says what is wrong with a webhook's address, or with the kinds and fields
// it wants: one that is unknown or hidden from its role would never come.
func CheckHook(h Hook, gate *access.Gate, sp *spec.Spec) error {
	if err := webhook.CheckURL(h.URL, h.AllowPrivate); err != nil {
		return err
	}
	if err := gate.CheckRole(h.Role); err != nil {
		return err
	}
	q := query{source: h.Source, kinds: h.Kinds, fields: h.Fields}
	return q.allowed(gate, understudy.Caller{Name: h.Name, Grant: &understudy.Grant{Role: h.Role}}, sp)
}

// hookState is what is kept of a webhook, as a value.
type hookState struct {
	Source string `json:"source"`
	After  int64  `json:"after"` // everything up to it is delivered, or was not to be
	// Until is the end of a batch that was sent once, so that another try sends
	// the same batch under the same id; 0: none.
	Until int64 `json:"until,omitempty"`
	// Round counts replays. A change that is sent again on purpose has a new id, because a
	// receiver drops ids that it knows.
	Round     int64     `json:"round,omitempty"`
	Paused    string    `json:"paused,omitempty"` // why; "": it is not
	Error     string    `json:"error,omitempty"`  // of the last try, if that failed
	Failing   time.Time `json:"failing,omitzero"` // since when every try has failed
	NotBefore time.Time `json:"not_before,omitzero"`
	Delivered int64     `json:"delivered"` // changes, ever; those of a replay again
	At        time.Time `json:"at,omitzero"`
}

// hook is a webhook in force.
type hook struct {
	settings Hook
	policy   *policy // whose gate its changes pass
	sender   *webhook.Sender
	query    query
	progress *progress
}

// progress is the position of a webhook. It outlives the settings: a delivery that
// began under the former ones saves its end here.
type progress struct {
	line *outbox.Line

	mu      sync.Mutex
	state   hookState
	moves   int   // rises when the position is set from outside
	scanned int64 // the changes up to here have a job where they need one
	due     bool  // there is something to deliver
}

// hooks are those in force, by name.
type hooks struct {
	f      *Feed
	mu     sync.Mutex
	byName map[string]*hook
}

func newHooks(f *Feed) *hooks { return &hooks{f: f, byName: map[string]*hook{}} }

func kvName(name string) string { return "feed/webhook/" + name }

// set activates webhooks; if one is invalid it activates nothing. A new webhook
// begins at the newest change; a known one continues at its position.
func (h *hooks) set(ctx context.Context, under *policy) error {
	next := map[string]*hook{}
	for _, one := range under.rules.Hooks {
		made, err := h.make(ctx, one, under)
		if err != nil {
			return fmt.Errorf("feed: webhook %s: %w", one.Name, err)
		}
		if next[one.Name] != nil {
			return fmt.Errorf("feed: webhook %s is there twice", one.Name)
		}
		next[one.Name] = made
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, old := range h.byName {
		old.sender.Close()
	}
	h.byName = next
	return nil
}

func (h *hooks) make(ctx context.Context, one Hook, under *policy) (*hook, error) {
	r := h.f.readers[one.Source]
	if r == nil {
		return nil, fmt.Errorf("no source is called %q", one.Source)
	}
	if err := CheckHook(one, under.rules.Gate, h.f.spec(one.Source)); err != nil {
		return nil, err
	}
	if err := webhook.CheckSecret(one.Secret); err != nil {
		return nil, err
	}
	sender, err := webhook.New(webhook.Options{URL: one.URL, Secret: one.Secret, AllowPrivate: one.AllowPrivate, Now: h.f.o.Now})
	if err != nil {
		return nil, err
	}
	made := &hook{settings: one, policy: under, sender: sender, query: query{source: one.Source, kinds: one.Kinds, fields: one.Fields}}
	if old := h.get(one.Name); old != nil && old.settings.Source == one.Source {
		made.progress = old.progress
		return made, nil
	}
	made.progress = &progress{line: outbox.NewLine(), due: true}
	note, err := understudy.ReadValue(ctx, h.f.o.KV, kvName(one.Name))
	if err != nil {
		return nil, err
	}
	if note != nil {
		if err := json.Unmarshal(note, &made.progress.state); err != nil {
			return nil, fmt.Errorf("what is kept of it cannot be read: %w", err)
		}
	}
	if made.progress.state.Source != one.Source {
		last, err := r.last(ctx, 0)
		if err != nil {
			return nil, err
		}
		made.progress.state = hookState{Source: one.Source, After: last}
	}
	return made, h.update(ctx, made, func(*hookState) {})
}

// update changes and saves the state. The caller holds one.progress.mu, or one is not shared yet.
func (h *hooks) update(ctx context.Context, one *hook, change func(*hookState)) error {
	next := one.progress.state
	change(&next)
	if err := understudy.WriteJSON(ctx, h.f.o.KV, kvName(one.settings.Name), next); err != nil {
		return err
	}
	one.progress.state = next
	return nil
}

func (h *hooks) get(name string) *hook {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byName[name]
}

// all are those in force, in order of their names.
func (h *hooks) all() []*hook {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*hook
	for _, name := range slices.Sorted(maps.Keys(h.byName)) {
		all = append(all, h.byName[name])
	}
	return all
}

// look enqueues a job for every webhook of a source that has changes to deliver. A live
// job of the webhook counts as that job.
func (h *hooks) look(ctx context.Context, r *reader) {
	if h.f.o.Enqueue == nil {
		return
	}
	for _, one := range h.all() {
		if one.settings.Source != r.source || !h.wakes(one, r) {
			continue
		}
		err := one.progress.line.Enqueue(ctx, h.f.o.Enqueue, DeliverKind, one.settings.Name, h.f.o.Now(), h.f.o.Limits.Look)
		if err != nil && ctx.Err() == nil {
			h.f.o.Logger.Error("feed: job for a webhook", "webhook", one.settings.Name, "err", err)
		}
	}
}

// wakes reports whether a webhook needs a job now.
func (h *hooks) wakes(one *hook, r *reader) bool {
	one.progress.mu.Lock()
	defer one.progress.mu.Unlock()
	one.progress.due = one.progress.due || h.news(one, r)
	return one.progress.due && one.progress.state.Paused == "" && !h.f.o.Now().Before(one.progress.state.NotBefore)
}

// news reports whether the changes since the last look concern the webhook. Most pages
// do not, and need no job.
func (h *hooks) news(one *hook, r *reader) bool {
	a, err := h.f.roleGroup(one.policy, one.settings.Source, one.settings.Role)
	if err != nil {
		return true
	}
	rows := make([]understudy.Change, 64)
	for {
		n, head, _, held := r.since(one.progress.scanned, rows)
		if !held {
			one.progress.scanned = head
			return true
		}
		if n == 0 {
			return false
		}
		for i := range rows[:n] {
			one.progress.scanned = rows[i].N
			if sight := a.view(&rows[i], true); sight.shown && one.query.wants(&sight.seen) {
				return true
			}
		}
	}
}

// move sets a webhook going again, after a change's number when after is not
// nil. Errors: ErrNotFound, ErrInvalid.
func (h *hooks) move(ctx context.Context, name string, after *int64) error {
	one := h.get(name)
	if one == nil {
		return fmt.Errorf("feed: %w: no webhook is called %q", understudy.ErrNotFound, understudy.Clip(name))
	}
	r := h.f.readers[one.settings.Source]
	if after != nil {
		last, err := r.last(ctx, *after)
		if err != nil {
			return err
		}
		if *after < 0 || *after > last {
			return invalid("after=%d: want 0 to %d, the newest change", *after, last)
		}
	}
	one.progress.mu.Lock()
	defer one.progress.mu.Unlock()
	err := h.update(ctx, one, func(s *hookState) {
		if after != nil {
			s.After, s.Until = *after, 0
			s.Round++
		}
		s.Paused, s.Error, s.Failing, s.NotBefore = "", "", time.Time{}, time.Time{}
	})
	if err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	one.progress.moves++
	one.progress.due = true
	one.progress.line.Release()
	r.ring()
	return nil
}

// Resume sets a webhook going again, after a change's number when after is not nil.
// Errors: ErrNotFound, ErrInvalid.
func (f *Feed) Resume(ctx context.Context, name string, after *int64) error {
	if err := f.hooks.move(ctx, name, after); err != nil {
		return err
	}
	f.o.Logger.Info("webhook resumed", "webhook", name)
	return nil
}

// Pause stops a webhook until it is resumed, and keeps by whom. What is being sent is still
// sent; one that is paused stays as it is. Errors: ErrNotFound.
func (f *Feed) Pause(ctx context.Context, name, by string) error {
	one := f.hooks.get(name)
	if one == nil {
		return fmt.Errorf("feed: %w: no webhook is called %q", understudy.ErrNotFound, understudy.Clip(name))
	}
	one.progress.mu.Lock()
	defer one.progress.mu.Unlock()
	if one.progress.state.Paused != "" {
		return nil
	}
	why := "paused by hand"
	if by != "" {
		why += " by " + understudy.Clip(by)
	}
	if err := f.hooks.update(ctx, one, func(s *hookState) { s.Paused = why }); err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	f.o.Logger.Info("webhook paused", "webhook", name, "why", why)
	return nil
}

// Webhooks are all of them, by name.
func (f *Feed) Webhooks() []request.Webhook {
	all := []request.Webhook{}
	for _, one := range f.hooks.all() {
		one.progress.mu.Lock()
		s := one.progress.state
		one.progress.mu.Unlock()
		r := f.readers[one.settings.Source]
		r.mu.Lock()
		head := r.head
		r.mu.Unlock()
		stats := request.Webhook{
			Name: one.settings.Name, Source: one.settings.Source, State: "ok", Why: s.Error, After: s.After, Behind: max(head-s.After, 0),
			Delivered: s.Delivered, Failing: s.Failing, At: s.At,
		}
		switch {
		case s.Paused != "":
			stats.State, stats.Why = "paused", s.Paused
		case s.Error != "":
			stats.State = "failing"
		}
		all = append(all, stats)
	}
	return all
}
