// The rules of jobs that go wrong, end, are planned or looked up; and of values.

package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy"
)

func lostLeases(t *testing.T, s *desk) {
	least, most, last, stopped := s.add(1, understudy.Job{MaxAttempts: 2, Checkpoint: []byte("m")}), s.add(1,
		understudy.Job{AtMostOnce: true, MaxAttempts: 1}),
		s.add(1, understudy.Job{MaxAttempts: 1}), s.add(1, understudy.Job{})
	s.take(1, least, most, last, stopped)
	if _, err := s.CancelJob(t.Context(), stopped, at(2)); err != nil {
		t.Fatal(err)
	}
	if got := s.claim(61, 1); got.Returned+got.Failed+got.Cancelled > 0 {
		t.Fatalf("a lease is over before its end: %+v", got)
	}
	got := s.claim(62, 1)
	s.numbers(got.Jobs, least)
	if got.Returned != 1 || got.Failed != 2 || got.Cancelled != 1 {
		t.Fatalf("%+v", got)
	}
	if j := got.Jobs[0]; j.Attempt != 2 || j.Fence != 2 || string(j.Checkpoint) != "m" {
		t.Fatalf("%+v", j)
	}
	if j := s.state(most, understudy.JobFailed); !strings.Contains(j.Error, "at most once") || !j.Ended.Equal(at(62)) || !j.LeaseEnd.IsZero() {
		t.Fatalf("%+v", j)
	}
	if j := s.state(last, understudy.JobFailed); !strings.Contains(j.Error, "broke off") {
		t.Fatalf("%+v", j)
	}
	s.state(stopped, understudy.JobCancelled)
	s.claim(200, 1)
	s.state(least, understudy.JobFailed)
}

func leasesOfTheDead(t *testing.T, s *desk) {
	n := s.add(1, understudy.Job{})
	s.take(1, n)
	alone := func(worker string) func(c *understudy.Claim) {
		return func(c *understudy.Claim) { c.Worker, c.OnlyProcess = worker, true }
	}
	s.numbers(s.claim(2, 1, alone("w")).Jobs) // its own
	s.numbers(s.claim(2, 1, alone("another")).Jobs, n)
}

func ends(t *testing.T, s *desk) {
	n := s.add(1, understudy.Job{Weight: 5})
	j := s.take(1, n)[0]
	s.end(j, 2, understudy.JobWaiting, func(e *understudy.JobResult) {
		e.Error, e.RunAfter, e.Progress = "no "+strings.Repeat("é", 2000), at(10), understudy.Progress{Done: 3}
	})
	w := s.state(n, understudy.JobWaiting)
	if !w.RunAfter.Equal(at(10)) || w.Attempt != 1 || w.UncountedRuns != 0 || !w.Ended.IsZero() || len(w.Error) > 1024 ||
		!strings.HasPrefix(w.Error, "no éé") || strings.ContainsRune(w.Error, '\uFFFD') || w.Progress.Done != 3 {
		t.Fatalf("%+v", w)
	}
	s.take(9)
	j = s.take(10, n)[0]
	if j.Progress.Done != 0 {
		t.Fatalf("a run begins with the progress of the one before: %+v", j)
	}
	s.end(j, 11, understudy.JobWaiting, func(e *understudy.JobResult) { e.Uncounted, e.Weight = true, 50 })
	if w := s.state(n, understudy.JobWaiting); w.Attempt != 1 || w.UncountedRuns != 1 || w.Weight != 50 {
		t.Fatalf("%+v", w)
	}
	j = s.take(12, n)[0]
	if j.Fence != 3 || j.Attempt != 2 {
		t.Fatalf("%+v", j)
	}
	s.end(j, 13, understudy.JobDone, func(e *understudy.JobResult) {
		e.Progress = understudy.Progress{Done: 9, Total: 9, Note: "all"}
	})
	if d := s.state(n, understudy.JobDone); d.Error != "" || !d.Ended.Equal(at(13)) || d.Progress.Note != "all" || !d.LeaseEnd.IsZero() {
		t.Fatalf("%+v", d)
	}
	if n, err := s.CountJobs(t.Context()); err != nil || n != (understudy.JobCounts{Archived: 1}) {
		t.Fatalf("%+v, %v", n, err)
	}
}

func cancelling(t *testing.T, s *desk) {
	waiting, running := s.add(1, understudy.Job{Key: "k"}), s.add(1, understudy.Job{})
	if j, err := s.CancelJob(t.Context(), waiting, at(2)); err != nil || j.State != understudy.JobCancelled || !j.Ended.Equal(at(2)) {
		t.Fatalf("%+v, %v", j, err)
	}
	if again := s.add(3, understudy.Job{Key: "k", RunAfter: at(900)}); again == waiting {
		t.Fatal("a cancelled job keeps its key")
	}
	j := s.take(3, running)[0]
	if c, err := s.CancelJob(t.Context(), running, at(4)); err != nil || c.State != understudy.JobRunning || !c.StopRequested {
		t.Fatalf("%+v, %v", c, err)
	}
	beaten, err := s.RenewLeases(t.Context(), understudy.Heartbeat{Number: running, Fence: j.Fence, LeaseEnd: at(70)})
	if err != nil || !beaten[0].StopRequested || beaten[0].Lost {
		t.Fatalf("%+v, %v", beaten, err)
	}
	// A run that was to begin again does not.
	state, err := s.EndJob(t.Context(), understudy.JobResult{Number: running, Fence: j.Fence, At: at(5), State: understudy.JobWaiting,
		RunAfter: at(6)})
	if err != nil || state != understudy.JobCancelled {
		t.Fatalf("%v, %v", state, err)
	}
	s.state(running, understudy.JobCancelled)
	if _, err := s.CancelJob(t.Context(), running, at(6)); !errors.Is(err, understudy.ErrInvalid) {
		t.Fatalf("twice: %v", err)
	}
	if _, err := s.CancelJob(t.Context(), 999, at(6)); !errors.Is(err, understudy.ErrNotFound) {
		t.Fatalf("an unknown one: %v", err)
	}
	// One that is done in time is done.
	quick := s.add(7, understudy.Job{})
	j = s.take(7, quick)[0]
	if _, err := s.CancelJob(t.Context(), quick, at(8)); err != nil {
		t.Fatal(err)
	}
	s.end(j, 9, understudy.JobDone)
	s.state(quick, understudy.JobDone)
}

func expiring(t *testing.T, s *desk) {
	n := s.add(1, understudy.Job{ExpiresAt: at(10)})
	begun := s.add(1, understudy.Job{ExpiresAt: at(10)})
	other := s.add(1, understudy.Job{Kind: "unknown", ExpiresAt: at(10)})
	j := s.claim(2, 1).Jobs[0]
	s.end(j, 3, understudy.JobWaiting, func(e *understudy.JobResult) { e.RunAfter = at(20) })
	got := s.claim(9, 2)
	s.numbers(got.Jobs, begun)
	if !got.Next.Equal(at(10)) {
		t.Fatalf("next %v", got.Next)
	}
	if got := s.claim(10, 1); got.Expired != 2 || len(got.Jobs) > 0 {
		t.Fatalf("%+v", got)
	}
	s.state(n, understudy.JobExpired)
	s.state(other, understudy.JobExpired)
	s.state(begun, understudy.JobRunning)
}

func comesNext(t *testing.T, s *desk) {
	if got := s.claim(1, 1); !got.Next.IsZero() || got.Blocked {
		t.Fatalf("%+v", got)
	}
	s.add(1, understudy.Job{Kind: "unknown"})
	s.add(1, understudy.Job{RunAfter: at(500), Priority: understudy.PriorityBulk})
	s.add(1, understudy.Job{RunAfter: at(400), Priority: understudy.PrioritySteady})
	if got := s.claim(1, 1); !got.Next.Equal(at(400)) || got.Blocked {
		t.Fatalf("%+v", got)
	}
	s.add(2, understudy.Job{})
	if got := s.claim(3, 2); !got.Next.Equal(at(63)) || got.Blocked {
		t.Fatalf("%+v", got)
	}
}

func planning(t *testing.T, s *desk) {
	job := understudy.Job{Kind: "work", Key: "periodic", MaxAttempts: 1}
	plan := func(now, since, slot time.Time) (int64, time.Time) {
		t.Helper()
		n, last, err := s.PlanJob(t.Context(), now, since, slot, job)
		if err != nil {
			t.Fatal(err)
		}
		return n, last
	}
	never := time.Time{}
	if n, last := plan(at(1), never, never); n != 0 || !last.IsZero() {
		t.Fatal("it was planned before it was", n, last)
	}
	first, last := plan(at(1), never, at(1))
	if first == 0 || !last.Equal(at(1)) {
		t.Fatal(first, last)
	}
	// Another process, a little later, knows no better.
	if n, last := plan(at(2), never, at(2)); n != 0 || !last.Equal(at(1)) {
		t.Fatal("planned twice", n, last)
	}
	// The next slot comes while the job is live: it passes.
	if n, last := plan(at(61), at(1), at(61)); n != first || !last.Equal(at(61)) {
		t.Fatal(n, last)
	}
	s.end(s.take(62, first)[0], 63, understudy.JobDone)
	if n, _ := plan(at(64), at(1), at(64)); n != 0 {
		t.Fatal("the slot that passed came back", n)
	}
	next, last := plan(at(121), at(61), at(121))
	if next == 0 || next == first || !last.Equal(at(121)) {
		t.Fatal(next, last)
	}
	// The clock is set back: what is planned does not wait for it.
	n, last := plan(at(50), at(121), at(50))
	if n != 0 || !last.Equal(at(50)) {
		t.Fatal(n, last)
	}
	if _, last := plan(at(60), at(50), at(60)); !last.Equal(at(60)) {
		t.Fatal(last)
	}
}

func filters(t *testing.T, s *desk) {
	for i := range 6 {
		s.add(1, understudy.Job{Kind: fmt.Sprint("kind", i%2), RunAfter: at(i)})
	}
	if _, err := s.CancelJob(t.Context(), 2, at(1)); err != nil {
		t.Fatal(err)
	}
	look := func(f understudy.JobFilter, want ...int64) {
		t.Helper()
		got, err := s.Jobs.ReadJobs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		s.numbers(got, want...)
	}
	look(understudy.JobFilter{}, 6, 5, 4, 3, 2, 1)
	look(understudy.JobFilter{Kind: "kind1"}, 6, 4, 2)
	look(understudy.JobFilter{Kind: "kind1", States: []understudy.JobState{understudy.JobWaiting}}, 6, 4)
	look(understudy.JobFilter{States: []understudy.JobState{understudy.JobCancelled, understudy.JobDone}}, 2)
	look(understudy.JobFilter{Limit: 2}, 6, 5)
	look(understudy.JobFilter{Limit: 2, Before: 5}, 4, 3)
	look(understudy.JobFilter{Number: 3}, 3)
	look(understudy.JobFilter{Number: 99})
}

func archiveShort(t *testing.T, s *desk) {
	var done, failed []int64
	for i := range 6 {
		n := s.add(i, understudy.Job{Key: "k"})
		state := understudy.JobDone
		if i < 2 {
			state = understudy.JobFailed
			failed = append(failed, n)
		} else {
			done = append(done, n)
		}
		s.end(s.take(i, n)[0], i, state)
	}
	live := s.add(6, understudy.Job{Key: "k"})
	if n, err := s.TrimJobs(t.Context(), 3, at(-1)); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	got, _ := s.Jobs.ReadJobs(t.Context(), understudy.JobFilter{})
	s.numbers(got, live, done[3], done[2], done[1], failed[1], failed[0])
	if n, err := s.TrimJobs(t.Context(), 3, at(1)); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	got, _ = s.Jobs.ReadJobs(t.Context(), understudy.JobFilter{})
	s.numbers(got, live, done[3], done[2], done[1], failed[1])
	if n, err := s.TrimJobs(t.Context(), 0, at(-1)); err != nil || n != 4 {
		t.Fatal(n, err)
	}
	// Numbers are not used again.
	if _, err := s.CancelJob(t.Context(), live, at(7)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TrimJobs(t.Context(), 0, at(99)); err != nil {
		t.Fatal(err)
	}
	if n := s.add(8, understudy.Job{}); n <= live {
		t.Fatalf("number %d after %d", n, live)
	}
}

func values(t *testing.T, s *desk) {
	set := func(name string, value []byte) {
		t.Helper()
		if err := s.SetValue(t.Context(), name, value); err != nil {
			t.Fatal(err)
		}
	}
	is := func(name, want string) {
		t.Helper()
		if got, err := s.Value(t.Context(), name); err != nil || got == nil || string(got) != want {
			t.Fatalf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	missing := func(name string) {
		t.Helper()
		if got, err := s.Value(t.Context(), name); !errors.Is(err, understudy.ErrNotFound) {
			t.Fatalf("%s: %q, %v", name, got, err)
		}
	}
	missing("walk/a")
	set("walk/a", []byte("1"))
	set("walk/a", []byte("2\x00\xff"))
	set("walk/b%", []byte{})
	set("walk", []byte("x"))
	set("walker", []byte("y"))
	set("walk_b", []byte("z"))
	is("walk/a", "2\x00\xff")
	is("walk/b%", "")
	for prefix, want := range map[string]string{"walk/": "map[walk/a:2\x00\xff walk/b%:]", "": "5", "walk/b%": "map[walk/b%:]",
		"walk%": "map[]", "z": "map[]", "Walk": "map[]"} {
		all, err := s.ReadValues(t.Context(), prefix)
		got := map[string]string{}
		for name, value := range all {
			got[name] = string(value)
		}
		if text := fmt.Sprint(got); err != nil || text != want && !(prefix == "" && len(got) == 5) {
			t.Fatalf("values %q: %s, %v, want %s", prefix, text, err, want)
		}
	}
	set("walk/a", nil)
	set("walk/a", nil)
	missing("walk/a")
	for name, value := range map[string][]byte{"": nil, strings.Repeat("n", 600): nil, "big": make([]byte, 64<<10+1)} {
		if err := s.SetValue(t.Context(), name, value); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("value %.10q: %v", name, err)
		}
	}
	set("big", make([]byte, 64<<10))
}

func jobsClosed(t *testing.T, s *desk) {
	n := s.add(1, understudy.Job{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"add": func() error { _, err := s.AddJobs(t.Context(), at(1)); return err },
		"claim": func() error {
			_, err := s.ClaimJobs(t.Context(), understudy.Claim{Worker: "w", Kinds: make([]understudy.ClaimKind, 1)})
			return err
		},
		"plan": func() error {
			_, _, err := s.PlanJob(t.Context(), at(1), at(1), at(1), understudy.Job{Kind: "work", MaxAttempts: 1})
			return err
		},
		"cancel": func() error { _, err := s.CancelJob(t.Context(), n, at(1)); return err },
		"beat":   func() error { _, err := s.RenewLeases(t.Context()); return err },
		"mark":   func() error { return s.MarkJob(t.Context(), n, 1, nil) },
		"end":    func() error { return s.tryEnd(understudy.Job{}, 1, understudy.JobDone) },
		"jobs":   func() error { _, err := s.Jobs.ReadJobs(t.Context(), understudy.JobFilter{}); return err },
		"counts": func() error { _, err := s.CountJobs(t.Context()); return err },
		"trim":   func() error { _, err := s.TrimJobs(t.Context(), 1, at(1)); return err },
		"value":  func() error { _, err := s.Value(t.Context(), "n"); return err },
		"set":    func() error { return s.SetValue(t.Context(), "n", nil) },
		"values": func() error { _, err := s.ReadValues(t.Context(), "n"); return err },
	} {
		if err := call(); !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
