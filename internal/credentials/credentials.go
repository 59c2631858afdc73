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
	"sync"
	"time"

	"understudy"
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

// KV stores small values under names; store.DB implements it.
type KV interface {
	ReadValues(ctx context.Context, prefix string) (map[string][]byte, error)
	SetValueDurably(ctx context.Context, name string, value []byte) error
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
		return 0, fmt.Errorf("per: %q: want a duration from 1s to 24h, as 1h", s.Per)
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
}

// Shown is a new credential with its secret. The secret cannot be shown again.
type Shown struct {
	Name   string `json:"name"`
	User   string `json:"user"`
	Secret string `json:"secret"`
}

// Form returns the beginnings that users and secrets of a source must have to look like the provider's own.
type Form func(source string) (user, secret string)

// Book contains all credentials that were created at run time. A change is stored when its method returns. Book is
// safe for concurrent use.
type Book struct {
	kv   KV
	now  func() time.Time
	form Form

	mu     sync.Mutex
	all    map[string]*Credential
	recent []recent
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
	kept, err := kv.ReadValues(ctx, kvStart)
	if err != nil {
		return nil, err
	}
	b := &Book{kv: kv, now: now, form: form, all: map[string]*Credential{}}
	for name, value := range kept {
		var c Credential
		if err := json.Unmarshal(value, &c); err != nil || kvStart+c.Name != name {
			return nil, fmt.Errorf("credentials: the value of %s is no credential", understudy.Clip(name))
		}
		b.all[c.Name] = &c
	}
	return b, nil
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
		return fmt.Errorf("%w: name: %q: want 1 to %d letters, digits, or any of ._-@", understudy.ErrInvalid, understudy.Clip(name), maxName)
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
func (b *Book) Make(ctx context.Context, name string, s Scope, once string) (Shown, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recent = slices.DeleteFunc(b.recent, func(r recent) bool { return b.now().Sub(r.at) >= resendTime })
	there := b.all[name]
	i := slices.IndexFunc(b.recent, func(r recent) bool {
		return once != "" && r.once == once && r.shown.Name == name && there != nil && r.shown.User == there.Secrets[0].User
	})
	switch {
	case i >= 0:
		return b.recent[i].shown, nil
	case there != nil:
		return Shown{}, fmt.Errorf("credentials: %w: there is one called %s; rotate or revoke it", understudy.ErrInvalid, name)
	case s.Expires != nil && !s.Expires.After(b.now()):
		return Shown{}, fmt.Errorf("credentials: %w: expires: %s is not in the future; write a later date, or a duration such as 30d",
			understudy.ErrInvalid, s.Expires.UTC().Format(time.RFC3339))
	case len(b.all) >= maxCredentials:
		return Shown{}, fmt.Errorf("credentials: %w: there are %d; revoke some", understudy.ErrInvalid, maxCredentials)
	}
	c := &Credential{Name: name, Scope: s, Made: b.now()}
	shown := b.addSecret(c)
	if err := b.save(ctx, c); err != nil {
		return Shown{}, err
	}
	if once != "" {
		b.recent = append(b.recent, recent{once, b.now(), shown})
	}
	return shown, nil
}

// Rotate gives a credential a new secret. The old secrets stay valid for the time overlap. Errors: ErrNotFound;
// ErrInvalid if overlap is too long; ErrNotStored.
func (b *Book) Rotate(ctx context.Context, name string, overlap time.Duration) (Shown, error) {
	if overlap < 0 || overlap > maxOverlap {
		return Shown{}, fmt.Errorf("credentials: %w: an overlap lasts 0s to %s", understudy.ErrInvalid, maxOverlap)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	former, err := b.find(name)
	if err != nil {
		return Shown{}, err
	}
	c, now := *former, b.now()
	c.Secrets = nil
	until := now.Add(overlap)
	for _, s := range former.Secrets {
		if s.Until == nil || s.Until.After(until) {
			s.Until = &until
		}
		if s.Until.After(now) {
			c.Secrets = append(c.Secrets, s)
		}
	}
	shown := b.addSecret(&c)
	return shown, b.save(ctx, &c)
}

// Revoke removes a credential. Errors: ErrNotFound; ErrNotStored, then the credential still exists.
func (b *Book) Revoke(ctx context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.find(name); err != nil {
		return err
	}
	if err := b.kv.SetValueDurably(ctx, kvStart+name, nil); err != nil {
		return err
	}
	delete(b.all, name)
	return nil
}

func (b *Book) find(name string) (*Credential, error) {
	c := b.all[name]
	if c == nil {
		return nil, fmt.Errorf("credentials: %w: no credential was made as %q; one of the settings is changed there", understudy.ErrNotFound,
			understudy.Clip(name))
	}
	return c, nil
}

// addSecret gives a credential a new secret.
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

// save stores a credential. If that succeeds, it also updates the credential in memory.
func (b *Book) save(ctx context.Context, c *Credential) error {
	value, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := b.kv.SetValueDurably(ctx, kvStart+c.Name, value); err != nil {
		return err
	}
	b.all[c.Name] = c
	return nil
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
