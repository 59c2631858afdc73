// This file identifies the caller of a browser's request by its session.

package signin

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"understudy"
	"understudy/kit/accesslog"
	"understudy/kit/limiter"
)

// cookieName begins with __Host-, so that browsers send the cookie only to this host, over TLS or to this
// machine, and no other host can set it (RFC 6265bis, 4.1.3.2).
const cookieName = "__Host-understudy"

// Guesses limits how often wrong passwords may be tried; callers.Guesses implements it.
type Guesses interface {
	// IsRefused reports whether passwords of a user from the address of the request are refused now. A nil user
	// means all users of that address.
	IsRefused(r *http.Request, user []byte) bool
	// CountWrong counts a wrong password of a user from the address of the request.
	CountWrong(r *http.Request, user []byte)
}

// The limits of passwords that wait for their hash, in total and for one address. Browsers in which the person has
// signed in before have their own limits, counted by browser and name.
var newBrowserSlots, knownBrowserSlots = limiter.New(64, 8), limiter.New(1024, 8)

// People knows who has signed in, by a password or at a provider. Either Users or Provider must be set. Only the
// sessions change. It is safe for concurrent use.
type People struct {
	Sessions *Sessions
	Users    *Users
	Provider *Provider
	File     UserFile // changes the users; nil if they cannot be changed here
	Guesses  Guesses
	Audit    understudy.Auditor // records sign-ins before a session begins; nil if they are not recorded
	// Secure is true if browsers reach the viewer over TLS, through a reverse proxy.
	Secure bool
}

// role returns the current role of a session. ok is false if the session is no longer valid.
func (p *People) role(s *Session) (role string, ok bool) {
	if p.Provider != nil {
		return p.Provider.role(s)
	}
	one, ok := p.Users.find(s.Name)
	return one.Role, ok && one.signInID == s.SignInID
}

// Identify returns the person who sent a request, or ErrUnauthorized if nobody is signed in.
func (p *People) Identify(r *http.Request) (c understudy.Caller, err error) {
	if s, role, ok := p.session(r); ok {
		return callerOf(&s, role), nil
	}
	return c, fmt.Errorf("signin: %w: nobody is signed in", understudy.ErrUnauthorized)
}

// Recheck returns the current state of a caller that Identify returned. ok is false if the session has ended or the
// person no longer exists.
func (p *People) Recheck(c understudy.Caller) (now understudy.Caller, ok bool) {
	s, ok := p.Sessions.findByChannel(c.Grant.Revoked)
	if !ok || s.Session.Name != c.Name {
		return now, false
	}
	role, ok := p.role(&s.Session)
	return callerOf(&s, role), ok
}

// Owner returns a caller that Identify returned, in the form that is stored with work.
func (p *People) Owner(c understudy.Caller) understudy.Owner {
	o := understudy.Owner{Name: c.Name, Role: c.Role(), LastSeen: p.Sessions.now()}
	if s, ok := p.Sessions.findByChannel(c.Grant.Revoked); ok && p.Provider != nil {
		o.Groups, o.Domain, o.Provider = s.Session.Groups, s.Session.Domain, s.Session.SignInID
	}
	return o
}

// Resolve returns the current person for a stored owner, without a session. A user has the role in the file of
// users. For a person from a provider, the groups of the last request count for understudy.OwnerLifetime.
func (p *People) Resolve(o understudy.Owner) (now understudy.Caller, ok bool) {
	role := ""
	if p.Provider != nil {
		role, ok = p.Provider.role(&Session{Name: o.Name, SignInID: o.Provider, Groups: o.Groups, Domain: o.Domain})
		ok = ok && p.Sessions.now().Sub(o.LastSeen) < understudy.OwnerLifetime
	} else if one, there := p.Users.find(o.Name); there {
		role, ok = one.Role, true
	}
	return callerWithoutSession(o.Name, role), ok
}

// callerWithoutSession returns the caller for a person without a session.
func callerWithoutSession(name, role string) understudy.Caller {
	return understudy.Caller{Name: name, Flow: flowOf(name), Grant: &understudy.Grant{Role: role, IssuedBy: "owner"}}
}

// session returns the open session of a browser, and its role.
func (p *People) session(r *http.Request) (s session, role string, ok bool) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return s, "", false
	}
	if s, ok = p.Sessions.find(cookie.Value); !ok {
		return s, "", false
	}
	role, ok = p.role(&s.Session)
	return s, role, ok
}

// callerOf returns the person of a session. All sessions of a person have the same Flow.
func callerOf(s *session, role string) understudy.Caller {
	return understudy.Caller{Name: s.Session.Name, Flow: flowOf(s.Session.Name),
		Grant: &understudy.Grant{Role: role, IssuedBy: "sign-in", Expires: s.Session.Made.Add(AbsoluteEnd), Revoked: s.over}}
}

func flowOf(name string) uint64 {
	sum := sha256.Sum256([]byte("user\x00" + name))
	return binary.LittleEndian.Uint64(sum[:])
}

// SignIn begins a session for a person with a correct password, and ends the browser's former session. Errors:
// ErrUnauthorized, which does not reveal whether the name exists; ErrUnauthorized with ErrTooMany after too many
// wrong passwords; ErrForbidden for a password sent without encryption.
func (p *People) SignIn(w http.ResponseWriter, r *http.Request, name, password string) error {
	if err := p.checkPassword(r, name, password); err != nil {
		return err
	}
	user, _ := p.Users.find(name) // the user exists, because the password was correct
	if err := p.begin(w, r, Session{Name: name, SignInID: user.signInID}, user.Role); err != nil {
		return err
	}
	p.Sessions.rememberBrowser(w, name)
	return nil
}

// checkPassword returns nil for a correct password. Its errors are those of SignIn.
func (p *People) checkPassword(r *http.Request, name, password string) error {
	if err := p.CheckTransport(r); err != nil {
		return err
	}
	counted := p.Sessions.guessKeys(r, name)
	if slices.ContainsFunc(counted, func(as []byte) bool { return p.Guesses.IsRefused(r, as) }) {
		return fmt.Errorf("signin: %w: %w: too many wrong passwords; wait a few seconds", understudy.ErrUnauthorized, understudy.ErrTooMany)
	}
	places, by, isKnown := newBrowserSlots, accesslog.PeerOf(r), len(counted) == 1
	if isKnown {
		places, by = knownBrowserSlots, string(counted[0])
	}
	leave, err := places.Take(by)
	if err != nil {
		return fmt.Errorf("signin: %w: %w: too many people are signing in from your network; wait a few seconds", understudy.ErrUnauthorized,
			understudy.ErrTooMany)
	}
	defer leave()
	if !isKnown {
		release, err := acquire(r.Context(), newBrowserHashSlots)
		if err != nil {
			return err
		}
		defer release()
	}
	right, err := p.Users.Check(r.Context(), name, password)
	if err != nil {
		return err
	}
	if !right {
		for _, as := range counted {
			p.Guesses.CountWrong(r, as)
		}
		return fmt.Errorf("signin: %w: wrong name or password", understudy.ErrUnauthorized)
	}
	return nil
}

// CheckTransport returns ErrForbidden if a password would not be accepted from the connection of a request.
func (p *People) CheckTransport(r *http.Request) error {
	if p.Secure || r.TLS != nil || isLocal(r) {
		return nil
	}
	return fmt.Errorf("signin: %w: passwords are accepted only over TLS or from this machine; an administrator can write tls: self in the "+
		"settings, or set viewer.public_url to the https address of the proxy in front", understudy.ErrForbidden)
}

// Finish begins a session for a person who returns from the provider. back is the path at which the browser
// continues. Errors: the errors of the provider; ErrForbidden if the person has no role.
func (p *People) Finish(w http.ResponseWriter, r *http.Request) (name, back string, err error) {
	who, back, err := p.Provider.finish(w, r)
	if err != nil {
		return "", "", err
	}
	s := Session{Name: who.name, SignInID: p.Provider.signInID(), Groups: who.groups, Domain: who.domain}
	role, ok := p.Provider.role(&s)
	if !ok {
		return "", "", fmt.Errorf("signin: %w: %s has no access here", understudy.ErrForbidden, who.name)
	}
	return who.name, back, p.begin(w, r, s, role)
}

// begin begins a session and ends the browser's former session.
func (p *People) begin(w http.ResponseWriter, r *http.Request, s Session, role string) error {
	s.Address, _, _ = net.SplitHostPort(r.RemoteAddr)
	s.Agent = r.UserAgent()
	who := understudy.Caller{Name: s.Name, Grant: &understudy.Grant{Role: role}}
	if err := understudy.RecordAudit(r.Context(), p.Audit, understudy.AuditEntry{Caller: who, Action: understudy.ActionSignIn, What: "sign-in",
		Request: accesslog.LineOf(r.Context()).ID}); err != nil {
		return err
	}
	token, err := p.Sessions.Begin(r.Context(), s)
	if err != nil {
		return err
	}
	setCookie(w, cookieName, token, AbsoluteEnd)
	return p.end(r)
}

// SignOut ends the session of a browser.
func (p *People) SignOut(w http.ResponseWriter, r *http.Request) error {
	setCookie(w, cookieName, "", -time.Second)
	return p.end(r)
}

// CurrentSessionID returns the id of a request's session, or "" without a session.
func (p *People) CurrentSessionID(r *http.Request) string {
	s, _, _ := p.session(r)
	return s.Session.ID
}

// EndGone ends the sessions of people who may no longer sign in.
func (p *People) EndGone(ctx context.Context) error {
	_, err := p.Sessions.endWhere(ctx, func(s *Session) bool {
		_, ok := p.role(s)
		return !ok
	})
	return err
}

// end ends the session of a request.
func (p *People) end(r *http.Request) error {
	s, _, ok := p.session(r)
	if !ok {
		return nil
	}
	err := p.Sessions.End(context.WithoutCancel(r.Context()), s.Session.ID, s.Session.Name)
	if errors.Is(err, understudy.ErrNotFound) {
		return nil // the session has already ended
	}
	return err
}

func setCookie(w http.ResponseWriter, name, value string, lasts time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(lasts / time.Second), Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
}

// isLocal reports whether the connection of a request comes from this machine.
func isLocal(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}
