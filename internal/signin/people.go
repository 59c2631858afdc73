// People: the caller of a browser's request, by its session.

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

// cookieName begins with __Host-: browsers send it to this host alone, over TLS or to this
// machine, and no other host can set it (RFC 6265bis, 4.1.3.2).
const cookieName = "__Host-understudy"

// Guesses bounds how often a wrong password may be tried; callers.Guesses does.
type Guesses interface {
	// Refused reports whether no password of a user is looked at now; nil: of any user, from that address.
	Refused(r *http.Request, user []byte) bool
	// Wrong counts a wrong one.
	Wrong(r *http.Request, user []byte)
}

// signingIn bounds how many passwords wait for their hash, in all and from one address. Browsers in
// which the person has signed in before have places of their own, counted by browser and name.
var signingIn, signingInAgain = limiter.New(64, 8), limiter.New(1024, 8)

// People know who has signed in, by a password or at a provider: one of Users and
// Provider is set. They are never changed after they are made, but for the sessions.
// Safe for concurrent use.
type People struct {
	Sessions *Sessions
	Users    *Users
	Provider *Provider
	Guesses  Guesses
	Audit    understudy.Auditor // lists sign-ins, before a session begins; nil: none is listed
	// Secure means that browsers reach the viewer by TLS, through a proxy.
	Secure bool
}

// role is that of a session now; ok is false when it opens nothing any more.
func (p *People) role(s *Session) (role string, ok bool) {
	if p.Provider != nil {
		return p.Provider.role(s)
	}
	return p.Users.role(s)
}

// Caller is the person whose browser asks. ErrUnauthorized: nobody is signed in there.
func (p *People) Caller(r *http.Request) (c understudy.Caller, err error) {
	if s, role, ok := p.session(r); ok {
		return callerOf(&s, role), nil
	}
	return c, fmt.Errorf("signin: %w: nobody is signed in", understudy.ErrUnauthorized)
}

// Again is what a caller of Caller is now; ok is false when the session has ended or the
// person is gone.
func (p *People) Again(c understudy.Caller) (now understudy.Caller, ok bool) {
	s, ok := p.Sessions.openedWith(c.Grant.Over)
	if !ok || s.Session.Name != c.Name {
		return now, false
	}
	role, ok := p.role(&s.Session)
	return callerOf(&s, role), ok
}

// Owner is a caller of Caller as it is kept beside work.
func (p *People) Owner(c understudy.Caller) understudy.Owner {
	o := understudy.Owner{Name: c.Name, Role: c.Role(), Seen: p.Sessions.now()}
	if s, ok := p.Sessions.openedWith(c.Grant.Over); ok && p.Provider != nil {
		o.Groups, o.Domain, o.With = s.Session.Groups, s.Session.Domain, s.Session.With
	}
	return o
}

// Resolve is the person that an owner is now, without a session. A user has the role of the
// file. Of who came from a provider, the groups of the last request count, for
// understudy.OwnerLasts.
func (p *People) Resolve(o understudy.Owner) (now understudy.Caller, ok bool) {
	role := ""
	if p.Provider != nil {
		role, ok = p.Provider.role(&Session{Name: o.Name, With: o.With, Groups: o.Groups, Domain: o.Domain})
		ok = ok && p.Sessions.now().Sub(o.Seen) < understudy.OwnerLasts
	} else if one, there := p.Users.find(o.Name); there {
		role, ok = one.Role, true
	}
	return withoutSession(o.Name, role), ok
}

// withoutSession is a person without a session.
func withoutSession(name, role string) understudy.Caller {
	return understudy.Caller{Name: name, Flow: flowOf(name), Grant: &understudy.Grant{Role: role, By: "owner"}}
}

// session is the one a browser has open, and its role.
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

// callerOf is the person of a session. All sessions of a person share its turn.
func callerOf(s *session, role string) understudy.Caller {
	return understudy.Caller{Name: s.Session.Name, Flow: flowOf(s.Session.Name),
		Grant: &understudy.Grant{Role: role, By: "sign-in", Expires: s.Session.Made.Add(AbsoluteEnd), Over: s.over}}
}

func flowOf(name string) uint64 {
	sum := sha256.Sum256([]byte("user\x00" + name))
	return binary.LittleEndian.Uint64(sum[:])
}

// SignIn begins a session for who knows a password, in place of the browser's former
// one. Errors: ErrUnauthorized, which does not tell whether the name is there, and with
// it ErrTooMany; ErrForbidden: the password came without encryption.
func (p *People) SignIn(w http.ResponseWriter, r *http.Request, name, password string) error {
	if !p.Secure && r.TLS == nil && !local(r) {
		return fmt.Errorf("signin: %w: a password is taken over TLS or from this machine alone; whoever runs this server can set "+
			"viewer.public_url to the https address of the proxy in front", understudy.ErrForbidden)
	}
	counted := p.Sessions.counted(r, name)
	if slices.ContainsFunc(counted, func(as []byte) bool { return p.Guesses.Refused(r, as) }) {
		return fmt.Errorf("signin: %w: %w: too many wrong passwords; wait a few seconds", understudy.ErrUnauthorized, understudy.ErrTooMany)
	}
	places, by, isKnown := signingIn, accesslog.PeerOf(r), len(counted) == 1
	if isKnown {
		places, by = signingInAgain, string(counted[0])
	}
	leave, err := places.Take(by)
	if err != nil {
		return fmt.Errorf("signin: %w: %w: too many people sign in from here at once; wait a few seconds", understudy.ErrUnauthorized,
			understudy.ErrTooMany)
	}
	defer leave()
	if !isKnown {
		release, err := acquire(r.Context(), hashingNew)
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
			p.Guesses.Wrong(r, as)
		}
		return fmt.Errorf("signin: %w: wrong name or password", understudy.ErrUnauthorized)
	}
	user, _ := p.Users.find(name) // its password is right
	if err := p.begin(w, r, Session{Name: name, With: user.with}); err != nil {
		return err
	}
	p.Sessions.rememberBrowser(w, name)
	return nil
}

// Finish begins a session for who comes back from the provider, and says where the way
// leads on. Errors: those of the provider; ErrForbidden: the person has no role.
func (p *People) Finish(w http.ResponseWriter, r *http.Request) (name, back string, err error) {
	who, back, err := p.Provider.finish(w, r)
	if err != nil {
		return "", "", err
	}
	s := Session{Name: who.name, With: p.Provider.with(), Groups: who.groups, Domain: who.domain}
	if _, ok := p.Provider.role(&s); !ok {
		return "", "", fmt.Errorf("signin: %w: %s has no access here", understudy.ErrForbidden, who.name)
	}
	return who.name, back, p.begin(w, r, s)
}

// begin begins a session in place of the browser's former one.
func (p *People) begin(w http.ResponseWriter, r *http.Request, s Session) error {
	s.Address, _, _ = net.SplitHostPort(r.RemoteAddr)
	s.Agent = r.UserAgent()
	role, _ := p.role(&s)
	who := understudy.Caller{Name: s.Name, Grant: &understudy.Grant{Role: role}}
	if err := understudy.Audit(r.Context(), p.Audit, understudy.AuditEntry{Caller: who, Action: understudy.ActionSignIn, What: "sign-in",
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

// Here is the id of the session a request came with, "" when it came with none.
func (p *People) Here(r *http.Request) string {
	s, _, _ := p.session(r)
	return s.Session.ID
}

// EndGone ends the sessions of those who may not come in any more.
func (p *People) EndGone(ctx context.Context) error {
	return p.Sessions.endWhere(ctx, func(s *Session) bool {
		_, ok := p.role(s)
		return !ok
	})
}

// end ends the session that a request came with.
func (p *People) end(r *http.Request) error {
	s, _, ok := p.session(r)
	if !ok {
		return nil
	}
	err := p.Sessions.End(context.WithoutCancel(r.Context()), s.Session.ID, s.Session.Name)
	if errors.Is(err, understudy.ErrNotFound) {
		return nil // it has ended meanwhile
	}
	return err
}

func setCookie(w http.ResponseWriter, name, value string, lasts time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(lasts / time.Second), Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
}

// local reports whether a request comes from this machine, as far as its connection says.
func local(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}
