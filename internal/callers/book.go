// This file contains the credentials, and finds the caller to which a request belongs.

// Package callers finds the caller of a request.
package callers

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/kit/limiter"
	"understudy/spec"
	"understudy/spec/auth"
)

// Credential lets a client send requests to one source in the way in which the upstream authenticates: with a user
// and a secret, or with only a secret if the source's credentials have no user.
type Credential struct {
	Name   string // the name in the access log and in errors, such as "reports"
	Source string
	User   string // the user that callers send; ignored if the source's credentials have no user (auth.HasUser)
	Secret understudy.Secret
	Digest []byte // the SHA-256 of the secret, if Secret is empty
	Grant  understudy.Grant
	From   []netip.Prefix // the addresses from which the credential may be used; none means all
	Rate   float64        // the maximum number of requests in Per, also as a burst; 0 means no limit
	Per    time.Duration  // the period of Rate; 0 means a second
	// YieldsToOther is true if another credential with the same user and secret takes precedence.
	YieldsToOther bool
}

// Options are the options of a Book.
type Options struct {
	Credentials []Credential
	Sources     []*spec.Source // all sources that credentials may name; their specs say how callers authenticate
	// Loopback is the grant of a person on this machine who has no credential. Such a caller has the name
	// "loopback". The zero value permits nothing.
	Loopback understudy.Grant
	// Open names the sources that clients on this machine may use without a credential and without restrictions.
	// Such a caller has the name "loopback".
	Open []string
	// BehindProxy is true if requests arrive through the operator's own proxy. Then no request gets the loopback grant.
	BehindProxy bool
	// Guesses counts wrong secrets. nil means a new counter.
	Guesses *Guesses
	// People knows who has signed in. If it is nil, nobody can sign in, and people on this machine need no sign-in.
	People People
	// ViewAs returns the role through which a caller views. If it is nil, every caller views through its own role.
	ViewAs ViewAs
	// RecommendedRole is the role that errors recommend to a person without a role, or "".
	RecommendedRole string
	// NoRoleText is the error text for a credential without a role. If it is "", the error text of its source is used.
	NoRoleText string
	// Salt is the secret salt of the digests of credentials; nil means a new salt. Books with the same salt
	// recognize each other's callers (Recheck), and give a credential the same Flow.
	Salt []byte
	Now  func() time.Time // the clock; nil means time.Now
	// Usage returns the counter of the requests of a credential. If it is nil, requests are not counted.
	Usage func(source, name string) *understudy.Usage
	// Known is called with every request whose caller was found, in the request's goroutine. It may be nil.
	Known func(*http.Request, understudy.Caller)
}

// People knows who has signed in. signin.People implements it.
type People interface {
	// Identify returns the person who sent a request, or ErrUnauthorized if nobody is signed in.
	Identify(r *http.Request) (understudy.Caller, error)
	// Recheck returns the current state of a person that Identify returned. ok is false if the session or the
	// person no longer exists.
	Recheck(c understudy.Caller) (now understudy.Caller, ok bool)
	// Owner returns a person that Identify returned, in the form that is stored with work.
	Owner(c understudy.Caller) understudy.Owner
	// Resolve returns the person that an owner is now. ok is false if the person no longer exists.
	Resolve(o understudy.Owner) (now understudy.Caller, ok bool)
}

// Book finds callers by their credentials. It stores no secrets, only salted digests. It is safe for concurrent use.
type Book struct {
	now         func() time.Time
	schemes     map[string][]auth.Scheme // the authentication schemes that requests may use, by source
	salt        [sha256.Size]byte
	known       map[digest]*entry        // the known credentials, by the digest of source, user and secret
	people      map[digest]*entry        // the credentials that people may use, by the digest of user and secret
	paces       map[uint64]*limiter.Pace // the request rates, by the Flow of their callers
	notifyKnown func(*http.Request, understudy.Caller)
	usage       func(source, name string) *understudy.Usage
	signedIn    People
	viewAs      ViewAs
	open        map[string]*openAccess // the sources that need no credential on this machine, by name
	machine     localCallers
	Guesses     *Guesses
}

// localCallers describes callers on this machine without a credential.
type localCallers struct {
	local  understudy.Caller
	behind bool   // whether a proxy passes requests on, so that no caller counts as being on this machine
	role   string // the role that errors recommend to a person without a role
	noRole string // the error text for a credential without a role
}

// openAccess is a source that clients on this machine may use without a credential.
type openAccess struct {
	caller      understudy.Caller
	credentials bool // whether there are also credentials for the source
}

type digest = [sha256.Size]byte

type entry struct {
	digest digest
	caller understudy.Caller
	from   []netip.Prefix
	pace   *limiter.Pace // limits the requests of the credential; nil if there is no limit
}

// localFlow is the Flow of a caller on this machine without a credential.
const localFlow = 1

// maxHeader is the maximum length of a credential in a request, in bytes.
const maxHeader = auth.MaxCredential

// New returns a book. It returns an error for a credential without a name, a secret or a known source, and for two
// credentials of a source with the same user and secret.
func New(o Options) (*Book, error) {
	b := &Book{now: o.Now, schemes: map[string][]auth.Scheme{}, known: map[digest]*entry{}, people: map[digest]*entry{},
		paces: map[uint64]*limiter.Pace{}, open: map[string]*openAccess{},
		machine:  localCallers{behind: o.BehindProxy, role: o.RecommendedRole, noRole: o.NoRoleText},
		signedIn: o.People, viewAs: o.ViewAs, Guesses: o.Guesses}
	understudy.SetDefaults(nil, &b.now)
	if b.notifyKnown = o.Known; b.notifyKnown == nil {
		b.notifyKnown = func(*http.Request, understudy.Caller) {}
	}
	if b.usage = o.Usage; b.usage == nil {
		b.usage = func(string, string) *understudy.Usage { return nil }
	}
	if o.Salt != nil {
		b.salt = sha256.Sum256(o.Salt)
	} else if _, err := rand.Read(b.salt[:]); err != nil {
		return nil, fmt.Errorf("callers: salt: %w", err)
	}
	if b.Guesses == nil {
		b.Guesses = NewGuesses(b.salt, b.now)
	}
	for _, s := range o.Sources {
		taken, err := s.Spec.Auth.ParseAccepted()
		if err != nil {
			return nil, fmt.Errorf("callers: source %s: auth: %w", s.Name, err)
		}
		b.schemes[s.Name] = taken
	}
	b.machine.local = understudy.Caller{Name: "loopback", Grant: &o.Loopback, Flow: localFlow}
	for _, name := range o.Open {
		all := &understudy.Grant{Role: understudy.RoleAll, IssuedBy: o.Loopback.IssuedBy, Allow: []understudy.Allow{{Method: "*", Path: "/**"}}}
		b.open[name] = &openAccess{caller: understudy.Caller{Name: "loopback", Source: name, Grant: all, Flow: localFlow,
			Usage: b.usage(name, "loopback")}}
	}
	for i := range o.Credentials {
		if at := b.open[o.Credentials[i].Source]; at != nil {
			at.credentials = true
		}
		if err := b.add(&o.Credentials[i]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// add checks a credential and adds it to the book.
func (b *Book) add(c *Credential) error {
	taken, ok := b.schemes[c.Source]
	user, hasUser := c.User, auth.HasUser(taken)
	if ok = ok || c.Grant.Service != ""; !hasUser && c.Grant.Service == "" {
		user = ""
	}
	secret := c.Secret.Reveal()
	of := c.Digest
	if of == nil {
		sum := sha256.Sum256([]byte(secret))
		of = sum[:]
	}
	switch {
	case c.Name == "":
		return fmt.Errorf("callers: a credential of %q has no name", c.Source)
	case !ok:
		return fmt.Errorf("callers: credential %s: there is no source %q", c.Name, c.Source)
	case secret == "" && c.Digest == nil || len(of) != sha256.Size:
		return fmt.Errorf("callers: credential %s: the secret is empty", c.Name)
	case hasUser && (user == "" || strings.Contains(user, ":")):
		return fmt.Errorf("callers: credential %s: the user %q is empty or contains a colon", c.Name, user)
	case len(user)+len(secret) > maxHeader/2:
		return fmt.Errorf("callers: credential %s: user and secret together are longer than %d bytes", c.Name, maxHeader/2)
	}
	grant := c.Grant
	e := &entry{digest: digestOf(&b.salt, c.Source, []byte(user), of),
		caller: understudy.Caller{Name: c.Name, Source: c.Source, Grant: &grant, Usage: b.usage(c.Source, c.Name)},
		from:   c.From, pace: limiter.NewPace(c.Rate, c.Per)}
	// The Flow is a part of the salted digest, so it does not reveal the credential.
	e.caller.Flow = binary.LittleEndian.Uint64(e.digest[:])
	if other := b.known[e.digest]; other != nil {
		if c.YieldsToOther {
			return nil
		}
		return fmt.Errorf("callers: credential %s: same user and secret as %s", c.Name, other.caller.Name)
	}
	b.known[e.digest] = e
	b.paces[e.caller.Flow] = e.pace
	if hasUser && len(taken) > 1 { // another scheme of the source sends only the secret
		alone := digestOf(&b.salt, c.Source, nil, of)
		other := b.known[alone]
		if other != nil && !c.YieldsToOther {
			return fmt.Errorf("callers: credential %s: same secret as %s, and requests may carry the secret alone", c.Name, other.caller.Name)
		}
		if other == nil {
			b.known[alone] = e
		}
	}
	if d := digestOf(&b.salt, "", []byte(user), of); b.people[d] == nil {
		person := *e
		person.digest = d
		b.people[d] = &person
	}
	return nil
}

// Identify returns the caller of a request to source, by the credential that the request carries in one of the
// spec's schemes. Several credentials are permitted if all belong to the same caller. For any other request it
// returns ErrUnauthorized. Neither the text nor the timing of the error reveals whether the user was correct. After
// too many wrong secrets for one user, the error is also ErrTooMany for a while.
func (b *Book) Identify(r *http.Request, source string) (understudy.Caller, error) {
	at := b.openSource(r, source)
	if at == nil {
		return b.find(r, b.known, source, b.schemes[source])
	}
	if at.credentials {
		if e, err := b.search(r, b.known, source, b.schemes[source]); err == nil {
			return b.admit(r, e)
		}
	}
	b.notifyKnown(r, at.caller)
	return at.caller, nil
}

// openSource returns the source if the sender of a request needs no credential for it, else nil. A credential in
// such a request may be meant for the upstream.
func (b *Book) openSource(r *http.Request, source string) *openAccess {
	at := b.open[source]
	if at == nil || b.machine.behind || remoteReason(r) != "" {
		return nil
	}
	return at
}

// Admit returns the caller of a request, and a function that identifies later requests with the same credential.
// The function checks everything except the credential itself. If the request has no caller, later is nil.
func (b *Book) Admit(r *http.Request, source string) (c understudy.Caller, later func(*http.Request) (understudy.Caller, error)) {
	if at := b.openSource(r, source); at != nil {
		return at.caller, func(r *http.Request) (understudy.Caller, error) { return b.Identify(r, source) }
	}
	e, err := b.search(r, b.known, source, b.schemes[source])
	if err != nil {
		return c, nil
	}
	return e.caller, func(r *http.Request) (understudy.Caller, error) {
		if b.Guesses.hasAny.Load() || !e.canComeFrom(r) { // while wrong secrets are being tried, the credential is checked too
			return b.Identify(r, source)
		}
		return b.admit(r, e)
	}
}

// find checks the credential of a request. It computes a digest for each request. This costs less than a cache
// of decisions by header, which would also need a limit.
func (b *Book) find(r *http.Request, known map[digest]*entry, source string, taken []auth.Scheme) (understudy.Caller, error) {
	e, err := b.search(r, known, source, taken)
	if err != nil {
		return understudy.Caller{}, err
	}
	return b.admit(r, e)
}

// search returns the entry of the credential that a request carries.
func (b *Book) search(r *http.Request, known map[digest]*entry, source string, taken []auth.Scheme) (e *entry, err error) {
	for i, s := range taken {
		if slices.ContainsFunc(taken[:i], s.IsSamePlace) {
			continue // an earlier scheme has read the same header or parameter
		}
		value, err := readValue(r, s)
		if err != nil {
			return nil, err
		}
		if value == "" {
			continue
		}
		found, err := b.lookUp(r, known, source, value, taken[i:])
		switch {
		case err != nil:
			return nil, err
		case e != nil && e != found:
			return nil, fmt.Errorf("callers: %w: two credentials that are not of one caller", understudy.ErrUnauthorized)
		}
		e = found
	}
	if e == nil {
		return nil, fmt.Errorf("callers: %w: no credential", understudy.ErrUnauthorized)
	}
	return e, nil
}

// admit returns the caller of a correct credential, unless the credential has expired, has no role or exceeds its rate.
func (b *Book) admit(r *http.Request, e *entry) (understudy.Caller, error) {
	if !e.caller.Grant.IsActive(b.now()) {
		return understudy.Caller{}, fmt.Errorf("callers: %w: credential %s has expired", understudy.ErrUnauthorized, e.caller.Name)
	}
	if e.caller.Role() == "" && b.machine.noRole != "" {
		return understudy.Caller{}, fmt.Errorf("callers: %w: %s", understudy.ErrForbidden, b.machine.noRole)
	}
	if over := takeRequest(e.pace, b.now()); over != nil {
		return understudy.Caller{}, fmt.Errorf("callers: %w: %w: credential %s: %w", understudy.ErrUnauthorized, understudy.ErrTooMany,
			e.caller.Name, over)
	}
	b.notifyKnown(r, e.caller)
	return e.caller, nil
}

// readValue returns the value of the header or parameter in which a scheme carries its credential, or "" if it is missing.
func readValue(r *http.Request, s auth.Scheme) (string, error) {
	values := r.Header[s.Header]
	if s.Query != "" {
		values = s.Values(r.URL.RawQuery)
	}
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || len(values[0]) > maxHeader:
		return "", fmt.Errorf("callers: %w: send exactly one credential of at most %d bytes in %s", understudy.ErrUnauthorized, maxHeader,
			s.Header+s.Query)
	case values[0] == "":
		return "", fmt.Errorf("callers: %w: the credential in %s cannot be read", understudy.ErrUnauthorized, s.Header)
	}
	return values[0], nil
}

// lookUp returns the entry of the credential in value. It tries the first scheme, and all further schemes that
// read the same header or parameter.
func (b *Book) lookUp(r *http.Request, known map[digest]*entry, source, value string, taken []auth.Scheme) (*entry, error) {
	var buf [maxHeader]byte
	var guessed []byte
	readable := false
	for _, s := range taken {
		if !s.IsSamePlace(taken[0]) {
			continue
		}
		user, secret, ok := s.Read(buf[:], value)
		if !ok {
			continue
		}
		if source != "" && !auth.HasUser(b.schemes[source]) {
			user = nil
		}
		alone := user == nil
		if source == "" { // a bearer token contains no colon (RFC 6750, 2.1), so this is a credential of another scheme
			if u, s, ok := bytes.Cut(secret, []byte(":")); ok && user == nil {
				user, secret = u, s
			}
		}
		if b.Guesses.IsRefused(r, user) {
			return nil, fmt.Errorf("callers: %w: %w: too many wrong secrets; wait a second", understudy.ErrUnauthorized, understudy.ErrTooMany)
		}
		of := sha256.Sum256(secret)
		d := digestOf(&b.salt, source, user, of[:])
		if e := known[d]; e != nil && e.canComeFrom(r) && (alone || len(user) > 0 || source == "") {
			return e, nil
		}
		guessed, readable = append([]byte{}, user...), true
	}
	if !readable {
		return nil, fmt.Errorf("callers: %w: the credential in %s cannot be read", understudy.ErrUnauthorized, taken[0].Header+taken[0].Query)
	}
	b.Guesses.CountWrong(r, guessed)
	return nil, fmt.Errorf("callers: %w: wrong user or secret", understudy.ErrUnauthorized)
}

// canComeFrom reports whether a request comes from an address that may use the credential. If not, the request is
// refused like a request with a wrong secret, so that a thief of the credential learns nothing.
func (e *entry) canComeFrom(r *http.Request) bool {
	if len(e.from) == 0 {
		return true
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(e.from, func(p netip.Prefix) bool { return p.Contains(peer.Addr().Unmap().WithZone("")) })
}

// digestOf returns the salted digest of a credential. secret is the digest of its secret. The salt is new in every
// process, so an attacker can't choose a digest close to a known one and learn from the time of a map lookup.
func digestOf(salt *[sha256.Size]byte, source string, user, secret []byte) digest {
	var buf [2 * maxHeader]byte
	text := append(buf[:0], salt[:]...)
	text = append(append(text, source...), 0)
	text = append(append(text, user...), 0)
	return sha256.Sum256(append(text, secret...))
}
