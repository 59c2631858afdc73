// The rules of jobs: leases, fences, keys, turns, the archive.

package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
)

// Jobs is what every store can do with jobs and values.
type Jobs interface {
	AddJobs(ctx context.Context, now time.Time, jobs ...understudy.Job) ([]int64, error)
	PlanJob(ctx context.Context, now, since, slot time.Time, job understudy.Job) (number int64, last time.Time, err error)
	ClaimJobs(ctx context.Context, want understudy.Claim) (understudy.Claimed, error)
	CancelJob(ctx context.Context, number int64, now time.Time) (understudy.Job, error)
	RenewLeases(ctx context.Context, beats ...understudy.Heartbeat) ([]understudy.HeartbeatReply, error)
	MarkJob(ctx context.Context, number, fence int64, mark []byte) error
	EndJob(ctx context.Context, e understudy.JobResult) (understudy.JobState, error)
	ReadJobs(ctx context.Context, f understudy.JobFilter) ([]understudy.Job, error)
	CountJobs(ctx context.Context) (understudy.JobCounts, error)
	TrimJobs(ctx context.Context, keep int, before time.Time) (removed int, err error)
	Value(ctx context.Context, name string) ([]byte, error)
	SetValue(ctx context.Context, name string, value []byte) error
	ReadValues(ctx context.Context, prefix string) (map[string][]byte, error)
	Close() error
}

// RunJobs runs the suite of jobs and values; open is as for Run.
func RunJobs(t *testing.T, open func(t testing.TB) Jobs) {
	for _, rule := range []struct {
		name string
		test func(t *testing.T, s *desk)
	}{
		{"a job comes back as it was", jobComesBack},
		{"what cannot be kept is refused", jobRefused},
		{"one live job a key", oneLiveKey},
		{"turns: lane, then time, then number", turns},
		{"a kind's places are counted", places},
		{"heavy jobs are left when light ones are wanted", heavyLeft},
		{"fences", fences},
		{"lost leases", lostLeases},
		{"leases of the dead", leasesOfTheDead},
		{"ends", ends},
		{"cancelling", cancelling},
		{"expiring", expiring},
		{"what comes next", comesNext},
		{"planning", planning},
		{"filters", filters},
		{"the archive is short", archiveShort},
		{"values", values},
		{"closed", jobsClosed},
	} {
		t.Run(strings.ReplaceAll(rule.name, " ", "-"), func(t *testing.T) {
			rule.test(t, &desk{T: t, Jobs: open(t)})
		})
	}
}

// desk is a store under test, with the helpers in which the rules are written.
type desk struct {
	*testing.T
	Jobs
}

func (s *desk) add(second int, j understudy.Job) int64 {
	s.Helper()
	if j.Kind == "" {
		j.Kind = "work"
	}
	if j.MaxAttempts == 0 {
		j.MaxAttempts = 3
	}
	n, err := s.AddJobs(s.Context(), at(second), j)
	if err != nil {
		s.Fatal(err)
	}
	return n[0]
}

// claim asks for up to limit jobs of the kinds "work", a minute each.
func (s *desk) claim(second, limit int, change ...func(*understudy.Claim)) understudy.Claimed {
	s.Helper()
	want := understudy.Claim{Worker: "w", Now: at(second), Limit: limit, Priority: understudy.PriorityBulk, Weight: 1 << 40,
		Kinds: []understudy.ClaimKind{{Name: "work", MaxRunning: 100, Lease: time.Minute}}}
	for _, f := range change {
		f(&want)
	}
	got, err := s.ClaimJobs(s.Context(), want)
	if err != nil {
		s.Fatal(err)
	}
	return got
}

// take claims exactly the jobs with these numbers.
func (s *desk) take(second int, want ...int64) []understudy.Job {
	s.Helper()
	got := s.claim(second, len(want)+1).Jobs
	s.numbers(got, want...)
	return got
}

func (s *desk) numbers(got []understudy.Job, want ...int64) {
	s.Helper()
	var all []int64
	for _, j := range got {
		all = append(all, j.Number)
	}
	if !slices.Equal(all, want) {
		s.Fatalf("jobs %v, want %v", all, want)
	}
}

func (s *desk) job(number int64) understudy.Job {
	s.Helper()
	got, err := s.Jobs.ReadJobs(s.Context(), understudy.JobFilter{Number: number})
	if err != nil || len(got) != 1 {
		s.Fatalf("job %d: %v, %v", number, got, err)
	}
	return got[0]
}

func (s *desk) state(number int64, want understudy.JobState) understudy.Job {
	s.Helper()
	j := s.job(number)
	if j.State != want {
		s.Fatalf("job %d is %v, want %v: %+v", number, j.State, want, j)
	}
	return j
}

func (s *desk) end(j understudy.Job, second int, state understudy.JobState, change ...func(*understudy.JobResult)) {
	s.Helper()
	if err := s.tryEnd(j, second, state, change...); err != nil {
		s.Fatal(err)
	}
}

func (s *desk) tryEnd(j understudy.Job, second int, state understudy.JobState, change ...func(*understudy.JobResult)) error {
	e := understudy.JobResult{Number: j.Number, Fence: j.Fence, At: at(second), State: state, RunAfter: at(second)}
	for _, f := range change {
		f(&e)
	}
	_, err := s.EndJob(s.Context(), e)
	return err
}

func sameJob(a, b understudy.Job) bool {
	payload, mark := bytes.Equal(a.Payload, b.Payload), bytes.Equal(a.Checkpoint, b.Checkpoint)
	a.Payload, a.Checkpoint, b.Payload, b.Checkpoint = nil, nil, nil, nil
	return payload && mark && fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
}

func jobComesBack(t *testing.T, s *desk) {
	want := understudy.Job{Kind: "work", Key: "k/é", Payload: []byte("{\"a\":\"\\u0000\"}\x00\xff"),
		Priority: understudy.PriorityBulk, AtMostOnce: true,
		MaxAttempts: 7, Weight: 5 << 20,
		RunAfter: at(10).Add(7), ExpiresAt: at(1000).Add(3), Checkpoint: []byte("from here")}
	n := s.add(1, want)
	want.Number, want.State, want.Created = n, understudy.JobWaiting, at(1)
	if got := s.job(n); !sameJob(got, want) {
		t.Fatalf("\n got %+v\nwant %+v", got, want)
	}
	s.take(10)
	got := s.take(11, n)[0]
	want.State, want.Attempt, want.Fence, want.Worker, want.Started, want.LeaseEnd = understudy.JobRunning, 1, 1, "w", at(11), at(71)
	if !sameJob(got, want) || !sameJob(s.job(n), want) {
		t.Fatalf("\n got %+v\nwant %+v", got, want)
	}
	bare := s.job(s.add(5, understudy.Job{}))
	if !bare.RunAfter.Equal(at(5)) || bare.Payload != nil || bare.Checkpoint != nil || !bare.ExpiresAt.IsZero() || !bare.Ended.IsZero() {
		t.Fatalf("%+v", bare)
	}
}

func jobRefused(t *testing.T, s *desk) {
	good := understudy.Job{Kind: "work", MaxAttempts: 1}
	for name, spoil := range map[string]func(j *understudy.Job){
		"no kind":       func(j *understudy.Job) { j.Kind = "" },
		"a long kind":   func(j *understudy.Job) { j.Kind = strings.Repeat("x", 600) },
		"a long key":    func(j *understudy.Job) { j.Key = strings.Repeat("x", 600) },
		"a big payload": func(j *understudy.Job) { j.Payload = make([]byte, understudy.MaxJobPayload+1) },
		"a big mark":    func(j *understudy.Job) { j.Checkpoint = make([]byte, understudy.MaxJobPayload+1) },
		"no attempts":   func(j *understudy.Job) { j.MaxAttempts = 0 },
		"no such lane":  func(j *understudy.Job) { j.Priority = understudy.Priority(understudy.PriorityCount) },
		"less than 0":   func(j *understudy.Job) { j.Weight = -1 },
	} {
		bad := good
		spoil(&bad)
		if _, err := s.AddJobs(t.Context(), at(1), good, bad); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.AddJobs(t.Context(), at(1), slices.Repeat([]understudy.Job{good}, 1001)...); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("too many: %v", err)
	}
	if _, err := s.ClaimJobs(t.Context(), understudy.Claim{Worker: "w", Now: at(1)}); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("a claim of nothing: %v", err)
	}
	if n, err := s.CountJobs(t.Context()); err != nil || n != (understudy.JobCounts{}) {
		t.Errorf("%+v, %v", n, err)
	}
}

func oneLiveKey(t *testing.T, s *desk) {
	a := s.add(1, understudy.Job{Key: "k"})
	if b := s.add(2, understudy.Job{Key: "k", Payload: []byte("other")}); b != a {
		t.Fatalf("a second job %d beside %d", b, a)
	}
	if b := s.add(1, understudy.Job{Kind: "other", Key: "k"}); b == a {
		t.Fatal("kinds share keys")
	}
	if x, y := s.add(1, understudy.Job{RunAfter: at(500)}), s.add(1, understudy.Job{RunAfter: at(500)}); x == y {
		t.Fatal("jobs without a key are one")
	}
	j := s.take(3, a)[0]
	if b := s.add(4, understudy.Job{Key: "k"}); b != a {
		t.Fatalf("a second job %d beside the running %d", b, a)
	}
	hurried := s.add(4, understudy.Job{Key: "k", Hurry: true})
	s.end(j, 5, understudy.JobWaiting, func(e *understudy.JobResult) { e.RunAfter = at(500) })
	s.add(5, understudy.Job{Key: "k"})
	s.take(5)
	s.add(5, understudy.Job{Key: "k", Hurry: true, RunAfter: at(600)})
	if again := s.add(6, understudy.Job{Key: "k", Hurry: true}); again != a || hurried != a {
		t.Fatalf("jobs %d and %d, want the waiting %d", again, hurried, a)
	}
	s.end(s.take(6, a)[0], 6, understudy.JobDone)
	b := s.add(6, understudy.Job{Key: "k"})
	if b == a {
		t.Fatal("an archived job keeps its key")
	}
	s.end(s.take(7, b)[0], 8, understudy.JobFailed)
	// Twice in one call is one job too.
	n, err := s.AddJobs(t.Context(), at(9), understudy.Job{Kind: "work", MaxAttempts: 1, Key: "k"},
		understudy.Job{Kind: "work", MaxAttempts: 1, Key: "k"})
	if err != nil || n[0] != n[1] || n[0] == b {
		t.Fatalf("%v, %v", n, err)
	}
}

func turns(t *testing.T, s *desk) {
	bulk := s.add(1, understudy.Job{Priority: understudy.PriorityBulk})
	late := s.add(1, understudy.Job{RunAfter: at(9)})
	early := s.add(2, understudy.Job{RunAfter: at(8)})
	steady := s.add(3, understudy.Job{Priority: understudy.PrioritySteady})
	second := s.add(3, understudy.Job{Priority: understudy.PrioritySteady})
	s.add(1, understudy.Job{RunAfter: at(100)})
	s.add(1, understudy.Job{Kind: "unknown"})
	got := s.claim(10, 3, func(c *understudy.Claim) { c.Priority = understudy.PrioritySteady })
	s.numbers(got.Jobs, early, late, steady)
	s.numbers(s.claim(10, 5, func(c *understudy.Claim) { c.Priority = understudy.PrioritySoon }).Jobs)
	s.take(10, second, bulk)
}

func places(t *testing.T, s *desk) {
	for range 3 {
		s.add(1, understudy.Job{})
		s.add(1, understudy.Job{Kind: "other"})
	}
	two := func(c *understudy.Claim) {
		c.Kinds = []understudy.ClaimKind{{Name: "work", MaxRunning: 2, Lease: time.Minute}, {Name: "other", MaxRunning: 1, Lease: time.Second}}
	}
	got := s.claim(2, 10, two)
	s.numbers(got.Jobs, 1, 2, 3)
	if !got.Blocked || !got.Jobs[0].LeaseEnd.Equal(at(62)) || !got.Jobs[1].LeaseEnd.Equal(at(3)) {
		t.Fatalf("%+v", got)
	}
	// Another worker is bound by the same count.
	s.numbers(s.claim(2, 10, two, func(c *understudy.Claim) { c.Worker = "another" }).Jobs)
	s.end(got.Jobs[0], 2, understudy.JobDone)
	s.numbers(s.claim(2, 10, two).Jobs, 5)
}

func heavyLeft(t *testing.T, s *desk) {
	heavy, light := s.add(1, understudy.Job{Weight: 100}), s.add(2, understudy.Job{Weight: 10})
	got := s.claim(3, 5, func(c *understudy.Claim) { c.Weight = 10 })
	s.numbers(got.Jobs, light)
	if !got.Blocked {
		t.Error("nothing is said of the heavy one")
	}
	s.take(3, heavy)
}

func fences(t *testing.T, s *desk) {
	n := s.add(1, understudy.Job{MaxAttempts: 9})
	old := s.take(1, n)[0]
	// Nothing is heard of it; another has it.
	fresh := s.take(100, n)[0]
	if fresh.Fence <= old.Fence || fresh.Attempt != 2 {
		t.Fatalf("%+v after %+v", fresh, old)
	}
	for _, state := range []understudy.JobState{understudy.JobDone, understudy.JobFailed, understudy.JobWaiting, understudy.JobCancelled} {
		if err := s.tryEnd(old, 101, state); !errors.Is(err, understudy.ErrLeaseLost) {
			t.Fatalf("a late end as %v: %v", state, err)
		}
	}
	if err := s.MarkJob(t.Context(), n, old.Fence, []byte("x")); !errors.Is(err, understudy.ErrLeaseLost) {
		t.Fatalf("a late mark: %v", err)
	}
	beaten, err := s.RenewLeases(t.Context(), understudy.Heartbeat{Number: n, Fence: old.Fence, LeaseEnd: at(999),
		Progress: understudy.Progress{Done: 5}},
		understudy.Heartbeat{Number: n, Fence: fresh.Fence, LeaseEnd: at(200), Progress: understudy.Progress{Done: 1, Total: 2, Note: "half"}})
	if err != nil || !beaten[0].Lost || beaten[1].Lost || beaten[1].StopRequested {
		t.Fatalf("%+v, %v", beaten, err)
	}
	if err := s.MarkJob(t.Context(), n, fresh.Fence, []byte("here")); err != nil {
		t.Fatal(err)
	}
	if j := s.job(n); !j.LeaseEnd.Equal(at(200)) || j.Progress != (understudy.Progress{Done: 1, Total: 2, Note: "half"}) ||
		string(j.Checkpoint) != "here" {
		t.Fatalf("%+v", j)
	}
	s.end(fresh, 150, understudy.JobDone)
	if err := s.tryEnd(fresh, 151, understudy.JobFailed); !errors.Is(err, understudy.ErrLeaseLost) {
		t.Fatalf("an end after the end: %v", err)
	}
	if err := s.MarkJob(t.Context(), n, fresh.Fence, make([]byte, understudy.MaxJobPayload+1)); !errors.Is(err, understudy.ErrInvalid) {
		t.Fatalf("a mark too long: %v", err)
	}
	s.state(n, understudy.JobDone)
	if err := s.tryEnd(understudy.Job{Number: 12345, Fence: 1}, 1, understudy.JobDone); !errors.Is(err, understudy.ErrLeaseLost) {
		t.Fatalf("the end of a job nobody knows: %v", err)
	}
	if err := s.tryEnd(fresh, 1, understudy.JobRunning); !errors.Is(err, understudy.ErrInvalid) {
		t.Fatalf("an end that is none: %v", err)
	}
}
