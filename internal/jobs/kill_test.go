// kill -9 of workers at random points: at least once ends, at most once is not
// begun twice, places are not exceeded, nothing is stuck.

package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"understudy"
	"understudy/internal/jobs"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/kit/pidfile"
)

const (
	killedLease   = 5 * time.Second // a process that is alive is heard of, also on a machine with much to do
	killedRun     = 20 * time.Millisecond
	killedWorkers = 3 // processes
	narrowPlaces  = 2
)

// openLines opens the file of lines in which the workers say what they do, so that what really happened is known whatever the store says.
func openLines(folder string) (say func(format string, args ...any) error) {
	lines, err := os.OpenFile(filepath.Join(folder, "lines"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return func(format string, args ...any) error {
		if err != nil {
			return err
		}
		_, err := fmt.Fprintf(lines, format+"\n", args...)
		return err
	}
}

// killedKinds are what every worker process does: each run says when it begins and ends.
func killedKinds(folder string) []jobs.Kind {
	say := openLines(folder)
	run := func(ctx context.Context, r *jobs.Run) error {
		j := r.Job()
		if err := say("begin %s %d %d", j.Kind, j.Number, j.Fence); err != nil {
			return err
		}
		for i := range rand.IntN(4) {
			r.SetProgress(int64(i), 4, "")
			if err := r.SetMark(ctx, fmt.Appendf(nil, "%d %d", j.Fence, i)); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(rand.IntN(4000)) * time.Microsecond):
			}
		}
		if rand.IntN(10) == 0 {
			return errors.New("it went wrong")
		}
		return say("end %s %d %d", j.Kind, j.Number, j.Fence)
	}
	narrow := func(ctx context.Context, r *jobs.Run) error {
		// A lock of the file system goes with its process: as many as hold one
		// are really at work.
		for i := range narrowPlaces {
			f, err := os.OpenFile(filepath.Join(folder, fmt.Sprint("place", i)), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				return err
			}
			defer f.Close()
			if held, err := pidfile.TryLock(f); !held && err == nil {
				return run(ctx, r)
			}
		}
		return errors.Join(say("exceeded %s %d %d", r.Job().Kind, r.Job().Number, r.Job().Fence), errors.New("no place"))
	}
	quick := 20 * time.Millisecond
	return []jobs.Kind{
		{Name: "least", Run: run, Attempts: 1000, Backoff: quick},
		{Name: "added", Run: run, Attempts: 1000, Backoff: quick},
		{Name: "most", Run: run, Once: true},
		{Name: "narrow", Run: narrow, Attempts: 1000, Backoff: quick, Concurrency: narrowPlaces},
		{Name: "heavy", Run: run, Attempts: 1000, Backoff: quick, Weight: 100 << 20},
		{Name: "periodic", Run: run, Attempts: 1000, Backoff: quick, Schedule: jobs.Every(100 * time.Millisecond)},
	}
}

// TestWorkerChild is a worker process: it does nothing unless TestKillWorker
// starts it.
func TestWorkerChild(t *testing.T) {
	folder := os.Getenv("UNDERSTUDY_WORKER_CHILD")
	if folder == "" {
		return
	}
	db, err := store.Open(t.Context(), store.Options{Path: os.Getenv("UNDERSTUDY_WORKER_STORE")})
	if err != nil {
		t.Fatal(err)
	}
	r, err := jobs.New(jobs.Options{Store: db.Jobs, Kinds: killedKinds(folder), Lease: killedLease, Keep: 1_000_000,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	go func() { // a job whose number is in the file was promised, however soon the process is killed after that
		for say := openLines(folder); ; pause(rand.N(100 * time.Millisecond)) {
			if _, err := os.Stat(filepath.Join(folder, "enough")); err == nil {
				return
			}
			if numbers, err := r.Enqueue(t.Context(), understudy.Job{Kind: "added"}); err == nil {
				_ = say("added added %d 0", numbers[0])
			}
		}
	}()
	t.Fatal(r.Run(t.Context())) // it is only ever killed
}

// crew are the worker processes.
type crew struct {
	*testing.T
	folder string
	store  string // the path or the data source name
	hands  [killedWorkers]*exec.Cmd
	said   [killedWorkers]*bytes.Buffer
}

func (c *crew) hire(i int) {
	c.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWorkerChild$")
	cmd.Env = append(os.Environ(), "UNDERSTUDY_WORKER_CHILD="+c.folder, "UNDERSTUDY_WORKER_STORE="+c.store)
	c.said[i] = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = c.said[i], c.said[i]
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.hands[i] = cmd
}

func (c *crew) kill(i int) {
	c.Helper()
	if c.hands[i] == nil {
		return
	}
	_ = c.hands[i].Process.Kill()
	var exit *exec.ExitError
	if err := c.hands[i].Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		c.Errorf("a worker ended by itself: %v\n%s", err, c.said[i])
	}
	c.hands[i] = nil
	for line := range strings.Lines(c.said[i].String()) {
		if !strings.Contains(line, "it went wrong") && !strings.Contains(line, "leases were lost") {
			c.Log(strings.TrimSpace(line))
		}
	}
}

func TestKillWorker(t *testing.T) {
	kills := sample.CountFrom("PROVE_KILLS", 10)
	for name, path := range map[string]func(testing.TB) string{"SQLite": storetest.File, "PostgreSQL": storetest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killWorkers(t, kills, path(t))
		})
	}
}

func killWorkers(t *testing.T, kills int, path string) {
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("PROVE_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("%d kills, PROVE_SEED=%d", kills, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &crew{T: t, folder: t.TempDir(), store: path}
	db, err := store.Open(t.Context(), store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// The runner that enqueues does no work itself.
	desk, err := jobs.New(jobs.Options{Store: db.Jobs, Kinds: killedKinds(c.folder)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range killedWorkers {
		c.hire(i)
	}
	defer func() {
		for i := range killedWorkers {
			c.kill(i)
		}
	}()
	watch := c.watch(db)
	for k := range kills {
		var batch []understudy.Job
		for n := range 6 {
			j := understudy.Job{Kind: []string{"least", "most", "narrow", "heavy"}[rng.IntN(4)],
				Priority: understudy.Priority(rng.IntN(understudy.PriorityCount))}
			if rng.IntN(4) == 0 {
				j.Key = fmt.Sprint("key ", rng.IntN(5))
			}
			if rng.IntN(6) == 0 {
				j.RunAfter = time.Now().Add(time.Duration(n) * 10 * time.Millisecond)
			}
			batch = append(batch, j)
		}
		until(t, func() bool { // four processes write here; one may have to wait for longer than the store does
			_, err := desk.Enqueue(t.Context(), batch...)
			if err != nil && !errors.Is(err, understudy.ErrNotStored) {
				t.Fatal(err)
			}
			return err == nil
		})
		pause(time.Duration(rng.IntN(90_000)) * time.Microsecond)
		i := rng.IntN(killedWorkers)
		c.kill(i)
		c.hire(i)
		if k%10 == 9 { // let a few live long enough to find what was lost
			pause(300 * time.Millisecond)
		}
	}
	if err := os.WriteFile(filepath.Join(c.folder, "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	last := time.Now()
	piled, err := live(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		n, err := live(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
	// What was lost then waits for its lease to end; what had piled up is done
	// meanwhile, or takes its time after that.
	took, most := time.Since(last), killedLease+5*time.Second+time.Duration(piled)*killedRun
	if t.Logf("%d jobs have ended %v after the last kill", piled, took.Round(time.Millisecond)); took > most {
		t.Errorf("the last jobs ended %v after the last kill, which is more than %v", took, most)
	}
	until(t, func() bool { // one that was lost, too, is done when its lease has ended
		done, err := db.Jobs.ReadJobs(t.Context(), understudy.JobFilter{Kind: "periodic", Limit: 1,
			States: []understudy.JobState{understudy.JobDone}})
		if err != nil {
			t.Fatal(err)
		}
		return len(done) > 0
	})
	watch()
	for i := range killedWorkers { // periodic jobs go on, and what is compared must not
		c.kill(i)
	}
	c.compare(db, kills)
}

func pause(d time.Duration) { <-time.After(d) }

// live counts live jobs but the periodic ones, of which there is always a next.
func live(ctx context.Context, db *store.DB) (n int, err error) {
	all, err := db.Jobs.ReadJobs(ctx, understudy.JobFilter{States: []understudy.JobState{understudy.JobWaiting, understudy.JobRunning},
		Limit: understudy.MaxJobs})
	for _, j := range all {
		if j.Kind != "periodic" {
			n++
		}
	}
	return n, err
}

// watch looks again and again for a job that is stuck, and for two live ones of
// one key, until the function it returns is called.
func (c *crew) watch(db *store.DB) (stop func()) {
	ctx, cancel := context.WithCancel(c.Context())
	var all sync.WaitGroup
	looks := 0
	all.Go(func() {
		for ctx.Err() == nil {
			running, err := db.Jobs.ReadJobs(ctx, understudy.JobFilter{States: []understudy.JobState{understudy.JobRunning, understudy.JobWaiting},
				Limit: understudy.MaxJobs})
			if err != nil && ctx.Err() == nil {
				c.Error(err)
			}
			looks++
			keys := map[string]int64{}
			for _, j := range running {
				if late := time.Since(j.LeaseEnd); j.State == understudy.JobRunning && late > 5*time.Second {
					c.Errorf("job %d, %s, is stuck: its lease ended %v ago", j.Number, j.Kind, late)
				}
				if name := j.Kind + "\n" + j.Key; j.Key != "" && keys[name] != 0 {
					c.Errorf("jobs %d and %d of %s have the key %s", keys[name], j.Number, j.Kind, j.Key)
				} else {
					keys[name] = j.Number
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return func() { cancel(); all.Wait(); c.Logf("looked %d times for what is stuck", looks) }
}

// compare holds what the store says against what was really done.
func (c *crew) compare(db *store.DB, kills int) {
	text, err := os.ReadFile(filepath.Join(c.folder, "lines"))
	if err != nil {
		c.Fatal(err)
	}
	begun, ended, fence, added := map[int64]int{}, map[int64]int{}, map[string]bool{}, map[int64]bool{}
	for line := range strings.Lines(string(text)) {
		var word, kind string
		var number, f int64
		if _, err := fmt.Sscan(line, &word, &kind, &number, &f); err != nil {
			c.Fatalf("%q: %v", line, err)
		}
		switch word {
		case "begin":
			begun[number]++
			if lease := fmt.Sprint(number, " ", f); fence[lease] {
				c.Errorf("job %d was begun twice under fence %d", number, f)
			} else {
				fence[lease] = true
			}
		case "end":
			ended[number]++
		case "added":
			added[number] = true
		case "exceeded":
			c.Errorf("job %d: more than %d of its kind were at work", number, narrowPlaces)
		}
	}
	counts := map[string]int{}
	for before := int64(0); ; {
		all, err := db.Jobs.ReadJobs(c.Context(), understudy.JobFilter{Before: before, Limit: understudy.MaxJobs})
		if err != nil {
			c.Fatal(err)
		}
		for _, j := range all {
			before = j.Number
			delete(added, j.Number)
			if j.State > understudy.JobRunning {
				counts[j.Kind+" "+j.State.String()]++
			}
			switch {
			case j.AtMostOnce && begun[j.Number] > 1:
				c.Errorf("job %d is at most once and was begun %d times", j.Number, begun[j.Number])
			case j.State == understudy.JobDone && ended[j.Number] == 0:
				c.Errorf("job %d, %s, is done and did not end", j.Number, j.Kind)
			case !j.AtMostOnce && j.State == understudy.JobFailed:
				c.Errorf("job %d, %s, is at least once and failed: %s", j.Number, j.Kind, j.Error)
			}
		}
		if len(all) < understudy.MaxJobs {
			break
		}
	}
	c.Logf("%v", counts)
	for number := range added {
		c.Errorf("job %d was promised and is lost", number)
	}
	want := []string{"least done", "added done", "most done", "narrow done", "periodic done"}
	if kills >= 100 { // a few may all miss the moments in which one of these runs
		want = append(want, "most failed")
	}
	for _, name := range want {
		if counts[name] == 0 {
			c.Errorf("too little was seen: no %s in %v", name, counts)
		}
	}
}
