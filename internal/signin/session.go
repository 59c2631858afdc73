// This file stores the sessions of the browsers in which people have signed in.

package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/kit/token"
)

// How long sessions last, and the maximum number of sessions.
const (
	IdleEnd           = 12 * time.Hour     // how long a session lasts after its last request
	AbsoluteEnd       = 7 * 24 * time.Hour // how long a session lasts after the person signed in
	maxPersonSessions = 20                 // the maximum number of sessions of one person; a further session ends the oldest
	maxSessions       = 5000               // the maximum number of sessions of all people
	saveInterval      = time.Minute        // how often the time of the last request is stored
	maxAgent          = 200                // the maximum length of a browser's user agent, in bytes
)

// kvStart is the beginning of the names under which sessions are stored in the KV store.
const kvStart = "session/"

// Session is a browser in which a person has signed in.
type Session struct {
	ID   string `json:"-"` // the id that names the session to its owner; it does not give access
	Name string `json:"name"`
	// a text that identifies the password or provider of the sign-in; the session ends when it changes
	SignInID string    `json:"with"`
	Groups   []string  `json:"groups,omitempty"` // the groups of a person who signed in through a provider
	Domain   string    `json:"domain,omitempty"` // the domain of the person's mail address
	Made     time.Time `json:"made"`
	Seen     time.Time `json:"seen"` // the time of the last request with the session
	Address  string    `json:"address"`
	Agent    string    `json:"agent"` // the user agent of the browser
}

// session is a stored session.
type session struct {
	Session  Session
	storeKey string
	dirty    bool          // whether Seen is newer than the stored value
	over     chan struct{} // closed when the session ends
}

// digest is the digest of a session's token. Only the digest is stored, so that a reader of the store can't use the
// sessions.
type digest = [sha256.Size]byte

// Sessions contains all open sessions. They are read once and stored with every change, so that they survive a
// restart. Sessions is safe for concurrent use.
type Sessions struct {
	kv       understudy.KV
	now      func() time.Time
	browsers *token.Sealer // encrypts the cookies of known browsers; nil if no browser is known

	writing sync.Mutex // held while a value is stored; locked before mu

	mu  sync.Mutex
	all map[digest]*session
}

// NewSessions returns an empty set of sessions.
func NewSessions(now func() time.Time) *Sessions {
	return &Sessions{now: now, all: map[digest]*session{}}
}

// Load reads the sessions from a store. Call it before any other method. Run removes the sessions that have ended.
func (s *Sessions) Load(ctx context.Context, kv understudy.KV) error {
	kept, err := kv.ReadValues(ctx, kvStart)
	if err != nil {
		return err
	}
	s.kv = kv
	if err := s.loadBrowsers(ctx, kv); err != nil {
		return err
	}
	for name, value := range kept {
		one := &session{over: make(chan struct{})}
		sum, err := hex.DecodeString(name[len(kvStart):])
		if err != nil || len(sum) != sha256.Size || json.Unmarshal(value, &one.Session) != nil {
			return fmt.Errorf("signin: the value of %s is not a session", understudy.Clip(name))
		}
		one.name(digest(sum))
		s.all[digest(sum)] = one
	}
	return nil
}

// name sets the session's id and the name of its stored value, both derived from the digest of its token.
func (s *session) name(d digest) {
	s.Session.ID, s.storeKey = hex.EncodeToString(d[:8]), kvStart+hex.EncodeToString(d[:])
}

// hasEnded reports whether a session has expired.
func hasEnded(s *Session, now time.Time) bool {
	return now.Sub(s.Seen) >= IdleEnd || now.Sub(s.Made) >= AbsoluteEnd
}

// Begin creates a session and returns its token. The token cannot be read again later. Errors: ErrTooMany, ErrNotStored.
func (s *Sessions) Begin(ctx context.Context, of Session) (token string, err error) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // rand.Read never fails
	d, now := sha256.Sum256(raw[:]), s.now()
	one := &session{Session: of, over: make(chan struct{})}
	one.name(d)
	one.Session.Made, one.Session.Seen, one.Session.Agent = now, now, of.Agent[:min(len(of.Agent), maxAgent)]
	if err := s.makeRoom(ctx, of.Name); err != nil {
		return "", err
	}
	if err := s.save(ctx, one); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[d] = one
	return base64.RawURLEncoding.EncodeToString(raw[:]), nil
}

// makeRoom ends the oldest sessions of a person who has too many. It returns ErrTooMany if there are too many
// sessions in total.
func (s *Sessions) makeRoom(ctx context.Context, name string) error {
	s.mu.Lock()
	full := len(s.all) >= maxSessions
	s.mu.Unlock()
	if full {
		return fmt.Errorf("signin: %w: %d sessions are open", understudy.ErrTooMany, maxSessions)
	}
	own := s.PersonSessions(name)
	for i := maxPersonSessions - 1; i < len(own); i++ {
		if err := s.End(ctx, own[i].ID, name); err != nil && !errors.Is(err, understudy.ErrNotFound) {
			return err
		}
	}
	return nil
}

func (s *Sessions) save(ctx context.Context, one *session) error {
	return understudy.WriteJSON(ctx, s.kv, one.storeKey, one.Session)
}

// find returns the session of a token, and notes that the session was used.
func (s *Sessions) find(token string) (found session, ok bool) {
	var raw [32]byte
	if len(token) != base64.RawURLEncoding.EncodedLen(len(raw)) {
		return found, false
	}
	if _, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(token)); err != nil {
		return found, false
	}
	// A caller can't choose a token whose digest begins like a known digest (see package callers), so a map lookup is safe.
	d, now := sha256.Sum256(raw[:]), s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[d]
	if one == nil || hasEnded(&one.Session, now) {
		return found, false
	}
	if now.Sub(one.Session.Seen) > time.Second {
		one.Session.Seen, one.dirty = now, true
	}
	return *one, true
}

// findByChannel returns the session whose channel over is the given one.
func (s *Sessions) findByChannel(over <-chan struct{}) (found session, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.over == over && !hasEnded(&one.Session, s.now()) {
			return *one, true
		}
	}
	return found, false
}

// PersonSessions returns the sessions of a person. The session that was used last comes first.
func (s *Sessions) PersonSessions(name string) []Session {
	return slices.DeleteFunc(s.All(), func(one Session) bool { return one.Name != name })
}

// All returns the sessions of all people, sorted by name and then by last use, the latest first.
func (s *Sessions) All() []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Session
	for _, one := range s.all {
		if !hasEnded(&one.Session, s.now()) {
			all = append(all, one.Session)
		}
	}
	slices.SortFunc(all, func(a, b Session) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), b.Seen.Compare(a.Seen), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// End ends a session of a person at once, with all its open streams. Errors: ErrNotFound if the person has no
// session of that id; ErrNotStored if the session would be open again after a restart.
func (s *Sessions) End(ctx context.Context, id, name string) error {
	s.mu.Lock()
	var one *session
	for d, of := range s.all {
		if of.Session.ID == id && of.Session.Name == name {
			one = of
			delete(s.all, d)
			close(one.over)
			break
		}
	}
	s.mu.Unlock()
	if one == nil {
		return fmt.Errorf("signin: %w: no session %s of %s", understudy.ErrNotFound, understudy.Clip(id), understudy.Clip(name))
	}
	return s.forget(ctx, one.storeKey)
}

// forget removes the stored value of a session that has ended. note is the name of the value.
func (s *Sessions) forget(ctx context.Context, note string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.kv.SetValue(ctx, note, nil)
}

// endWhere ends all sessions for which the function ends returns true.
func (s *Sessions) endWhere(ctx context.Context, ends func(*Session) bool) error {
	s.mu.Lock()
	var gone []string
	for d, one := range s.all {
		if ends(&one.Session) {
			gone = append(gone, one.storeKey)
			delete(s.all, d)
			close(one.over)
		}
	}
	s.mu.Unlock()
	var errs []error
	for _, note := range gone {
		errs = append(errs, s.forget(ctx, note))
	}
	return errors.Join(errs...)
}

// Run removes sessions that have ended and stores when the other sessions were last used, until ctx ends. It
// returns the error of the last write; earlier writes are repeated.
func (s *Sessions) Run(ctx context.Context) error {
	tick := time.NewTicker(saveInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.clean(ctx) // if the changes can't be stored, the next round tries again
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			return s.clean(last)
		}
	}
}

// clean removes sessions that have ended, and stores when the other sessions were last used.
func (s *Sessions) clean(ctx context.Context) error {
	now := s.now()
	errs := []error{s.endWhere(ctx, func(one *Session) bool { return hasEnded(one, now) })}
	s.mu.Lock()
	var used []digest
	for d, one := range s.all {
		if one.dirty {
			used = append(used, d)
		}
	}
	s.mu.Unlock()
	for _, d := range used {
		errs = append(errs, s.saveUse(ctx, d))
	}
	return errors.Join(errs...)
}

// saveUse stores when a session was last used, unless it has ended meanwhile.
func (s *Sessions) saveUse(ctx context.Context, d digest) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	one := s.all[d]
	if one == nil {
		s.mu.Unlock()
		return nil
	}
	one.dirty = false
	copied := *one
	s.mu.Unlock()
	return s.save(ctx, &copied)
}
