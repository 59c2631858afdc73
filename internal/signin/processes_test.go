// Sessions and keys of cookies that two processes share on one database.

package signin

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// process is one of two processes on a database.
type process struct {
	*testing.T
	db       *store.DB
	sessions *Sessions
	cookies  *Cookies
	now      time.Time
}

func openProcesses(t *testing.T) (a, b *process) {
	t.Helper()
	first, second := storetest.OpenTwo(t)
	open := func(db *store.DB) *process {
		p := &process{T: t, db: db, now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
		p.sessions = opened(t, db, func() time.Time { return p.now })
		p.cookies = cookiesAt(t, db.KV, func() time.Time { return p.now })
		return p
	}
	return open(first), open(second)
}

// refresh begins a transaction.
func (p *process) refresh() {
	p.Helper()
	checktest.MustNoError(p, p.db.Refresh(p.Context()), "refresh")
}

// clean does one round of Run.
func (p *process) clean() {
	p.Helper()
	checktest.MustNoError(p, p.sessions.clean(p.Context()), "clean")
}

// mustFind returns the session of a token.
func (p *process) mustFind(token, format string, args ...any) session {
	p.Helper()
	one, ok := p.sessions.find(token)
	checktest.MustTrue(p, ok, "no session: "+format, args...)
	return one
}

func (p *process) mustNotFind(token, format string, args ...any) {
	p.Helper()
	_, ok := p.sessions.find(token)
	checktest.MustTrue(p, !ok, "a session: "+format, args...)
}

func TestTwoProcessesShareSessions(t *testing.T) {
	a, b := openProcesses(t)
	first, second := begun(t, a.sessions, "anna"), begun(t, b.sessions, "anna")
	b.refresh()
	a.refresh()
	atB := b.mustFind(first, "begun at a, looked for at b")
	atA := a.mustFind(second, "begun at b, looked for at a")
	checktest.Equal(t, len(a.sessions.PersonSessions("anna")), 2, "sessions at a")

	checktest.MustNoError(t, b.sessions.End(t.Context(), atB.Session.ID, "anna"), "end at b")
	a.refresh()
	a.mustNotFind(first, "begun at a, ended at b")
	checktest.True(t, !isOver(atA), "the other session is over, too")
	_, err := a.sessions.endWhere(t.Context(), func(*Session) bool { return true })
	checktest.MustNoError(t, err, "end all at a")
	checktest.True(t, isOver(atA), "the session is not over at a, which ended it")
	_ = b.mustFind(second, "before the next transaction")
	b.refresh()
	b.mustNotFind(second, "ended at a")
}

func TestStreamOfASessionEndsInTheOtherProcess(t *testing.T) {
	a, b := openProcesses(t)
	token := begun(t, a.sessions, "anna")
	b.refresh()
	atB := b.mustFind(token, "begun at a")
	checktest.MustNoError(t, a.sessions.End(t.Context(), atB.Session.ID, "anna"), "end at a")
	b.refresh()
	select {
	case <-atB.over:
	default:
		t.Error("the channel of the session is open at b")
	}
}

func TestSessionInUseInOneProcessIsKeptByTheOther(t *testing.T) {
	a, b := openProcesses(t)
	token := begun(t, a.sessions, "anna")
	b.refresh()
	for a.now.Sub(b.now) < 3*IdleEnd {
		a.now = a.now.Add(IdleEnd - time.Minute)
		a.mustFind(token, "in use at a")
		a.clean()
	}
	b.refresh()
	stale := b.sessions.All()
	checktest.MustEqual(t, len(stale), 1, "sessions at b")
	checktest.True(t, stale[0].Seen.Equal(b.now), "b has read the time of the last use again, after each save of a")
	b.now = a.now
	b.clean()
	b.clean() // whoever knows only the former use would remove the session here
	one := b.mustFind(token, "in use at a, after a round of b")
	checktest.True(t, one.Session.Seen.Equal(a.now), "last used at %v, want %v", one.Session.Seen, a.now)
	checktest.MustNoError(t, a.sessions.End(t.Context(), one.Session.ID, "anna"), "end at a")
	b.now = b.now.Add(time.Minute)
	_, _ = b.sessions.find(token) // b does not know yet that the session has ended
	b.clean()
	b.mustNotFind(token, "ended at a, used and saved at b")
	a.refresh()
	a.mustNotFind(token, "ended at a, used and saved at b")

	token = begun(t, a.sessions, "anna")
	b.refresh()
	b.now = b.now.Add(IdleEnd)
	b.mustNotFind(token, "idle")
	b.clean()
	checktest.Equal(t, len(b.sessions.all), 1, "idle sessions, while the other process may have seen a request")
	b.now = b.now.Add(idleMargin)
	b.clean()
	a.refresh()
	checktest.Equal(t, len(b.sessions.all)+len(a.sessions.all), 0, "idle sessions at the end")
}

func TestTwoProcessesBeginAndEndSessionsAtOnce(t *testing.T) {
	a, b := openProcesses(t)
	var shared []string
	for range 6 {
		shared = append(shared, begun(t, a.sessions, "shared"))
	}
	b.refresh()
	for _, token := range shared { // so that both have something to save
		a.now, b.now = a.now.Add(time.Minute), b.now.Add(time.Minute)
		a.mustFind(token, "at a")
		b.mustFind(token, "at b")
	}
	var wg sync.WaitGroup
	for i, p := range []*process{a, b} {
		wg.Go(func() {
			for n := range 5 {
				_, err := p.sessions.Begin(t.Context(), Session{Name: []string{"anna", "ben"}[i], SignInID: "w"})
				checktest.NoError(t, err, "begin")
				one, ok := p.sessions.find(shared[2*n%6+i])
				if n < 2 && ok {
					checktest.NoError(t, p.sessions.End(t.Context(), one.Session.ID, "shared"), "end")
				}
				checktest.NoError(t, p.sessions.clean(t.Context()), "clean")
			}
		})
	}
	wg.Wait()
	var names [2][]string
	for i, p := range []*process{a, b} {
		p.refresh()
		for _, one := range p.sessions.All() {
			names[i] = append(names[i], one.Name+" "+one.ID)
		}
		checktest.Equal(t, len(p.sessions.ended), 0, "sessions that are still to be deleted, in process %d", i)
	}
	checktest.Equal(t, len(names[0]), 5+5+2, "sessions")
	checktest.True(t, slices.Equal(names[0], names[1]), "the sessions differ: %v at a, %v at b", names[0], names[1])
}

func TestTwoProcessesShareTheKeysOfCookies(t *testing.T) {
	a, b := openProcesses(t)
	mustOpen := func(by, from *process, what string) {
		t.Helper()
		by.refresh()
		got, ok := by.cookies.openValue("said", sealed(t, from.cookies, "said", "saved"))
		checktest.True(t, ok && string(got) == "saved", "%s: opened as %q, %v", what, got, ok)
	}
	mustOpen(b, a, "a's cookie at first, at b")
	mustOpen(a, b, "b's cookie at first, at a")
	for day := range 3 {
		a.now, b.now = a.now.Add(keyLifetime), b.now.Add(keyLifetime)
		var wg sync.WaitGroup
		for _, p := range []*process{a, b} {
			wg.Go(func() { checktest.NoError(t, p.cookies.rotate(t.Context()), "rotate") })
		}
		wg.Wait()
		mustOpen(b, a, "a's cookie at b")
		mustOpen(a, b, "b's cookie at a")
		checktest.Equal(t, len(a.cookies.keys), 2, "keys on day %d", day)
	}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	w := httptest.NewRecorder()
	a.sessions.rememberBrowser(w, "anna")
	r.AddCookie(w.Result().Cookies()[0])
	checktest.Equal(t, len(b.sessions.guessKeys(r, "anna")), 1, "the keys by which b counts the guesses of a browser that a remembers")
}
