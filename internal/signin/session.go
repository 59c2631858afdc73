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
	"maps"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/kit/token"
)

// How long sessions last, and the maximum number of sessions.
const (
	IdleEnd           = 12 * time.Hour     // how long a session lasts after its last request
	AbsoluteEnd       = 7 * 24 * time.Hour // how long a session lasts after the person signed in
	maxPersonSessions = 20                 // the maximum number of sessions of one person; a further session ends the oldest
	maxSessions       = 5000               // the maximum number of sessions of all people
	saveInterval      = time.Minute        // how often the time of the last request is stored
	// how long an idle session is refused before it is removed, because another process may have seen a request of it
	idleMargin = 5 * saveInterval
	maxAgent   = 200 // the maximum length of a browser's user agent, in bytes
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

// Sessions contains all open sessions, also those that another process on the same database began. They are stored with
// every change, so that they survive a restart. Sessions is safe for concurrent use.
type Sessions struct {
	kv       understudy.SharedKV
	now      func() time.Time
	browsers *token.Sealer // encrypts the cookies of known browsers; nil if no browser is known

	mu    lockwatch.Mutex // never held while kv is used
	all   map[digest]*session
	ended map[digest]bool // the sessions that have ended here and are perhaps still stored
}

// NewSessions returns an empty set of sessions.
func NewSessions(now func() time.Time) *Sessions {
	return &Sessions{now: now, all: map[digest]*session{}, ended: map[digest]bool{}}
}

// Load reads the sessions from a store. Call it before any other method. Run removes the sessions that have ended.
func (s *Sessions) Load(ctx context.Context, kv understudy.SharedKV) error {
	s.kv = kv
	if err := s.loadBrowsers(ctx, kv); err != nil {
		return err
	}
	return kv.Watch(ctx, kvStart, s.put)
}

// put replaces a session in memory by its stored value. It ends the session if the value is nil or cannot be read.
func (s *Sessions) put(name string, value []byte) error {
	sum, err := hex.DecodeString(strings.TrimPrefix(name, kvStart))
	var stored Session
	if value != nil && err == nil {
		err = json.Unmarshal(value, &stored)
	}
	if err == nil && len(sum) != sha256.Size {
		err = errors.New("wrong length")
	}
	if err != nil {
		err = fmt.Errorf("signin: the value of %s is not a session", understudy.Clip(name))
	}
	if len(sum) != sha256.Size {
		return err
	}
	d := digest(sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[d]
	switch {
	case value == nil || err != nil:
		if one != nil {
			s.remove(d)
		}
		delete(s.ended, d)
	case s.ended[d]: // Run deletes the value
	case one == nil:
		one = &session{Session: stored, over: make(chan struct{})}
		one.name(d)
		s.all[d] = one
	default:
		one.merge(stored)
	}
	return err
}

// merge takes over the stored value of a session, but not an earlier time of the last request.
func (s *session) merge(stored Session) {
	stored.ID = s.Session.ID
	if s.dirty = s.Session.Seen.After(stored.Seen); s.dirty {
		stored.Seen = s.Session.Seen
	}
	s.Session = stored
}

// remove ends a session in memory. The caller must hold s.mu.
func (s *Sessions) remove(d digest) {
	close(s.all[d].over)
	delete(s.all, d)
}

// name sets the session's id and the name of its stored value, both derived from the digest of its token.
func (s *session) name(d digest) {
	s.Session.ID, s.storeKey = hex.EncodeToString(d[:8]), storeKey(d)
}

// storeKey returns the name of a session's stored value.
func storeKey(d digest) string { return kvStart + hex.EncodeToString(d[:]) }

// hasEnded reports whether a session has expired.
func hasEnded(s *Session, now time.Time) bool {
	return now.Sub(s.Seen) >= IdleEnd || now.Sub(s.Made) >= AbsoluteEnd
}

// Begin creates a session and returns its token. The token cannot be read again later. Errors: ErrTooMany, ErrNotStored.
func (s *Sessions) Begin(ctx context.Context, of Session) (token string, err error) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // rand.Read never fails
	d, now := sha256.Sum256(raw[:]), s.now()
	one := &session{Session: of}
	one.name(d)
	one.Session.Made, one.Session.Seen, one.Session.Agent = now, now, of.Agent[:min(len(of.Agent), maxAgent)]
	if err := s.makeRoom(ctx, of.Name); err != nil {
		return "", err
	}
	if err := understudy.WriteJSON(ctx, s.kv, one.storeKey, one.Session); err != nil { // the store calls put
		return "", err
	}
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
// session of that id; ErrNotStored if the session is still open in another process and would be open again after a
// restart. Run then tries again.
func (s *Sessions) End(ctx context.Context, id, name string) error {
	err := fmt.Errorf("signin: %w: no session %s of %s", understudy.ErrNotFound, understudy.Clip(id), understudy.Clip(name))
	if n, failed := s.endWhere(ctx, func(one *Session) bool { return one.ID == id && one.Name == name }); n > 0 {
		err = failed
	}
	return err
}

// endWhere ends all sessions for which the function ends returns true, and returns their number.
func (s *Sessions) endWhere(ctx context.Context, ends func(*Session) bool) (n int, err error) {
	var all []digest
	s.mu.Lock()
	for d, one := range s.all {
		if ends(&one.Session) {
			all = append(all, d)
			s.remove(d)
			s.ended[d] = true
		}
	}
	s.mu.Unlock()
	return len(all), s.forget(ctx, all)
}

// forget deletes the stored values of sessions that have ended.
func (s *Sessions) forget(ctx context.Context, ended []digest) error {
	var errs []error
	for _, d := range ended {
		err := s.kv.SetValue(ctx, storeKey(d), nil)
		if errs = append(errs, err); err == nil {
			s.mu.Lock()
			delete(s.ended, d)
			s.mu.Unlock()
		}
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

// clean removes sessions that have ended, and stores when the other sessions were last used. First it reads when they
// were last used in other processes.
func (s *Sessions) clean(ctx context.Context) error {
	kept, err := s.kv.ReadValues(ctx, kvStart)
	if err != nil {
		return err
	}
	now := s.now()
	var used []digest
	s.mu.Lock()
	for d, one := range s.all {
		var stored Session
		if json.Unmarshal(kept[one.storeKey], &stored) == nil && stored.Seen.After(one.Session.Seen) {
			one.merge(stored)
		}
		if one.dirty {
			used = append(used, d)
		}
	}
	ended := slices.Collect(maps.Keys(s.ended))
	s.mu.Unlock()
	errs := []error{s.forget(ctx, ended)}
	_, err = s.endWhere(ctx, func(one *Session) bool {
		return now.Sub(one.Seen) >= IdleEnd+idleMargin || now.Sub(one.Made) >= AbsoluteEnd
	})
	errs = append(errs, err)
	for _, d := range used {
		errs = append(errs, s.saveUse(ctx, d))
	}
	return errors.Join(errs...)
}

// saveUse stores when a session was last used, unless it has ended meanwhile. Other processes read it in their own clean.
func (s *Sessions) saveUse(ctx context.Context, d digest) error {
	return s.kv.ChangeQuietly(ctx, storeKey(d), func(old []byte) ([]byte, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		one := s.all[d]
		if old == nil || one == nil {
			return old, nil
		}
		var stored Session
		if err := json.Unmarshal(old, &stored); err != nil || !one.Session.Seen.After(stored.Seen) {
			return old, err
		}
		stored.Seen = one.Session.Seen
		return json.Marshal(stored)
	})
}
