// The bench of these tests: a scripted upstream, what is held of it, and jobs
// that run one after the other.

package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// madeUp is an API of our own, so that the rules are not those of one provider.
const madeUp = `
name: made-up
hosts: [{url: "https://made.up"}]
auth: {style: none}
whole_lists: true
vars: {who: user}
shown: {who: whose}
paging: {style: body, next: next, size: size, default_size: 5, max_size: 10, tokens: [after], page: page}
errors: {codes: {retention: 777}}
kinds:
  - name: letters
    id: [id]
    clock: sent
    order: made
    lists:
      - path: "/{who}/letters"
        key: letters
        filters:
          - {name: from, field: sent, op: since, type: epoch}
          - {name: to, field: sent, op: until, type: epoch}
    instances: [{path: "/{who}/letters/{id}", id: [id]}]
    final: [{field: state, in: [done]}]
    fields: [{name: id}, {name: sent, type: epoch}, {name: state}, {name: stamps, type: int}, {name: made, type: epoch}, {name: whose}]
  - name: stamps
    id: [id]
    clock: made
    parent: letter
    lists: [{path: "/{who}/letters/{letter}/stamps", key: stamps, count: stamps}]
    instances: [{path: "/{who}/letters/{letter}/stamps/{id}", id: [id]}]
    fields: [{name: id}, {name: made, type: epoch}, {name: letter, link: letters}]
  - name: boxes
    id: [id]
    lists: [{path: "/{who}/boxes", key: boxes}]
    instances: [{path: "/{who}/boxes/{id}", id: [id]}]
    fields: [{name: id}]
  - name: tags
    id: [id]
    lists: [{path: "/{who}/tags", key: tags}]
    fields: [{name: id}]
  - name: totals
    lists: [{path: "/{who}/totals", key: totals}]
    fields: [{name: sum}]
`

// thing is a record of the made-up API.
type thing struct {
	id, parent string
	clock      int64
	made       int64 // its place in the list when it has no clock
	open       bool
	stamps     int
	version    int
	whose      string // as the record tells; "" = it does not
}

// world is upstream, mirror, store and values in one.
type world struct {
	understudy.SharedKV // nothing lists values

	t    testing.TB
	spec *spec.Spec
	src  *spec.Source

	mu      sync.Mutex
	things  map[string][]thing // by kind, the newest first
	hidden  map[string]bool    // ids lists do not show
	held    map[string]map[string]*held
	number  int64
	changes []understudy.Change
	kv      map[string][]byte
	writes  int // of values
	asked   []string
	looks   int                             // fills for records that are not final
	before  func(target *spec.Target) error // of each fetch, before it
	keeps   int64                           // upstream refuses to be asked for what is older
	jobs    []understudy.Job
	polls   []string
	down    string
	heavy   int64                    // bytes every page says it weighs
	delay   time.Duration            // of every answer
	change  func(p *understudy.Page) // what becomes of a list's page; nil: nothing
}

type held struct {
	thing
	number int64
	seen   time.Time
	since  time.Time
}

func newWorld(t testing.TB) *world {
	sp, err := upstream.ReadSpec("made-up.yaml", []byte(madeUp))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, spec: sp, things: map[string][]thing{}, hidden: map[string]bool{}, held: map[string]map[string]*held{},
		kv: map[string][]byte{}}
	w.src = &spec.Source{Name: "post", Spec: sp, User: "me"}
	return w
}

func (w *world) PollSynced(_ string, kinds []string) error {
	w.polls = kinds
	return nil
}

func (w *world) walker(s Settings) *Crawler {
	x, err := New(Options{Sources: []*spec.Source{w.src}, Mirror: w, Store: w, KV: w, Jobs: w, Settings: s,
		Down: func(string) string { return w.down }})
	if err != nil {
		w.t.Fatal(err)
	}
	return x
}

// Fill answers as upstream would and keeps what it said.
func (w *world) Fill(ctx context.Context, f request.Fill) (request.PageSaved, error) {
	time.Sleep(w.delay)
	w.mu.Lock()
	defer w.mu.Unlock()
	target := f.Target
	w.asked = append(w.asked, target.Key.URI)
	if f.ForOpenRecords {
		w.looks++
	}
	if w.before != nil {
		if err := w.before(target); err != nil {
			return request.PageSaved{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return request.PageSaved{}, err
	}
	if w.heavy > 0 {
		if err := f.Reserve(ctx, w.heavy); err != nil {
			return request.PageSaved{}, fmt.Errorf("fill: %w", err)
		}
	}
	p := &understudy.Page{Key: target.Key, Kind: target.Kind.Name, Shape: target.Shape(), Status: 200, At: time.Now()}
	n := len(w.changes)
	if target.Instance != nil {
		p.ID = target.ID
		i := slices.IndexFunc(w.things[p.Kind], func(x thing) bool { return x.id == target.ID })
		if i < 0 {
			p.Status = http.StatusNotFound
			w.remove(p.Kind, target.ID)
		} else {
			w.keep(p, w.things[p.Kind][i])
		}
	} else {
		w.list(target, p)
	}
	return request.PageSaved{Page: p, Changes: slices.Clone(w.changes[n:]), Reason: f.Reason}, nil
}

func (w *world) list(target *spec.Target, p *understudy.Page) {
	p.List = true
	get := func(name string, none int64) int64 {
		v, ok := target.Query.Get(name)
		if !ok {
			return none
		}
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	from, to := get("from", minClock), get("to", maxClock)
	if w.keeps > 0 && (from != minClock && from < w.keeps || to < w.keeps) {
		p.Status, p.Body = http.StatusBadRequest, []byte(`{"code":777}`)
		return
	}
	after, past := target.Query.Get("after")
	filtered := from != minClock || to != maxClock
	var rows []thing
	things, size := w.things[p.Kind], int(get("size", 5))
	for i := 0; i < len(things) && len(rows) <= size; i++ { // one more than the page has tells that there is another
		x := &things[i]
		show := !w.hidden[x.id] && (!filtered || x.clock != 0 && x.clock >= from && x.clock <= to)
		if target.Var("letter") != "" {
			show = show && x.parent == target.Var("letter")
		}
		if show && !past {
			rows = append(rows, *x)
		}
		if x.id == after {
			past = false
		}
	}
	if len(rows) > size {
		rows = rows[:size]
		q := target.Query.Remove(func(p understudy.Param) bool { return p.Name == "after" })
		next, err := w.spec.Resolve("post", target.Key.Path(), append(q, understudy.Param{Name: "after", Value: rows[size-1].id}).String())
		if err != nil {
			w.t.Error(err)
		}
		p.Next = next.Key
	}
	for _, x := range rows {
		w.keep(p, x)
	}
	if w.change != nil {
		w.change(p)
	}
}

// keep saves a thing as a row of a page.
func (w *world) keep(p *understudy.Page, x thing) {
	if w.held[p.Kind] == nil {
		w.held[p.Kind] = map[string]*held{}
	}
	h := w.held[p.Kind][x.id]
	now := time.Now()
	switch {
	case h == nil:
		w.number++
		h = &held{number: w.number, since: now}
		w.held[p.Kind][x.id] = h
		w.note(p.Kind, x.id, understudy.Appeared)
	case h.thing != x:
		h.since = now
		w.note(p.Kind, x.id, understudy.Changed)
	}
	h.thing, h.seen = x, now
	p.Rows = append(p.Rows, understudy.Row{ID: x.id, Clock: x.clock, Parent: x.parent, Final: !x.open, Record: h.number})
}

func (w *world) note(kind, id string, what understudy.ChangeType) {
	w.changes = append(w.changes, understudy.Change{N: int64(len(w.changes)) + 1, Source: "post", Kind: kind, ID: id, Type: what})
}

func (w *world) remove(kind, id string) {
	if w.held[kind][id] != nil {
		delete(w.held[kind], id)
		w.note(kind, id, understudy.Deleted)
	}
}

// Remove is the mirror's for what has no path of its own.
func (w *world) Remove(_ context.Context, _, kind, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(kind, id)
	return nil
}

func (w *world) ReadRows(_ context.Context, q query.RangeScan) ([]understudy.Row, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []understudy.Row
	for _, h := range w.held[q.Kind] {
		clocked := !q.NoClock && h.clock != 0 && (q.From == 0 || h.clock >= q.From) && (q.To == 0 || h.clock < q.To)
		if (clocked || q.NoClock && h.clock == 0) && (!q.NotFinal || h.open) {
			out = append(out, understudy.Row{ID: h.id, Clock: h.clock, Parent: h.parent, Final: !h.open, Record: h.number})
		}
	}
	slices.SortFunc(out, func(a, b understudy.Row) int {
		return cmp.Or(-cmp.Compare(a.Clock, b.Clock), -cmp.Compare(a.Record, b.Record))
	})
	if q.Below.Record != 0 {
		out = slices.DeleteFunc(out, func(r understudy.Row) bool {
			return r.Clock > q.Below.Clock || r.Clock == q.Below.Clock && r.Record >= q.Below.Record
		})
	}
	limit := cmp.Or(q.Limit, 1000)
	return out[:min(len(out), limit)], nil
}

func (w *world) Record(_ context.Context, _, kind, _, id string) (*understudy.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.held[kind][id]
	if h == nil {
		return nil, understudy.ErrNotFound
	}
	return &understudy.Record{ID: id, Number: h.number, Since: h.since, Seen: h.seen, Final: !h.open,
		Body: fmt.Appendf(nil, `{"stamps":"%d","made":%d%s}`, h.stamps, h.made, tells(h.whose))}, nil
}

func tells(whose string) string {
	if whose == "" {
		return ""
	}
	return fmt.Sprintf(`,"whose":%q`, whose)
}

func (w *world) ReadChanges(_ context.Context, _ string, after int64, limit int) ([]understudy.Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := min(after, int64(len(w.changes)))
	return slices.Clone(w.changes[from:min(from+int64(limit), int64(len(w.changes)))]), nil
}

func (w *world) Value(_ context.Context, name string) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v, ok := w.kv[name]; ok {
		return v, nil
	}
	return nil, understudy.ErrNotFound
}

func (w *world) SetValue(_ context.Context, name string, value []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kv[name] = value
	w.writes++
	return nil
}

func (w *world) Change(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	old, _ := w.Value(ctx, name)
	value, err := change(old)
	return errors.Join(err, w.SetValue(ctx, name, value))
}

// Enqueue keeps a job until work runs it.
func (w *world) Enqueue(_ context.Context, jobs ...understudy.Job) ([]int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var numbers []int64
	for _, j := range jobs {
		i := slices.IndexFunc(w.jobs, func(have understudy.Job) bool { return have.Kind == j.Kind && have.Key == j.Key })
		if i < 0 {
			j.Number = int64(len(w.jobs)) + 1
			w.jobs, i = append(w.jobs, j), len(w.jobs)
		}
		numbers = append(numbers, w.jobs[i].Number)
	}
	return numbers, nil
}

// room is what a run may weigh.
const room = 1 << 30

// run is a run of a job in the world.
type run struct {
	job    understudy.Job
	mu     sync.Mutex
	weight int64 // itself
	pages  int64 // on their way
	most   int64
}

func (r *run) Job() understudy.Job              { return r.job }
func (r *run) SetProgress(_, _ int64, _ string) {}
func (r *run) Weigh(_ context.Context, n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > room {
		return fmt.Errorf("it weighs %d bytes, more than there are: %w", n, understudy.ErrInvalid)
	}
	r.weight, r.most = n, max(r.most, n+r.pages)
	return nil
}

func (r *run) Weigher() func(context.Context, int64) error {
	var mine int64
	return func(_ context.Context, n int64) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if n > room {
			return fmt.Errorf("it weighs %d bytes, more than there are: %w", n, understudy.ErrInvalid)
		}
		r.pages, mine = r.pages+n-mine, n
		r.most = max(r.most, r.weight+r.pages)
		return nil
	}
}

func (r *run) SetMark(ctx context.Context, mark []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	r.job.Checkpoint = slices.Clone(mark)
	return nil
}

// work runs what is promised until nothing is, or one ends early: that one
// stays first, with its mark.
func (w *world) work(ctx context.Context, x *Crawler) error {
	for {
		w.mu.Lock()
		if len(w.jobs) == 0 {
			w.mu.Unlock()
			return nil
		}
		r := &run{job: w.jobs[0]}
		w.mu.Unlock()
		err := x.Work()[r.job.Kind](ctx, r)
		w.mu.Lock()
		w.jobs[0] = r.job
		if err == nil {
			w.jobs = w.jobs[1:]
		}
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// take forgets what was asked, and returns it.
func (w *world) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// log are the changes from one on, as KIND ID WHAT, in order.
func (w *world) log(from int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, c := range w.changes[from:] {
		out = append(out, c.Kind+" "+c.ID+" "+c.Type.String())
	}
	slices.Sort(out)
	return out
}

// poll is the newest page as the mirror polls it.
func (w *world) poll(x *Crawler, kind string) {
	target, err := x.walks["post/"+kind].plan.buildNewestTarget()
	if err != nil {
		w.t.Fatal(err)
	}
	landed, err := w.Fill(context.Background(), request.Fill{Target: target, Reason: request.ReasonPoll})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.asked = w.asked[:len(w.asked)-1]
	w.mu.Unlock()
	_ = x.HandlePageSaved(context.Background(), landed)
	if err := x.look(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// letters are n, the newest first, one each so often; every tenth has no clock.
func letters(n int, every time.Duration, newest time.Time) []thing {
	out := make([]thing, n)
	for i := range out {
		out[i] = thing{id: fmt.Sprintf("L%06d", n-i), clock: newest.Add(-time.Duration(i) * every).Unix()}
		if out[i].made = out[i].clock; i%10 == 3 {
			out[i].clock = 0
		}
	}
	return out
}

func ids(things []thing) []string {
	var out []string
	for _, x := range things {
		out = append(out, x.id)
	}
	slices.Sort(out)
	return out
}

// has are the ids held of a kind.
func (w *world) has(kind string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for id := range w.held[kind] {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
