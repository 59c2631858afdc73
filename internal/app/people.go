// People: who signs in at the viewer, as the settings say.

package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/config"
	"understudy/internal/signin"
	"understudy/internal/viewer/page"
)

// visitors are what outlives any policy of who may come in.
type visitors struct {
	salt     []byte // of the credentials we issued
	guesses  *callers.Guesses
	names    *callers.Names // of callers, by their flows
	sessions *signin.Sessions
	cookies  *signin.Cookies
	hashes   *access.Hasher // for every policy
}

func newVisitors() (v visitors, err error) {
	salt := []byte(rand.Text())
	v = visitors{salt: salt, guesses: callers.NewGuesses(sha256.Sum256(salt), time.Now), names: &callers.Names{},
		sessions: signin.NewSessions(time.Now)}
	if v.cookies, err = signin.NewCookies(time.Now); err != nil {
		return v, err
	}
	v.hashes, err = access.NewHasher()
	return v, err
}

// people is who may come in.
type people struct{ *App }

// load reads what the store keeps of them.
func (h people) load(ctx context.Context) error {
	return errors.Join(h.sessions.Load(ctx, h.db), h.cookies.Load(ctx, h.db), h.hashes.Open(ctx, h.db))
}

// signIns are the ways in which people sign in; one of both is nil, or both.
type signIns struct {
	people *signin.People // they have sessions
	header *signin.Header
}

// callers are what the book of callers asks.
func (s signIns) callers() callers.People {
	switch {
	case s.people != nil:
		return s.people
	case s.header != nil:
		return s.header
	}
	return nil
}

// signIns are those of the settings.
func (h people) signIns(ctx context.Context, cfg *config.Settings) (s signIns, err error) {
	s.header = cfg.HeaderSignIn(time.Now)
	users, err := cfg.ReadUsers(h.opts.Folder)
	if err != nil {
		return s, err
	}
	provider, err := cfg.Provider(ctx, h.opts.Secrets)
	if err != nil {
		return s, err
	}
	if s.header != nil {
		s.header.Taken = h.notMade(s.header.Taken)
	}
	if users == nil && provider == nil {
		return s, nil
	}
	s.people = &signin.People{Sessions: h.sessions, Users: users, Provider: provider, Guesses: h.guesses, Audit: audits(h).auditor(),
		Secure: strings.HasPrefix(cfg.Viewer.PublicURL, "https://")}
	if provider != nil {
		provider.Cookies, provider.Taken = h.cookies, h.notMade(provider.Taken)
		provider.Callback = func() string { return h.publicViewer(cfg) + page.CallbackPath }
	}
	return s, nil
}

// holders are those who have a role, but for credentials that are made.
func (h people) holders(cfg *config.Settings, who *signin.People) (all []page.Holder) {
	if cfg.Viewer.Role != "" && !cfg.Viewer.BehindProxy() && who == nil {
		all = append(all, page.Holder{Role: cfg.Viewer.Role, Name: "loopback", How: "people on this machine"})
	}
	for _, c := range cfg.Configured() {
		all = append(all, page.Holder{Role: c.Role, Name: c.Name, How: "a program, by the settings"})
	}
	if who != nil && who.Users != nil {
		for _, u := range who.Users.All() {
			all = append(all, page.Holder{Role: u.Role, Name: u.Name, How: "a person"})
		}
	}
	groups, domains := cfg.GroupRoles()
	for _, g := range groups {
		all = append(all, page.Holder{Role: g.Role, Name: g.Of, How: "a group of the provider"})
	}
	for _, d := range domains {
		all = append(all, page.Holder{Role: d.Role, Name: d.Of, How: "mail addresses of this domain"})
	}
	return all
}

// notMade adds the names of credentials that were made to those no person may have.
func (h people) notMade(taken func(string) bool) func(string) bool {
	return func(name string) bool { return taken(name) || h.made.Has(name) }
}

// publicViewer is where browsers reach the viewer.
func (h people) publicViewer(cfg *config.Settings) string {
	return strings.TrimSuffix(cmp.Or(cfg.Viewer.PublicURL, h.Viewer()), "/")
}

// endGone ends the sessions of those who may not come in any more, with what they
// have open.
func (h people) endGone(who *signin.People) {
	if who == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), kvTime)
	defer cancel()
	if err := who.EndGone(ctx); err != nil {
		h.log.Error("sessions that ended are still in the store; they open nothing", "err", err)
	}
}

// kvTime bounds the writing of values.
const kvTime = 5 * time.Second
