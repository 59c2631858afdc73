// Workers of other programs, which are killed together with the processes that give them jobs.

package nodes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// TestWorkersAndNodesAreKilled: workers die at random moments, and of five kills one is of a process that gives them jobs. Each job that was
// accepted ends. A job that runs at most once is never begun twice, and no lease is given to two workers.
func TestWorkersAndNodesAreKilled(t *testing.T) {
	t.Parallel()
	kills := sample.Count(20, 1000)
	g := &group{records: "10", more: "jobs: {keep: 1000000, kinds: {mail: {attempts: 1000}, charge: {once: true}}}\n"}
	g.start(t, 2, databases.Database(t))
	random := rig.Random(t)
	c := &crew{t: t, accepted: map[string]bool{}, begun: map[string]int{}, leases: map[string]bool{}, ended: map[string]bool{}}
	for _, s := range g.nodes {
		c.places = append(c.places, &place{server: s})
	}
	adding, stop := context.WithCancel(t.Context())
	var desk sync.WaitGroup
	t.Cleanup(func() { stop(); desk.Wait() })
	seed := random.Uint64()
	desk.Go(func() { c.enqueue(adding, rand.New(rand.NewPCG(seed, 1))) })
	workers := make([]func(), 8)
	for i := range workers {
		workers[i] = c.hire(random.Uint64())
	}
	for i := 0; i < kills && !t.Failed(); i++ {
		rig.Pause(t.Context(), time.Duration(random.IntN(200))*time.Millisecond)
		if i%5 == 4 {
			victim := random.IntN(len(g.nodes))
			c.places[victim].set(nil).Kill()
			g.restart(t, c.places[victim], victim)
			continue
		}
		victim := random.IntN(len(workers))
		workers[victim]()
		workers[victim] = c.hire(random.Uint64())
	}
	stop()
	desk.Wait()
	states := c.awaitEnds(random)
	for _, kill := range workers {
		kill()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	again := 0
	for job, times := range c.begun {
		again += times - 1
		checktest.True(t, times == 1 || job[0] != 'c', "%s runs at most once and was begun %d times", job, times)
	}
	for _, state := range []string{"mail done", "charge done"} {
		checktest.True(t, states[state] > kills/10, "too little was seen: %v", states)
	}
	t.Logf("%d kills: %v of %d accepted jobs, %d runs repeated", kills, states, len(c.accepted), again)
}

// crew are workers that run jobs through random processes.
type crew struct {
	t      *testing.T
	places []*place

	mu       sync.Mutex
	accepted map[string]bool // the jobs that a process has accepted, as KIND/ID
	begun    map[string]int  // how many workers have begun each job
	leases   map[string]bool // the jobs and fences that were begun
	ended    map[string]bool // the jobs whose work has ended
}

// send sends a request to a random process. It returns false if the process ends meanwhile, or cannot use the database.
func (c *crew) send(r *rand.Rand, method, path, body string) (rig.Reply, bool) {
	p := c.places[r.IntN(len(c.places))]
	s := p.begin()
	if s == nil {
		return rig.Reply{}, false
	}
	defer p.busy.Done()
	got, err := rig.Ask(method, rig.Account+":"+rig.DemoToken, s.URL("viewer")+"/-/jobs/"+path, body, "Content-Type", "application/json")
	if err != nil || got.Status == http.StatusServiceUnavailable {
		checktest.True(c.t, err == nil || !p.has(s), "%s %s: %v", method, path, err)
		return got, false
	}
	return got, true
}

// enqueue adds jobs. Each is sent again until a process accepts it.
func (c *crew) enqueue(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		job := fmt.Sprintf("%s/%08x-0000-4000-8000-%012x", []string{"mail", "mail", "charge"}[r.IntN(3)], r.Uint32(), r.Uint64()>>16)
		for ctx.Err() == nil {
			if got, ok := c.send(r, http.MethodPut, job, `{"data": {}}`); ok {
				checktest.Equal(c.t, got.Status, http.StatusOK, "status of an accepted job (%.200s)", got.Body)
				c.mu.Lock()
				c.accepted[job] = true
				c.mu.Unlock()
				break
			}
		}
		rig.Pause(ctx, time.Duration(r.IntN(20))*time.Millisecond)
	}
}

// hire starts a worker. kill ends it at once, in the middle of whatever it does, and nobody is told.
func (c *crew) hire(seed uint64) (kill func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for r := rand.New(rand.NewPCG(seed, 0)); ctx.Err() == nil; {
			c.work(ctx, r)
		}
	})
	c.t.Cleanup(func() { cancel(); work.Wait() })
	return cancel
}

// work waits for a job and runs it.
func (c *crew) work(ctx context.Context, r *rand.Rand) {
	got, ok := c.send(r, http.MethodPost, "claim", `{"kinds": ["mail", "charge"], "wait": "1s", "lease": "2s"}`)
	if !ok || got.Status == http.StatusNoContent || ctx.Err() != nil {
		return
	}
	var job struct {
		Kind, Key string
		Fence     int64
	}
	err := json.Unmarshal(got.Body, &job)
	checktest.True(c.t, err == nil && job.Key != "", "a claim answers %d %.200s", got.Status, got.Body)
	name := job.Kind + "/" + job.Key
	lease := fmt.Sprintf("%s %d", name, job.Fence)
	c.mu.Lock()
	checktest.True(c.t, !c.leases[lease], "two workers have %s", lease)
	c.leases[lease] = true
	c.begun[name]++
	c.mu.Unlock()
	for range r.IntN(3) {
		if rig.Pause(ctx, time.Duration(r.IntN(30))*time.Millisecond); ctx.Err() != nil {
			return
		}
		if got, ok := c.send(r, http.MethodPost, name+"/heartbeat", fmt.Sprintf(`{"fence": %d, "lease": "2s"}`, job.Fence)); ok && got.Status == http.StatusConflict {
			return // another worker has it
		}
	}
	result := "done"
	if job.Kind == "mail" && r.IntN(10) == 0 {
		result = `retry", "after": "1s`
	} else {
		c.mu.Lock()
		c.ended[name] = true
		c.mu.Unlock()
	}
	for ctx.Err() == nil {
		got, ok := c.send(r, http.MethodPost, name+"/finish", fmt.Sprintf(`{"fence": %d, "result": "%s"}`, job.Fence, result))
		if ok {
			checktest.True(c.t, got.Status == http.StatusOK || got.Status == http.StatusConflict, "the end of a run answers %d %.200s", got.Status, got.Body)
			return
		}
	}
}

// awaitEnds waits until all accepted jobs have ended. It counts their kinds and states.
func (c *crew) awaitEnds(r *rand.Rand) map[string]int {
	states, left := map[string]int{}, maps.Clone(c.accepted)
	rig.AwaitFor(c.t, 2*rig.Patience, func() string {
		waiting := ""
		for name := range left {
			got, ok := c.send(r, http.MethodPut, name, `{"data": {}}`)
			if !ok {
				continue
			}
			job := parse[struct{ Kind, State string }](c.t, got)
			switch {
			case job.State == "done":
				c.mu.Lock()
				checktest.True(c.t, c.ended[name], "%s is done, and no worker has done it", name)
				c.mu.Unlock()
			case job.State != "failed":
				waiting = fmt.Sprintf("%d jobs have not ended; %s is %s", len(left), name, job.State)
				continue
			default:
				checktest.Equal(c.t, job.Kind, "charge", "kind of the failed job %s (%.200s)", name, got.Body)
			}
			states[job.Kind+" "+job.State]++
			delete(left, name)
		}
		return waiting
	})
	return states
}
