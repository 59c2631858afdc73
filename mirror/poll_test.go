// Polled pages stay warm; the clock may step.

package mirror

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// TestReaderEverySecondNeverWaits: ten minutes, an upstream of 1 s ± 200 ms,
// one refresh that fails.
func TestReaderEverySecondNeverWaits(t *testing.T) {
	t.Parallel()
	for _, polled := range []bool{true, false} {
		t.Run(fmt.Sprintf("polled=%v", polled), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var settings []setting
				if polled {
					settings = append(settings, polls("calls"))
				}
				s := open(t, 3, settings...)
				r := rand.New(rand.NewPCG(1, 2))
				s.script(func() {
					s.delay = func(request.Fetch) time.Duration {
						return 800*time.Millisecond + time.Duration(r.IntN(401))*time.Millisecond
					}
					s.fail = func(n int, _ request.Fetch) error {
						if n == 10 {
							return down(500)
						}
						return nil
					}
				})
				if !polled {
					s.get(t, s.newest(t))
				}
				time.Sleep(2 * time.Second)
				counts := map[request.Outcome]int{}
				for range 600 {
					begin := time.Now()
					a := s.get(t, s.newest(t))
					counts[a.Outcome]++
					if took := time.Since(begin); took != 0 {
						t.Fatalf("%s after %v", a.Outcome, took)
					}
					time.Sleep(time.Second)
				}
				if counts[request.Warm] != 600 {
					t.Errorf("answers: %v, want all warm", counts)
				}
				n, by := s.fetches("Calls.json")
				t.Logf("%d fetches: %v", n, by)
				if n < 20 || n > 35 {
					t.Errorf("%d fetches in ten minutes", n)
				}
			})
		})
	}
}

// TestPollsPerDayIsWhatPollsSend counts the polls of a mirror whose lists are read, whose
// lists change all the time, and which nobody reads.
func TestPollsPerDayIsWhatPollsSend(t *testing.T) {
	t.Parallel()
	lists := map[string]string{"calls": "Calls.json", "messages": "Messages.json", "conferences": "Conferences.json"}
	for _, rate := range []float64{0, 0.2} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const newest, step = 20 * time.Second, 4 * time.Second
				s := open(t, 3, polls(slices.Sorted(maps.Keys(lists))...), withoutStore, func(o *Options) {
					o.Sources[0].Rate, o.Ages.Newest = rate, newest
				})
				s.script(func() { s.delay = func(request.Fetch) time.Duration { return 50 * time.Millisecond } })
				cost := PollsPerDay(len(lists), Ages{Newest: newest}, rate)
				check := func(what string, want int, d time.Duration, each func()) {
					t.Helper()
					run := func(d time.Duration) {
						for end := time.Now().Add(d); time.Now().Before(end); {
							each()
							time.Sleep(step)
						}
					}
					run(10 * time.Minute)
					_, before := s.fetches("")
					run(d)
					_, after := s.fetches("")
					got := float64(after[request.ReasonPoll]-before[request.ReasonPoll]) * 24 / d.Hours()
					if math.Abs(got-float64(want)) > 0.06*float64(want) {
						t.Errorf("%s: polls send %.0f requests a day, PollsPerDay says %d", what, got, want)
					}
				}
				read := func() {
					for _, path := range lists {
						s.get(t, s.target(t, path, ""))
					}
				}
				check("read", cost.Read, 30*time.Minute, read)
				check("idle", cost.Idle, 12*time.Hour, func() { time.Sleep(time.Minute - step) })
				n := 0
				s.script(func() {
					s.page = func(f request.Fetch) *understudy.Page {
						n++
						return page(f.Target, 200, fmt.Sprintf(`{%q:[],"n":%d}`, f.Target.List.Key, n))
					}
				})
				check("busy", cost.Busy, 20*time.Minute, read)
			})
		})
	}
	if cost := PollsPerDay(0, Ages{}, 0); cost != (PollCost{}) {
		t.Errorf("no list is polled, and that costs %+v", cost)
	}
	if cost := PollsPerDay(1, Ages{Newest: -1}, 10); cost.Read != 86400 {
		t.Errorf("polls without a pause take %d requests a day, want a tenth of the rate", cost.Read)
	}
}

func TestIdleRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls", "messages"))
		time.Sleep(5 * time.Minute)
		busy, _ := s.fetches("Calls.json")
		time.Sleep(50 * time.Minute)
		idle, _ := s.fetches("Calls.json")
		idle -= busy
		checktest.True(t, busy >= 12, "busy is %v, want >= 12", busy)
		checktest.True(t, busy <= 15, "busy is %v, want <= 15", busy)
		checktest.True(t, idle >= 11, "idle is %v, want >= 11", idle)
		checktest.True(t, idle <= 15, "idle is %v, want <= 15", idle)
		s.get(t, s.target(t, "Messages.json", "")) // a reader of the source, of any page
		calls, _ := s.fetches("Calls.json")
		messages, _ := s.fetches("Messages.json")
		time.Sleep(5 * time.Minute)
		n, _ := s.fetches("Messages.json")
		if n -= messages; n < 11 || n > 15 {
			t.Errorf("%d polls in five minutes of what a reader came for", n)
		}
		if n, _ = s.fetches("Calls.json"); n-calls < 2 || n-calls > 5 {
			t.Errorf("%d polls in five minutes of a quiet list nobody read", n-calls)
		}
	})
}

// TestPollsAdapt: while every poll brings something they come up to three times
// as often; when nothing comes any more they go back to the usual, and to a quarter
// of it for a list that is not read, until something comes.
func TestPollsAdapt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls"))
		read := true
		count := func(d time.Duration, each func()) int {
			_, before := s.fetches("Calls.json")
			for range int(d / (5 * time.Second)) {
				if s.NoteReader("twilio"); read { // else as a subscriber of the feed
					s.get(t, s.newest(t))
				}
				if each != nil {
					each()
				}
				time.Sleep(5 * time.Second)
			}
			_, after := s.fetches("Calls.json")
			return after[request.ReasonPoll] - before[request.ReasonPoll]
		}
		n := 10
		arrive := func() {
			n++
			s.set(sid(n), "completed", true)
		}
		if n := count(10*time.Minute, nil); n < 25 || n > 29 {
			t.Errorf("%d polls in ten quiet minutes", n)
		}
		count(time.Minute, arrive)
		if n := count(10*time.Minute, arrive); n < 70 || n > 82 {
			t.Errorf("%d polls in ten busy minutes", n)
		}
		count(5*time.Minute, nil)
		if n := count(10*time.Minute, nil); n < 25 || n > 29 {
			t.Errorf("%d polls in ten minutes, quiet again", n)
		}
		read = false
		count(15*time.Minute, nil)
		if n := count(15*time.Minute, nil); n < 9 || n > 12 {
			t.Errorf("%d polls in fifteen quiet minutes of a list nobody reads", n)
		}
		count(3*time.Minute, arrive)
		if n := count(10*time.Minute, arrive); n < 60 || n > 82 {
			t.Errorf("%d polls in ten busy minutes of a list nobody reads", n)
		}
	})
}

// TestPollsKeepTheirShare: all polls of a source together take a tenth of its
// rate at most, whatever makes them come.
func TestPollsKeepTheirShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls", "messages", "conferences"), withoutStore, func(o *Options) { o.Sources[0].Rate = 0.5 })
		for i := range 3600 {
			s.NoteReader("twilio")
			s.set(sid(100+i), "completed", true)
			if i%7 == 0 {
				s.AddHint("twilio", "calls", sid(100+i))
			}
			time.Sleep(time.Second)
		}
		_, by := s.fetches("")
		if n := by[request.ReasonPoll]; n < 170 || n > 180+3 {
			t.Errorf("%d polls in an hour at half a request a second", n)
		}
		if err := s.SetRate("twilio", 0); err != nil {
			t.Error(err)
		}
		before := by[request.ReasonPoll]
		for range 600 {
			for _, path := range []string{"Calls.json", "Messages.json", "Conferences.json"} {
				s.get(t, s.target(t, path, ""))
			}
			time.Sleep(time.Second)
		}
		if _, by := s.fetches(""); by[request.ReasonPoll]-before < 75 {
			t.Errorf("%d polls in ten minutes at ten requests a second", by[request.ReasonPoll]-before)
		}
		if s.SetRate("none", 1) == nil {
			t.Error("the rate of no source is set")
		}
	})
}

// A list under a filter is kept warm too; what is new in its kind is not told by it.
func TestAPathWithAQueryIsPolled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("/Calls.json?Status=failed"))
		failed := s.target(t, "Calls.json", "Status=failed")
		time.Sleep(time.Minute)
		for range 60 {
			want(t, s.get(t, failed), request.Warm, "")
			time.Sleep(5 * time.Second)
		}
		if n, by := s.fetches("Status=failed"); n < 12 || by[request.ReasonPoll] != n {
			t.Errorf("%d fetches, %v", n, by)
		}
		if n, _ := s.fetches(""); n > 20 {
			t.Errorf("%d fetches in all", n)
		}
		if at := s.Stats("twilio").CaughtUp["calls"]; !at.IsZero() {
			t.Errorf("the calls are known until %v", at)
		}
	})
}

func TestPollsThroughAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls"))
		time.Sleep(2 * time.Second)
		if at := s.Stats("twilio").CaughtUp["calls"]; time.Since(at) > 2*time.Second {
			t.Errorf("caught up at %v", at)
		}
		s.script(func() { s.fail = func(int, request.Fetch) error { return down(503) } })
		before, _ := s.fetches("Calls.json")
		time.Sleep(4 * time.Minute)
		after, _ := s.fetches("Calls.json")
		if n := after - before; n < 5 || n > 16 {
			t.Errorf("%d polls in four minutes of outage", n)
		}
		s.script(func() { s.fail = nil })
		time.Sleep(40 * time.Second) // the longest wait after a failure, a quarter more, and an answer
		want(t, s.get(t, s.newest(t)), request.Warm, "")
	})
}

func TestPollsOfARestartAskForNothingFresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls"))
		time.Sleep(2 * time.Second)
		s.stop()
		before, _ := s.fetches("")
		s.start(t, Options{Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: s.spec, User: account, Polls: []string{"calls"}},
			Upstream: s.world}}, Store: s.memory})
		time.Sleep(15 * time.Second)
		want(t, s.get(t, s.newest(t)), request.Warm, "")
		if after, _ := s.fetches(""); after != before {
			t.Errorf("%d fetches of a fresh page", after-before)
		}
	})
}

func TestPollSettings(t *testing.T) {
	t.Parallel()
	s := open(t, 1)
	given := func(user string, polls ...string) error {
		_, err := New(Options{Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: s.spec, User: user, Polls: polls},
			Upstream: s.world}}, Store: s.memory})
		return err
	}
	if err := given(account, "calls", "messages", "incoming_phone_numbers", "accounts"); err != nil {
		t.Error(err)
	}
	if err := given(account, "cals"); err == nil {
		t.Error("an unknown kind is polled")
	}
	if err := given("", "calls"); err == nil {
		t.Error("a list whose path cannot be filled is polled")
	}
}

// TestClockSteps: the wall clock steps under a mirror whose times carry no
// monotonic reading, as after a restart.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step time.Duration
		how  request.Outcome
		age  time.Duration
	}{
		{0, request.Warm, 5 * time.Second},
		{-time.Hour, request.Stale, 0},                                  // from the future: its age is not known
		{10 * time.Minute, request.Cold, 0},                             // past stale: the reader waits
		{30 * 24 * time.Hour, request.Cold, 0},                          // past the hard limit
		{2 * time.Minute, request.Stale, 2*time.Minute + 5*time.Second}, // a little forward
	} {
		t.Run(c.step.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var step time.Duration
				clock := func() time.Time { return time.Now().Round(0).Add(step) }
				s := open(t, 3, func(o *Options) { o.Now = clock })
				s.now = clock
				s.get(t, s.newest(t))
				time.Sleep(5 * time.Second)
				s.stop()
				step = c.step
				s.start(t, Options{Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: s.spec, User: account}, Upstream: s.world}},
					Store: s.memory, Now: clock})
				a := s.get(t, s.newest(t))
				if a.Outcome != c.how || a.Age != c.age {
					t.Errorf("%s, age %v; want %s, %v", a.Outcome, a.Age, c.how, c.age)
				}
				time.Sleep(2 * time.Second)
				// However it stepped, what upstream gives now is kept and fresh.
				a = s.get(t, s.newest(t))
				checktest.Equal(t, a.Outcome, request.Warm, "later: a.Outcome")
				checktest.True(t, a.Age >= 0, "later: a.Age is %v, want >= 0", a.Age)
				checktest.True(t, a.Age <= 5*time.Second+2*time.Second, "later: a.Age is %v", a.Age)
			})
		})
	}
}

// TestTimesKeepTheirMonotonicReading: within a process a step of the wall
// clock changes no age, as long as no time loses its second reading. (The
// clock of a bubble has none, so this one runs outside.)
func TestTimesKeepTheirMonotonicReading(t *testing.T) {
	t.Parallel()
	s := open(t, 3)
	s.delay = func(request.Fetch) time.Duration { return 0 }
	until := time.Now().Add(10 * time.Second)
	s.get(t, s.newest(t))
	for s.Stats("twilio").Hot.Pages == 0 && time.Now().Before(until) {
		runtime.Gosched()
	}
	for s.Stats("twilio").ReadyEntries == 0 && time.Now().Before(until) {
		a := s.get(t, s.newest(t))
		if at := a.Page.At; at == at.Round(0) {
			t.Fatalf("%s answer's time has lost its monotonic reading", a.Outcome)
		}
	}
	if at := s.get(t, s.newest(t)).Page.At; at == at.Round(0) || s.Stats("twilio").ReadyEntries != 1 {
		t.Errorf("ready page: %v, stats %+v", at, s.Stats("twilio"))
	}
}
