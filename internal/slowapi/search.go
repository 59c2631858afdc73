// Searches: which records of a sequence meet every condition.
package slowapi

import (
	"context"
	"math"
	"slices"
	"understudy/internal/slowapi/format"
)

// search walks the records of a sequence that meet every condition.
type search struct {
	w          *world
	s          *sequence
	q          format.Query
	quirks     quirks
	conditions []condition
	lo, hi     int64
	buried     bool // what was deleted lately shows too
	row        row
}

// newSearch reads the filters of a query. The caller holds the world for reading.
func newSearch(w *world, s *sequence, narrow *condition, filters []filter, on quirks, q format.Query) (*search, *format.Refusal) {
	x := &search{w: w, s: s, q: q, quirks: on, hi: math.MaxInt64, row: s.kind.blank()}
	if narrow != nil {
		x.conditions = append(x.conditions, *narrow)
		x.lo, x.hi = narrow.lo, narrow.hi
	}
	if r := x.readFilters(filters); r != nil {
		return nil, r
	}
	return x, nil
}

// readFilters adds what the filters in the query ask for.
func (x *search) readFilters(filters []filter) *format.Refusal {
	for _, f := range filters {
		g := x.q.Given[f.key]
		if g.Value == "" {
			continue // absent, bare and empty narrow nothing
		}
		c, r := f.read(x, g.Value)
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
	x.row.Load(x.w, x.s, i)
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

func (x *search) sid(i int64) string {
	x.w.mu.RLock()
	defer x.w.mu.RUnlock()
	return string(x.w.appendSID(nil, x.s, i))
}

// rows appends the records, each after dress told it how it looks, some at a
// time, so that writers need not wait.
func (x *search) rows(dst []byte, found []int64, dress func(row)) []byte {
	first := true
	for some := range slices.Chunk(found, 64) {
		x.w.mu.RLock()
		for _, i := range some {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			x.row.Load(x.w, x.s, i)
			dress(x.row)
			dst = x.row.Append(dst, x.w)
		}
		x.w.mu.RUnlock()
	}
	return dst
}
