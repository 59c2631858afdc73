// The model of writes: random writes, reads, purges, faults, crashes and restarts beside an oracle.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/sample"
	"understudy/internal/store"
	log "understudy/internal/store/intents"
	"understudy/internal/store/storetest"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
)

const (
	modelCalls = 8  // that are not deleted, at most
	modelOps   = 12 // under way at once, at most
)

// fact is what upstream says of a call. A call that is created, changed or deleted has a higher version.
type fact struct {
	version int
	gone    bool
}

// model is an upstream that counts the versions of its calls, a mirror over it, and what is settled: the
// version that upstream had made when the last change of a call returned to its caller.
type model struct {
	t     *testing.T
	rng   *rand.Rand // of the driver
	spec  *spec.Spec
	path  string
	world *world // answers fetches; its lock guards what follows

	now, settled map[string]fact
	written      map[string]fact // the last change by a write, which may be under way
	ids          []string        // of all calls, the oldest first
	chance       *rand.Rand
	outage       bool
	dead         atomic.Bool  // the process was killed
	refuses      atomic.Int32 // 1: the store refuses to be told of writes, 2: pages, too, 3: pages, forever
	ctx          context.Context
	leave        context.CancelFunc // ends the requests of callers
	work         sync.WaitGroup
	places       chan struct{}
	mirror       *Mirror
	stop         func()
	db           *store.DB
	intents      *log.Log

	warm, reads, writes, crashes int
}

// TestWritesAtRandom runs writes, reads and purges that overlap, with an upstream and a store that
// fail now and then, through crashes and restarts. A read that begins after a write or a purge returned shows
// what it settled, or something newer. A deleted call is in no answer and, at the end, not in the store.
func TestWritesAtRandom(t *testing.T) {
	t.Parallel()
	seed, steps := sample.Seed(t), sample.Count(5_000, 1_000_000)
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, seed)
		for n := 0; n < steps && !t.Failed(); n++ {
			m.step()
		}
		m.end()
		t.Logf("%d steps: %d reads, %d of them warm, %d writes, %d crashes and restarts", steps, m.reads, m.warm, m.writes, m.crashes)
		if !t.Failed() && (m.warm < steps/10 || m.writes < steps/20 || m.crashes < steps/2000) {
			t.Error("too few of them")
		}
	})
}

func newModel(t *testing.T, seed uint64) *model {
	sp := spectest.BuiltIn(t, "twilio")
	m := &model{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), chance: rand.New(rand.NewPCG(seed, 2)), spec: sp, path: storetest.File(t),
		world: &world{t: t, spec: sp, size: 50, now: time.Now},
		now:   map[string]fact{}, settled: map[string]fact{}, written: map[string]fact{},
		places: make(chan struct{}, modelOps),
	}
	m.start()
	return m
}

// start opens the store and the file of intents as a process does, and runs a mirror.
func (m *model) start() {
	var err error
	o := store.Options{Path: m.path, Specs: map[string]*spec.Spec{"twilio": m.spec}, Now: time.Now, SaveTime: time.Minute}
	if m.db, err = store.Open(context.Background(), o); err != nil {
		m.t.Fatal(err)
	}
	if m.intents, err = log.Open(filepath.Join(filepath.Dir(m.path), "intents")); err != nil {
		m.t.Fatal(err)
	}
	kinds, err := m.db.ReadKinds(context.Background(), "twilio")
	if err != nil {
		m.t.Fatal(err)
	}
	src := Source{Source: &spec.Source{Name: "twilio", Spec: m.spec, User: account}, Upstream: m, Generations: map[string]int64{}}
	for _, k := range kinds {
		src.Generations[k.Kind] = k.Generation
	}
	if m.rng.IntN(4) == 0 {
		src.Source.Polls = []string{"calls"}
	}
	m.dead.Store(false)
	m.ctx, m.leave = context.WithCancel(context.Background())
	if m.mirror, err = New(Options{Sources: []Source{src}, Store: modelStore{m.db, m}, Intents: modelIntents{m.intents, m}}); err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.mirror.Run(ctx) }()
	m.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			m.t.Error(err)
		}
	}
}

// restart ends the process, killed or not, and begins another. What writes did by then is settled: the next
// process knows of each write that was under way.
func (m *model) restart(killed bool) {
	m.crashes++
	m.dead.Store(killed)
	m.leave()
	if !killed {
		m.work.Wait()
	}
	m.stop()
	m.work.Wait()
	if err := errors.Join(m.db.Close(), m.intents.Close()); err != nil {
		m.t.Fatal(err)
	}
	m.world.script(func() {
		for id, f := range m.written {
			m.settle(id, f)
		}
	})
	m.start()
}

// end waits until nothing is under way, and compares the store with upstream.
func (m *model) end() {
	m.work.Wait()
	m.refuses.Store(0)
	m.world.script(func() { m.outage, m.chance = false, nil })
	time.Sleep(5 * time.Minute)
	if left, _ := m.intents.UnendedWrites(); len(left) != 0 {
		m.t.Errorf("%d intents are left", len(left))
	}
	m.stop()
	for id, f := range m.settled {
		rec, err := m.db.Record(context.Background(), "twilio", "calls", "calls", id)
		switch {
		case errors.Is(err, understudy.ErrNotFound):
		case err != nil:
			m.t.Error(err)
		case f.gone:
			m.t.Errorf("%s was deleted, the store holds %s", id, rec.Body)
		case !rec.Invalidated && statusOf(rec.Body) < f.version:
			m.t.Errorf("%s had version %d, the store holds %s as valid", id, f.version, rec.Body)
		}
	}
	if err := errors.Join(m.db.Close(), m.intents.Close()); err != nil {
		m.t.Error(err)
	}
}

// step does one thing.
func (m *model) step() {
	switch n := m.rng.IntN(1000); {
	case n < 2:
		m.restart(n == 0)
	case n < 6:
		m.refuses.Store(m.rng.Int32N(4) * (1 - min(m.refuses.Load(), 1)))
	case n < 10:
		m.world.script(func() { m.outage = !m.outage && m.rng.IntN(4) == 0 })
	case n < 20:
		m.run(m.purge)
	case n < 130:
		m.run(m.write)
	case n < 180:
		time.Sleep(time.Duration(m.rng.IntN(3000)) * time.Millisecond)
	case n < 182:
		time.Sleep(time.Minute)
	default:
		m.run(m.read)
	}
}

// run runs an operation beside others.
func (m *model) run(op func(context.Context, *rand.Rand)) {
	rng := rand.New(rand.NewPCG(m.rng.Uint64(), 3))
	m.places <- struct{}{}
	ctx := m.ctx
	m.work.Go(func() {
		defer func() { <-m.places }()
		op(ctx, rng)
	})
}

func (m *model) target(path string) *spec.Target {
	t, err := m.spec.Resolve("twilio", "/2010-04-01/Accounts/"+account+"/"+path, "")
	if err != nil {
		m.t.Error(err)
	}
	return t
}

// pick is one of the last calls, also one that was deleted; "": there is none.
func (m *model) pick(rng *rand.Rand) (id string) {
	m.world.script(func() {
		if last := m.ids[max(0, len(m.ids)-modelCalls-4):]; len(last) > 0 {
			id = last[rng.IntN(len(last))]
		}
	})
	return id
}

// change makes a new version of a call; the lock is held.
func (m *model) change(id string, gone bool) {
	f := fact{m.now[id].version + 1, gone}
	if m.now[id].gone {
		return
	}
	m.now[id] = f
	calls := m.world.calls
	for i := range calls {
		if calls[i].id != id {
			continue
		}
		if gone {
			m.world.calls = append(calls[:i:i], calls[i+1:]...)
		} else {
			calls[i].status = fmt.Sprint(f.version)
		}
		return
	}
	m.ids = append(m.ids, id)
	m.world.calls = append([]call{{id, fmt.Sprint(f.version), false}}, calls...)
}

// settle notes that a change of a call returned to its caller.
func (m *model) settle(id string, f fact) {
	if f.version > m.settled[id].version {
		m.settled[id] = f
	}
}

type changed struct{} // the key of what a write tells its caller beside the answer

// write passes a write on.
func (m *model) write(ctx context.Context, rng *rand.Rand) {
	id, w := m.pick(rng), request.Write{Method: http.MethodPost}
	alive := 0
	m.world.script(func() { alive = len(m.world.calls); m.writes++ })
	switch {
	case alive < modelCalls && rng.IntN(3) == 0 || id == "":
		w.Target = m.target("Calls.json")
	case rng.IntN(4) == 0:
		w.Method, w.Target = http.MethodDelete, m.target("Calls/"+id+".json")
	default:
		w.Target = m.target("Calls/" + id + ".json")
	}
	if rng.IntN(10) == 0 { // the caller leaves
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(1500))*time.Millisecond)
		defer cancel()
	}
	did := map[string]fact{}
	_, _ = m.mirror.Write(context.WithValue(ctx, changed{}, did), w)
	if m.dead.Load() {
		return
	}
	m.world.script(func() {
		for id, f := range did {
			m.settle(id, f)
		}
	})
}

// purge forgets a call just after it changed upstream: what is held from before does not come back. A list from
// before the call came stays, so its creation must have returned.
func (m *model) purge(ctx context.Context, rng *rand.Rand) {
	id, f := m.pick(rng), fact{}
	m.world.script(func() {
		if m.settled[id].version > 0 {
			m.change(id, false)
			f = m.now[id]
		}
	})
	if f.version == 0 {
		return
	}
	if _, err := m.mirror.ForgetRecord(ctx, "twilio", "calls", id); err == nil {
		m.world.script(func() { m.settle(id, f) })
	}
}

// read reads a call or the list of all, and compares the answer with what was settled when it began.
func (m *model) read(ctx context.Context, rng *rand.Rand) {
	id, a := m.pick(rng), request.Request{NoCache: rng.IntN(50) == 0}
	if a.Target = m.target("Calls.json"); id != "" && rng.IntN(3) > 0 {
		a.Target = m.target("Calls/" + id + ".json")
	}
	before := map[string]fact{}
	m.world.script(func() {
		for _, id := range m.ids[max(0, len(m.ids)-3*modelCalls):] {
			before[id] = m.settled[id]
		}
		for _, c := range m.world.calls {
			before[c.id] = m.settled[c.id]
		}
	})
	got, err := m.mirror.Answer(ctx, a)
	if err != nil || m.dead.Load() {
		return
	}
	shown := map[string]int{}
	for _, r := range got.Page.Rows {
		shown[r.ID] = statusOf(got.Page.Body[r.Start:r.End])
	}
	m.world.script(func() {
		if m.reads++; got.Outcome == request.Warm || got.Outcome == request.Composed {
			m.warm++
		}
		if got.Outcome == request.Stale && (strings.HasPrefix(got.Detail, "stale: ") || strings.HasPrefix(got.Detail, "composed: ")) ||
			got.Page.Status != http.StatusOK && got.Page.Status != http.StatusNotFound {
			return // upstream failed, which the answer says
		}
		for id, was := range before {
			if a.Target.ID != "" && a.Target.ID != id {
				continue
			}
			version, ok := shown[id]
			switch {
			case ok && was.gone:
				m.t.Errorf("%s was deleted; a read that began after it came %s %q with it: %s", id, got.Outcome, got.Detail, got.Page.Body)
			case ok && version < was.version:
				m.t.Errorf("%s had version %d when a read began that came %s %q with %d", id, was.version, got.Outcome, got.Detail, version)
			case !ok && was.version > 0 && !m.now[id].gone:
				m.t.Errorf("%s was there when a read of %s began that came %s %q without it", id, a.Target.Key, got.Outcome, got.Detail)
			}
		}
	})
}

// statusOf is the version that a call's body shows.
func statusOf(body []byte) (version int) {
	_, text, _ := strings.Cut(string(body), `"status":"`)
	_, _ = fmt.Sscanf(text, "%d", &version)
	return version
}

// wait waits for up to a second, and draws whether what follows fails.
func (m *model) wait(ctx context.Context) (draw int, err error) {
	d := time.Duration(0)
	m.world.script(func() {
		if draw = 99; m.chance != nil {
			d, draw = time.Duration(m.chance.IntN(1000))*time.Millisecond, m.chance.IntN(100)
		}
		if m.outage {
			draw = 0
		}
	})
	select {
	case <-time.After(d):
		return draw, nil
	case <-ctx.Done():
		return draw, ctx.Err()
	}
}

// Fetch answers a fetch with what was so in the middle of it.
func (m *model) Fetch(ctx context.Context, f request.Fetch) (p *understudy.Page, err error) {
	began := time.Now()
	draw, err := m.wait(ctx)
	if err != nil {
		return nil, err
	}
	if draw < 4 {
		return nil, down(503)
	}
	m.world.script(func() { p = m.world.answer(f) })
	if _, err := m.wait(ctx); err != nil {
		return nil, err
	}
	p.At, p.Took, p.Generation = time.Now(), time.Since(began), f.Generation
	return p, nil
}

// Write does a write after a while, and answers after another.
func (m *model) Write(ctx context.Context, w request.Write) (p *understudy.Page, err error) {
	did := ctx.Value(changed{}).(map[string]fact)
	draw, err := m.wait(ctx)
	if err != nil {
		return nil, errors.Join(understudy.ErrUnknownOutcome, err)
	}
	if draw >= 4 && draw < 8 {
		return page(w.Target, http.StatusBadRequest, `{"status":400}`), nil
	}
	m.world.script(func() {
		id := w.Target.ID
		if id == "" {
			id = sid(len(m.ids) + 1)
		}
		switch {
		case draw < 2: // it fails and changes nothing
		case m.now[id].gone:
			p = page(w.Target, http.StatusNotFound, `{"code":20404,"status":404}`)
		default:
			m.change(id, w.Method == http.MethodDelete)
			did[id], m.written[id] = m.now[id], m.now[id]
			p = page(w.Target, http.StatusNoContent, "")
			if w.Method == http.MethodPost && draw < 80 {
				p = instance(w.Target, http.StatusOK, call{id, fmt.Sprint(m.now[id].version), false})
				p.List, p.ID = false, id
			}
		}
	})
	if last, err := m.wait(ctx); err != nil || last < 2 {
		return nil, errors.Join(understudy.ErrUnknownOutcome, err)
	}
	if draw < 4 || p == nil {
		return page(w.Target, http.StatusInternalServerError, `{"status":500}`), nil
	}
	p.At = time.Now()
	return p, nil
}

// modelStore is the store on disk, which may refuse to write, and does nothing for a killed process.
type modelStore struct {
	*store.DB
	model *model
}

func (s modelStore) refused(at int32) error {
	switch n := s.model.refuses.Load(); {
	case s.model.dead.Load(), at <= n && n < 3:
		return locked{understudy.ErrNotStored}
	case n == 3 && at == 2:
		return fmt.Errorf("store: %w: too large", understudy.ErrNotStored)
	}
	return nil
}

// locked is the error of a store that will take the page later.
type locked struct{ error }

func (l locked) Unwrap() error     { return l.error }
func (locked) ShortString() string { return "locked" }

func (s modelStore) Save(ctx context.Context, p *understudy.Page) (request.SaveResult, error) {
	if err := s.refused(2); err != nil {
		return request.SaveResult{}, err
	}
	return s.DB.Save(ctx, p)
}

func (s modelStore) Touch(ctx context.Context, t request.Invalidation) (int64, error) {
	if err := s.refused(1); err != nil {
		return 0, err
	}
	return s.DB.Touch(ctx, t)
}

func (s modelStore) ForgetRecord(ctx context.Context, source, kind, id string) (pages, versions int, err error) {
	if err := s.refused(1); err != nil {
		return 0, 0, err
	}
	return s.DB.ForgetRecord(ctx, source, kind, id)
}

// modelIntents is the file of intents, to which a killed process writes nothing.
type modelIntents struct {
	*log.Log
	model *model
}

func (in modelIntents) End(n int64) {
	if !in.model.dead.Load() {
		in.Log.End(n)
	}
}
