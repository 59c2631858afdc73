// Book: the issued credentials, and which caller a request belongs to.

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

// Credential lets a program ask one source as upstream would let it: with a
// user and a secret, or with the secret alone where its credentials have no user.
type Credential struct {
	Name   string // "reports": for the access log and for errors
	Source string
	User   string // what callers give as their user; not looked at where credentials have none (auth.HasUser)
	Secret understudy.Secret
	Digest []byte // SHA-256 of the secret, in place of Secret
	Grant  understudy.Grant
	From   []netip.Prefix // where it may come from; none: everywhere
	Rate   float64        // requests in Per, with as many at once; 0: no bound
	Per    time.Duration  // 0: a second
	// Yields means that another credential with the same user and secret counts.
	Yields bool
}

// Options are what a Book is made of.
type Options struct {
	Credentials []Credential
	Sources     []*spec.Source // every source a credential may name; their specs say how callers sign
	// Loopback is what a person on this machine may do without a credential
	// (Caller.Name "loopback"). Its zero value permits nothing.
	Loopback understudy.Grant
	// Open are the sources that programs on this machine may ask, for everything, without a
	// credential (Caller.Name "loopback").
	Open []string
	// Behind means that requests arrive through our own proxy. Then no request
	// gets the loopback grant.
	Behind bool
	// Guesses counts wrong secrets; nil: a new one.
	Guesses *Guesses
	// People know who has signed in; nil: nobody can, and who is on this machine needs no
	// sign-in.
	People People
	// ViewAs says through which role a caller looks; nil: through none.
	ViewAs ViewAs
	// Narrowest is the role that errors recommend to a person without a role;
	// "" = no recommendation.
	Narrowest string
	// NoRole is what a credential without a role is told; "": it has its source's error.
	NoRole string
	// Salt makes the digests of credentials unpredictable from outside; nil: a new
	// one. Books with the same salt know each other's callers (Again), and the
	// Flow of a credential is the same in each. It must stay secret.
	Salt []byte
	Now  func() time.Time // nil: time.Now
	// Known is called with every request whose caller was found, in the request's
	// goroutine; nil: no call.
	Known func(*http.Request, understudy.Caller)
}

// People know who has signed in. signin.People implements it.
type People interface {
	// Caller returns the person of a request. ErrUnauthorized: nobody is signed in there.
	Caller(r *http.Request) (understudy.Caller, error)
	// Again returns what such a person is now; ok is false if the session has ended or the
	// person is gone.
	Again(c understudy.Caller) (now understudy.Caller, ok bool)
	// Owner is such a person as it is kept beside work.
	Owner(c understudy.Caller) understudy.Owner
	// Resolve returns what an owner is now; ok is false if the person is gone.
	Resolve(o understudy.Owner) (now understudy.Caller, ok bool)
}

// Book knows the credentials. It keeps no secret, only salted digests, and is
// safe for concurrent use.
type Book struct {
	now     func() time.Time
	taken   map[string][]auth.Scheme // what requests may carry, by source
	salt    [sha256.Size]byte
	known   map[digest]*entry        // by source, user and secret
	people  map[digest]*entry        // by user and secret
	paces   map[uint64]*limiter.Pace // by the Flow of their callers
	told    func(*http.Request, understudy.Caller)
	signed  People
	viewAs  ViewAs
	open    map[string]*open // by source
	machine machine
	Guesses *Guesses
}

// machine is who asks from this machine without a credential.
type machine struct {
	local  understudy.Caller
	behind bool   // a proxy passes requests on: no caller is on this machine
	role   string // that errors recommend
	noRole string // what a credential without a role is told
}

// open is a source that needs no credential on this machine.
type open struct {
	caller      understudy.Caller
	credentials bool // there are some all the same
}

type digest = [sha256.Size]byte

type entry struct {
	digest digest
	caller understudy.Caller
	from   []netip.Prefix
	pace   *limiter.Pace // nil: no bound
}

// localFlow is the flow of who is on this machine without a credential.
const localFlow = 1

// maxHeader bounds what is read of a credential, in bytes.
const maxHeader = auth.MaxCredential

// New makes the book. A credential without a name, a secret or a known source,
// or with a user and secret another of its source has, is an error.
func New(o Options) (*Book, error) {
	b := &Book{now: o.Now, taken: map[string][]auth.Scheme{}, known: map[digest]*entry{}, people: map[digest]*entry{},
		paces: map[uint64]*limiter.Pace{}, open: map[string]*open{},
		machine: machine{behind: o.Behind, role: o.Narrowest, noRole: o.NoRole}, signed: o.People, viewAs: o.ViewAs, Guesses: o.Guesses}
	understudy.SetDefaults(nil, &b.now)
	if b.told = o.Known; b.told == nil {
		b.told = func(*http.Request, understudy.Caller) {}
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
		taken, err := s.Spec.Auth.Taken()
		if err != nil {
			return nil, fmt.Errorf("callers: source %s: auth: %w", s.Name, err)
		}
		b.taken[s.Name] = taken
	}
	b.machine.local = understudy.Caller{Name: "loopback", Grant: &o.Loopback, Flow: localFlow}
	for _, name := range o.Open {
		all := &understudy.Grant{Role: understudy.RoleAll, By: o.Loopback.By, Allow: []understudy.Allow{{Method: "*", Path: "/**"}}}
		b.open[name] = &open{caller: understudy.Caller{Name: "loopback", Source: name, Grant: all, Flow: localFlow}}
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

func (b *Book) add(c *Credential) error {
	taken, ok := b.taken[c.Source]
	user, hasUser := c.User, auth.HasUser(taken)
	if !hasUser {
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
		return fmt.Errorf("callers: credential %s: no source %q", c.Name, c.Source)
	case secret == "" && c.Digest == nil || len(of) != sha256.Size:
		return fmt.Errorf("callers: credential %s: empty secret", c.Name)
	case hasUser && (user == "" || strings.Contains(user, ":")):
		return fmt.Errorf("callers: credential %s: user %q: want one without a colon", c.Name, user)
	case len(user)+len(secret) > maxHeader/2:
		return fmt.Errorf("callers: credential %s: user and secret together are longer than %d bytes", c.Name, maxHeader/2)
	}
	grant := c.Grant
	e := &entry{digest: sum(&b.salt, c.Source, []byte(user), of), caller: understudy.Caller{Name: c.Name, Source: c.Source, Grant: &grant},
		from: c.From, pace: limiter.NewPace(c.Rate, c.Per)}
	// Flow is part of the salted digest, so it does not reveal the credential.
	e.caller.Flow = binary.LittleEndian.Uint64(e.digest[:])
	if other := b.known[e.digest]; other != nil {
		if c.Yields {
			return nil
		}
		return fmt.Errorf("callers: credential %s: same user and secret as %s", c.Name, other.caller.Name)
	}
	b.known[e.digest] = e
	b.paces[e.caller.Flow] = e.pace
	if hasUser && len(taken) > 1 { // another scheme gives the secret alone
		alone := sum(&b.salt, c.Source, nil, of)
		other := b.known[alone]
		if other != nil && !c.Yields {
			return fmt.Errorf("callers: credential %s: same secret as %s, and requests may carry the secret alone", c.Name, other.caller.Name)
		}
		if other == nil {
			b.known[alone] = e
		}
	}
	if d := sum(&b.salt, "", []byte(user), of); b.people[d] == nil {
		person := *e
		person.digest = d
		b.people[d] = &person
	}
	return nil
}

// Caller returns the caller of a request to source, by the credential that it carries in
// one of the spec's schemes. Several are permitted when all are of one caller. Any other
// request gets ErrUnauthorized.
// Neither its text nor its timing reveals whether the user was correct. After
// too many wrong secrets for one user the error is also ErrTooMany, for a while.
func (b *Book) Caller(r *http.Request, source string) (understudy.Caller, error) {
	at := b.openTo(r, source)
	if at == nil {
		return b.find(r, b.known, source, b.taken[source])
	}
	if at.credentials {
		if e, err := b.search(r, b.known, source, b.taken[source]); err == nil {
			return b.admit(r, e)
		}
	}
	b.told(r, at.caller)
	return at.caller, nil
}

// openTo is a source that the sender of a request needs no credential for; nil: it needs
// one. What stands where a credential would may be upstream's then.
func (b *Book) openTo(r *http.Request, source string) *open {
	at := b.open[source]
	if at == nil || b.machine.behind || notLocal(r) != "" {
		return nil
	}
	return at
}

// Admit returns the caller of a request, and gives that of later requests that carry what
// this one carries, byte for byte, as Caller does: it looks at everything but the credential
// itself. nil: this request has no caller.
func (b *Book) Admit(r *http.Request, source string) (c understudy.Caller, later func(*http.Request) (understudy.Caller, error)) {
	if at := b.openTo(r, source); at != nil {
		return at.caller, func(r *http.Request) (understudy.Caller, error) { return b.Caller(r, source) }
	}
	e, err := b.search(r, b.known, source, b.taken[source])
	if err != nil {
		return c, nil
	}
	return e.caller, func(r *http.Request) (understudy.Caller, error) {
		if b.Guesses.some.Load() || !e.comesFrom(r) { // somebody guesses: all is looked at
			return b.Caller(r, source)
		}
		return b.admit(r, e)
	}
}

// find checks the request's credential. It computes a digest for each request.
// This costs less than a cache of decisions by header, which also needs a limit.
func (b *Book) find(r *http.Request, known map[digest]*entry, source string, taken []auth.Scheme) (understudy.Caller, error) {
	e, err := b.search(r, known, source, taken)
	if err != nil {
		return understudy.Caller{}, err
	}
	return b.admit(r, e)
}

// search finds whose credential a request carries.
func (b *Book) search(r *http.Request, known map[digest]*entry, source string, taken []auth.Scheme) (e *entry, err error) {
	for i, s := range taken {
		if slices.ContainsFunc(taken[:i], s.Beside) {
			continue // an earlier scheme has the same place
		}
		value, err := valueOf(r, s)
		if err != nil {
			return nil, err
		}
		if value == "" {
			continue
		}
		found, err := b.look(r, known, source, value, taken[i:])
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

// admit lets a caller in whose credential is right.
func (b *Book) admit(r *http.Request, e *entry) (understudy.Caller, error) {
	if !e.caller.Grant.Live(b.now()) {
		return understudy.Caller{}, fmt.Errorf("callers: %w: credential %s has expired", understudy.ErrUnauthorized, e.caller.Name)
	}
	if e.caller.Role() == "" && b.machine.noRole != "" {
		return understudy.Caller{}, fmt.Errorf("callers: %w: %s", understudy.ErrForbidden, b.machine.noRole)
	}
	if over := take(e.pace, b.now()); over != nil {
		return understudy.Caller{}, fmt.Errorf("callers: %w: %w: credential %s: %w", understudy.ErrUnauthorized, understudy.ErrTooMany,
			e.caller.Name, over)
	}
	b.told(r, e.caller)
	return e.caller, nil
}

// valueOf is the one value that stands where a scheme has its credential; "": none.
func valueOf(r *http.Request, s auth.Scheme) (string, error) {
	values := r.Header[s.Header]
	if s.Query != "" {
		values = s.Values(r.URL.RawQuery)
	}
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || len(values[0]) > maxHeader:
		return "", fmt.Errorf("callers: %w: want one credential of at most %d bytes in %s", understudy.ErrUnauthorized, maxHeader,
			s.Header+s.Query)
	case values[0] == "":
		return "", fmt.Errorf("callers: %w: unreadable credential in %s", understudy.ErrUnauthorized, s.Header)
	}
	return values[0], nil
}

// look finds who has a credential, as the first of some schemes, and those with the same
// place, may read its value.
func (b *Book) look(r *http.Request, known map[digest]*entry, source, value string, taken []auth.Scheme) (*entry, error) {
	var buf [maxHeader]byte
	var guessed []byte
	readable := false
	for _, s := range taken {
		if !s.Beside(taken[0]) {
			continue
		}
		user, secret, ok := s.Read(buf[:], value)
		if !ok {
			continue
		}
		if source != "" && !auth.HasUser(b.taken[source]) {
			user = nil
		}
		alone := user == nil
		if source == "" { // a token has no colon (RFC 6750, 2.1): a credential of another scheme
			if u, s, ok := bytes.Cut(secret, []byte(":")); ok && user == nil {
				user, secret = u, s
			}
		}
		if b.Guesses.Refused(r, user) {
			return nil, fmt.Errorf("callers: %w: %w: too many wrong secrets; wait a second", understudy.ErrUnauthorized, understudy.ErrTooMany)
		}
		of := sha256.Sum256(secret)
		d := sum(&b.salt, source, user, of[:])
		if e := known[d]; e != nil && e.comesFrom(r) && (alone || len(user) > 0 || source == "") {
			return e, nil
		}
		guessed, readable = append([]byte{}, user...), true
	}
	if !readable {
		return nil, fmt.Errorf("callers: %w: unreadable credential in %s", understudy.ErrUnauthorized, taken[0].Header+taken[0].Query)
	}
	b.Guesses.Wrong(r, guessed)
	return nil, fmt.Errorf("callers: %w: wrong user or secret", understudy.ErrUnauthorized)
}

// comesFrom reports whether a request comes from where its credential may be used. If
// not, it is refused as a wrong secret: who has stolen it learns nothing.
func (e *entry) comesFrom(r *http.Request) bool {
	if len(e.from) == 0 {
		return true
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(e.from, func(p netip.Prefix) bool { return p.Contains(peer.Addr().Unmap().WithZone("")) })
}

// sum returns the salted digest of a credential, of which it takes the digest of the
// secret. The salt is new in every
// process. So an attacker cannot choose a credential whose digest is close to a
// known one and learn from the time of a map lookup.
func sum(salt *[sha256.Size]byte, source string, user, secret []byte) digest {
	var buf [2 * maxHeader]byte
	text := append(buf[:0], salt[:]...)
	text = append(append(text, source...), 0)
	text = append(append(text, user...), 0)
	return sha256.Sum256(append(text, secret...))
}
