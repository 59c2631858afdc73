// Package credentials creates, rotates and revokes the credentials of clients while the server runs. It stores no
// secrets, only a digest of each secret.
package credentials

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
)

// The limits of credentials.
const (
	maxCredentials = 1000
	maxName        = 64 // the maximum length of a credential's name, in bytes
	maxOverlap     = 30 * 24 * time.Hour
	secretBytes    = 24 // the number of random bytes in a secret: 192 bits
)

// kvStart is the beginning of the names under which credentials are stored in the KV store.
const kvStart = "credential/"

// KV stores small values under names; kv.Table implements it.
type KV interface {
	understudy.SharedKV
	// ChangeDurably does what Change does. The value is on the disk when it returns.
	ChangeDurably(ctx context.Context, name string, change func(old []byte) (value []byte, err error)) error
	// Delete deletes a value and reports whether it existed.
	Delete(ctx context.Context, name string) (found bool, err error)
}

// Scope is what a credential may do, in the notation of the settings.
type Scope struct {
	Source    string     `json:"source"`
	Role      string     `json:"role"`
	Allow     []string   `json:"allow,omitempty"`     // the permitted methods and path patterns, such as "POST /path/*/x.json"
	MaxStale  string     `json:"max_stale,omitempty"` // a duration such as 30s or 30d; "" means the mirror's default
	Expires   *time.Time `json:"expires,omitempty"`   // the time when the credential expires; nil if it never expires
	Rate      float64    `json:"rate,omitempty"`      // the maximum number of requests in Per; 0 means no limit
	Per       string     `json:"per,omitempty"`       // the period of Rate, from 1s to 24h; "" means 1s
	Addresses []string   `json:"addresses,omitempty"` // the address blocks from which the credential may be used; none means all
}

// ParsePer parses the period Per. Its error says what is wrong with the text.
func (s *Scope) ParsePer() (time.Duration, error) {
	if s.Per == "" {
		return time.Second, nil
	}
	d, err := understudy.ParseDuration(s.Per)
	if err != nil || d < time.Second || d > 24*time.Hour {
		return 0, fmt.Errorf("per: %q is not a duration from 1s to 24h; write one such as 1h", s.Per)
	}
	return d, nil
}

// RateText returns the rate in words, or "" if there is no limit.
func (s *Scope) RateText() string {
	switch per, err := s.ParsePer(); {
	case s.Rate <= 0 || err != nil:
		return ""
	case per == time.Second:
		return fmt.Sprintf("%g requests a second", s.Rate)
	default:
		return fmt.Sprintf("%g requests in %s", s.Rate, s.Per)
	}
}

// Credential is a credential that was created at run time.
type Credential struct {
	Name string `json:"name"`
	Scope
	Made    time.Time `json:"made"`
	Secrets []Secret  `json:"secrets"` // the valid secrets, the newest first
}

// Secret is a user and the digest of a secret.
type Secret struct {
	User   string     `json:"user"`
	Digest []byte     `json:"digest,omitempty"` // SHA-256 is enough, because the secret is random
	Made   time.Time  `json:"made"`
	Until  *time.Time `json:"until,omitempty"` // when the secret expires; nil means together with the credential
	// Revoked is closed when the secret is no longer valid because its credential was revoked or rotated.
	Revoked <-chan struct{} `json:"-"`
}

// Shown is a new credential with its secret. The secret cannot be shown again.
type Shown struct {
	Name   string `json:"name"`
	User   string `json:"user"`
	Secret string `json:"secret"`
}

// Form returns the beginnings that users and secrets of a source must have to look like the provider's own.
type Form func(source string) (user, secret string)

// Book contains all credentials that were created at run time, by this process or by another one on the same database.
// A change is stored when its method returns. Book is safe for concurrent use.
type Book struct {
	kv      KV
	now     func() time.Time
	form    Form
	changed chan struct{} // receives a value after each change, unless it is full

	making lockwatch.Mutex // held while a credential is created; locked before mu
	recent []recent        // guarded by making

	mu      lockwatch.Mutex // never held while kv is used
	all     map[string]*Credential
	ends    map[string]chan struct{} // the channel Revoked of each secret, by user
	version int64                    // the number of changes since the start
}

// recent is a credential that a form has just created. If the same form is sent again, it gets the same response.
type recent struct {
	once  string
	at    time.Time
	shown Shown
}

// resendTime is the time in which a form that is sent again gets the same credential.
const resendTime = time.Minute

// Open reads the credentials from a store.
func Open(ctx context.Context, kv KV, form Form, now func() time.Time) (*Book, error) {
	b := &Book{kv: kv, now: now, form: form, changed: make(chan struct{}, 1), all: map[string]*Credential{}, ends: map[string]chan struct{}{}}
	if err := kv.Watch(ctx, kvStart, b.put); err != nil {
		return nil, err
	}
	return b, nil
}

// put replaces a credential in memory by its stored value, or removes it if the value is nil or cannot be read.
func (b *Book) put(name string, value []byte) error {
	var c *Credential
	var err error
	if value != nil {
		c, err = decode(name, value)
	}
	name = strings.TrimPrefix(name, kvStart)
	b.mu.Lock()
	defer b.mu.Unlock()
	former := b.all[name]
	delete(b.all, name)
	valid := map[string]bool{}
	if c != nil {
		b.all[name] = c
		for i := range c.Secrets {
			s := &c.Secrets[i]
			valid[s.User] = true
			if b.ends[s.User] == nil {
				b.ends[s.User] = make(chan struct{})
			}
			s.Revoked = b.ends[s.User]
		}
	}
	if former != nil {
		for _, s := range former.Secrets {
			if end := b.ends[s.User]; end != nil && !valid[s.User] {
				close(end)
				delete(b.ends, s.User)
			}
		}
	}
	b.version++
	understudy.Wake(b.changed)
	return err
}

// decode returns the credential in a stored value.
func decode(name string, value []byte) (*Credential, error) {
	c := &Credential{}
	if err := json.Unmarshal(value, c); err != nil || kvStart+c.Name != name {
		return nil, fmt.Errorf("credentials: the value of %s is not a credential", understudy.Clip(name))
	}
	return c, nil
}

// Changes returns a channel that receives a value after credentials have changed, also by another process.
func (b *Book) Changes() <-chan struct{} { return b.changed }

// Version returns a number that grows with every change of a credential.
func (b *Book) Version() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.version
}

// All returns copies of the credentials, sorted by name.
func (b *Book) All() []Credential {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Credential
	for _, c := range b.all {
		one := *c
		one.Secrets = slices.Clone(c.Secrets)
		all = append(all, one)
	}
	slices.SortFunc(all, func(x, y Credential) int { return cmp.Compare(x.Name, y.Name) })
	return all
}

// CheckName returns an error if a name is unsuitable for logs and commands.
func CheckName(name string) error {
	odd := strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-@", r))
	})
	if name == "" || len(name) > maxName || odd {
		return fmt.Errorf("%w: the name %q is not allowed; write 1 to %d letters, digits, or any of ._-@", understudy.ErrInvalid,
			understudy.Clip(name), maxName)
	}
	return nil
}

// Has reports whether there is a credential of that name.
func (b *Book) Has(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[name] != nil
}

// Make creates a credential. The caller must have checked name and scope. once identifies the form that requests the
// credential, or is "". If the same form is sent again within a minute, it gets the same credential, from memory. Errors:
// ErrInvalid if the name exists, if there are too many credentials, or if the expiry is not in the future; ErrNotStored.
func (b *Book) Make(ctx context.Context, name string, s Scope, once string) (shown Shown, err error) {
	b.making.Lock()
	defer b.making.Unlock()
	if shown, ok := b.findRecent(name, once); ok {
		return shown, nil
	}
	err = b.kv.ChangeDurably(ctx, kvStart+name, func(old []byte) ([]byte, error) {
		switch {
		case old != nil:
			return nil, fmt.Errorf("credentials: %w: there is one called %s; rotate or revoke it", understudy.ErrInvalid, name)
		case s.Expires != nil && !s.Expires.After(b.now()):
			return nil, fmt.Errorf("credentials: %w: expires: %s is not in the future; write a later date, or a duration such as 30d",
				understudy.ErrInvalid, s.Expires.UTC().Format(time.RFC3339))
		case b.count() >= maxCredentials:
			return nil, fmt.Errorf("credentials: %w: there are %d; revoke some", understudy.ErrInvalid, maxCredentials)
		}
		c := &Credential{Name: name, Scope: s, Made: b.now()}
		shown = b.addSecret(c)
		return json.Marshal(c)
	})
	if err != nil {
		return Shown{}, err
	}
	if once != "" {
		b.recent = append(b.recent, recent{once, b.now(), shown})
	}
	return shown, nil
}

// findRecent returns the credential that this process created for a form less than a minute ago, if it still has its
// first secret.
func (b *Book) findRecent(name, once string) (shown Shown, ok bool) {
	b.recent = slices.DeleteFunc(b.recent, func(r recent) bool { return b.now().Sub(r.at) >= resendTime })
	b.mu.Lock()
	defer b.mu.Unlock()
	there := b.all[name]
	i := slices.IndexFunc(b.recent, func(r recent) bool {
		return once != "" && r.once == once && r.shown.Name == name && there != nil && r.shown.User == there.Secrets[0].User
	})
	if i < 0 {
		return shown, false
	}
	return b.recent[i].shown, true
}

func (b *Book) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all)
}

// Rotate gives a credential a new secret. The old secrets stay valid for the time overlap. Errors: ErrNotFound;
// ErrInvalid if overlap is too long; ErrNotStored.
func (b *Book) Rotate(ctx context.Context, name string, overlap time.Duration) (shown Shown, err error) {
	if overlap < 0 || overlap > maxOverlap {
		return Shown{}, fmt.Errorf("credentials: %w: an overlap lasts 0s to %s", understudy.ErrInvalid, maxOverlap)
	}
	if CheckName(name) != nil {
		return Shown{}, newNotFound(name)
	}
	err = b.kv.ChangeDurably(ctx, kvStart+name, func(old []byte) ([]byte, error) {
		if old == nil {
			return nil, newNotFound(name)
		}
		c, err := decode(kvStart+name, old)
		if err != nil {
			return nil, err
		}
		now, former := b.now(), c.Secrets
		until := now.Add(overlap)
		c.Secrets = nil
		for _, s := range former {
			if s.Until == nil || s.Until.After(until) {
				s.Until = &until
			}
			if s.Until.After(now) {
				c.Secrets = append(c.Secrets, s)
			}
		}
		shown = b.addSecret(c)
		return json.Marshal(c)
	})
	if err != nil {
		return Shown{}, err
	}
	return shown, nil
}

// Revoke removes a credential. Errors: ErrNotFound; ErrNotStored, then the credential still exists.
func (b *Book) Revoke(ctx context.Context, name string) error {
	if CheckName(name) != nil {
		return newNotFound(name)
	}
	found, err := b.kv.Delete(ctx, kvStart+name)
	if err == nil && !found {
		err = newNotFound(name)
	}
	return err
}

func newNotFound(name string) error {
	return fmt.Errorf("credentials: %w: no credential was made as %q; one of the settings is changed there", understudy.ErrNotFound,
		understudy.Clip(name))
}

func (b *Book) addSecret(c *Credential) Shown {
	user, secret := b.form(c.Source)
	user, secret = user+random(16), secret+random(secretBytes)
	sum := sha256.Sum256([]byte(secret))
	c.Secrets = append([]Secret{{User: user, Digest: sum[:], Made: b.now()}}, c.Secrets...)
	return Shown{Name: c.Name, User: user, Secret: secret}
}

func random(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // rand.Read never fails
	return hex.EncodeToString(raw)
}

// ParseDate parses a day (its first moment in UTC), a time in RFC 3339, or a duration. For a duration it returns
// the result of shift, which adds the duration to the present time or subtracts it.
func ParseDate(text string, shift func(time.Duration) time.Time) (time.Time, error) {
	if d, err := understudy.ParseDuration(text); err == nil && d > 0 {
		return shift(d), nil
	}
	at, err := understudy.ParseTime(text, time.UTC, time.DateOnly, time.RFC3339)
	if err != nil {
		return at, fmt.Errorf("%q: write 2027-01-01, 2027-01-01T12:00:00Z or 30d", text)
	}
	return at, nil
}
