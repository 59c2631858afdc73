// Importer: the process that imports, with the packages of a server.

package imports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/bench/rig"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/mirror"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// Import is the process that imports.
func Import(ctx context.Context, args []string, out io.Writer) (err error) {
	fs := rig.NewFlags("bench imports", os.Stderr)
	api := fs.String("api", "", "the simulated API")
	n := fs.Int("n", importJobs, "how many jobs")
	once := fs.Int("once", 0, "how many at once; 0 = as many as weigh no more than the limit")
	path := fs.String("path", "", "the database")
	if err := fs.Parse(args); err != nil {
		return err
	}
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		return err
	}
	src := &spec.Source{Name: "twilio", Spec: sp, User: rig.Account}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	db, err := store.Open(ctx, store.Options{Path: *path, Specs: map[string]*spec.Spec{src.Name: sp}, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client, err := upstream.New(upstream.Options{Source: src, Base: *api, Secret: understudy.NewSecret(rig.ApiToken), Rate: 1000, Concurrency: importWorkers, MaxBody: 512 * rig.Mib, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	m, err := mirror.New(mirror.Options{Sources: []mirror.Source{{Source: src, Upstream: client}}, Store: db, Logger: log})
	if err != nil {
		return err
	}
	// A server with this limits.memory does the same: jobs weigh at most half of it.
	debug.SetMemoryLimit(importLimit)
	limit := int64(importLimit / 2)
	switch {
	case *once > 0:
		limit = 1 << 40
	case *once < 0:
		limit = importBytes * (importBig + 20) * rig.Mib
		debug.SetMemoryLimit(2 * limit)
	}
	i := &intakes{src: src, m: m, added: map[string]time.Time{}}
	runner, err := jobs.New(jobs.Options{Store: db.Jobs, Workers: importWorkers, Memory: limit, OnlyProcess: true, Logger: log,
		Kinds: []jobs.Kind{{Name: "import page", Run: i.page, Attempts: 20, Concurrency: max(*once, 0)}}})
	if err != nil {
		return err
	}
	if *once < 0 {
		i.sizes = append(i.sizes, 300)
	}
	for k := range *n {
		i.sizes = append(i.sizes, k+100)
		if *once < 0 {
			i.sizes[k+1] = k + 301
		}
	}
	return i.run(ctx, runner, client, out)
}

// intakes are the jobs at work.
type intakes struct {
	src    *spec.Source
	m      *mirror.Mirror
	sizes  []int        // of the pages, a job each
	weight atomic.Int64 // of all runs
	most   atomic.Int64
	mu     sync.Mutex
	added  map[string]time.Time // by page size, asked for
	waits  []time.Duration      // of small ones, until they had their weight
}

// page fills one page as a walk does. It takes a weight for the memory of the page while it reads and parses the page, and
// then returns it.
func (i *intakes) page(ctx context.Context, r *jobs.Run) (err error) {
	target, err := i.src.Spec.Resolve(i.src.Name, rig.Calls, string(r.Job().Payload[1:len(r.Job().Payload)-1]))
	if err != nil {
		return err
	}
	own := r.Weigher()
	var mine int64
	weigh := func(ctx context.Context, bytes int64) error {
		if err := own(ctx, bytes*importBytes); err != nil {
			return err
		}
		if mine == 0 {
			i.waited(r.Job().Key)
		}
		sum := i.weight.Add(bytes*importBytes - mine)
		mine = bytes * importBytes
		for most := i.most.Load(); sum > most && !i.most.CompareAndSwap(most, sum); most = i.most.Load() {
		}
		return nil
	}
	defer func() { err = errors.Join(err, weigh(ctx, 0)) }()
	landed, err := i.m.Fill(ctx, request.Fill{Target: target, Reason: request.ReasonSync, RecordsOnly: true, Reserve: weigh})
	if err != nil {
		return err
	}
	if n := len(landed.Page.Rows); n < 100 {
		return fmt.Errorf("a page of %d rows", n)
	}
	return nil
}

// waited notes how long a small job waited for its weight.
func (i *intakes) waited(key string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if at, ok := i.added[key]; ok {
		i.waits = append(i.waits, time.Since(at))
	}
}

// run enqueues the jobs and waits until they end. Small jobs beside a big one are enqueued one after the other, once the
// big job has its weight.
func (i *intakes) run(ctx context.Context, runner *jobs.Runner, client *upstream.Client, out io.Writer) error {
	n, small := len(i.sizes), i.sizes[0] == 300

	ctx, end := context.WithTimeout(ctx, 10*time.Minute)
	defer end()
	var all sync.WaitGroup
	for _, task := range []func(context.Context) error{runner.Run, i.m.Run, client.Run, pace} {
		all.Go(func() { _ = task(ctx) })
	}
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for k, size := range i.sizes {
		job := understudy.Job{Kind: "import page", Key: fmt.Sprint(size), Payload: fmt.Appendf(nil, `"PageSize=%d"`, size), Priority: understudy.PriorityBulk}
		if small && k > 0 {
			for i.most.Load() == 0 {
				<-tick.C
			}
			for range 5 {
				<-tick.C
			}
			i.mu.Lock()
			i.added[job.Key] = time.Now()
			i.mu.Unlock()
		}
		if _, err := runner.Enqueue(ctx, job); err != nil {
			return err
		}
	}
	for st := runner.Stats(); st.Done+st.Failed < int64(n); st = runner.Stats() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%+v: %w", st, ctx.Err())
		}
	}
	st := runner.Stats()
	got := imported{Done: st.Done, Failed: st.Failed, Again: st.Again, Requests: client.Stats().Requests, Took: time.Since(began), Weight: i.most.Load()}
	if len(i.waits) > 0 {
		slices.Sort(i.waits)
		got.Wait = i.waits[len(i.waits)*99/100]
	}
	end()
	all.Wait()
	var err error
	if got.Peak, err = rig.PeakOf(os.Getpid()); err != nil {
		return err
	}
	got.CPU = rig.Used()
	return json.NewEncoder(out).Encode(got)
}

// pace sets the collector's target as the server does.
func pace(ctx context.Context) error {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		metrics.Read(live)
		debug.SetGCPercent(int(min(max(18*rig.Mib*100/max(live[0].Value.Uint64(), 1<<20), 40), 400)))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
