// Any interleaving: workers claim, beat, mark, end and go silent, people cancel
// and replay, the clock goes on; held against a model that knows the rules in
// the simplest way.

package jobs_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/storetest"
)

// modelJob is what must be true of one job.
type modelJob struct {
	kind, key     string
	once          bool
	attempts      int
	weight        int64
	lane          understudy.Priority
	after, expiry time.Time

	state    understudy.JobState
	attempt  int
	fence    int64
	leaseEnd time.Time
	stop     bool
	mark     string
	begun    int // runs that ever began, counted or not
}

// hand is a lease a worker thinks it has.
type hand struct{ number, fence int64 }

// model is a store under test and what must be in it.
type model struct {
	*rapid.T
	s     storetest.Jobs
	now   time.Time
	jobs  map[int64]*modelJob
	hands []hand
	most  map[string]int
	ended map[int64]int // how often a job was archived
}

var modelKinds = []understudy.ClaimKind{{Name: "wide", MaxRunning: 100, Lease: 10 * time.Second},
	{Name: "narrow", MaxRunning: 2, Lease: 30 * time.Second}}

func TestAnyInterleavingOfLeases(t *testing.T) {
	storetest.FewerChecks(t, 25)
	s := openJobs(t)
	rapid.Check(t, func(rt *rapid.T) { interleave(rt, s) })
}

func interleave(rt *rapid.T, s storetest.Jobs) {
	m := &model{T: rt, s: s, now: storetest.Epoch, jobs: map[int64]*modelJob{}, most: map[string]int{}, ended: map[int64]int{}}
	for _, k := range modelKinds {
		m.most[k.Name] = k.MaxRunning
	}
	m.clear()
	rt.Repeat(map[string]func(*rapid.T){
		"add":    m.add,
		"claim":  m.claim,
		"beat":   m.beat,
		"mark":   m.mark,
		"end":    m.end,
		"cancel": m.cancel,
		"replay": m.replay,
		"wait": func(rt *rapid.T) {
			m.now = m.now.Add(time.Duration(rapid.IntRange(1, 40_000).Draw(rt, "ms")) * time.Millisecond)
		},
		"": m.compare,
	})
	m.drain()
}

// clear takes away what an earlier check has left in a store that is shared.
func (m *model) clear() {
	for {
		all, err := m.s.ReadJobs(m.Context(), understudy.JobFilter{Limit: understudy.MaxJobs})
		m.ok(err)
		if len(all) == 0 {
			return
		}
		m.now = m.now.Add(24 * time.Hour)
		_, err = m.s.ClaimJobs(m.Context(), understudy.Claim{Worker: "broom", Now: m.now, Kinds: modelKinds})
		m.ok(err)
		for _, j := range all {
			if j.State <= understudy.JobRunning {
				if _, err := m.s.CancelJob(m.Context(), j.Number, m.now); err != nil && !errors.Is(err, understudy.ErrInvalid) {
					m.Fatal(err)
				}
			}
		}
		_, err = m.s.TrimJobs(m.Context(), 0, m.now)
		m.ok(err)
	}
}

func (m *model) ok(err error) {
	if err != nil {
		m.Helper()
		m.Fatal(err)
	}
}

// live is the live job of a key.
func (m *model) live(kind, key string) int64 {
	for n, j := range m.jobs {
		if key != "" && j.kind == kind && j.key == key && j.state <= understudy.JobRunning {
			return n
		}
	}
	return 0
}

func (m *model) add(rt *rapid.T) {
	j := modelJob{
		kind: rapid.SampledFrom([]string{"wide", "wide", "narrow"}).Draw(rt, "kind"),
		key:  rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(rt, "key"),
		once: rapid.IntRange(0, 3).Draw(rt, "once") == 0, attempts: rapid.IntRange(1, 4).Draw(rt, "attempts"),
		weight: rapid.Int64Range(0, 100).Draw(rt, "weight"),
		lane:   understudy.Priority(rapid.IntRange(0, 2).Draw(rt, "lane")),
		after:  m.now.Add(time.Duration(max(rapid.IntRange(-20, 20).Draw(rt, "after"), 0)) * time.Second),
	}
	if rapid.IntRange(0, 5).Draw(rt, "expires") == 0 {
		j.expiry = m.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(rt, "expiry")) * time.Second)
	}
	m.put(&j, understudy.Job{Kind: j.kind, Key: j.key, AtMostOnce: j.once, MaxAttempts: j.attempts, Weight: j.weight, Priority: j.lane,
		RunAfter: j.after, ExpiresAt: j.expiry})
}

func (m *model) put(j *modelJob, add understudy.Job) {
	held := m.live(j.kind, j.key)
	n, err := m.s.AddJobs(m.Context(), m.now, add)
	m.ok(err)
	switch {
	case held != 0 && n[0] != held:
		m.Fatalf("job %d was added beside the live %d", n[0], held)
	case held != 0:
		return
	case m.jobs[n[0]] != nil:
		m.Fatalf("number %d was used twice", n[0])
	}
	j.state = understudy.JobWaiting
	m.jobs[n[0]] = j
}

// archive notes the end of a job; there is only one.
func (m *model) archive(n int64, state understudy.JobState) {
	m.jobs[n].state = state
	if m.ended[n]++; m.ended[n] > 1 {
		m.Fatalf("job %d ended %d times", n, m.ended[n])
	}
}

// sweep is what becomes of silence and of time.
func (m *model) sweep() {
	for n, j := range m.jobs {
		switch {
		case j.state == understudy.JobWaiting && !j.expiry.IsZero() && !j.expiry.After(m.now):
			m.archive(n, understudy.JobExpired)
		case j.state != understudy.JobRunning || !j.leaseEnd.Before(m.now):
		case j.stop:
			m.archive(n, understudy.JobCancelled)
		case j.once, j.attempt >= j.attempts:
			m.archive(n, understudy.JobFailed)
		default:
			j.state, j.after = understudy.JobWaiting, m.now
			if !j.expiry.IsZero() && !j.expiry.After(m.now) {
				m.archive(n, understudy.JobExpired)
			}
		}
	}
}

func (m *model) running(kind string) (n int) {
	for _, j := range m.jobs {
		if j.state == understudy.JobRunning && j.kind == kind {
			n++
		}
	}
	return n
}

// due is the job whose turn it is; 0: none.
func (m *model) due(lane understudy.Priority, weight int64) (turn int64) {
	for _, n := range slices.Sorted(maps.Keys(m.jobs)) {
		j := m.jobs[n]
		if j.state != understudy.JobWaiting || j.after.After(m.now) || j.lane > lane || j.weight > weight || m.running(j.kind) >= m.most[j.kind] {
			continue
		}
		if best := m.jobs[turn]; best == nil || j.lane < best.lane || j.lane == best.lane && j.after.Before(best.after) {
			turn = n
		}
	}
	return turn
}

func (m *model) claim(rt *rapid.T) {
	m.claimAs(fmt.Sprint("worker ", rapid.IntRange(0, 3).Draw(rt, "worker")), rapid.IntRange(1, 3).Draw(rt, "limit"),
		understudy.Priority(rapid.SampledFrom([]int{0, 1, 2, 2}).Draw(rt, "lane")), rapid.SampledFrom([]int64{50, 100, 100}).Draw(rt, "weight"))
}

func (m *model) claimAs(worker string, limit int, lane understudy.Priority, weight int64) int {
	got, err := m.s.ClaimJobs(m.Context(), understudy.Claim{Worker: worker, Now: m.now, Kinds: modelKinds, Limit: limit, Priority: lane,
		Weight: weight})
	m.ok(err)
	m.sweep()
	for i := range limit {
		turn := m.due(lane, weight)
		if turn == 0 {
			if len(got.Jobs) != i {
				m.Fatalf("claimed %+v after %d, and nothing may begin", got.Jobs[i], i)
			}
			break
		}
		if i >= len(got.Jobs) || got.Jobs[i].Number != turn {
			m.Fatalf("claimed %+v, and it is the turn of %d", got.Jobs[min(i, len(got.Jobs)):], turn)
		}
		j, claimed := m.jobs[turn], got.Jobs[i]
		j.state, j.attempt, j.stop, j.begun = understudy.JobRunning, j.attempt+1, false, j.begun+1
		for _, k := range modelKinds {
			if k.Name == j.kind {
				j.leaseEnd = m.now.Add(k.Lease)
			}
		}
		if claimed.Fence <= j.fence {
			m.Fatalf("job %d: fence %d after %d", turn, claimed.Fence, j.fence)
		}
		j.fence = claimed.Fence
		m.hands = append(m.hands, hand{turn, claimed.Fence})
		if j.once && j.begun > 1 {
			m.Fatalf("job %d is at most once and begins for the %d. time", turn, j.begun)
		}
		if n := m.running(j.kind); n > m.most[j.kind] {
			m.Fatalf("%d of %s run at once", n, j.kind)
		}
	}
	return len(got.Jobs)
}

// pick draws a lease that is or was held, and says whether it holds.
func (m *model) pick(rt *rapid.T) (h hand, holds bool) {
	if len(m.hands) == 0 {
		rt.Skip("nobody has anything")
	}
	h = m.hands[len(m.hands)-1-rapid.IntRange(0, min(len(m.hands), 6)-1).Draw(rt, "whose")]
	j := m.jobs[h.number]
	return h, j.state == understudy.JobRunning && j.fence == h.fence
}

func (m *model) lost(what string, h hand, holds bool, err error) {
	if holds && err != nil || !holds && !errors.Is(err, understudy.ErrLeaseLost) {
		m.Fatalf("%s of job %d under fence %d, which holds: %v: %v", what, h.number, h.fence, holds, err)
	}
}

func (m *model) beat(rt *rapid.T) {
	h, holds := m.pick(rt)
	j, end := m.jobs[h.number], m.now.Add(15*time.Second)
	got, err := m.s.RenewLeases(m.Context(), understudy.Heartbeat{Number: h.number, Fence: h.fence, LeaseEnd: end})
	m.ok(err)
	if got[0].Lost == holds || holds && got[0].StopRequested != j.stop {
		m.Fatalf("beat of job %d: %+v, holds: %v, stop: %v", h.number, got[0], holds, j.stop)
	}
	if holds {
		j.leaseEnd = end
	}
}

func (m *model) mark(rt *rapid.T) {
	h, holds := m.pick(rt)
	mark := rapid.StringN(0, 4, -1).Draw(rt, "mark")
	m.lost("mark", h, holds, m.s.MarkJob(m.Context(), h.number, h.fence, []byte(mark)))
	if holds {
		m.jobs[h.number].mark = mark
	}
}

func (m *model) end(rt *rapid.T) {
	h, holds := m.pick(rt)
	m.endAs(h, holds, rapid.SampledFrom([]understudy.JobState{understudy.JobDone, understudy.JobDone, understudy.JobWaiting,
		understudy.JobFailed, understudy.JobCancelled}).Draw(rt, "as"),
		rapid.Bool().Draw(rt, "counted"), time.Duration(rapid.IntRange(0, 20).Draw(rt, "again"))*time.Second)
}

func (m *model) endAs(h hand, holds bool, state understudy.JobState, counted bool, wait time.Duration) {
	j := m.jobs[h.number]
	if state == understudy.JobWaiting && (j.once || j.attempt >= j.attempts && counted) {
		state = understudy.JobFailed // what a runner does then
	}
	got, err := m.s.EndJob(m.Context(), understudy.JobResult{Number: h.number, Fence: h.fence, At: m.now, State: state,
		RunAfter: m.now.Add(wait), Uncounted: !counted})
	m.lost("end", h, holds, err)
	if !holds {
		return
	}
	if state == understudy.JobWaiting && j.stop {
		state = understudy.JobCancelled
	}
	if got != state {
		m.Fatalf("job %d ended as %v, want %v", h.number, got, state)
	}
	if !counted {
		j.attempt--
	}
	if state != understudy.JobWaiting {
		m.archive(h.number, state)
		return
	}
	j.state, j.after = state, m.now.Add(wait)
}

// any draws a job.
func (m *model) any(rt *rapid.T) int64 {
	if len(m.jobs) == 0 {
		rt.Skip("there are no jobs")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.jobs))).Draw(rt, "job")
}

func (m *model) cancel(rt *rapid.T) {
	n := m.any(rt)
	j := m.jobs[n]
	_, err := m.s.CancelJob(m.Context(), n, m.now)
	if over := j.state > understudy.JobRunning; over != errors.Is(err, understudy.ErrInvalid) || !over && err != nil {
		m.Fatalf("cancel job %d, which is %v: %v", n, j.state, err)
	}
	switch j.state {
	case understudy.JobWaiting:
		m.archive(n, understudy.JobCancelled)
	case understudy.JobRunning:
		j.stop = true
	}
}

// replay makes a new job of an archived one, as a runner does.
func (m *model) replay(rt *rapid.T) {
	n := m.any(rt)
	j := m.jobs[n]
	if j.state <= understudy.JobRunning {
		rt.Skip("it is live")
	}
	again := modelJob{kind: j.kind, key: j.key, once: j.once, attempts: j.attempts, weight: j.weight, lane: j.lane, after: m.now, mark: j.mark}
	m.put(&again, understudy.Job{Kind: j.kind, Key: j.key, AtMostOnce: j.once, MaxAttempts: j.attempts, Weight: j.weight, Priority: j.lane,
		Checkpoint: []byte(j.mark)})
}

// compare looks at everything after each step.
func (m *model) compare(*rapid.T) {
	all, err := m.s.ReadJobs(m.Context(), understudy.JobFilter{Limit: understudy.MaxJobs})
	m.ok(err)
	if len(all) != min(len(m.jobs), understudy.MaxJobs) {
		m.Fatalf("%d jobs, want %d", len(all), len(m.jobs))
	}
	for _, got := range all {
		j := m.jobs[got.Number]
		checktest.MustTrue(m, j != nil, "job: j is nil; got %+v", got)
		checktest.MustEqual(m, got.State, j.state, "job: got.State")
		checktest.MustEqual(m, got.Attempt, j.attempt, "job: got.Attempt")
		checktest.MustEqual(m, got.Fence, j.fence, "job: got.Fence")
		checktest.MustEqual(m, string(got.Checkpoint), j.mark, "job: string(got.Checkpoint)")
		checktest.MustTrue(m, !(j.state == understudy.JobRunning && (!got.LeaseEnd.Equal(j.leaseEnd) || got.StopRequested != j.stop)),
			"job: j.state is %v", j.state)
		checktest.MustTrue(m, !(j.state == understudy.JobWaiting && !got.RunAfter.Equal(j.after)),
			"job: j.state == understudy.JobWaiting && !got.RunAfter.Equal(j.after); j.state is %v", j.state)
	}
}

// drain lets one worker do all that is left: every job comes to an end, and
// what is at least once and neither failed, expired nor cancelled was begun.
func (m *model) drain() {
	m.now = m.now.Add(time.Hour)
	for range 10 * (len(m.jobs) + 1) {
		n := m.claimAs("the last", 1, understudy.PriorityBulk, 100)
		if n == 0 {
			break
		}
		h := m.hands[len(m.hands)-1]
		m.endAs(h, true, understudy.JobDone, true, 0)
	}
	m.compare(m.T)
	for n, j := range m.jobs {
		if j.state <= understudy.JobRunning || m.ended[n] != 1 {
			m.Fatalf("job %d was lost: %+v", n, j)
		}
		if j.state == understudy.JobDone && j.begun == 0 {
			m.Fatalf("job %d is done and was never begun", n)
		}
	}
}
