// Hints: one fetch for many, for what is known and what is not.

package mirror

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/mirror/hints"
	"understudy/request"
)

func TestHintsAreOneFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		synctest.Wait()
		s.set(sid(2), "busy", true)
		for range 100 {
			s.AddHint("twilio", "calls", sid(2))
		}
		time.Sleep(time.Minute)
		n, by := s.fetches("Calls/" + sid(2))
		if n != 1 || by[request.ReasonRefresh] != 1 {
			t.Errorf("%d fetches by %v for a hundred hints", n, by)
		}
		if a := s.get(t, s.call(t, sid(2))); a.Outcome != request.Stale && a.Outcome != request.Composed {
			t.Errorf("the record came %s", a.Outcome)
		}
		if a := s.get(t, s.newest(t)); a.Outcome != request.Cold {
			t.Errorf("a list that shows what changed came %s", a.Outcome)
		}
	})
}

// Part 2, no. 1: a hint reaches who had read the record, though a final record is
// fresh for a day; one that was deleted, too.
func TestAHintReachesWhoHadReadTheRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls())
		want(t, s.get(t, s.call(t, sid(2))), request.Cold, "")
		want(t, s.get(t, s.call(t, sid(3))), request.Cold, "")
		time.Sleep(time.Minute)
		s.set(sid(2), "failed", true)
		s.remove(sid(3))
		s.AddHint("twilio", "calls", sid(2))
		s.AddHint("twilio", "calls", sid(3))
		time.Sleep(3 * time.Second)
		if a := s.get(t, s.call(t, sid(2))); !strings.Contains(string(a.Page.Body), "failed") || a.Outcome == request.Cold {
			t.Errorf("%s: %s", a.Outcome, a.Page.Body)
		}
		if a := s.get(t, s.call(t, sid(3))); a.Page.Status != 404 {
			t.Errorf("%s: %s", a.Outcome, a.Page.Body)
		}
	})
}

// TestHintWhileItIsFetched: what came after the fetch began is fetched after it,
// once, and never more than once a second.
func TestHintWhileItIsFetched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.script(func() { s.delay = func(request.Fetch) time.Duration { return 3 * time.Second } })
		s.AddHint("twilio", "calls", sid(2))
		time.Sleep(time.Second)
		for range 100 {
			s.AddHint("twilio", "calls", sid(2))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if n, _ := s.fetches(""); n != 2 {
			t.Errorf("%d fetches, want one and one after", n)
		}
		s.script(func() { s.delay = func(request.Fetch) time.Duration { return 100 * time.Millisecond } })
		for range 100 { // ten seconds of hints
			s.AddHint("twilio", "calls", sid(3))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if n, _ := s.fetches("Calls/" + sid(3)); n < 10 || n > 11 {
			t.Errorf("%d fetches in ten seconds of hints", n)
		}
		l := s.Loads().Hints
		checktest.Equal(t, l.Now, 0, "afterwards: l.Now")
		checktest.Equal(t, l.Refused, 0, "afterwards: l.Refused")
		checktest.Equal(t, l.Limit, 1024, "afterwards: l.Limit")
	})
}

// TestHintJoinsNothingOlder: a fetch that began before the hint may bring what
// was, so another follows.
func TestHintJoinsNothingOlder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		go func() { _, _ = s.Answer(t.Context(), request.Request{Target: s.call(t, sid(1))}) }()
		synctest.Wait()
		s.AddHint("twilio", "calls", sid(1))
		time.Sleep(time.Minute)
		if n, by := s.fetches(""); n != 2 || by[request.ReasonRefresh] != 1 {
			t.Errorf("%d fetches by %v", n, by)
		}
	})
}

// TestHintOfSomethingNew: it is fetched, and the polled list with it.
func TestHintOfSomethingNew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls"))
		time.Sleep(5 * time.Second)
		polled := func() int {
			_, by := s.fetches("Calls.json")
			return by[request.ReasonPoll]
		}
		lists := polled()
		s.set(sid(9), "ringing", false)
		s.AddHint("twilio", "calls", sid(9))
		time.Sleep(2500 * time.Millisecond)
		if after := polled(); after != lists+1 {
			t.Errorf("%d fetches of the newest page", after-lists)
		}
		if a := s.get(t, s.newest(t)); a.Outcome != request.Warm || a.Page.Rows[0].ID != sid(9) {
			t.Errorf("the newest page came %s and begins with %s", a.Outcome, a.Page.Rows[0].ID)
		}
		s.AddHint("twilio", "calls", sid(9)) // nothing new: the list is left alone
		time.Sleep(2500 * time.Millisecond)
		if after := polled(); after != lists+1 {
			t.Errorf("%d fetches of the newest page after a hint that brought nothing", after-lists)
		}
	})
}

func TestHintsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.SetLimits(Limits{Hints: 10})
		for i := range 50 {
			s.AddHint("twilio", "calls", sid(i))
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if n, _ := s.fetches(""); n != hints.Workers {
			t.Errorf("%d fetches at once", n)
		}
		l := s.Loads().Hints
		checktest.Equal(t, l.Now, 10, "l.Now")
		checktest.Equal(t, l.Refused, 40, "l.Refused")
		checktest.Equal(t, l.Limit, 10, "l.Limit")
		time.Sleep(time.Minute)
		if n, _ := s.fetches(""); n != 10 {
			t.Errorf("%d fetches", n)
		}
		s.stop() // hints to a mirror that is closed, or is closing
		s.AddHint("twilio", "calls", sid(1))
	})
}

func TestHintsAtNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		long := fmt.Sprintf("%05000d", 1)
		for _, h := range [][3]string{
			{"none", "calls", sid(1)}, {"twilio", "none", sid(1)}, {"twilio", "", sid(1)}, {"twilio", "calls", ""},
			{"twilio", "calls", "../Messages"}, {"twilio", "calls", "a~b"}, {"twilio", "calls", long},
			{"twilio", "participants", "CF1"}, {"twilio", "participants", "CF1~"},
		} {
			s.AddHint(h[0], h[1], h[2])
		}
		s.AddHint("twilio", "participants", "CF1~CA1")
		s.AddHint("twilio", "calls", "a?b=c#d{AccountSid}") // odd, and still one segment
		s.AddHint("twilio", "calls", "a/b")                 // one segment, escaped
		time.Sleep(time.Minute)
		if n, _ := s.fetches(""); n != 3 {
			t.Errorf("%d fetches: %v", n, s.asked)
		}
		if n, _ := s.fetches("/Calls/a%2Fb.json"); n != 1 {
			t.Error("an id with a slash is not fetched")
		}
		if n, _ := s.fetches("/Conferences/CF1/Participants/CA1.json"); n != 1 {
			t.Error("a record with a composite id is not fetched")
		}
	})
}
