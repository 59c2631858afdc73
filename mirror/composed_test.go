// Lists from records: when they are given, how old they say they are, and what
// is never given.

package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/mirror/compose"
	"understudy/mirror/shadow"
	"understudy/request"
	"understudy/spec"
)

// claims is a coverage that says what it is told to.
type claims struct {
	mu      sync.Mutex
	c       request.Coverage
	ok      bool
	asked   int
	after   func(asked int) // before each answer but the first
	doubted []string
	kind    string    // the one that is walked; "" = calls
	rest    time.Time // when what has no clock was walked; zero = with all else
}

func (c *claims) Coverage(_, kind, _, _ string, from, to int64) (request.Coverage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked++; c.asked > 1 && c.after != nil {
		c.after(c.asked)
	}
	if kind != cmp.Or(c.kind, "calls") {
		return request.Coverage{Missing: "nobody walks them"}, false
	}
	told := c.c
	if from != 0 && from == to && !c.rest.IsZero() {
		told.At = c.rest
	}
	return told, c.ok
}

func (c *claims) Recheck(_, kind string, from, to int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubted = append(c.doubted, fmt.Sprintf("%s [%d,%d)", kind, from, to))
}

// all says that everything is covered since a time, the newest page too.
func (c *claims) all(at time.Time) { c.since(at, at) }

func (c *claims) since(at, newest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.c, c.ok, c.asked = request.Coverage{At: at, Newest: newest, Shapes: []string{"calls"}}, true, 0
}

func (c *claims) none(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.c, c.ok = request.Coverage{Missing: why}, false
}

// shelf is the calls of a world as a store has records.
type shelf []*understudy.Record

func (s shelf) FindPlace(_ context.Context, _, _, id string) (query.OrderKey, error) {
	for i, r := range s {
		if r.ID == id {
			return query.OrderKey(len(s) - i), nil
		}
	}
	return 0, understudy.ErrNotFound
}

func (s shelf) Seek(_ context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	for n := range s {
		i := n
		if q.OldestFirst {
			i = len(s) - 1 - n
		}
		p := query.OrderKey(len(s) - i)
		if q.Below != 0 && (!q.OldestFirst && p >= q.Below || q.OldestFirst && p <= q.Below) {
			continue
		}
		if !yield(query.Hit{Record: s[i], Order: p, Clock: 1780000000 - int64(i)}) {
			return nil
		}
	}
	return nil
}

// faithful has the world's lists look like the provider's; edit may change a
// body (never its length, where rows lie).
func faithful(w *world, edit func(string) string) {
	w.page = func(f request.Fetch) *understudy.Page {
		t := f.Target
		if t.List == nil || t.Kind.Name != "calls" {
			return nil
		}
		src := &spec.Source{Name: "twilio", Spec: w.spec, User: account}
		l, err := compose.New(src, t, compose.Options{Now: time.Now})
		var refused *compose.Refusal
		if errors.As(err, &refused) {
			return refused.Page(t, w.now())
		}
		if err != nil {
			w.t.Error(err)
			return nil
		}
		var held shelf
		for _, c := range w.calls {
			held = append(held, &understudy.Record{ID: c.id, Body: []byte(body(c)), Final: c.final})
		}
		if err := l.Fill(context.Background(), held); err != nil {
			w.t.Error(err)
			return nil
		}
		p, err := l.BuildPage(w.now())
		if err != nil {
			w.t.Error(err)
			return nil
		}
		text := string(p.Body)
		if edit != nil {
			text = edit(text)
		}
		q := page(t, http.StatusOK, text)
		q.Next = p.Next
		for _, r := range p.Rows {
			q.Rows = append(q.Rows, understudy.Row{ID: r.ID, Start: r.Start, End: r.End, Final: r.Final, Clock: r.Clock})
		}
		return q
	}
}

// covered is a stage with n calls, all of them held, of which what claims says
// is known.
func covered(t testing.TB, n int, settings ...setting) (*stage, *claims) {
	t.Helper()
	c := &claims{}
	s := open(t, n, append(settings, func(o *Options) {
		o.Coverage = c
		o.KV = valuesOf(o.Store)
	})...)
	faithful(s.world, nil)
	if _, err := s.Fill(t.Context(), request.Fill{Target: s.target(t, "Calls.json", "PageSize=1000"), RecordsOnly: true}); err != nil {
		t.Fatal(err)
	}
	c.all(time.Now())
	return s, c
}

func pinned(a shadow.Answers) setting {
	return func(o *Options) { o.Sources[0].Answers = map[string]shadow.Answers{"": a} }
}

// asked is how many requests upstream has had since, by reason.
func (s *stage) since(n int) (all int, by [request.ReasonCount]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.asked[n:] {
		by[f.Reason]++
	}
	return len(s.asked) - n, by
}

func (s *stage) count() int {
	n, _ := s.since(0)
	return n
}

func shown(p *understudy.Page) (ids []string) {
	for _, r := range p.Rows {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestRecordsFirstAsksNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := covered(t, 7, pinned(shadow.Records))
		began := time.Now()
		time.Sleep(20 * time.Second)
		n := s.count()
		first := s.target(t, "Calls.json", "PageSize=3&Status=completed")
		a := s.get(t, first)
		want(t, a, request.Composed, "composed")
		checktest.Equal(t, a.Age, 20*time.Second, "age: a.Age")
		checktest.Equal(t, a.TTL, 24*time.Hour-20*time.Second, "age: a.TTL")
		checktest.True(t, a.Page.At.Equal(began), "age: a.Page.At.Equal(began) is false")
		var all []string
		for {
			all = append(all, shown(a.Page)...)
			if a.Page.Next.IsZero() {
				break
			}
			next, err := s.spec.Resolve("twilio", a.Page.Next.Path(), a.Page.Next.Query())
			if err != nil {
				t.Fatal(err)
			}
			a = s.get(t, next)
			want(t, a, request.Composed, "composed")
		}
		checktest.MustEqual(t, len(all), 7, "the walk shows: len(all)")
		checktest.Equal(t, all[0], sid(7), "the walk shows: all[0]")
		checktest.Equal(t, all[6], sid(1), "the walk shows: all[6]")
		time.Sleep(time.Minute)
		if asked, by := s.since(n); asked != 0 {
			t.Errorf("upstream was asked %d times, by reason %v", asked, by)
		}
		if _, err := s.store.ReadPage(t.Context(), first.Key); !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("a list from records was saved: %v", err)
		}
	})
}

func TestWhoWantsYoungerRecordsGetsUpstream(t *testing.T) {
	t.Parallel()
	minute := func(n int) *time.Duration { d := time.Duration(n) * time.Minute; return &d }
	for name, test := range map[string]struct {
		ask    func(*request.Request)
		at     time.Duration // ago, the oldest walk
		newest time.Duration
		want   request.Outcome
	}{
		"nothing said":               {func(*request.Request) {}, 10 * time.Hour, time.Minute, request.Composed},
		"the walk is too old":        {func(*request.Request) {}, 25 * time.Hour, time.Minute, request.Cold},
		"the newest page is too old": {func(*request.Request) {}, 10 * time.Hour, 6 * time.Minute, request.Cold},
		"it does not reach the tip":  {func(*request.Request) {}, 10 * time.Hour, 0, request.Composed},
		"max-age":                    {func(a *request.Request) { a.MaxAge = minute(59) }, time.Hour, time.Minute, request.Cold},
		"max-age that will do":       {func(a *request.Request) { a.MaxAge = minute(60) }, time.Hour, time.Minute, request.Composed},
		"the credential":             {func(a *request.Request) { a.AgeLimit = minute(59) }, time.Hour, time.Minute, request.Cold},
		"no-cache":                   {func(a *request.Request) { a.NoCache = true }, time.Second, time.Second, request.Cold},
		"min-fresh": {func(a *request.Request) { a.MinFresh = minute(60) }, 23*time.Hour + time.Second, time.Minute,
			request.Cold},
		"min-fresh that will do": {func(a *request.Request) { a.MinFresh = minute(60) }, 23 * time.Hour, time.Minute, request.Composed},
		"max-stale":              {func(a *request.Request) { a.MaxStale = minute(60) }, 25 * time.Hour, time.Minute, request.Composed},
		"only-if-cached":         {func(a *request.Request) { a.OnlyIfCached = true }, 10 * time.Hour, time.Minute, request.Composed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := covered(t, 3, pinned(shadow.Records))
				newest := time.Time{}
				if test.newest != 0 {
					newest = time.Now().Add(-test.newest)
				}
				c.since(time.Now().Add(-test.at), newest)
				ask := request.Request{Target: s.newest(t)}
				test.ask(&ask)
				a, err := s.Answer(t.Context(), ask)
				if err != nil {
					t.Fatal(err)
				}
				if a.Outcome == request.Composed && (a.Newest != test.newest || a.Age != test.at) {
					t.Errorf("new as of %v, walked %v ago; want %v, %v", a.Newest, a.Age, test.newest, test.at)
				}
				if a.Outcome != test.want {
					t.Errorf("answered %s, %s old; want %s", a.Outcome, a.Age, test.want)
				}
			})
		})
	}
}

func TestUpstreamFirstUntilItFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7)
		c.since(time.Now().Add(-time.Hour), time.Now())
		target := s.target(t, "Calls.json", "PageSize=3")
		want(t, s.get(t, target), request.Cold, "")
		s.script(func() { s.fail = func(int, request.Fetch) error { return down(503) } })
		other := s.get(t, s.target(t, "Calls.json", "PageSize=2"))
		want(t, other, request.Composed, "composed: upstream 503")
		if age := other.Age; age < time.Hour || age > time.Hour+time.Minute {
			t.Errorf("it says it is %v old", age)
		}
		// Of two the younger: the page held is.
		time.Sleep(20 * time.Minute)
		want(t, s.get(t, target), request.Stale, "stale: upstream 503")
		// The records are.
		c.since(time.Now().Add(-5*time.Minute), time.Now())
		want(t, s.get(t, target), request.Composed, "composed: upstream 503")
		// Nothing is covered: what is held; nothing held: the error.
		c.none("not synced")
		want(t, s.get(t, target), request.Stale, "stale: upstream 503")
		if _, err := s.Answer(t.Context(), request.Request{Target: s.target(t, "Calls.json", "PageSize=5")}); !errors.Is(err,
			understudy.ErrUnavailable) {
			t.Errorf("nothing held, nothing covered: %v", err)
		}
		// Older than anything may be.
		c.all(time.Now().Add(-31 * 24 * time.Hour))
		if _, err := s.Answer(t.Context(), request.Request{Target: s.target(t, "Calls.json", "PageSize=5")}); !errors.Is(err,
			understudy.ErrUnavailable) {
			t.Errorf("walked 31 days ago: %v", err)
		}
	})
}

func TestATooSlowUpstreamIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := covered(t, 3)
		s.script(func() { s.delay = func(request.Fetch) time.Duration { return 20 * time.Second } })
		began := time.Now()
		want(t, s.get(t, s.newest(t)), request.Composed, "composed: upstream slow")
		if took := time.Since(began); took != 8*time.Second {
			t.Errorf("waited %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a, err := s.Answer(ctx, request.Request{Target: s.target(t, "Calls.json", "PageSize=2")})
		if err != nil {
			t.Fatal(err)
		}
		want(t, a, request.Composed, "composed: upstream slow")
	})
}

func TestAWishIsFromRecordsOrNotAtAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7)
		n := s.count()
		c.all(time.Now().Add(-20 * time.Hour))
		ask := request.Request{Target: s.target(t, "Calls.json", "PageSize=3"), Local: &request.LocalQuery{OldestFirst: true}}
		a, err := s.Answer(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		want(t, a, request.Composed, "composed")
		if got := shown(a.Page); !slices.Equal(got, []string{sid(1), sid(2), sid(3)}) {
			t.Errorf("oldest first: %v", got)
		}
		ask.Local = &request.LocalQuery{CanFind: func(r *understudy.Record) bool { return r.ID == sid(2) || r.ID == sid(6) }}
		if a, err = s.Answer(t.Context(), ask); err != nil || !slices.Equal(shown(a.Page), []string{sid(6), sid(2)}) {
			t.Errorf("only two: %v, %v", shown(a.Page), err)
		}
		ask.AgeLimit = ptr(0)
		if _, err = s.Answer(t.Context(), ask); err != nil {
			t.Errorf("nobody has a younger one, and it is refused: %v", err)
		}
		ask.OnlyIfCached, ask.MaxAge = true, ptr(time.Minute)
		if _, err = s.Answer(t.Context(), ask); !errors.Is(err, understudy.ErrNoStoredAnswer) {
			t.Errorf("only-if-cached, max-age=60: %v", err)
		}
		ask = request.Request{Target: s.target(t, "Calls.json", "StartTime=never"), Local: &request.LocalQuery{}}
		a, err = s.Answer(t.Context(), ask)
		checktest.MustNoError(t, err, "what upstream refuses")
		checktest.Equal(t, a.Page.Status, 400, "what upstream refuses: a.Page.Status")
		checktest.Equal(t, a.Outcome, request.Composed, "what upstream refuses: a.Outcome")
		c.none("not synced")
		ask.Target = s.newest(t)
		if _, err = s.Answer(t.Context(), ask); !errors.Is(err, understudy.ErrNotMirrored) ||
			!strings.Contains(err.Error(), "not synced") {
			t.Errorf("nothing is covered: %v", err)
		}
		c.all(time.Now())
		for _, other := range []string{"/2010-04-01/Accounts/AC" + strings.Repeat("2", 32) + "/Calls.json"} {
			t2, err := s.spec.Resolve("twilio", other, "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Answer(t.Context(), request.Request{Target: t2, Local: &request.LocalQuery{}})
			if !errors.Is(err, understudy.ErrNotMirrored) {
				t.Errorf("%s: %v", other, err)
			}
		}
		if asked, by := s.since(n); asked != 0 {
			t.Errorf("upstream was asked %d times, by reason %v", asked, by)
		}
	})
}

// A row rule's bound in time lets what has no clock through, so the answer is as
// old as the walk that saw that; upstream's own filter by time does not.
func TestAgeOfWhatHasNoClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		s, c := covered(t, 7, pinned(shadow.Records))
		time.Sleep(time.Hour)
		c.all(time.Now())
		c.mu.Lock()
		c.rest = at
		c.mu.Unlock()
		for params, want := range map[string]time.Time{"": at, "StartTime%3E=2026-01-01": time.Now()} {
			a, err := s.Answer(t.Context(), request.Request{Target: s.target(t, "Calls.json", params), Local: &request.LocalQuery{From: 1}})
			if err != nil || !a.Page.At.Equal(want) {
				t.Errorf("%q: %v, as of %v, want %v", params, err, a, want)
			}
		}
	})
}

func TestWhatIsNotCoveredAfterAllIsNotGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7, pinned(shadow.Records))
		c.after = func(int) { c.c, c.ok = request.Coverage{Missing: "a newest page has left a gap"}, false }
		want(t, s.get(t, s.newest(t)), request.Cold, "")
	})
}

func TestBeforeTheHorizonNothingIsGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7, pinned(shadow.Records))
		c.mu.Lock()
		c.c.From, c.ok = 1780000000-4, false // the newest five
		c.mu.Unlock()
		want(t, s.get(t, s.target(t, "Calls.json", "PageSize=5")), request.Cold, "")
		a := s.get(t, s.target(t, "Calls.json", "PageSize=4"))
		want(t, a, request.Composed, "composed")
		if a.Page.Next.IsZero() {
			t.Error("the page that is covered says it is the last")
		}
		ask := request.Request{Target: s.target(t, "Calls.json", "PageSize=2"), Local: &request.LocalQuery{OldestFirst: true}}
		if _, err := s.Answer(t.Context(), ask); !errors.Is(err, understudy.ErrNotMirrored) {
			t.Errorf("the oldest first: %v", err)
		}
	})
}

func TestAfterAWriteUpstreamIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7, pinned(shadow.Records))
		want(t, s.get(t, s.newest(t)), request.Composed, "composed")
		s.write = func(w request.Write) (*understudy.Page, error) {
			s.set(sid(3), "canceled", true)
			return instance(w.Target, 200, call{sid(3), "canceled", true}), nil
		}
		time.Sleep(time.Second)
		if _, err := s.Mirror.Write(t.Context(), request.Write{Target: s.call(t, sid(3)), Method: "POST"}); err != nil {
			t.Fatal(err)
		}
		target := s.target(t, "Calls.json", "Status=canceled")
		want(t, s.get(t, target), request.Cold, "")
		time.Sleep(time.Second)
		c.since(time.Now().Add(-time.Hour), time.Now())
		want(t, s.get(t, s.target(t, "Calls.json", "Status=canceled&PageSize=2")), request.Composed, "composed")
	})
}

// Who asks after a write and goes away before it is found out whether the record
// was seen since leaves that to be found out by the next.
func TestAWriteIsRememberedThoughNobodyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7, pinned(shadow.Records))
		s.write = func(w request.Write) (*understudy.Page, error) {
			return nil, understudy.ErrUnknownOutcome
		}
		time.Sleep(time.Second)
		_, _ = s.Mirror.Write(t.Context(), request.Write{Target: s.call(t, sid(3)), Method: "POST"})
		time.Sleep(time.Second)
		c.since(time.Now().Add(-time.Hour), time.Now())
		k := s.env.sources["twilio"].kinds["calls"]
		gone, leave := context.WithCancel(t.Context())
		leave()
		for i, ctx := range []context.Context{gone, t.Context(), gone, t.Context()} {
			if !s.composer.hasUnseenWrite(ctx, k, &c.c) {
				t.Errorf("asked %d times: the record is as it was before the write", i+1)
			}
		}
	})
}
