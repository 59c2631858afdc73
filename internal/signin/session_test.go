package signin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// opened are the sessions of a store at a clock.
func opened(t *testing.T, db *store.DB, now func() time.Time) *Sessions {
	t.Helper()
	s := NewSessions(now)
	if err := s.Load(t.Context(), db.KV); err != nil {
		t.Fatal(err)
	}
	return s
}

// begun begins a session.
func begun(t *testing.T, s *Sessions, name string) (token string) {
	t.Helper()
	token, err := s.Begin(t.Context(), Session{Name: name, SignInID: "w", Agent: "a browser"})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// memory keeps notes, or refuses them.
type memory struct {
	understudy.KV // Value is never asked for

	mu  sync.Mutex
	of  map[string][]byte
	err error
}

func (m *memory) ReadValues(_ context.Context, prefix string) (map[string][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	some := map[string][]byte{}
	for name, value := range m.of {
		if strings.HasPrefix(name, prefix) {
			some[name] = value
		}
	}
	return some, m.err
}

func (m *memory) SetValue(_ context.Context, name string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.err != nil:
		return m.err
	case value == nil:
		delete(m.of, name)
	default:
		m.of[name] = value
	}
	return nil
}

func (m *memory) len() int { // of sessions
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for name := range m.of {
		if strings.HasPrefix(name, kvStart) {
			n++
		}
	}
	return n
}

func isOver(s session) bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

func TestSessions(t *testing.T) {
	db := storetest.Open(t, store.Options{})
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	s := opened(t, db, clock)
	first, second, bens := begun(t, s, "anna"), begun(t, s, "anna"), begun(t, s, "ben")
	one, ok := s.find(first)
	checktest.MustTrue(t, ok, "the first session: ok is false")
	checktest.MustEqual(t, one.Session.Name, "anna", "the first session: one.Session.Name")
	checktest.MustTrue(t, !isOver(one), "the first session: isOver(one) is true")
	for _, odd := range []string{"", first[1:], first + "A", strings.ToLower(first), first[:42] + "=", one.Session.ID,
		strings.Repeat("A", 43)} {
		if _, ok := s.find(odd); ok {
			t.Errorf("the token %q opens a session", odd)
		}
	}
	if err := s.End(t.Context(), one.Session.ID, "ben"); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("ben ends anna's session: %v", err)
	}
	if err := s.End(t.Context(), one.Session.ID, "anna"); err != nil || !isOver(one) {
		t.Errorf("the end: %v, told %v", err, isOver(one))
	}
	again := opened(t, db, clock) // after a restart
	for _, c := range []struct {
		token string
		want  bool
	}{{first, false}, {second, true}, {bens, true}} {
		if _, ok := s.find(c.token); ok != c.want {
			t.Errorf("a session is open: %v, want %v", ok, c.want)
		}
		if _, ok := again.find(c.token); ok != c.want {
			t.Errorf("a session is open after a restart: %v, want %v", ok, c.want)
		}
	}
	notes, err := db.KV.ReadValues(t.Context(), kvStart)
	if err != nil || len(notes) != 2 {
		t.Fatalf("%d notes, %v", len(notes), err)
	}
	for name, value := range notes {
		for _, token := range []string{first, second, bens} {
			if strings.Contains(name+string(value), token) {
				t.Error("the store holds a token")
			}
		}
	}
}

// A person has so many sessions; one more ends the one that was used longest ago.
func TestSessionsOfOnePerson(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	s := opened(t, storetest.Open(t, store.Options{}), func() time.Time { now = now.Add(time.Minute); return now })
	var tokens []string
	for range maxPersonSessions {
		tokens = append(tokens, begun(t, s, "anna"))
	}
	bens := begun(t, s, "ben")
	_, _ = s.find(tokens[0]) // the second was used longest ago by now
	begun(t, s, "anna")
	if n := len(s.PersonSessions("anna")); n != maxPersonSessions {
		t.Errorf("%d sessions", n)
	}
	for i, want := range map[int]bool{0: true, 1: false, 2: true} {
		if _, ok := s.find(tokens[i]); ok != want {
			t.Errorf("session %d is open: %v, want %v", i, ok, want)
		}
	}
	if _, ok := s.find(bens); !ok {
		t.Error("ben's session ended for anna's")
	}
}

// A session ends when it was not used for long, and in any case some time; the store forgets it.
func TestEndsOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := &memory{of: map[string][]byte{}}
		s := NewSessions(time.Now)
		if err := s.Load(t.Context(), notes); err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Run(t.Context()) }()
		idle, used := begun(t, s, "anna"), begun(t, s, "ben")
		one, _ := s.find(idle)
		for spent := time.Duration(0); spent < AbsoluteEnd-time.Hour; spent += time.Hour {
			if _, ok := s.find(used); !ok {
				t.Fatalf("a session in use ended after %v", spent)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if want := spent >= IdleEnd; isOver(one) != want && spent+time.Hour != IdleEnd {
				t.Fatalf("%v after its last use a session is over: %v", spent+time.Hour, !want)
			}
		}
		if notes.len() != 1 {
			t.Errorf("%d notes", notes.len())
		}
		time.Sleep(time.Hour)
		if _, ok := s.find(used); ok {
			t.Errorf("a session in use is open after %v", AbsoluteEnd)
		}
		time.Sleep(2 * saveInterval)
		synctest.Wait()
		if notes.len() != 0 {
			t.Errorf("%d notes of sessions that ended", notes.len())
		}
	})
}

// Sessions that cannot be saved do not begin. One whose end cannot be saved is over here.
func TestASessionThatCannotBeSaved(t *testing.T) {
	notes := &memory{of: map[string][]byte{}}
	s := NewSessions(time.Now)
	if err := s.Load(t.Context(), notes); err != nil {
		t.Fatal(err)
	}
	notes.err = understudy.ErrNotStored
	if _, err := s.Begin(t.Context(), Session{Name: "anna"}); !errors.Is(err, understudy.ErrNotStored) || len(s.all) != 0 {
		t.Errorf("a session that cannot be saved: %v, %d are open", err, len(s.all))
	}
	notes.err = nil
	token := begun(t, s, "anna")
	notes.err = understudy.ErrNotStored
	one, _ := s.find(token)
	if err := s.End(t.Context(), one.Session.ID, "anna"); !errors.Is(err, understudy.ErrNotStored) || !isOver(one) {
		t.Errorf("an end that cannot be saved: %v, over %v", err, isOver(one))
	}
	notes.err, notes.of = nil, map[string][]byte{"session/xyz": []byte("{}")}
	if err := NewSessions(time.Now).Load(t.Context(), notes); err == nil {
		t.Error("a note that is no session is read")
	}
}

func BenchmarkSession(b *testing.B) {
	s := NewSessions(time.Now)
	s.kv = &memory{of: map[string][]byte{}}
	users := &Users{byName: map[string]int{}}
	var tokens []string
	for range 100 {
		token, err := s.Begin(b.Context(), Session{Name: "anna", SignInID: ""})
		if err != nil {
			b.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	if err := users.add(User{Name: "anna", Role: "support", hash: dummyHash}); err != nil {
		b.Fatal(err)
	}
	for _, one := range s.all {
		one.Session.SignInID = users.all[0].signInID
	}
	p := &People{Sessions: s, Users: users}
	r := httptest.NewRequest(http.MethodGet, "/twilio/calls", nil)
	r.Header.Set("Cookie", "understudy_zone=Europe/Berlin; "+cookieName+"="+tokens[len(tokens)-1])
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Identify(r); err != nil {
			b.Fatal(err)
		}
	}
}
