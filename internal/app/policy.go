// Policy: who may do what, as the settings say.

package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/config"
	"understudy/internal/feed"
	"understudy/internal/forecast"
	"understudy/internal/signin"
	"understudy/internal/watch"
	"understudy/spec"
)

// policy is who may do what, as the settings say. It is replaced whole.
type policy struct {
	gate *access.Gate
	book *callers.Book
	from callers.Options      // of the book, with the credentials of the settings alone
	own  []callers.Credential // of callers in tunnels, beside those
	// tunnelled knows who asks in tunnels.
	tunnelled *callers.Book
	people    *signin.People // who sign in by a form; nil: nobody does
	hooks     []feed.Hook
	alerts    []forecast.Alert
	mailer    *watch.Mailer // nil: no mail is sent
}

// policyOf reads a policy, with the secrets of its credentials.
func (h *App) policyOf(ctx context.Context, cfg *config.Settings, b Options) (policy, error) {
	gate, err := gates{h}.of(cfg)
	if err != nil {
		return policy{}, err
	}
	creds, err := cfg.ReadCredentials(ctx, b.Secrets, b.By)
	if err != nil {
		return policy{}, err
	}
	ways, err := people{h}.signIns(ctx, cfg)
	if err != nil {
		return policy{}, err
	}
	from := callers.Options{
		Credentials: creds, Sources: h.sources, Loopback: understudy.Grant{Role: cfg.Viewer.Role, By: b.By},
		Open:   config.Open(cfg.Sources),
		Behind: cfg.Viewer.BehindProxy(), Narrowest: gate.Narrowest(), Salt: h.salt, Guesses: h.guesses, Now: time.Now, Known: watchers{h}.known,
		People: ways.callers(), ViewAs: signin.ViewAs{Cookies: h.cookies},
	}
	book, err := callers.New(from)
	if err != nil {
		return policy{}, err
	}
	if b.By == "config" {
		for _, w := range slices.Concat(cfg.Warnings(b.Folder, h.sources), config.WeakSecrets(creds)) {
			h.log.Warn("settings", "warning", w)
		}
	}
	alerts, err := cfg.CheckAlerts(gate, h.sources)
	if err != nil {
		return policy{}, err
	}
	hooks, err := cfg.ReadWebhooks(ctx, b.Secrets)
	if err != nil {
		return policy{}, err
	}
	own, err := cfg.Connect.Credentials(ctx, cfg, h.sources, b.Secrets, b.By)
	if err != nil {
		return policy{}, err
	}
	mailer, err := cfg.ReadMailer(ctx, b.Secrets)
	return policy{gate: gate, book: book, from: from, own: own, people: ways.people, hooks: hooks, alerts: alerts, mailer: mailer}, err
}

// gates makes gates.
type gates struct{ *App }

// of is the gate of the roles that settings define.
func (h gates) of(cfg *config.Settings) (*access.Gate, error) {
	specs, users := map[string]*spec.Spec{}, map[string]string{}
	for _, src := range h.sources {
		specs[src.Name], users[src.Name] = src.Spec, src.User
	}
	o := cfg.Policy()
	o.Specs, o.Users, o.Now, o.Hasher = specs, users, time.Now, h.hashes
	o.Own, o.Newest, o.Last, o.Addressed = h.lookups.IsOwn, h.lookups.Newest, h.lookups.Last, h.lookups.Addressed
	gate, err := access.NewWith(o)
	if err != nil {
		return nil, fmt.Errorf("roles: %w", understudy.Plain(err))
	}
	return gate, nil
}

// explain says what a role sees of a record, by the settings in force.
func (h gates) explain(role, source, kind, id string) (*access.Explained, error) {
	gate, err := h.of(h.live.Load())
	if err != nil {
		return nil, err
	}
	return gate.ExplainRecord(role, source, kind, id)
}

// withMade is a policy with the credentials that were made, as they are now.
func (h *App) withMade(p policy, cfg *config.Settings) (policy, error) {
	made, skipped := cfg.Made(h.made.All())
	made = slices.DeleteFunc(made, func(c callers.Credential) bool {
		isUser := p.people != nil && p.people.Users != nil && p.people.Users.Has(c.Name)
		if isUser {
			skipped = append(skipped, c.Name+": a user is called that, too")
		}
		return isUser
	})
	for _, why := range skipped {
		h.log.Warn("a credential that was made is not in force", "why", why)
	}
	o := p.from
	o.Credentials = slices.Concat(o.Credentials, made)
	var err error
	if p.book, err = callers.New(o); err != nil {
		return p, err
	}
	o.Open = nil // a request in a tunnel is for another host
	o.Credentials, o.NoRole = slices.Concat(o.Credentials, p.own), noRole(o.Narrowest)
	p.tunnelled, err = callers.New(o)
	return p, err
}

// seesAll reports whether a caller sees every record of every source.
func (h *App) seesAll(c understudy.Caller) bool {
	return c.Role() == understudy.RoleAll && (c.Source == "" || len(h.sources) == 1)
}

func (p policy) feed() feed.Policy {
	return feed.Policy{Gate: p.gate, Callers: p.book, Hooks: p.hooks}
}
