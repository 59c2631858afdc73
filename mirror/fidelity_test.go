// The meter: when a list turns, what counts as a difference, what it costs.

package mirror

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/mirror/shadow"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// ofCalls are the figures of the first list of calls.
func (s *stage) ofCalls(t testing.TB) *request.ListScore {
	t.Helper()
	for _, f := range s.Shadow().Scores("twilio") {
		if f.Kind == "calls" {
			return &f
		}
	}
	t.Fatal("nothing is known of calls")
	return nil
}

// fresh reads what upstream says now.
func (s *stage) fresh(t testing.TB, target *spec.Target) *request.Response {
	t.Helper()
	a, err := s.Answer(t.Context(), request.Request{Target: target, NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // compared
	return a
}

// samples takes n of them, each of another page.
func (s *stage) samples(t testing.TB, c *claims, n int) {
	t.Helper()
	for i := range n {
		c.all(time.Now())
		want(t, s.fresh(t, s.target(t, "Calls.json", fmt.Sprintf("PageSize=%d", 1+i%1000))), request.Cold, "")
	}
}

func TestAListTurnsAfterEnoughEqualSamplesAndBackAtTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7)
		s.samples(t, c, shadow.SamplesNeeded-1)
		{
			f := s.ofCalls(t)
			checktest.MustTrue(t, !f.IsRecordsFirst(), "after %d: f.IsRecordsFirst() is true",
				shadow.SamplesNeeded-1)
			checktest.MustEqual(t, f.Equal, shadow.SamplesNeeded-1, "after %d: f.Equal", shadow.SamplesNeeded-1)
			checktest.MustEqual(t, f.Samples, shadow.SamplesNeeded-1, "after %d: f.Samples", shadow.SamplesNeeded-1)
			checktest.MustEqual(t, f.Differing, 0, "after %d: f.Differing", shadow.SamplesNeeded-1)
		}
		s.samples(t, c, 1)
		if f := s.ofCalls(t); !f.IsRecordsFirst() || f.IsPinned() {
			t.Fatalf("after %d: %+v", shadow.SamplesNeeded, f)
		}
		time.Sleep(time.Hour)
		c.all(time.Now())
		n := s.count()
		want(t, s.get(t, s.newest(t)), request.Composed, "composed")
		if asked, _ := s.since(n); asked != 0 {
			t.Errorf("upstream was asked %d times", asked)
		}

		// What upstream says changes its form. One check is enough.
		s.script(func() {
			faithful(s.world, func(text string) string { return strings.Replace(text, `"page_size"`, `"size_page"`, 1) })
		})
		read := int64(0)
		for ; s.ofCalls(t).IsRecordsFirst() && read < 20_000; read++ {
			c.all(time.Now())
			s.get(t, s.target(t, "Calls.json", fmt.Sprintf("PageSize=%d", 1+read%1000)))
			time.Sleep(5 * time.Second) // a check, if there is one, is over
			synctest.Wait()
		}
		f := s.ofCalls(t)
		checktest.True(t, !f.IsRecordsFirst(), "after %d reads: f.IsRecordsFirst() is true", read)
		checktest.Equal(t, f.Equal, 0, "after %d reads: f.Equal", read)
		checktest.Equal(t, f.Differing, 1, "after %d reads: f.Differing", read)
		checktest.Equal(t, f.Field, "page_size", "after %d reads: f.Field", read)
		checktest.Equal(t, f.Where, "around the rows", "after %d reads: f.Where", read)
		checktest.True(t, !f.DifferedAt.IsZero(), "after %d reads: f.DifferedAt.IsZero() is true", read)
		if _, by := s.since(n); by[request.ReasonCheck] != 1 {
			t.Errorf("%d checks", by[request.ReasonCheck])
		}
	})
}

func TestChecksAreFew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		every time.Duration // between two reads
		rate  float64
		reads int
		most  int64
	}{
		"one in a hundred":     {6 * time.Second, 600, 600, 6},
		"so many a minute":     {50 * time.Millisecond, 6, 1200, 7},
		"fewer a minute by us": {50 * time.Millisecond, 1, 1200, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := covered(t, 3, pinned(shadow.Records), func(o *Options) { o.Sources[0].Checks = test.rate })
				n := s.count()
				for i := range test.reads {
					c.all(time.Now())
					a := s.get(t, s.target(t, "Calls.json", fmt.Sprintf("PageSize=%d", 1+i%1000)))
					if a.Outcome != request.Composed && a.Outcome != request.Warm {
						t.Fatalf("read %d was answered %s", i, a.Outcome)
					}
					time.Sleep(test.every)
				}
				asked, by := s.since(n)
				checks := int64(by[request.ReasonCheck])
				checktest.True(t, checks <= test.most, "checks is %v", checks)
				checktest.True(t, checks != 0, "checks is 0")
				checktest.Equal(t, asked, by[request.ReasonCheck], "asked")
			})
		})
	}
}

func TestWhatMovedIsNoDifference(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7)
		s.set(sid(8), "queued", false)      // arrived since the walk
		s.set(sid(7), "in-progress", false) // changed since
		s.fresh(t, s.newest(t))
		if f := s.ofCalls(t); f.Equal != 1 || f.Differing != 0 {
			t.Errorf("%+v", f)
		}
		// What is not covered is no sample.
		c.none("behind")
		s.fresh(t, s.newest(t))
		if f := s.ofCalls(t); f.Samples != 1 {
			t.Errorf("%+v", f)
		}
		// Nor is a page by its number.
		c.all(time.Now())
		s.fresh(t, s.target(t, "Calls.json", "PageSize=3&Page=1"))
		if f := s.ofCalls(t); f.Samples != 1 {
			t.Errorf("%+v", f)
		}
		// Nor one that was not read.
		s.Fill(t.Context(), request.Fill{Target: s.target(t, "Calls.json", "PageSize=4")})
		synctest.Wait()
		if f := s.ofCalls(t); f.Samples != 1 {
			t.Errorf("%+v", f)
		}
		// A refusal is, upstream's own and ours are the same, and it says nothing of
		// records: it is none of those in a row.
		a := s.fresh(t, s.target(t, "Calls.json", "StartTime=never"))
		{
			f := s.ofCalls(t)
			checktest.Equal(t, a.Page.Status, 400, "a refusal: a.Page.Status")
			checktest.Equal(t, f.Samples, 2, "a refusal: f.Samples")
			checktest.Equal(t, f.Equal, 1, "a refusal: f.Equal")
		}
	})
}

func TestARecordUpstreamDoesNotShowIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7)
		s.remove(sid(5))
		n := s.count()
		s.fresh(t, s.newest(t))
		f := s.ofCalls(t)
		checktest.Equal(t, f.Differing, 1, "f.Differing")
		checktest.Equal(t, f.Field, "(membership)", "f.Field")
		checktest.Contains(t, f.Where, sid(5), "f.Where")
		time.Sleep(5 * time.Second)
		if asked, _ := s.since(n); asked != 2 {
			t.Errorf("%d requests, want the page and the record", asked)
		}
		if len(c.doubted) != 1 || c.doubted[0] != "calls [1779999998,1779999999)" {
			t.Errorf("doubted: %v", c.doubted)
		}
		s.fresh(t, s.newest(t))
		if f := s.ofCalls(t); f.Equal != 1 {
			t.Errorf("it is gone here, too: %+v", f)
		}
	})
}

func TestScoresOutliveTheProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 3)
		s.samples(t, c, 20)
		s.stop()
		o := Options{Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: s.spec, User: account}, Upstream: s.world}}, Store: s.store,
			Coverage: c, KV: s.memory.KV}
		s.start(t, o)
		synctest.Wait()
		if f := s.ofCalls(t); f.Equal != 20 || f.Samples != 20 {
			t.Errorf("%+v", f)
		}
	})
}

// What was found out by another spec is not known of this one.
func TestScoresAreOfOneSpec(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*spec.Spec){
		"another answer": func(s *spec.Spec) { s.Paging.Template = strings.Replace(s.Paging.Template, "{start}", "0", 1) },
		"a filter":       func(s *spec.Spec) { s.Kind("calls").Lists[0].Filters[0].Op = "contains" },
		"an oddity":      func(s *spec.Spec) { s.Quirks.Above = spec.QuirkRefused },
		"":               func(s *spec.Spec) { s.Title, s.Kind("calls").Title = "T", "C" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := covered(t, 3)
				s.samples(t, c, 20)
				s.stop()
				sp, err := upstream.ReadBuiltIn("twilio")
				if err != nil {
					t.Fatal(err)
				}
				change(sp)
				s.start(t, Options{Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: sp, User: account}, Upstream: s.world}},
					Store: s.store, Coverage: c, KV: s.memory.KV})
				synctest.Wait()
				if f := s.ofCalls(t); (f.Samples == 20) != (name == "") {
					t.Errorf("%+v", f)
				}
			})
		})
	}
}

func TestAnswersArePinnedWhileRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := covered(t, 3)
		want(t, s.get(t, s.target(t, "Calls.json", "PageSize=1")), request.Cold, "")
		if err := s.Shadow().SetAnswers("twilio", map[string]shadow.Answers{"calls": shadow.Records, "": shadow.Upstream}); err != nil {
			t.Fatal(err)
		}
		want(t, s.get(t, s.target(t, "Calls.json", "PageSize=2")), request.Composed, "composed")
		wrong := map[string]shadow.Answers{"": "recrds"}
		if err := s.Shadow().SetAnswers("twilio", wrong); err == nil || !strings.Contains(err.Error(), "records") {
			t.Errorf("a word that is none: %v", err)
		}
		if err := s.Shadow().SetAnswers("twilio", map[string]shadow.Answers{"cals": "records"}); err == nil {
			t.Error("a kind that is none is taken")
		}
		want(t, s.get(t, s.target(t, "Calls.json", "PageSize=3")), request.Composed, "composed")
	})
}
