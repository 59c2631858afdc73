// Sessions: the browsers in which people have signed in.

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

// How long a session lasts, and how many there are.
const (
	IdleEnd      = 12 * time.Hour     // after its last request
	AbsoluteEnd  = 7 * 24 * time.Hour // after the person signed in
	sessionsEach = 20                 // of one person; the oldest ends for one more
	maxSessions  = 5000               // of all
	saveEvery    = time.Minute        // the time of the last request is written this often
	maxAgent     = 200                // bytes of a browser's name
)

// kvStart begins the names of the values that sessions are kept in.
const kvStart = "session/"

// Session is a browser in which a person has signed in.
type Session struct {
	ID      string    `json:"-"` // names it to its owner; it opens nothing
	Name    string    `json:"name"`
	With    string    `json:"with"`             // names the password or the provider it was begun with; another ends it
	Groups  []string  `json:"groups,omitempty"` // of who came from a provider
	Domain  string    `json:"domain,omitempty"` // of the mail address
	Made    time.Time `json:"made"`
	Seen    time.Time `json:"seen"` // the last request
	Address string    `json:"address"`
	Agent   string    `json:"agent"` // what the browser calls itself
}

// session is one that is kept.
type session struct {
	Session Session
	note    string
	dirty   bool          // seen is newer than its value says
	over    chan struct{} // closed at its end
}

// digest is what is kept of a token: who reads the store cannot use it.
type digest = [sha256.Size]byte

// Sessions are all that have not ended. They are read once and written with every
// change, so that they outlive a restart. Safe for concurrent use.
type Sessions struct {
	kv       understudy.KV
	now      func() time.Time
	browsers *token.Sealer // of the cookies of browsers that are known; nil: none is

	writing sync.Mutex // held while a value is written; taken before mu

	mu  sync.Mutex
	all map[digest]*session
}

// NewSessions are none yet.
func NewSessions(now func() time.Time) *Sessions {
	return &Sessions{now: now, all: map[digest]*session{}}
}

// Load reads the sessions of a store, before any other method is called. Those that
// have ended are removed by Run.
func (s *Sessions) Load(ctx context.Context, kv understudy.KV) error {
	kept, err := kv.Values(ctx, kvStart)
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
			return fmt.Errorf("signin: the value of %s is no session", understudy.Clip(name))
		}
		one.name(digest(sum))
		s.all[digest(sum)] = one
	}
	return nil
}

// name derives what a session is called from the digest of its token.
func (s *session) name(d digest) {
	s.Session.ID, s.note = hex.EncodeToString(d[:8]), kvStart+hex.EncodeToString(d[:])
}

// ended reports whether a session has come to one of its ends.
func ended(s *Session, now time.Time) bool {
	return now.Sub(s.Seen) >= IdleEnd || now.Sub(s.Made) >= AbsoluteEnd
}

// Begin makes a session and returns its token, which nothing else can tell again.
// Errors: ErrTooMany, ErrNotStored.
func (s *Sessions) Begin(ctx context.Context, of Session) (token string, err error) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // it never fails
	d, now := sha256.Sum256(raw[:]), s.now()
	one := &session{Session: of, over: make(chan struct{})}
	one.name(d)
	one.Session.Made, one.Session.Seen, one.Session.Agent = now, now, of.Agent[:min(len(of.Agent), maxAgent)]
	if err := s.room(ctx, of.Name); err != nil {
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

// room ends the oldest sessions of a person who has too many.
func (s *Sessions) room(ctx context.Context, name string) error {
	s.mu.Lock()
	full := len(s.all) >= maxSessions
	s.mu.Unlock()
	if full {
		return fmt.Errorf("signin: %w: %d sessions are open", understudy.ErrTooMany, maxSessions)
	}
	own := s.Of(name)
	for i := sessionsEach - 1; i < len(own); i++ {
		if err := s.End(ctx, own[i].ID, name); err != nil && !errors.Is(err, understudy.ErrNotFound) {
			return err
		}
	}
	return nil
}

func (s *Sessions) save(ctx context.Context, one *session) error {
	return understudy.WriteJSON(ctx, s.kv, one.note, one.Session)
}

// find returns the session of a token, and notes that it was used.
func (s *Sessions) find(token string) (found session, ok bool) {
	var raw [32]byte
	if len(token) != base64.RawURLEncoding.EncodedLen(len(raw)) {
		return found, false
	}
	if _, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(token)); err != nil {
		return found, false
	}
	// The digest is no secret's prefix that a caller can choose: see callers.
	d, now := sha256.Sum256(raw[:]), s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[d]
	if one == nil || ended(&one.Session, now) {
		return found, false
	}
	if now.Sub(one.Session.Seen) > time.Second {
		one.Session.Seen, one.dirty = now, true
	}
	return *one, true
}

// openedWith is the session that ends with a channel.
func (s *Sessions) openedWith(over <-chan struct{}) (found session, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.over == over && !ended(&one.Session, s.now()) {
			return *one, true
		}
	}
	return found, false
}

// Of are the sessions of a person, the one used last first.
func (s *Sessions) Of(name string) []Session {
	return slices.DeleteFunc(s.All(), func(one Session) bool { return one.Name != name })
}

// All are the sessions of all people, by name, and of each the one used last first.
func (s *Sessions) All() []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Session
	for _, one := range s.all {
		if !ended(&one.Session, s.now()) {
			all = append(all, one.Session)
		}
	}
	slices.SortFunc(all, func(a, b Session) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), b.Seen.Compare(a.Seen), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// End ends a session of a person, at once: also what it has open. ErrNotFound: the
// person has none of that id. ErrNotStored: it would be back after a restart.
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
	return s.forget(ctx, one.note)
}

// forget removes the value of a session that has ended.
func (s *Sessions) forget(ctx context.Context, note string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.kv.SetValue(ctx, note, nil)
}

// endWhere ends all sessions that a question is answered yes for.
func (s *Sessions) endWhere(ctx context.Context, ends func(*Session) bool) error {
	s.mu.Lock()
	var gone []string
	for d, one := range s.all {
		if ends(&one.Session) {
			gone = append(gone, one.note)
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

// Run removes what has ended and writes when sessions were used, until ctx ends. The
// error is that of the last writing: others are tried again.
func (s *Sessions) Run(ctx context.Context) error {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.tidy(ctx) // what could not be written is written by the next
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			return s.tidy(last)
		}
	}
}

func (s *Sessions) tidy(ctx context.Context) error {
	now := s.now()
	errs := []error{s.endWhere(ctx, func(one *Session) bool { return ended(one, now) })}
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

// saveUse writes when a session was used, if it has not ended meanwhile.
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
