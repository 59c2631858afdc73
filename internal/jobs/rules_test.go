// The rules of runs: how they end, what they keep, what stopping does.

package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// What a job becomes by what its runs return.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		kind  jobs.Kind
		job   understudy.Job
		err   error // of every run
		after time.Duration
		state understudy.JobState
		runs  int
		text  string
	}{
		"well":               {state: understudy.JobDone, runs: 1},
		"badly, to the last": {err: errors.New("no"), after: time.Hour, state: understudy.JobFailed, runs: 5, text: "no"},
		"its own attempts": {job: understudy.Job{MaxAttempts: 2}, err: errors.New("no"), after: time.Hour, state: understudy.JobFailed,
			runs: 2, text: "no"},
		"at most once": {kind: jobs.Kind{Once: true}, job: understudy.Job{MaxAttempts: 7}, err: errors.New("no"), after: time.Hour,
			state: understudy.JobFailed, runs: 1, text: "no"},
		"this one at most once": {job: understudy.Job{AtMostOnce: true}, err: errors.New("no"), after: time.Hour,
			state: understudy.JobFailed, runs: 1,
			text: "no"},
		"never possible": {err: fmt.Errorf("walk: %w: nonsense", understudy.ErrInvalid), after: time.Hour, state: understudy.JobFailed,
			runs: 1, text: "walk: invalid request: nonsense"},
		"not stored": {err: fmt.Errorf("x: %w", understudy.ErrNotStored), after: 59 * time.Second, state: understudy.JobWaiting,
			runs: 6, text: "x: not stored"},
		"later": {err: &understudy.Snooze{Wait: 10 * time.Minute, Err: errors.New("it sleeps")}, after: 65 * time.Minute,
			state: understudy.JobWaiting, runs: 7, text: "it sleeps"},
		"later, at most once": {kind: jobs.Kind{Once: true}, err: &understudy.Snooze{Wait: time.Minute}, after: time.Hour,
			state: understudy.JobFailed, runs: 1, text: "later"},
		"upstream says when": {err: &understudy.UpstreamError{Why: understudy.FailLimited, RetryAfter: 30 * time.Minute},
			after: 59 * time.Minute, state: understudy.JobWaiting, runs: 2, text: "upstream rate limited"},
		"heavier than there is": {kind: jobs.Kind{Weight: 1 << 20}, err: errWeigh, after: time.Hour, state: understudy.JobFailed, runs: 1,
			text: "the job needs 1024 MiB of memory, more than jobs.memory (256 MiB); raise jobs.memory"},
		"longer than its kind's": {kind: jobs.Kind{Limit: time.Minute, Attempts: 1}, err: errHang, after: time.Hour, state: understudy.JobFailed,
			runs: 1, text: "the run took longer than 1m0s"},
		"expired while it waits": {job: understudy.Job{ExpiresAt: time.Unix(946684800+90, 0)}, err: &understudy.Snooze{Wait: time.Hour},
			after: 2 * time.Hour, state: understudy.JobExpired, runs: 1, text: "later"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				c.kind.Name = "work"
				c.kind.Run = func(ctx context.Context, r *jobs.Run) error {
					runs++
					switch {
					case errors.Is(c.err, errWeigh):
						return r.Weigher()(ctx, 1<<30)
					case errors.Is(c.err, errHang):
						<-ctx.Done()
						return ctx.Err()
					}
					return c.err
				}
				b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{c.kind}, Rand: func() float64 { return 0.99 }})
				defer b.stop()
				c.job.Kind = "work"
				n := b.add(c.job)
				time.Sleep(c.after)
				j := b.is(n, c.state)
				checktest.Equal(t, runs, c.runs, "runs")
				checktest.Equal(t, j.Error, c.text, "j.Error")
				checktest.True(t, j.Attempt <= max(j.MaxAttempts, 1), "j.Attempt is %v", j.Attempt)
			})
		})
	}
}

var errWeigh, errHang = errors.New("weigh"), errors.New("hang")

// A panic is an error; what it says may be anything and is for the log alone.
func TestAPanicIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := start(t, nil, jobs.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Kinds: []jobs.Kind{
			{Name: "work", Attempts: 1, Run: func(context.Context, *jobs.Run) error { panic("call +15551234567") }},
			{Name: "other", Run: func(context.Context, *jobs.Run) error { return nil }}}})
		defer b.stop()
		n := b.add(understudy.Job{Kind: "work"})
		if j := b.is(n, understudy.JobFailed); j.Error != "internal error; the server log has the details" {
			t.Errorf("%q", j.Error)
		}
		if text := log.String(); !strings.Contains(text, "+15551234567") || !strings.Contains(text, "rules_test.go") {
			t.Errorf("the log says %s", text)
		}
		b.is(b.add(understudy.Job{Kind: "other"}), understudy.JobDone)
	})
}

// Stopping gives at-least-once work back at no cost and ends at-most-once work
// with an error; the next runner goes on at the mark, at once.
func TestStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.Open(t, store.Options{})
		var mu sync.Mutex
		var begun []string
		run := func(ctx context.Context, r *jobs.Run) error {
			j := r.Job()
			mu.Lock()
			begun = append(begun, fmt.Sprintf("%s at %s", j.Kind, j.Checkpoint))
			mu.Unlock()
			if len(j.Checkpoint) > 0 {
				return nil
			}
			if err := r.SetMark(ctx, []byte("page 7")); err != nil {
				return err
			}
			<-ctx.Done()
			return fmt.Errorf("walk: %w", ctx.Err())
		}
		o := jobs.Options{Kinds: []jobs.Kind{{Name: "least", Run: run}, {Name: "most", Run: run, Once: true},
			{Name: "quick", Run: func(ctx context.Context, _ *jobs.Run) error { <-ctx.Done(); return nil }}}}
		b := start(t, m, o)
		least, most, quick := b.add(understudy.Job{Kind: "least"}), b.add(understudy.Job{Kind: "most"}), b.add(understudy.Job{Kind: "quick"})
		synctest.Wait()
		begin := time.Now()
		b.stop()
		if d := time.Since(begin); d > 0 {
			t.Errorf("stopping took %v", d)
		}
		{
			j := b.is(least, understudy.JobWaiting)
			checktest.Equal(t, j.Attempt, 0, "j.Attempt")
			checktest.Equal(t, j.Error, "", "j.Error")
			checktest.True(t, !j.RunAfter.After(time.Now()), "j.RunAfter.After(time.Now()) is true")
			checktest.Equal(t, string(j.Checkpoint), "page 7", "string(j.Checkpoint)")
		}
		if j := b.is(most, understudy.JobFailed); !strings.Contains(j.Error, "at most once") {
			t.Errorf("%+v", j)
		}
		b.is(quick, understudy.JobDone)
		b = start(t, m, o)
		b.is(least, understudy.JobDone)
		b.stop()
		if got := strings.Join(begun, ", "); got != "least at , most at , least at page 7" && got != "most at , least at , least at page 7" {
			t.Errorf("begun %s", got)
		}
	})
}

// A run that ignores its context does not delay the end for ever.
func TestStoppingHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{{Name: "work", Run: func(context.Context, *jobs.Run) error { <-gate; return nil }}}})
		n := b.add(understudy.Job{Kind: "work"})
		b.is(n, understudy.JobRunning)
		begin := time.Now()
		b.cancel()
		if err := <-b.ended; err == nil || !strings.Contains(err.Error(), "did not end within 8s") {
			t.Errorf("%v", err)
		}
		if d := time.Since(begin); d != 8*time.Second {
			t.Errorf("it took %v", d)
		}
		close(gate)
		synctest.Wait()
	})
}

// A server that starts in a folder of its own does not wait for the leases of
// one that was killed.
func TestAloneAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.Open(t, store.Options{})
		kind := understudy.ClaimKind{Name: "work", MaxRunning: 9, Lease: time.Hour}
		for _, once := range []bool{false, true} {
			if _, err := m.Jobs.AddJobs(t.Context(), time.Now(), understudy.Job{Kind: "work", MaxAttempts: 3, AtMostOnce: once}); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := m.Jobs.ClaimJobs(t.Context(), understudy.Claim{Worker: "dead", Now: time.Now(), Limit: 9,
			Kinds:    []understudy.ClaimKind{kind},
			Priority: understudy.PriorityBulk, Weight: 1}); err != nil || len(got.Jobs) != 2 {
			t.Fatal(got, err)
		}
		b := start(t, m, jobs.Options{OnlyProcess: true, Kinds: []jobs.Kind{{Name: "work",
			Run: func(context.Context, *jobs.Run) error { return nil }}}})
		defer b.stop()
		if j := b.is(1, understudy.JobDone); j.Attempt != 2 {
			t.Errorf("%+v", j)
		}
		b.is(2, understudy.JobFailed)
		s := b.Stats()
		checktest.Equal(t, s.Done, 1, "s.Done")
		checktest.Equal(t, s.Failed, 1, "s.Failed")
		checktest.Equal(t, s.Lost, 2, "s.Lost")
	})
}

func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := true
		b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{{Name: "work", Attempts: 1, Run: func(ctx context.Context, r *jobs.Run) error {
			if fail {
				return errors.Join(r.SetMark(ctx, []byte("here")), errors.New("no"))
			}
			if j := r.Job(); string(j.Payload) != "what" || string(j.Checkpoint) != "here" && j.Number < 3 {
				t.Errorf("%+v", j)
			}
			return nil
		}}}})
		defer b.stop()
		n := b.add(understudy.Job{Kind: "work", Key: "k", Payload: []byte("what"), Priority: understudy.PrioritySteady, Weight: 7})
		b.is(n, understudy.JobFailed)
		fail = false
		again, err := b.Replay(t.Context(), n)
		if err != nil || again == n {
			t.Fatal(again, err)
		}
		{
			j := b.is(again, understudy.JobDone)
			checktest.Equal(t, j.Key, "k", "j.Key")
			checktest.Equal(t, j.Priority, understudy.PrioritySteady, "j.Priority")
			checktest.Equal(t, j.Weight, 7, "j.Weight")
		}
		b.is(n, understudy.JobFailed)
		// One that was done begins anew.
		third, err := b.Replay(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		if j := b.is(third, understudy.JobDone); j.Checkpoint != nil {
			t.Errorf("%+v", j)
		}
		later := b.add(understudy.Job{Kind: "work", RunAfter: time.Now().Add(time.Hour)})
		if _, err := b.Replay(t.Context(), later); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("a waiting one: %v", err)
		}
		if _, err := b.Replay(t.Context(), 99); !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("one nobody knows: %v", err)
		}
	})
}

// Progress is seen at once here, and in the store once a second at most.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(t)
		b := start(t, f.db, jobs.Options{Store: f, Kinds: []jobs.Kind{{Name: "work", Run: func(_ context.Context, r *jobs.Run) error {
			for i := range int64(1001) {
				r.SetProgress(1000+i, 2000, fmt.Sprint("page ", i))
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		}}}})
		defer b.stop()
		n := b.add(understudy.Job{Kind: "work"})
		begin := time.Now()
		time.Sleep(2505 * time.Millisecond)
		synctest.Wait()
		here := b.job(n).Progress
		checktest.Equal(t, here.Done, 1250, "here.Done")
		checktest.Equal(t, here.Total, 2000, "here.Total")
		checktest.Equal(t, here.Note, "page 250", "here.Note")
		checktest.Equal(t, here.End.Sub(begin).Round(100*time.Millisecond), 10*time.Second,
			"here.End.Sub(begin).Round(100*time.Millisecond)")
		kept, err := f.Queue.ReadJobs(t.Context(), understudy.JobFilter{Number: n})
		checktest.MustNoError(t, err, "the store has")
		checktest.True(t, kept[0].Progress.Done >= 1100, "the store has: kept[0].Progress.Done is %v, want >= 1100",
			kept[0].Progress.Done)
		checktest.True(t, kept[0].Progress.Done <= 1210, "the store has: kept[0].Progress.Done is %v, want <= 1210",
			kept[0].Progress.Done)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if j := b.is(n, understudy.JobDone); j.Progress.Done != 2000 || !j.Progress.End.IsZero() {
			t.Errorf("%+v", j)
		}
		if f.calls["beat"] > 12 {
			t.Errorf("%d writes in ten seconds", f.calls["beat"])
		}
	})
}

// A mark that was not kept is an error the run sees.
func TestMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var long, closed error
		m := storetest.Open(t, store.Options{})
		var left *jobs.Run
		b := start(t, m, jobs.Options{Kinds: []jobs.Kind{{Name: "work", Run: func(ctx context.Context, r *jobs.Run) error {
			left = r
			long = r.SetMark(ctx, make([]byte, understudy.MaxJobPayload+1))
			return r.SetMark(ctx, []byte("a"))
		}}}})
		defer b.stop()
		n := b.add(understudy.Job{Kind: "work"})
		if j := b.is(n, understudy.JobDone); string(j.Checkpoint) != "a" || !errors.Is(long, understudy.ErrInvalid) {
			t.Errorf("%+v, %v", j, long)
		}
		if closed = left.SetMark(t.Context(), []byte("b")); !errors.Is(closed, understudy.ErrLeaseLost) {
			t.Errorf("a mark after the end: %v", closed)
		}
		if err := left.Weigher()(t.Context(), 1); !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("a weight after the end: %v", err)
		}
	})
}

func TestTheArchiveIsTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, nil, jobs.Options{Keep: 10, KeepFor: 24 * time.Hour,
			Kinds: []jobs.Kind{{Name: "work", Run: func(context.Context, *jobs.Run) error { return nil }}}})
		defer b.stop()
		for range 250 {
			b.add(understudy.Job{Kind: "work"})
			synctest.Wait()
		}
		if n, err := b.CountJobs(t.Context()); err != nil || n.Archived > 10+110 {
			t.Errorf("%+v, %v", n, err)
		}
		time.Sleep(time.Hour)
		if n, err := b.CountJobs(t.Context()); err != nil || n.Archived != 10 {
			t.Errorf("%+v, %v", n, err)
		}
		time.Sleep(25 * time.Hour)
		if n, err := b.CountJobs(t.Context()); err != nil || n.Archived != 0 {
			t.Errorf("%+v, %v", n, err)
		}
	})
}

func TestWhatIsNotTaken(t *testing.T) {
	run := func(context.Context, *jobs.Run) error { return nil }
	m := storetest.Open(t, store.Options{})
	var many []jobs.Kind
	for i := range 2048 {
		many = append(many, jobs.Kind{Name: strconv.Itoa(i), Run: run})
	}
	// As many as are taken can be claimed, too.
	most, err := jobs.New(jobs.Options{Store: m.Jobs, Kinds: many})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := most.Enqueue(t.Context(), understudy.Job{Kind: "2047"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- most.Run(ctx) }()
	until(t, func() bool { return most.Stats().Done == 1 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for name, kinds := range map[string][]jobs.Kind{
		"too many": append(many, jobs.Kind{Name: "a", Run: run}),
		"no name":  {{Run: run}}, "no run": {{Name: "a"}}, "twice": {{Name: "a", Run: run}, {Name: "a", Run: run}},
		"too heavy": {{Name: "a", Run: run, Weight: 1 << 40}},
	} {
		if _, err := jobs.New(jobs.Options{Store: m.Jobs, Kinds: kinds}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := jobs.New(jobs.Options{}); err == nil {
		t.Error("no store: no error")
	}
	r, err := jobs.New(jobs.Options{Store: m.Jobs, Kinds: []jobs.Kind{{Name: "work", Run: run}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, j := range map[string]understudy.Job{"unknown": {Kind: "else"}, "too heavy": {Kind: "work", Weight: 1 << 40},
		"too long": {Kind: "work", Payload: make([]byte, 1<<20)}} {
		if _, err := r.Enqueue(t.Context(), understudy.Job{Kind: "work"}, j); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, _ := r.CountJobs(t.Context()); n.Waiting != 0 {
		t.Errorf("%+v", n)
	}
}
