// Lists: which records stand on a page, and what the page looks like.
package slowapi

import (
	"context"
	"math"
	"slices"
	"strconv"
)

// search walks the records of a sequence that meet every condition.
type search struct {
	w          *world
	s          *sequence
	target     *target
	q          query
	quirks     quirks
	conditions []condition
	lo, hi     int64
	buried     bool // what was deleted lately shows too
	row        row
}

// newSearch reads the filters of a query. The caller holds the world for reading.
func newSearch(w *world, t *target, on quirks, q query) (*search, *refusal) {
	x := &search{w: w, s: t.seq, target: t, q: q, quirks: on, hi: math.MaxInt64, row: t.seq.kind.blank()}
	if t.narrow != nil {
		x.conditions = append(x.conditions, *t.narrow)
		x.lo, x.hi = t.narrow.lo, t.narrow.hi
	}
	if r := x.readFilters(t.route.listFilters()); r != nil {
		return nil, r
	}
	return x, nil
}

// readFilters adds what the filters in the query ask for.
func (x *search) readFilters(filters []filter) *refusal {
	for _, f := range filters {
		g := x.q.given[f.key]
		if g.value == "" {
			continue // absent, bare and empty narrow nothing
		}
		c, r := f.read(x, g.value)
		if r != nil {
			return r
		}
		x.conditions = append(x.conditions, c)
		x.lo, x.hi = max(x.lo, c.lo), min(x.hi, c.hi)
	}
	return nil
}

// suits tells whether a row meets every condition.
func (x *search) suits(r row) bool {
	for _, c := range x.conditions {
		if !c.test(r) {
			return false
		}
	}
	return true
}

// open tells whether every record is asked for.
func (x *search) open() bool { return len(x.conditions) == 0 }

// meets tells whether a record is there and meets every condition.
func (x *search) meets(i int64) bool {
	if !x.s.exists(i) && !(x.buried && x.s.buried(i, x.w.now().Unix())) {
		return false
	}
	if x.open() {
		return true
	}
	x.row.load(x.w, x.s, i)
	return x.suits(x.row)
}

// below is the highest index at or under i that may meet the conditions, -1
// when there is none: those between lo and hi, and the late ones.
func (x *search) below(i int64) int64 {
	best := min(i, x.hi, x.s.count()-1)
	if best < x.lo {
		best = -1
	}
	pos, _ := slices.BinarySearch(x.s.late, i+1)
	if pos > 0 {
		best = max(best, x.s.late[pos-1])
	}
	return best
}

// above is the lowest index at or over i that may meet the conditions, count
// when there is none.
func (x *search) above(i int64) int64 {
	count := x.s.count()
	best := max(i, x.lo)
	if best > x.hi {
		best = count
	}
	pos, _ := slices.BinarySearch(x.s.late, i)
	if pos < len(x.s.late) {
		best = min(best, x.s.late[pos])
	}
	return min(best, count)
}

// batch is how many records are looked at before others get a turn.
const batch = 512

// down collects up to n indexes from start downwards, after skipping some.
func (x *search) down(ctx context.Context, start int64, skip int64, n int) ([]int64, error) {
	if skip > 0 && x.open() {
		x.w.mu.RLock()
		start, skip = x.s.nth(skip), 0
		x.w.mu.RUnlock()
	}
	var found []int64
	for i := start; i >= 0 && len(found) < n; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x.w.mu.RLock()
		for range batch {
			if i = x.below(i); i < 0 || len(found) == n {
				break
			}
			if x.meets(i) {
				if skip--; skip < 0 {
					found = append(found, i)
				}
			}
			i--
		}
		x.w.mu.RUnlock()
	}
	return found, nil
}

// up collects up to n indexes from start upwards, and gives them newest first.
func (x *search) up(ctx context.Context, start int64, n int) ([]int64, error) {
	var found []int64
	for i := start; len(found) < n; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x.w.mu.RLock()
		end := x.s.count()
		for range batch {
			if i = x.above(i); i >= end || len(found) == n {
				break
			}
			if x.meets(i) {
				found = append(found, i)
			}
			i++
		}
		x.w.mu.RUnlock()
		if i >= end {
			break
		}
	}
	slices.Reverse(found)
	return found, nil
}

// place is where in a list a page stands.
type place struct {
	size, page int64
	token      string
	back       bool  // the token asks for what is newer
	index      int64 // the token's record
}

const (
	defaultSize = 50
	maxSize     = 1000
)

// readSize reads PageSize and Page, and takes PageToken as it is.
func readSize(q query, on quirks) (place, *refusal) {
	p := place{size: defaultSize, token: q.given["PageToken"].value}
	if g, there := q.given["PageSize"]; there {
		size, ok := whole(g.value)
		switch {
		case (!ok || size == 0) && on.on(sizeForgiven):
			size = defaultSize
		case !ok || size == 0:
			return p, invalid("Page size must be a number greater than 0.")
		case size > maxSize && on.on(sizeRefused):
			return p, invalid("Page size must be at most 1000.")
		}
		p.size = min(size, maxSize)
	}
	if g, there := q.given["Page"]; there {
		page, ok := whole(g.value)
		if !ok {
			return p, invalid("Page must be a number, 0 or greater.")
		}
		p.page = page
	}
	return p, nil
}

// readPlace reads where in the list a query's page stands. The caller holds the
// world for reading.
func (x *search) readPlace(q query) (place, *refusal) {
	p, r := readSize(q, x.quirks)
	if r != nil || p.token == "" {
		return p, r
	}
	if len(p.token) < 2 || p.token[0] != 'P' || p.token[1] != 'A' && p.token[1] != 'B' {
		return p, invalid("Page token is invalid.")
	}
	index, ok := x.w.find(x.s, p.token[2:])
	if !ok {
		return p, invalid("Page token is invalid.")
	}
	p.back, p.index = p.token[1] == 'B', index
	return p, nil
}

// whole reads a number of at most nine digits.
func whole(s string) (int64, bool) {
	if !digits(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt32 {
		return math.MaxInt32, true
	}
	return n, true
}

// indexes finds the page's records, newest first. The position comes from the
// token; a Page without one counts from the newest record.
func (x *search) indexes(ctx context.Context, p place) ([]int64, error) {
	if p.back {
		return x.up(ctx, p.index+1, int(p.size))
	}
	if p.token != "" {
		return x.down(ctx, p.index-1, 0, int(p.size))
	}
	skip := p.page * p.size
	if x.quirks.on(pageIgnored) {
		skip = 0
	}
	return x.down(ctx, math.MaxInt64-1, skip, int(p.size))
}

// page builds a list's answer.
func (s *Server) page(ctx context.Context, t target, q query) (answer, error) {
	w := s.world
	w.mu.RLock()
	x, r := newSearch(w, &t, s.quirks, q)
	var p place
	if r == nil {
		p, r = x.readPlace(q)
	}
	w.mu.RUnlock()
	if r != nil {
		return r.answer(), nil
	}
	found, err := x.indexes(ctx, p)
	if err != nil {
		return answer{}, err
	}
	more := false
	if len(found) > 0 {
		after, err := x.down(ctx, found[len(found)-1]-1, 0, 1)
		if err != nil {
			return answer{}, err
		}
		more = len(after) > 0
	}
	return answer{status: 200, body: x.render(q, p, found, more)}, nil
}

// render writes the page. The order of its keys is that of Twilio's lists.
func (x *search) render(q query, p place, found []int64, more bool) []byte {
	t := x.target
	e := envelope{base: t.path, key: t.route.listKey(), size: p.size, page: p.page, token: p.token, rows: len(found)}
	e.base = string(q.echo([]byte(e.base+"?"), t.route.listFilters()))
	if more {
		e.next = "PA" + x.sid(found[len(found)-1])
	}
	if p.page > 0 && len(found) > 0 {
		e.previous = "PB" + x.sid(found[0])
	}
	rows := x.rows(make([]byte, 0, 2200*len(found)), found)
	if t.route.monitor {
		e.base = t.here + e.base
		return e.monitor(rows)
	}
	return e.list(rows)
}

func (x *search) sid(i int64) string {
	x.w.mu.RLock()
	defer x.w.mu.RUnlock()
	return string(x.w.appendSID(nil, x.s, i))
}

// rows appends the records, some at a time, so that writers need not wait.
func (x *search) rows(dst []byte, found []int64) []byte {
	first := true
	for some := range slices.Chunk(found, 64) {
		x.w.mu.RLock()
		for _, i := range some {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			x.row.load(x.w, x.s, i)
			x.target.dress(x.row)
			dst = x.row.append(dst, x.w)
		}
		x.w.mu.RUnlock()
	}
	return dst
}
