// Ages: what a request says of its answer's age, against the mirror's own.

package mirror

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/request"
	"understudy/spec"
)

func ptr(d time.Duration) *time.Duration { return &d }

// A list's newest page: fresh for 30 s, answered at once for 5 min more.
func TestWhatTheRequestSaysOfAge(t *testing.T) {
	t.Parallel()
	const (
		s30 = 30 * time.Second
		m5  = 5 * time.Minute
		any = time.Duration(-1)
	)
	type ask = request.Request
	for name, c := range map[string]struct {
		age  time.Duration
		ask  ask
		want string // "warm", "stale", "cold" and the Fwd, or "not held"
	}{
		"nothing said, fresh":       {10 * time.Second, ask{}, "warm"},
		"nothing said, past fresh":  {s30, ask{}, "stale"},
		"nothing said, at the end":  {s30 + m5, ask{}, "cold stale"},
		"max-age, younger":          {9 * time.Second, ask{MaxAge: ptr(10 * time.Second)}, "warm"},
		"max-age, exactly":          {10 * time.Second, ask{MaxAge: ptr(10 * time.Second)}, "warm"},
		"max-age, older":            {10*time.Second + 1, ask{MaxAge: ptr(10 * time.Second)}, "cold request"},
		"max-age past fresh":        {60 * time.Second, ask{MaxAge: ptr(time.Hour)}, "stale"},
		"max-age past fresh, older": {60 * time.Second, ask{MaxAge: ptr(59 * time.Second)}, "cold stale"},
		"max-age never widens":      {s30 + m5, ask{MaxAge: ptr(time.Hour)}, "cold stale"},
		"max-age 0":                 {1, ask{MaxAge: ptr(0)}, "cold request"},
		"max-age, any number":       {s30, ask{MaxAge: ptr(1<<63 - 1)}, "stale"},
		"grant below max-age":       {10 * time.Second, ask{MaxAge: ptr(time.Hour), AgeLimit: ptr(10 * time.Second)}, "cold request"},
		"max-age below grant":       {10 * time.Second, ask{MaxAge: ptr(time.Second), AgeLimit: ptr(time.Hour)}, "cold request"},

		"min-fresh, enough left":        {10 * time.Second, ask{MinFresh: ptr(20 * time.Second)}, "warm"},
		"min-fresh, too little left":    {10*time.Second + 1, ask{MinFresh: ptr(20 * time.Second)}, "cold request"},
		"min-fresh 0, fresh":            {s30 - 1, ask{MinFresh: ptr(0)}, "warm"},
		"min-fresh 0, past fresh":       {s30 + 1, ask{MinFresh: ptr(0)}, "cold stale"},
		"min-fresh nobody can have":     {2 * time.Second, ask{MinFresh: ptr(time.Hour)}, "cold request"},
		"min-fresh, as new as there is": {time.Second - 1, ask{MinFresh: ptr(time.Hour)}, "warm"},
		"min-fresh and max-stale":       {40 * time.Second, ask{MinFresh: ptr(0), MaxStale: ptr(any)}, "cold stale"},

		"max-stale widens":            {s30 + m5 + time.Minute, ask{MaxStale: ptr(10 * time.Minute)}, "stale"},
		"max-stale, exactly":          {s30 + 10*time.Minute, ask{MaxStale: ptr(10 * time.Minute)}, "stale"},
		"max-stale, more":             {s30 + 10*time.Minute + 1, ask{MaxStale: ptr(10 * time.Minute)}, "cold stale"},
		"max-stale, any":              {shortHard - time.Hour, ask{MaxStale: ptr(any)}, "stale"},
		"max-stale, never past hard":  {shortHard, ask{MaxStale: ptr(any)}, "cold uri-miss"},
		"max-stale, never past grant": {6 * time.Minute, ask{MaxStale: ptr(any), AgeLimit: ptr(6 * time.Minute)}, "cold stale"},
		"max-stale below the grant":   {6*time.Minute - 1, ask{MaxStale: ptr(any), AgeLimit: ptr(6 * time.Minute)}, "stale"},
		"max-stale and max-age":       {6 * time.Minute, ask{MaxStale: ptr(any), MaxAge: ptr(time.Minute)}, "cold stale"},
		"max-stale narrows":           {60 * time.Second, ask{MaxStale: ptr(10 * time.Second)}, "cold stale"},
		"max-stale 0, fresh":          {10 * time.Second, ask{MaxStale: ptr(0)}, "warm"},
		"max-stale 0, past fresh":     {31 * time.Second, ask{MaxStale: ptr(0)}, "cold stale"},

		"only-if-cached, fresh":              {10 * time.Second, ask{OnlyIfCached: true}, "warm"},
		"only-if-cached, nearly past fresh":  {29 * time.Second, ask{OnlyIfCached: true}, "warm"},
		"only-if-cached, past fresh":         {60 * time.Second, ask{OnlyIfCached: true}, "stale"},
		"only-if-cached, too old":            {s30 + m5, ask{OnlyIfCached: true}, "not held"},
		"only-if-cached, max-stale":          {s30 + m5, ask{OnlyIfCached: true, MaxStale: ptr(any)}, "stale"},
		"only-if-cached, max-age":            {10*time.Second + 1, ask{OnlyIfCached: true, MaxAge: ptr(10 * time.Second)}, "not held"},
		"only-if-cached, min-fresh":          {10 * time.Second, ask{OnlyIfCached: true, MinFresh: ptr(21 * time.Second)}, "not held"},
		"only-if-cached, no-cache":           {time.Second, ask{OnlyIfCached: true, NoCache: true}, "not held"},
		"only-if-cached, grant":              {time.Second, ask{OnlyIfCached: true, AgeLimit: ptr(0)}, "not held"},
		"no-cache joins, none is under way":  {60 * time.Second, ask{NoCache: true, JoinOnly: true}, "stale"},
		"no-cache joins, and max-age counts": {10 * time.Second, ask{NoCache: true, JoinOnly: true, MaxAge: ptr(time.Second)}, "cold request"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 7, hard(shortHard))
			s.get(t, s.newest(t))
			time.Sleep(2 * time.Second) // the next page comes in candidate
			s.get(t, s.newest(t))
			zero, err := s.Answer(t.Context(), request.Request{Target: s.newest(t), NoCache: true})
			if err != nil || zero.Age != 0 {
				t.Fatalf("%v %v", zero, err)
			}
			synctest.Wait()
			before, _ := s.fetches("")
			time.Sleep(c.age)
			c.ask.Target = s.newest(t)
			a, err := s.Answer(t.Context(), c.ask)
			got := "not held"
			switch {
			case err == nil && a.Outcome == request.Cold:
				got = "cold " + a.ForwardReason
			case err == nil:
				got = a.Outcome.String()
			case !errors.Is(err, understudy.ErrNoStoredAnswer):
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
			if err == nil && a.Outcome != request.Cold && a.Age != c.age {
				t.Errorf("%s: age %v, want %v", name, a.Age, c.age)
			}
			time.Sleep(time.Minute) // for whatever goes on behind
			if n, _ := s.fetches(""); c.ask.OnlyIfCached && n != before {
				t.Errorf("%s: upstream was asked %d times", name, n-before)
			} else if !c.ask.OnlyIfCached && c.want != "warm" && n == before {
				t.Errorf("%s: upstream was never asked", name)
			}
		})
	}
}

func TestOnlyIfHeldFindsRecordsAndMissesTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		held := func(target *spec.Target) (*request.Response, error) {
			return s.Answer(t.Context(), request.Request{Target: target, OnlyIfCached: true})
		}
		a, err := held(s.call(t, sid(2)))
		if err != nil {
			t.Fatal(err)
		}
		want(t, a, request.Composed, "composed")
		for _, target := range []*spec.Target{s.call(t, sid(99)), s.target(t, "Calls.json", "Status=busy"), s.target(t, "Odd/Thing.json", "")} {
			if _, err := held(target); !errors.Is(err, understudy.ErrNoStoredAnswer) {
				t.Errorf("%s: %v, want ErrNoStoredAnswer", target.Key, err)
			}
		}
		// Nor is a running fetch waited for.
		go func() { s.get(t, s.target(t, "Calls.json", "Status=busy")) }()
		time.Sleep(500 * time.Millisecond)
		if _, err := held(s.target(t, "Calls.json", "Status=busy")); !errors.Is(err, understudy.ErrNoStoredAnswer) {
			t.Errorf("while it is fetched: %v, want ErrNoStoredAnswer", err)
		}
		time.Sleep(time.Second)
		if n, _ := s.fetches(""); n != 2 {
			t.Errorf("%d fetches, want the list's two", n)
		}
	})
}

// What a write touched is not answered, however lenient the reader.
func TestMaxStaleDoesNotReachBehindAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		s.script(func() {
			s.write = func(w request.Write) (*understudy.Page, error) {
				p := page(w.Target, 201, body(call{sid(4), "queued", false}))
				p.Key, p.List, p.ID = understudy.Key{}, false, sid(4)
				p.Rows = []understudy.Row{{ID: sid(4), End: len(p.Body)}}
				return p, nil
			}
		})
		if _, err := s.Mirror.Write(t.Context(), request.Write{Target: s.newest(t), Method: "POST"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Answer(t.Context(), request.Request{Target: s.newest(t), MaxStale: ptr(-1), OnlyIfCached: true}); !errors.Is(err,
			understudy.ErrNoStoredAnswer) {
			t.Errorf("only-if-cached after a write: %v, want ErrNoStoredAnswer", err)
		}
		a, err := s.Answer(t.Context(), request.Request{Target: s.newest(t), MaxStale: ptr(-1)})
		if err != nil {
			t.Fatal(err)
		}
		want(t, a, request.Cold, "")
	})
}

// One who insists too often shares the fetch that is under way.
func TestJoinOnlyJoins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		time.Sleep(10 * time.Second)
		ask := func(joinOnly bool) *request.Response {
			a, err := s.Answer(t.Context(), request.Request{Target: s.newest(t), NoCache: true, JoinOnly: joinOnly})
			if err != nil {
				t.Error(err)
			}
			return a
		}
		first := make(chan *request.Response)
		go func() { first <- ask(false) }()
		time.Sleep(500 * time.Millisecond)
		if a := ask(true); a.Outcome != request.Cold || !a.Joined {
			t.Errorf("the second came %s, joined %v", a.Outcome, a.Joined)
		}
		<-first
		want(t, ask(true), request.Warm, "")
		if n, _ := s.fetches("Calls.json"); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
	})
}

// A time that lies in the future has no known age: who sets a limit waits.
func TestLimitsOnAnUnknownAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			ask  request.Request
			want request.Outcome
		}{
			"nothing said": {request.Request{}, request.Stale},
			"max-age":      {request.Request{MaxAge: ptr(time.Hour)}, request.Cold},
			"min-fresh":    {request.Request{MinFresh: ptr(0)}, request.Cold},
			"max-stale":    {request.Request{MaxStale: ptr(-1)}, request.Stale},
		} {
			s := open(t, 3)
			ahead := *s.get(t, s.newest(t)).Page
			s.stop()
			ahead.At, ahead.Version = time.Now().Add(time.Hour).Round(0), 0
			again := storetest.Open(t, store.Options{Specs: map[string]*spec.Spec{"twilio": s.spec}, Now: time.Now})
			if _, err := again.Save(t.Context(), &ahead); err != nil {
				t.Fatal(err)
			}
			s.start(t, Options{Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: s.spec, User: account}, Upstream: s.world}},
				Store: again})
			c.ask.Target = s.newest(t)
			a, err := s.Answer(t.Context(), c.ask)
			if err != nil {
				t.Fatal(err)
			}
			if a.Outcome != c.want {
				t.Errorf("%s: %s, want %s", name, a.Outcome, c.want)
			}
			s.stop()
		}
	})
}

// TestALookIsNotTold looks again at a record that is not final (R3), which makes it fresh only to those who see whether
// it is.
func TestALookIsNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 7)
		s.calls[4].final = false
		ask := func(i int, a request.Request) *request.Response {
			a.Target = s.call(t, s.calls[i].id)
			got, err := s.Answer(t.Context(), a)
			if errors.Is(err, understudy.ErrNoStoredAnswer) {
				return &request.Response{Detail: "not held"}
			} else if err != nil {
				t.Fatal(err)
			}
			return got
		}
		old := time.Hour
		told := func(a *request.Response) string {
			return fmt.Sprint(a.Outcome, " ", a.Detail, ", ttl ", a.TTL, ", age ", a.Age)
		}
		for name, hidden := range map[string]request.Request{
			"any": {NotFinal: true}, "held alone": {NotFinal: true, OnlyIfCached: true},
			"older, too": {NotFinal: true, OnlyIfCached: true, MaxStale: &old},
		} {
			ask(0, request.Request{NoCache: true})
			ask(4, request.Request{NoCache: true})
			for _, target := range []*spec.Target{s.call(t, s.calls[4].id), s.target(t, "Calls.json", older)} {
				time.Sleep(2 * time.Minute)
				fill := request.Fill{Target: target, Reason: request.ReasonSync, RecordsOnly: target.List != nil, ForOpenRecords: true}
				if _, err := s.Fill(t.Context(), fill); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				if a := ask(4, request.Request{}); a.Outcome == request.Cold || a.Age != 5*time.Second {
					t.Errorf("to who sees that it is not final: %s, %v old", a.Outcome, a.Age)
				}
				final, other := told(ask(0, hidden)), told(ask(4, hidden))
				if final != other {
					t.Errorf("%s: final: %s, looked at: %s", name, final, other)
				}
			}
		}
	})
}

// M2: a final record is as fresh, as stale and as old as one that is not, for who
// does not see what makes it final; for others it stays what it is.
func TestFinalIsNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 4)
		for i := range s.calls {
			s.calls[i].final = i%2 == 0
		}
		ask := func(i int, hidden bool) *request.Response {
			a, err := s.Answer(t.Context(), request.Request{Target: s.call(t, s.calls[i].id), NotFinal: hidden})
			if err != nil {
				t.Error(err)
			}
			return a
		}
		told := 0
		for range 2 {
			for _, age := range []time.Duration{0, 10 * time.Second, 25 * time.Second, time.Minute, time.Hour} {
				var one, other *request.Response
				var both sync.WaitGroup
				both.Go(func() { one = ask(0, true) })
				both.Go(func() { other = ask(1, true) })
				both.Wait()
				if one.Outcome != other.Outcome || one.TTL != other.TTL || one.Age != other.Age ||
					one.ForwardReason != other.ForwardReason || one.Detail != other.Detail ||
					one.TTL > 30*time.Second || one.Outcome == request.Stale {
					told++
					t.Logf("final: %v ttl %v age %v %s, other: %v ttl %v age %v %s", one.Outcome, one.TTL, one.Age, one.ForwardReason,
						other.Outcome, other.TTL,
						other.Age, other.ForwardReason)
				}
				if seen := ask(0, false); seen.TTL < 22*time.Hour {
					t.Errorf("to who sees it, final has ttl %v", seen.TTL)
				}
				time.Sleep(age)
			}
		}
		// A poll that completes between the two answers makes one of them newer; what
		// tells, tells every time.
		if told > 2 {
			t.Errorf("%d of 10 pairs differ", told)
		}
	})
}

// TestPagesOfBeforeALossAreFetchedAgain: what was fetched before the store may have lost writes is not fresh.
func TestPagesOfBeforeALossAreFetchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		target := s.call(t, sid(1))
		want(t, s.get(t, target), request.Cold, "")
		want(t, s.get(t, target), request.Warm, "")
		s.stop()
		time.Sleep(time.Second)
		o := Options{Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: s.spec, User: account}, Upstream: s.world}}, Store: s.store,
			Since: time.Now()}
		time.Sleep(time.Second)
		s.start(t, o)
		want(t, s.get(t, target), request.Cold, "")
		want(t, s.get(t, target), request.Warm, "")
	})
}
