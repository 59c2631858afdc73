package signin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
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

// refusing is a store that can refuse to keep changes.
type refusing struct {
	understudy.SharedKV
	refuses atomic.Bool
}

func newRefusing(t testing.TB) *refusing {
	return &refusing{SharedKV: storetest.Open(t, store.Options{}).KV}
}

func (r *refusing) SetValue(ctx context.Context, name string, value []byte) error {
	if r.refuses.Load() {
		return understudy.ErrNotStored
	}
	return r.SharedKV.SetValue(ctx, name, value)
}

func (r *refusing) Change(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	if r.refuses.Load() {
		return understudy.ErrNotStored
	}
	return r.SharedKV.Change(ctx, name, change)
}

// count returns how many sessions are stored.
func (r *refusing) count(t *testing.T) int {
	t.Helper()
	all, err := r.ReadValues(t.Context(), kvStart)
	checktest.MustNoError(t, err, "read the sessions")
	return len(all)
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
		notes := newRefusing(t)
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
		if n := notes.count(t); n != 1 {
			t.Errorf("%d notes", n)
		}
		time.Sleep(time.Hour)
		if _, ok := s.find(used); ok {
			t.Errorf("a session in use is open after %v", AbsoluteEnd)
		}
		time.Sleep(2 * saveInterval)
		synctest.Wait()
		if n := notes.count(t); n != 0 {
			t.Errorf("%d notes of sessions that ended", n)
		}
	})
}

// Sessions that cannot be saved do not begin. One whose end cannot be saved is over here.
func TestASessionThatCannotBeSaved(t *testing.T) {
	notes := newRefusing(t)
	s := NewSessions(time.Now)
	if err := s.Load(t.Context(), notes); err != nil {
		t.Fatal(err)
	}
	notes.refuses.Store(true)
	if _, err := s.Begin(t.Context(), Session{Name: "anna"}); !errors.Is(err, understudy.ErrNotStored) || len(s.all) != 0 {
		t.Errorf("a session that cannot be saved: %v, %d are open", err, len(s.all))
	}
	notes.refuses.Store(false)
	token := begun(t, s, "anna")
	notes.refuses.Store(true)
	one, _ := s.find(token)
	if err := s.End(t.Context(), one.Session.ID, "anna"); !errors.Is(err, understudy.ErrNotStored) || !isOver(one) {
		t.Errorf("an end that cannot be saved: %v, over %v", err, isOver(one))
	}
	notes.refuses.Store(false)
	checktest.MustEqual(t, notes.count(t), 1, "stored sessions after an end that could not be saved")
	checktest.MustNoError(t, s.clean(t.Context()), "clean")
	checktest.Equal(t, notes.count(t), 0, "stored sessions after the next round")
	for name, value := range map[string]string{"session/xyz": "{}", "session/" + strings.Repeat("0", 64): "odd"} {
		checktest.MustNoError(t, notes.SetValue(t.Context(), name, []byte(value)), "set")
		if err := NewSessions(time.Now).Load(t.Context(), notes); err == nil {
			t.Errorf("the note %s is read, which is no session", name)
		}
		checktest.MustNoError(t, notes.SetValue(t.Context(), name, nil), "delete")
	}
}

func BenchmarkSession(b *testing.B) {
	s := NewSessions(time.Now)
	if err := s.Load(b.Context(), storetest.Open(b, store.Options{}).KV); err != nil {
		b.Fatal(err)
	}
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
