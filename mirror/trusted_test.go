// Lists that may have a filter of their own, in an outage.

package mirror

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/request"
	"understudy/upstream"
)

// ownSpec gives the source a spec that the test may change: that of the others is shared.
func ownSpec(t *testing.T) setting {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.Sources[0].Source.Spec, o.Sources[0].Upstream.(*world).spec = sp, sp }
}

// TestWhatNobodyComparedIsNotMadeInAnOutage (D5): where the spec does not say that
// a list filters nothing by itself, records do not tell in an outage what upstream
// would: 200 and empty may be wrong. The whole list does once a sample was equal,
// and a spec that says it is told at once.
func TestWhatNobodyComparedIsNotMadeInAnOutage(t *testing.T) {
	t.Parallel()
	own := ownSpec(t)
	for _, whole := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, c := covered(t, 3, own)
			list := s.spec.Kind("calls").Lists[0]
			list.Complete = &whole
			fail := func(err error) {
				s.script(func() { s.fail = func(int, request.Fetch) error { return err } })
			}
			try := func(query string, given bool) {
				t.Helper()
				for _, ask := range []request.Request{{}, {OnlyIfCached: true}} {
					ask.Target = s.target(t, "Calls.json", query)
					a, err := s.Answer(t.Context(), ask)
					switch {
					case given && (err != nil || a.Outcome != request.Composed):
						t.Errorf("whole %v, %q: %v, %v", whole, query, a, err)
					case !given && !errors.Is(err, understudy.ErrUnavailable) && !errors.Is(err, understudy.ErrNoStoredAnswer):
						t.Errorf("whole %v, %q: %v, %v; want nothing", whole, query, a, err)
					}
				}
				time.Sleep(time.Minute)
			}
			fail(down(503))
			try("PageSize=7", whole)
			try("Status=busy", whole)
			fail(nil)
			time.Sleep(time.Minute)
			c.all(time.Now())
			s.get(t, s.target(t, "Calls.json", "PageSize=8")) // and a sample is taken
			time.Sleep(time.Minute)
			fail(down(503))
			try("PageSize=7", true)
			try("Status=busy", whole)
		})
	}
}

// TestErrorSaysWhyRecordsMakeNoAnswer: that nothing is held is not known, and is not the reason.
func TestErrorSaysWhyRecordsMakeNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 3, ownSpec(t), hard(shortHard))
		s.script(func() { s.fail = func(int, request.Fetch) error { return down(503) } })
		reason := func(query string) string {
			_, err := s.Answer(t.Context(), request.Request{Target: s.target(t, "Calls.json", query)})
			return understudy.ExplainNoStoredAnswer(err)
		}
		whole := false
		s.spec.Kind("calls").Lists[0].Complete = &whole
		for query, want := range map[string]string{
			"PageSize=7":           "no stored answer fits this request: calls: not yet known whether upstream's list shows all of them",
			"PageSize=7&Odd=thing": "no stored answer fits this request: ",
		} {
			if got := reason(query); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s; want %s", query, got, want)
			}
		}
		time.Sleep(shortHard + time.Hour)
		whole = true
		if got, want := reason("PageSize=9"), "no stored answer fits this request: calls: the last walk is too long ago"; got != want {
			t.Errorf("after the hard limit: %s; want %s", got, want)
		}
		c.none("not synced")
		if got, want := reason("PageSize=6"), "no stored answer fits this request: calls: not synced"; got != want {
			t.Errorf("without a walk: %s; want %s", got, want)
		}
	})
}
