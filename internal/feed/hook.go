// This file contains the webhooks that receive changes, and their positions.

package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/outbox"
	"understudy/internal/publish"
	"understudy/internal/webhook"
	"understudy/kit/lockwatch"
	"understudy/request"
	"understudy/spec"
)

// DeliverKind is the kind of jobs that deliver changes. The key of such a job is the webhook's name.
const DeliverKind = "deliver changes"

// Hook is the settings of one outgoing webhook.
type Hook struct {
	Name   string
	URL    string            // also that of a broker or a bucket (see publish.CheckURL)
	Secret understudy.Secret // the signing secret: base64, with or without the prefix whsec_; of a broker USER:PASSWORD
	Source string
	Kinds  []string // the kinds whose changes are sent; if empty, all kinds that the role sees
	Fields []string // the fields whose changes are sent, as in the feed's parameter field
	Role   string   // the role whose view of the changes is sent
	// AllowPrivate permits http, and addresses of private networks and of this machine.
	AllowPrivate bool
}

// CheckHook returns an error if a webhook's address is not permitted, or if it names kinds or fields that are
// unknown or hidden from its role.
func CheckHook(h Hook, gate *access.Gate, sp *spec.Spec) error {
	if err := publish.CheckURL(h.URL, h.AllowPrivate); err != nil {
		return err
	}
	if err := gate.CheckRole(h.Role); err != nil {
		return err
	}
	q := query{source: h.Source, kinds: h.Kinds, fields: h.Fields}
	return q.checkAllowed(gate, understudy.Caller{Name: h.Name, Grant: &understudy.Grant{Role: h.Role}}, sp)
}

// hookState is the saved state of a webhook.
type hookState struct {
	Source string `json:"source"`
	After  int64  `json:"after"` // all changes up to this number were delivered or filtered out
	// BatchEnd is the end of the batch that was sent last and not confirmed, so that a retry sends the same batch with
	// the same id. It is 0 if there is no such batch.
	BatchEnd int64 `json:"until,omitempty"`
	// Replays is the number of replays. A replayed change has a new message id, because receivers ignore ids that
	// they already know.
	Replays   int64     `json:"round,omitempty"`
	Paused    string    `json:"paused,omitempty"` // why the webhook is paused, or "" if it is not
	Error     string    `json:"error,omitempty"`  // the error of the last attempt, or "" after a success
	Failing   time.Time `json:"failing,omitzero"` // when the attempts began to fail; zero after a success
	NotBefore time.Time `json:"not_before,omitzero"`
	Delivered int64     `json:"delivered"` // the number of delivered changes, including replays
	At        time.Time `json:"at,omitzero"`
}

// hook is a webhook of the current policy.
type hook struct {
	settings  Hook
	policy    *policy // the policy whose gate decides what the receiver sees
	sender    *webhook.Sender
	publisher publish.Publisher // in place of sender, if the URL is that of a broker or a bucket; else nil
	query     query
	progress  *progress
}

// progress is the position of a webhook. It outlives the settings: a delivery that began under former settings
// saves its end here.
type progress struct {
	line *outbox.Line

	mu      lockwatch.Mutex
	state   hookState // the saved state; other processes may change it, too
	scanned int64     // the number of the change up to which no further job is needed
	due     bool      // whether there may be changes to deliver
}

// hooks are the webhooks of the current policy, by name.
type hooks struct {
	f      *Feed
	mu     lockwatch.Mutex
	byName map[string]*hook
}

// hookPrefix is the beginning of the names under which the states of webhooks are stored in the KV store.
const hookPrefix = "feed/webhook/"

// receive puts a saved state into memory. A state that was erased stays in memory.
func (h *hooks) receive(name string, value []byte) error {
	one := h.get(strings.TrimPrefix(name, hookPrefix))
	if one == nil || value == nil {
		return nil
	}
	var s hookState
	if err := json.Unmarshal(value, &s); err != nil {
		return err
	}
	p := one.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.After > p.state.After && s.After >= p.scanned {
		p.scanned, p.due = s.After, false
	}
	p.state = s
	return nil
}

// replaceAll replaces the webhooks by those of a policy. If one of them is invalid, nothing changes. A new webhook
// begins at the newest change; a known webhook continues at its position.
func (h *hooks) replaceAll(ctx context.Context, under *policy) error {
	next := map[string]*hook{}
	for _, one := range under.rules.Hooks {
		made, err := h.newHook(ctx, one, under)
		if err != nil {
			return fmt.Errorf("feed: webhook %s: %w", one.Name, err)
		}
		if next[one.Name] != nil {
			return fmt.Errorf("feed: two webhooks are named %s", one.Name)
		}
		next[one.Name] = made
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, old := range h.byName {
		if old.sender != nil {
			old.sender.Close()
		}
	}
	h.byName = next
	return nil
}

// newHook returns a webhook with its sender and its saved position.
func (h *hooks) newHook(ctx context.Context, one Hook, under *policy) (*hook, error) {
	r := h.f.readers[one.Source]
	if r == nil {
		return nil, fmt.Errorf("no source is called %q", one.Source)
	}
	if err := CheckHook(one, under.rules.Gate, spec.FindSource(h.f.o.Sources, one.Source).Spec); err != nil {
		return nil, err
	}
	made := &hook{settings: one, policy: under, query: query{source: one.Source, kinds: one.Kinds, fields: one.Fields}}
	var err error
	if publish.IsURL(one.URL) {
		made.publisher, err = publish.New(publish.Options{URL: one.URL, Secret: one.Secret, AllowPrivate: one.AllowPrivate, Now: h.f.o.Now})
	} else if err = webhook.CheckSecret(one.Secret); err == nil {
		made.sender, err = webhook.New(webhook.Options{URL: one.URL, Secret: one.Secret, AllowPrivate: one.AllowPrivate, Now: h.f.o.Now})
	}
	if err != nil {
		return nil, err
	}
	if old := h.get(one.Name); old != nil && old.settings.Source == one.Source {
		made.progress = old.progress
		return made, nil
	}
	made.progress = &progress{line: outbox.NewLine(), due: true}
	last, err := r.readLast(ctx, 0)
	if err != nil {
		return nil, err
	}
	return made, h.changeState(ctx, made, func(s *hookState) error {
		if s.Source != one.Source {
			*s = hookState{Source: one.Source, After: last}
		}
		made.progress.state = *s
		return nil
	})
}

// changeState changes the saved state. change receives the state that is saved at this moment. If it returns an error,
// nothing changes, and changeState returns that error.
func (h *hooks) changeState(ctx context.Context, one *hook, change func(*hookState) error) error {
	s := one.progress.load()
	return h.f.o.KV.Change(ctx, hookPrefix+one.settings.Name, func(value []byte) ([]byte, error) {
		if value != nil {
			s = hookState{}
			if err := json.Unmarshal(value, &s); err != nil {
				return nil, fmt.Errorf("its saved state cannot be read: %w", err)
			}
		}
		if err := change(&s); err != nil {
			return nil, err
		}
		return json.Marshal(s)
	})
}

// load returns the state.
func (p *progress) load() hookState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (h *hooks) get(name string) *hook {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byName[name]
}

// all returns the webhooks of the current policy, sorted by name.
func (h *hooks) all() []*hook {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*hook
	for _, name := range slices.Sorted(maps.Keys(h.byName)) {
		all = append(all, h.byName[name])
	}
	return all
}

// enqueueDue adds a job for every webhook of a source that has changes to deliver. If such a job is already waiting
// or running, it adds none.
func (h *hooks) enqueueDue(ctx context.Context, r *reader) {
	if h.f.o.Enqueue == nil {
		return
	}
	for _, one := range h.all() {
		if one.settings.Source != r.source || !h.isDue(one, r) {
			continue
		}
		err := one.progress.line.Enqueue(ctx, h.f.o.Enqueue, DeliverKind, one.settings.Name, h.f.o.Now(), h.f.o.Limits.PollInterval)
		if err != nil && ctx.Err() == nil {
			h.f.o.Logger.Error("feed: job for a webhook", "webhook", one.settings.Name, "err", err)
		}
	}
}

// isDue reports whether a webhook needs a job now.
func (h *hooks) isDue(one *hook, r *reader) bool {
	one.progress.mu.Lock()
	defer one.progress.mu.Unlock()
	one.progress.due = one.progress.due || h.hasNews(one, r)
	return one.progress.due && one.progress.state.Paused == "" && !h.f.o.SharedNow().Before(one.progress.state.NotBefore)
}

// hasNews reports whether changes after progress.scanned pass the webhook's filters. Most changes do not pass, so
// they need no job.
func (h *hooks) hasNews(one *hook, r *reader) bool {
	a, err := h.f.findRoleGroup(one.policy, one.settings.Source, one.settings.Role)
	if err != nil {
		return true
	}
	rows := make([]understudy.Change, 64)
	for {
		n, head, _, held := r.copySince(one.progress.scanned, rows)
		if !held {
			one.progress.scanned = head
			return true
		}
		if n == 0 {
			return false
		}
		for i := range rows[:n] {
			one.progress.scanned = rows[i].N
			if sight := a.view(&rows[i], true); sight.visible && one.query.matchChange(&sight.change) {
				return true
			}
		}
	}
}

// resume ends a pause. If after is not nil, it also moves the position to that change. It returns ErrNotFound or
// ErrInvalid.
func (h *hooks) resume(ctx context.Context, name string, after *int64) error {
	one := h.get(name)
	if one == nil {
		return fmt.Errorf("feed: %w: no webhook is called %q", understudy.ErrNotFound, understudy.Clip(name))
	}
	r := h.f.readers[one.settings.Source]
	if after != nil {
		last, err := r.readLast(ctx, *after)
		if err != nil {
			return err
		}
		if *after < 0 || *after > last {
			return newInvalid("after=%d is not the number of a change; write a number from 0 to %d, the newest change", *after, last)
		}
	}
	err := h.changeState(ctx, one, func(s *hookState) error {
		if after != nil {
			s.After, s.BatchEnd = *after, 0
			s.Replays++
		}
		s.Paused, s.Error, s.Failing, s.NotBefore = "", "", time.Time{}, time.Time{}
		return nil
	})
	if err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	one.progress.mu.Lock()
	one.progress.due = true
	one.progress.mu.Unlock()
	r.notify()
	if h.f.o.Enqueue == nil {
		return nil
	}
	return one.progress.line.Enqueue(ctx, h.f.o.Enqueue, DeliverKind, one.settings.Name, h.f.o.Now(), 0)
}

// Resume ends the pause of a webhook. If after is not nil, deliveries continue after that change. It returns
// ErrNotFound or ErrInvalid.
func (f *Feed) Resume(ctx context.Context, name string, after *int64) error {
	if err := f.hooks.resume(ctx, name, after); err != nil {
		return err
	}
	f.o.Logger.Info("webhook resumed", "webhook", name)
	return nil
}

// Pause stops a webhook until Resume, and stores the name of the person who paused it. A request that is being sent
// is still sent. If the webhook is already paused, nothing changes. Pause returns ErrNotFound for an unknown name.
func (f *Feed) Pause(ctx context.Context, name, by string) error {
	one := f.hooks.get(name)
	if one == nil {
		return fmt.Errorf("feed: %w: no webhook is called %q", understudy.ErrNotFound, understudy.Clip(name))
	}
	if one.progress.load().Paused != "" {
		return nil
	}
	why := "paused by hand"
	if by != "" {
		why += " by " + understudy.Clip(by)
	}
	if err := f.hooks.changeState(ctx, one, func(s *hookState) error { s.Paused = why; return nil }); err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	f.o.Logger.Info("webhook paused", "webhook", name, "why", why)
	return nil
}

// Webhooks returns the state of all webhooks, sorted by name.
func (f *Feed) Webhooks() []request.Webhook {
	all := []request.Webhook{}
	for _, one := range f.hooks.all() {
		s := one.progress.load()
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
