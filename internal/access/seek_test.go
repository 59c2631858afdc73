// Seek: whatever the timing, one end for what is hidden and for what never was.

package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// slow is a mirror as seek meets it: upstream takes a second or a hundredth, and of what it
// holds the page of the record that never was is older than it is, as when a page
// that came again unchanged is not yet noted.
type slow struct {
	calls  atomic.Int64
	body   string // "": 404
	behind time.Duration
	quick  bool
	down   atomic.Bool
}

func (s *slow) ask(ctx context.Context, a request.Request) (*request.Response, error) {
	p := &understudy.Page{Key: a.Target.Key, Kind: "calls", Status: http.StatusOK, Body: []byte(s.body)}
	if s.body == "" {
		p.Status = http.StatusNotFound
	}
	if a.JoinOnly {
		return &request.Response{Page: p, Outcome: request.Warm, Age: s.behind}, nil
	}
	s.calls.Add(1)
	takes := time.Second
	if s.quick {
		takes = 10 * time.Millisecond
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case s.down.Load() && s.body == "":
		return nil, &understudy.UpstreamError{Why: understudy.FailServer, Status: 502}
	case s.down.Load():
		return &request.Response{Page: p, Outcome: request.Stale, Age: time.Hour}, nil
	}
	return &request.Response{Page: p, Outcome: request.Cold}, nil
}

func seeking(t *testing.T) (*Gate, *spec.Target) {
	t.Helper()
	g := ruledGate(t, RowRules{"calls": {Age: 30 * 24 * time.Hour}}, shelf{})
	g.now = time.Now
	at, err := g.specs["twilio"].Resolve("twilio", "/2010-04-01/Accounts/AC00000000000000000000000000000001/Calls/"+
		"CA00000000000000000000000000000009.json", "")
	if err != nil {
		t.Fatal(err)
	}
	return g, at
}

func how(err error) string {
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		return "not found"
	case errors.Is(err, understudy.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, context.Canceled):
		return "left"
	}
	return fmt.Sprint(err)
}

func TestSeekEndsTheSameInEveryTiming(t *testing.T) {
	gaps := []time.Duration{0, 1, time.Millisecond, 400 * time.Millisecond, 999 * time.Millisecond, time.Second, 1001 * time.Millisecond,
		1999 * time.Millisecond, 2 * time.Second, 2100 * time.Millisecond, 10 * time.Second}
	said := func(s *slow) (all []string) {
		synctest.Test(t, func(t *testing.T) {
			g, at := seeking(t)
			f := g.roles["r"]["twilio"].rows["calls"]
			c := understudy.Caller{Name: "few", Grant: &understudy.Grant{Role: "r"}}
			began := time.Now()
			once := func(ctx context.Context) {
				asked, at0 := s.calls.Load(), time.Now()
				_, err := g.lookups.seek(ctx, c, f, request.Request{Target: at}, s.ask)
				all = append(all, fmt.Sprint(how(err), " at ", time.Since(began), " after ", time.Since(at0), ", asked ", s.calls.Load()-asked))
			}
			for _, gap := range gaps {
				once(t.Context())
				time.Sleep(gap)
			}
			s.down.Store(true)
			for _, gap := range gaps {
				once(t.Context())
				time.Sleep(gap)
			}
			s.down.Store(false)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			once(ctx)
			cancel()
			once(t.Context())
		})
		return all
	}
	for _, quick := range []bool{true, false} {
		hidden := said(&slow{quick: quick, body: `{"sid":"CA00000000000000000000000000000009","start_time":"Wed, 01 Apr 1999 12:00:00 +0000"}`})
		for _, behind := range []time.Duration{0, 3 * time.Second} {
			never := said(&slow{quick: quick, behind: behind})
			for i := range hidden {
				if hidden[i] != never[i] {
					t.Errorf("quick %v, request %d, the page held is %v behind: hidden %s\nnever %s", quick, i, behind, hidden[i], never[i])
				}
			}
		}
	}
}

// Many at once are one request to upstream and one end, also when who began it
// goes away.
func TestSeekTogether(t *testing.T) {
	for name, s := range map[string]*slow{"hidden": {body: `{"sid":"CA1","start_time":"Wed, 01 Apr 1999 12:00:00 +0000"}`}, "never": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, at := seeking(t)
				f := g.roles["r"]["twilio"].rows["calls"]
				c := understudy.Caller{Name: "few", Grant: &understudy.Grant{Role: "r"}}
				ctx, leave := context.WithCancel(t.Context())
				var all sync.WaitGroup
				ends := make([]string, 20)
				for i := range ends {
					of := t.Context()
					if i == 0 {
						of = ctx
					}
					all.Go(func() {
						_, err := g.lookups.seek(of, c, f, request.Request{Target: at}, s.ask)
						ends[i] = how(err)
					})
					synctest.Wait()
				}
				time.Sleep(time.Second / 2)
				leave()
				all.Wait()
				for i, end := range ends {
					if want := "not found"; i > 0 && end != want || i == 0 && end != "left" {
						t.Errorf("caller %d: %s", i, end)
					}
				}
				if n := s.calls.Load(); n != 2 {
					t.Errorf("upstream was asked %d times, want the one that was left and one more", n)
				}
			})
		})
	}
}

// What may be found is given to everybody who waited, and asked for anew.
func TestSeekFinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, at := seeking(t)
		f := g.roles["r"]["twilio"].rows["calls"]
		s := &slow{body: `{"sid":"CA1","start_time":"` + time.Now().Add(-time.Hour).Format(time.RFC1123Z) + `"}`}
		c := understudy.Caller{Name: "few", Grant: &understudy.Grant{Role: "r"}}
		for n := range int64(3) {
			answer, err := g.lookups.seek(t.Context(), c, f, request.Request{Target: at}, s.ask)
			checktest.MustNoError(t, err, "answer %v", answer)
			checktest.MustEqual(t, string(answer.Page.Body), s.body, "string(answer.Page.Body)")
			checktest.MustEqual(t, s.calls.Load(), n+1, "s.calls.Load(); answer %v", answer)
		}
		if g.lookups.requests.Weight() != 0 {
			t.Error("what was found is remembered")
		}
	})
}

// D9, D15: a 202 is looked into like a 200, and a 204 shows no record that may be
// found: in what is read, in lists, and in what a write answers.
func TestRulesLookIntoEverySuccess(t *testing.T) {
	g := ruledGate(t, RowRules{"calls": {Age: 30 * 24 * time.Hour}}, shelf{})
	c := understudy.Caller{Name: "few", Grant: &understudy.Grant{Role: "r"}}
	f := g.roles["r"]["twilio"].rows["calls"]
	found, hidden := `{"sid":"CA1","start_time":"`+young+`"}`, `{"sid":"CA1","start_time":"`+old+`"}`
	for _, a := range []struct {
		status             int
		body               string
		read, list, answer bool // is it shown
	}{
		{200, found, true, true, true},
		{201, found, true, true, true},
		{202, found, true, true, true},
		{200, hidden, false, false, false},
		{201, hidden, false, false, false},
		{202, hidden, false, false, false},
		{202, `{"status":"accepted"}`, false, false, false},
		{202, "", false, false, true},
		{204, "", false, false, true},
		{304, "", true, true, true},
		{400, hidden, true, true, true}, // made anew by the view: it holds no record
		{404, "", false, true, true},
		{503, "", true, true, true},
	} {
		p := &understudy.Page{Kind: "calls", Status: a.status, Body: []byte(a.body)}
		answer, err := f.decide(&request.Response{Page: p})
		if shown := err == nil && answer.Page == p; shown != a.read || err != nil && !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("%d %s read: %v, %v", a.status, a.body, shown, err)
		}
		if shown := g.CanSeePage(c, "twilio", "calls", p); shown != a.answer {
			t.Errorf("%d %s answers a write: %v", a.status, a.body, shown)
		}
		of := *p
		if of.List = true; a.body != "" {
			of.Body = []byte(`{"calls":[` + a.body + `]}`)
		}
		if shown := f.canFindAll(&of, start, false); shown != a.list {
			t.Errorf("%d %s is a list: %v", a.status, of.Body, shown)
		}
	}
}
