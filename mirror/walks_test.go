// Walks over lists that change: one asks a made-up API itself, one asks the mirror at the
// same moments. Every paging style; the API is real HTTP.

package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// walks are a made-up API, a client of it and a mirror in front of it.
type walks struct {
	*testing.T
	*things
	spec   *spec.Spec
	client *upstream.Client
	mirror *Mirror
	later  atomic.Int64 // the clock is ahead by so much
	ages   Ages
}

func (w *walks) clock() time.Time { return time.Now().Add(time.Duration(w.later.Load())) }

func newWalks(t *testing.T, way wayOfPaging, ages Ages) *walks {
	t.Helper()
	w := &walks{T: t, ages: ages}
	w.things = &things{way: way, now: w.clock, came: map[string]time.Time{}, gone: map[string]time.Time{}}
	key := "rows"
	if way.bare {
		key = `""`
	}
	if way.post != "" {
		key += ", post: " + way.post
	}
	var err error
	w.spec, err = upstream.ReadSpec("made.yaml", []byte(`name: made
hosts: [{url: "https://made.example"}]
auth: {style: none}
paging: {`+way.keys+`}
kinds:
  - name: things
    id: [id]
    clock: at
    lists: [{path: /things, key: `+key+`}]
    instances: [{path: "/things/{Thing}", id: [Thing]}]
    fields: [{name: id}, {name: at, type: epoch}, {name: text}]
`))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(w.things)
	t.Cleanup(srv.Close)
	source := &spec.Source{Name: "made", Spec: w.spec}
	w.client, err = upstream.New(upstream.Options{Source: source, Base: srv.URL, Rate: 1e6, Now: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.client.Close() })
	w.mirror, err = New(Options{
		Sources: []Source{{Source: source, Upstream: &oneBody{Client: w.client, t: t, room: make(chan struct{}, 1)}}}, Ages: ages, Now: w.clock,
		Store: storetest.Open(t, store.Options{Specs: map[string]*spec.Spec{"made": w.spec}, Now: w.clock}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.mirror.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *walks) direct(target *spec.Target) (*understudy.Page, string, error) {
	p, err := w.client.Fetch(w.Context(), request.Fetch{Target: target, Reason: request.ReasonWaiting})
	return p, "", err
}

func (w *walks) through(target *spec.Target) (*understudy.Page, string, error) {
	a, err := w.mirror.Answer(w.Context(), request.Request{Target: target})
	if err != nil {
		return nil, "", err
	}
	return a.Page, fmt.Sprintf(" (%s, %d s)", a.Outcome, int(a.Age.Seconds())), nil
}

// walker reads a list page by page.
type walker struct {
	ask  func(*spec.Target) (p *understudy.Page, how string, err error)
	next string
	ids  map[string]bool
	rows int
	took []string
}

// step reads the next page, if there is one.
func (w *walks) step(k *walker) {
	if k.next == "" {
		return
	}
	p, how, err := k.ask(w.target(k.next))
	if err != nil || p.Status != 200 {
		w.Fatalf("%s: %v %+v", k.next, err, p)
	}
	page := fmt.Sprintf("\n%s at %d s%s:", k.next, int64(time.Duration(w.later.Load()).Seconds()), how)
	for _, r := range p.Rows {
		var t madeUp
		if err := json.Unmarshal(p.Body[r.Start:r.End], &t); err != nil || t.ID != r.ID {
			w.Fatalf("%s: row %s is %s: %v", k.next, r.ID, p.Body[r.Start:r.End], err)
		}
		k.ids[r.ID] = true
		k.rows++
		page += " " + r.ID
	}
	if !json.Valid(p.Body) {
		w.Fatalf("%s: %s", k.next, p.Body)
	}
	k.took = append(k.took, page)
	if k.next = p.Next.URI; len(k.took) > 500 {
		w.Fatalf("no end: %v", k.took)
	}
}

// pass lets time go by. No fetch is under way then: it would seem to have taken so long.
func (w *walks) pass(seconds int) {
	for {
		var one *flight
		w.mirror.flights.Lock()
		for _, one = range w.mirror.flights.running {
			break
		}
		if one == nil {
			w.later.Add(int64(seconds) * int64(time.Second))
		}
		w.mirror.flights.Unlock()
		if one == nil {
			return
		}
		<-one.signals.ctx.Done() // it ends once what it brought is saved
		runtime.Gosched()        // it is taken off the list
	}
}

// TestAListThatRests: a list that nothing changes is walked from end to end, in every
// style and with every page size, also with one of which upstream gives fewer.
func TestAListThatRests(t *testing.T) {
	t.Parallel()
	for _, way := range waysOfPaging {
		t.Run(way.name, func(t *testing.T) {
			w := newWalks(t, way, Ages{})
			w.add(23)
			for _, ask := range []string{"/things", "/things?limit=1", "/things?limit=10", "/things?limit=23", "/things?limit=100"} {
				if way.one && ask != "/things" {
					continue
				}
				for range 2 {
					k := &walker{ask: w.through, next: ask, ids: map[string]bool{}}
					for k.next != "" {
						w.step(k)
					}
					if want := 23; len(k.ids) != want {
						t.Errorf("%s: %d rows of %d: %v", ask, len(k.ids), want, k.took)
					}
				}
			}
		})
	}
}

// whole walks a list from its beginning and wants the rows that there are now.
func (w *walks) whole(what, start string) {
	w.Helper()
	k := &walker{ask: w.through, next: start, ids: map[string]bool{}}
	for k.next != "" {
		w.step(k)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range w.rows {
		if !k.ids[row.ID] {
			w.Errorf("%s: %s is missing: %v", what, row.ID, k.took)
		}
		delete(k.ids, row.ID)
	}
	if len(k.ids) > 0 {
		w.Errorf("%s: shown, though they have gone: %v", what, k.ids)
	}
}

// remove takes away rows from one place to another.
func (w *walks) remove(from, to int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows = slices.Delete(w.rows, from, to)
}

// oneBody has memory for one body at a time: the next is fetched once the mirror has no more use for it.
type oneBody struct {
	*upstream.Client
	t    *testing.T
	room chan struct{}
}

// Fetch waits for room.
func (o *oneBody) Fetch(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
	select {
	case o.room <- struct{}{}:
	case <-time.After(10 * time.Second):
		o.t.Errorf("%s waits for a body that is kept until it comes", f.Target.Key)
		return nil, ctx.Err()
	}
	context.AfterFunc(f.BodyInUse, func() { <-o.room })
	return o.Client.Fetch(ctx, f)
}

// byNumber runs a test for each style whose pages are named by numbers.
func byNumber(t *testing.T, ages Ages, test func(*walks)) {
	for _, way := range waysOfPaging {
		if w := newWalks(t, way, ages); w.spec.Paging.IsSliding() {
			t.Run(way.name, func(t *testing.T) {
				w.T = t
				w.add(23)
				w.whole("the first walk", "/things")
				test(w)
			})
		}
	}
}

// TestPagesByNumberStandTogether: once the first page has been fetched anew and its rows
// have moved, no walk is given the others as they were before. A list that rests costs no
// request, however many of its pages are read, once a second walk has had looked at again what
// the budget left no room for in the first.
func TestPagesByNumberStandTogether(t *testing.T) {
	t.Parallel()
	byNumber(t, Ages{Stale: -1}, func(w *walks) {
		first := func() {
			if _, _, err := w.through(w.target("/things")); err != nil {
				w.Fatal(err)
			}
			w.pass(1)
		}
		w.pass(2)
		w.whole("the second walk", "/things")
		w.pass(2)
		asked := w.asked.Load()
		w.whole("a walk over what is held", "/things")
		if n := w.asked.Load() - asked; n != 0 {
			w.Errorf("%d requests for what is held", n)
		}
		w.pass(31)
		w.add(3)
		first()
		w.whole("three came", "/things")
		w.pass(61)
		w.whole("a minute later", "/things")
		w.pass(31)
		w.remove(1, 4)
		first()
		w.whole("three went", "/things")
	})
}

// TestPagesThatCameTogetherAreChecked: rows go while a list is walked for the first time,
// between one page and the next. Whoever walks a second later misses nothing.
func TestPagesThatCameTogetherAreChecked(t *testing.T) {
	t.Parallel()
	for _, way := range waysOfPaging {
		for _, after := range []int64{1, 2, 3} {
			w := newWalks(t, way, Ages{})
			if !w.spec.Paging.IsSliding() {
				break
			}
			t.Run(fmt.Sprint(way.name, after), func(t *testing.T) {
				w.T = t
				w.add(23)
				w.then = func(n int64) {
					if n == after {
						w.rows = slices.Delete(w.rows, 1, 3)
					}
				}
				for k := (&walker{ask: w.through, next: "/things", ids: map[string]bool{}}); k.next != ""; {
					w.step(k)
				}
				w.pass(1)
				w.whole("the second walk", "/things")
			})
		}
	}
}

// TestAWalkGoesOnAfterWhatIsGone: the last rows of a held page have gone, and upstream
// refuses to go on after them. The reader who was given them goes on all the same.
func TestAWalkGoesOnAfterWhatIsGone(t *testing.T) {
	t.Parallel()
	i := slices.IndexFunc(waysOfPaging, func(w wayOfPaging) bool { return w.name == "cursor" })
	for gone := 1; gone <= 5; gone++ {
		w := newWalks(t, waysOfPaging[i], Ages{})
		w.strict = true
		w.add(23)
		k := &walker{ask: w.through, next: "/things?limit=6", ids: map[string]bool{}}
		w.step(k) // 23 to 18
		w.pass(1) // the page after it is there, too
		w.remove(6-gone, 6)
		w.pass(1000)
		if gone == 5 { // more than is looked at
			if p, _, err := w.through(w.target(k.next)); err != nil || p.Status != 400 {
				t.Errorf("all but one gone: %v %+v", err, p)
			}
			continue
		}
		for k.next != "" {
			w.step(k)
		}
		for n := 1; n <= 23; n++ {
			if !k.ids[strconv.Itoa(n)] {
				t.Errorf("%d are gone: %d is missing: %v", gone, n, k.took)
			}
		}
		w.pass(1000)
		w.whole("a later walk", "/things?limit=6")
	}
}

// TestAReaderGoesOnFromAnOlderPage: who was given the first page before the list moved
// goes on with the second. What has moved from that one into the first stands in it, too;
// the page as upstream gives it is what is kept.
func TestAReaderGoesOnFromAnOlderPage(t *testing.T) {
	t.Parallel()
	byNumber(t, Ages{}, func(w *walks) {
		w.pass(20)
		k := &walker{ask: w.through, next: "/things", ids: map[string]bool{}}
		w.step(k) // as it is held
		w.remove(0, 3)
		w.pass(15)
		if _, _, err := w.through(w.target("/things")); err != nil { // stale, and fetched anew behind it
			w.Fatal(err)
		}
		w.pass(1)
		for k.next != "" {
			w.step(k)
		}
		for n := 1; n <= 20; n++ {
			if !k.ids[strconv.Itoa(n)] {
				w.Errorf("%d is missing: %v", n, k.took)
			}
		}
		w.pass(90)
		w.whole("who comes later", "/things")
	})
}

func (w *walks) target(uri string) *spec.Target {
	w.Helper()
	t, err := w.spec.ResolveLink("made", uri)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// TestAWalkMissesNothing: rows come, go and change while two walk, one directly and one
// through the mirror, at the same moments. Whatever was there for longer than a held page
// may be old, and the direct walk has seen, the other has seen too; and it shows nothing
// that has been gone for so long.
func TestAWalkMissesNothing(t *testing.T) {
	t.Parallel()
	seed := sample.Seed(t)
	rounds := sample.Count(8, 400)
	for i, way := range waysOfPaging {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			ages := Ages{Newest: 30 * time.Second, Older: 50 * time.Second, Stale: []time.Duration{-1, 40 * time.Second}[rng.IntN(2)]}
			w := newWalks(t, way, ages)
			w.add(30 + rng.IntN(20))
			w.pass(1000)
			starts := []string{"/things", "/things?limit=4", "/things?limit=9"}
			if way.name == "cursor" {
				starts = append(starts, "/things?limit=3&before=1")
			}
			if way.one {
				starts = starts[:1]
			}
			for range rounds {
				w.walk(rng, starts[rng.IntN(len(starts))])
			}
			for range 3 { // the last is held: by then nothing shows any more that rows have moved
				if _, _, err := w.through(w.target(starts[0])); err != nil {
					t.Fatal(err)
				}
				w.pass(1)
			}
			if n := w.mirror.Stats("made"); n.Warm+n.Stale == 0 {
				t.Errorf("nothing was held: %+v", n)
			}
		})
	}
}

// walk is one walk of two, and what comes of it.
func (w *walks) walk(rng *rand.Rand, start string) {
	w.Helper()
	allowed := max(w.ages.Newest, w.ages.Older) + max(w.ages.Stale, 0) + time.Second
	began, calm := w.clock(), []int{2, 4, 20, 100}[rng.IntN(4)]
	direct := &walker{ask: w.direct, next: start, ids: map[string]bool{}}
	ours := &walker{ask: w.through, next: start, ids: map[string]bool{}}
	for direct.next != "" || ours.next != "" {
		w.step(direct)
		w.step(ours)
		switch rng.IntN(calm) {
		case 0:
			w.add(rng.IntN(4))
		case 1:
			w.change(rng, rng.IntN(4))
		}
		w.pass(rng.IntN(12))
	}
	for id := range direct.ids {
		if !ours.ids[id] && w.came[id].Before(began.Add(-allowed)) && w.gone[id].IsZero() {
			w.Fatalf("%s is missing\ndirect %v\nours   %v", id, direct.took, ours.took)
		}
	}
	for id := range ours.ids {
		if at := w.gone[id]; !at.IsZero() && at.Before(began.Add(-allowed)) {
			w.Fatalf("%s went %v before the walk\ndirect %v\nours   %v", id, began.Sub(at), direct.took, ours.took)
		}
	}
	switch {
	case len(w.rows) < 20:
		w.add(10)
	case len(w.rows) > 60:
		w.change(rng, 50)
	}
	w.pass(rng.IntN(90))
}
