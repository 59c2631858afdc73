// This file decides from the settings who can sign in to the viewer.

package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/config"
	"understudy/internal/signin"
	"understudy/internal/store"
	"understudy/internal/viewer/page"
)

// visitors contains the state of callers and sessions that outlives a policy.
type visitors struct {
	salt     []byte // the salt for the digests of credentials
	guesses  *callers.Guesses
	names    *callers.Names // the names of callers by their Flow
	sessions *signin.Sessions
	cookies  *signin.Cookies
	hashes   *access.Hasher // computes the hashes for every policy
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

// signIns returns the people who can sign in with a form, and the people that the book of callers knows. Each is
// nil if there are no such people.
func (r *policyReader) signIns(ctx context.Context, cfg *config.Settings) (who *signin.People, asked callers.People, err error) {
	users, err := cfg.ReadUsers(r.opts.Folder)
	if err != nil {
		return nil, nil, err
	}
	provider, err := cfg.ReadProvider(ctx, r.opts.Secrets)
	if err != nil {
		return nil, nil, err
	}
	notMade := func(taken func(string) bool) func(string) bool { // no person may have the name of a credential
		return func(name string) bool { return taken(name) || r.credentials.Has(name) }
	}
	if header := cfg.HeaderSignIn(time.Now); header != nil {
		header.Taken = notMade(header.Taken)
		asked = header
	}
	if users == nil && provider == nil {
		return nil, asked, nil
	}
	v := &r.visitors
	who = &signin.People{File: r.userFile(cfg, users != nil), Sessions: v.sessions, Users: users, Provider: provider, Guesses: v.guesses,
		Audit: r.auditor, Secure: strings.HasPrefix(cfg.Viewer.PublicURL, "https://")}
	if provider != nil {
		provider.Cookies, provider.Taken = v.cookies, notMade(provider.Taken)
		provider.Callback = func() string { return r.ports.publicViewer(cfg) + page.CallbackPath }
	}
	return who, who, nil
}

// userFile is the file of users, which the viewer changes. It implements signin.UserFile.
type userFile struct {
	reader *policyReader
	cfg    *config.Settings
}

// userFile returns the file of users. It returns nil if there is none, if the settings cannot be read again, or if several processes may
// use the database, because each of them has its own file.
func (r *policyReader) userFile(cfg *config.Settings, exists bool) signin.UserFile {
	if !exists || r.opts.ReadSettings == nil || store.IsPostgreSQL(r.opts.Settings.Store.DSN) {
		return nil
	}
	return userFile{r, cfg}
}

// CheckUser returns ErrInvalid for an unknown role, and for a name that a credential has.
func (f userFile) CheckUser(name, role string) error {
	err := f.cfg.CheckUser(name, role)
	if err == nil && f.reader.credentials.Has(name) {
		err = errors.New("a credential has the same name")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", understudy.ErrInvalid, err)
	}
	return nil
}

// Change changes the file and reads the settings again.
func (f userFile) Change(ctx context.Context, change func(*signin.Users) error) error {
	f.reader.changing.Lock() // commands that change the file at the same time are refused
	defer f.reader.changing.Unlock()
	if _, err := f.reader.opts.ReadSettings(); err != nil { // the change could not take effect
		return fmt.Errorf("%w: %w", understudy.ErrNotStored, err)
	}
	var refused error
	err := signin.UpdateFile(f.cfg.Viewer.UsersFile(f.reader.opts.Folder), func(u *signin.Users) error {
		refused = change(u)
		for _, one := range u.All() {
			if refused == nil {
				refused = f.CheckUser(one.Name, one.Role)
			}
		}
		return refused
	})
	if refused != nil {
		return refused
	}
	if err == nil {
		_, err = f.reader.reload(context.WithoutCancel(ctx))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", understudy.ErrNotStored, err)
	}
	return nil
}

// holders returns the people and credentials that have a role, without credentials created at run time.
func holders(cfg *config.Settings, who *signin.People) (all []page.Holder) {
	if cfg.Viewer.Role != "" && !cfg.Viewer.IsBehindProxy() && who == nil {
		all = append(all, page.Holder{Role: cfg.Viewer.Role, Name: "loopback", How: "people on this machine"})
	}
	for _, c := range cfg.ConfiguredCredentials() {
		all = append(all, page.Holder{Role: c.Role, Name: c.Name, How: "a program, by the settings"})
	}
	if who != nil && who.Users != nil {
		for _, u := range who.Users.All() {
			all = append(all, page.Holder{Role: u.Role, Name: u.Name, How: "a person"})
		}
	}
	groups, domains := cfg.Viewer.OIDC.Roles, cfg.Viewer.OIDC.Domains
	for _, g := range groups {
		all = append(all, page.Holder{Role: g.Role, Name: g.Of, How: "a group of the provider"})
	}
	for _, d := range domains {
		all = append(all, page.Holder{Role: d.Role, Name: d.Of, How: "mail addresses of this domain"})
	}
	return all
}
