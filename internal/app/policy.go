// This file builds the policy from the settings: what each caller may do.

package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/app/lookups"
	"understudy/internal/callers"
	"understudy/internal/config"
	"understudy/internal/credentials"
	"understudy/internal/feed"
	"understudy/internal/forecast"
	"understudy/internal/push"
	"understudy/internal/signin"
	"understudy/internal/tables"
	"understudy/internal/watch"
	"understudy/kit/lockwatch"
	"understudy/spec"
)

// policy says what each caller may do, according to the settings. A policy never changes; it is only replaced.
type policy struct {
	gate              *access.Gate
	book              *callers.Book
	bookOptions       callers.Options      // the options of book, with only those credentials that the settings name
	tunnelCredentials []callers.Credential // additional credentials for callers in tunnels
	// tunnelled finds the callers of requests in tunnels.
	tunnelled *callers.Book
	people    *signin.People // the people who can sign in with a form; nil if nobody can
	hooks     []feed.Hook
	tables    []tables.Target
	alerts    []forecast.Alert
	mailer    *watch.Mailer // sends mail to people; nil if no mail server is set
	push      push.Policy   // which browsers and devices receive notifications
	made      int64         // the version of the credentials created at run time that the policy contains
}

func (p policy) feed() feed.Policy {
	return feed.Policy{Gate: p.gate, Callers: p.book, Hooks: p.hooks}
}

// policyReader reads policies from settings. It holds the state that consecutive policies share.
type policyReader struct {
	opts     Options
	sources  []*spec.Source
	lookups  *lookups.Lookups
	ports    *ports
	visitors visitors
	log      *slog.Logger

	credentials *credentials.Book              // the credentials made in the viewer; set when the store is open
	auditor     understudy.Auditor             // the audit log; nil if nothing is recorded
	watches     *watch.Book                    // the watches of people; set before the first request
	push        *push.Book                     // the browsers and devices of people; set before the first request
	usage       map[usageKey]*understudy.Usage // the counters of the newest policy; held by the enforcer's lock
	// reload reads the settings again; set before the first request. changing is held while the file of users is changed.
	reload   func(context.Context) (restart []string, err error)
	changing lockwatch.Mutex
}

// usageKey names the credential whose requests a Usage counts.
type usageKey struct{ source, name string }

func newPolicyReader(opts Options, sources []*spec.Source, ports *ports, log *slog.Logger) (*policyReader, error) {
	v, err := newVisitors()
	return &policyReader{opts: opts, sources: sources, lookups: lookups.New(sources, log), ports: ports, visitors: v, log: log}, err
}

// read reads a policy, with the secrets of its credentials.
func (r *policyReader) read(ctx context.Context, cfg *config.Settings) (policy, error) {
	by, secrets, v := r.opts.By, r.opts.Secrets, &r.visitors
	gate, err := r.newGate(cfg)
	if err != nil {
		return policy{}, err
	}
	creds, err := cfg.ReadCredentials(ctx, secrets, by)
	if err != nil {
		return policy{}, err
	}
	who, asked, err := r.signIns(ctx, cfg)
	if err != nil {
		return policy{}, err
	}
	from := callers.Options{
		Credentials: creds, Sources: r.sources, Loopback: understudy.Grant{Role: cfg.Viewer.Role, IssuedBy: by},
		Open:        config.OpenSources(cfg.Sources),
		BehindProxy: cfg.Viewer.IsBehindProxy(), RecommendedRole: gate.NarrowestRole(), Salt: v.salt, Guesses: v.guesses, Now: time.Now,
		Known:  r.noteCaller,
		People: asked, ViewAs: signin.ViewAs{Cookies: v.cookies},
	}
	book, err := callers.New(from)
	if err != nil {
		return policy{}, err
	}
	if by == "config" {
		for _, w := range slices.Concat(cfg.Warnings(r.opts.Folder, r.sources), config.WeakSecrets(creds)) {
			r.log.Warn("settings", "warning", w)
		}
	}
	alerts, err := cfg.CheckAlerts(gate, r.sources)
	if err != nil {
		return policy{}, err
	}
	hooks, err := cfg.ReadWebhooks(ctx, secrets)
	if err != nil {
		return policy{}, err
	}
	targets, err := config.ReadTables(ctx, cfg, r.sources, gate, secrets)
	if err != nil {
		return policy{}, err
	}
	own, err := cfg.Connect.ReadCredentials(ctx, cfg, r.sources, secrets, by)
	if err != nil {
		return policy{}, err
	}
	mailer, err := cfg.Mail.ReadMailer(ctx, secrets)
	if err != nil {
		return policy{}, err
	}
	screens, err := cfg.Push.ReadPolicy(ctx, secrets, time.Now)
	return policy{gate: gate, book: book, bookOptions: from, tunnelCredentials: own, people: who,
		hooks: hooks, tables: targets, alerts: alerts, mailer: mailer, push: screens}, err
}

// newGate returns the gate for the roles of the settings.
func (r *policyReader) newGate(cfg *config.Settings) (*access.Gate, error) {
	specs, users := map[string]*spec.Spec{}, map[string]string{}
	for _, src := range r.sources {
		specs[src.Name], users[src.Name] = src.Spec, src.User
	}
	o := cfg.Policy()
	o.Specs, o.Users, o.Now, o.Hasher = specs, users, time.Now, r.visitors.hashes
	o.Cache = cfg.Shares(os.ReadFile).Forms
	o.IsOwnNumber, o.NewestVersion = r.lookups.IsOwn, r.lookups.Newest
	o.LastVersion, o.IDByAddress = r.lookups.NewestOrDeleted, r.lookups.AddressedID
	gate, err := access.NewWith(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", "roles", understudy.StripPrefixes(err)) // the error begins with the name of the setting
	}
	return gate, nil
}

// withMadeCredentials returns a policy that also has the credentials that were created at run time.
func (r *policyReader) withMadeCredentials(p policy, cfg *config.Settings) (policy, error) {
	p.made = r.credentials.Version() // a change after this line is noticed as a newer version
	made, skipped := cfg.MadeCredentials(r.credentials.All())
	made = slices.DeleteFunc(made, func(c callers.Credential) bool {
		isUser := p.people != nil && p.people.Users != nil && p.people.Users.Has(c.Name)
		if isUser {
			skipped = append(skipped, c.Name+": a user has the same name")
		}
		return isUser
	})
	for _, why := range skipped {
		r.log.Warn("a stored credential is not accepted", "why", why)
	}
	o, usage := p.bookOptions, map[usageKey]*understudy.Usage{}
	o.Usage = func(source, name string) *understudy.Usage {
		key := usageKey{source, name}
		usage[key] = cmp.Or(usage[key], r.usage[key])
		if usage[key] == nil {
			usage[key] = new(understudy.Usage)
		}
		return usage[key]
	}
	o.Credentials = slices.Concat(o.Credentials, made)
	var err error
	if p.book, err = callers.New(o); err != nil {
		return p, err
	}
	o.Open = nil // a request in a tunnel is meant for another host
	o.Credentials = slices.Concat(o.Credentials, p.tunnelCredentials)
	o.NoRoleText = "the source's own credential has no role here; add this line to the settings: connect: {role: " +
		cmp.Or(o.RecommendedRole, "NAME") + "}"
	p.tunnelled, err = callers.New(o)
	r.usage = usage // without removed credentials
	return p, err
}

// noteCaller remembers the caller of a request, so that the watches know what their owner may do.
func (r *policyReader) noteCaller(req *http.Request, c understudy.Caller) {
	r.visitors.names.Note(c)
	r.ports.profiles.MarkCaller(req, c)
	r.watches.NoteOwner(c)
	r.push.NoteOwner(c)
}
