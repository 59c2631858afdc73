// Searches: which records of a sequence meet every condition, and where in a list a page stands.
package world

import (
	"context"
	"math"
	"slices"

	"understudy/internal/slowapi/format"
)

// Search walks the records of a sequence that meet every condition.
type Search struct {
	W          *World
	S          *Sequence
	Q          format.Query
	Quirks     Quirks
	conditions []Condition
	lo, hi     int64
	Buried     bool // what was deleted lately shows too
	row        Row
}

// NewSearch reads the filters of a query. The caller holds the world for reading.
func NewSearch(w *World, s *Sequence, narrow *Condition, filters []Filter, on Quirks, q format.Query) (*Search, *format.Answer) {
	x := &Search{W: w, S: s, Q: q, Quirks: on, hi: math.MaxInt64}
	if narrow != nil {
		x.conditions = append(x.conditions, *narrow)
		x.lo, x.hi = narrow.Lo, narrow.Hi
	}
	if r := x.ReadFilters(filters); r != nil {
		return nil, r
	}
	return x, nil
}

// ReadFilters adds what the filters in the query ask for.
func (x *Search) ReadFilters(filters []Filter) *format.Answer {
	for _, f := range filters {
		g := x.Q.Given[f.Key]
		if g.Value == "" {
			continue // absent, bare and empty narrow nothing
		}
		c, r := f.Read(x, g.Value)
		if r != nil {
			return r
		}
		x.conditions = append(x.conditions, c)
		x.lo, x.hi = max(x.lo, c.Lo), min(x.hi, c.Hi)
	}
	return nil
}

// Suits reports whether a record meets every condition.
func (x *Search) Suits(r *Row) bool {
	for n := range x.conditions {
		if !x.conditions[n].Meets(r) {
			return false
		}
	}
	return true
}

// open tells whether every record is asked for.
func (x *Search) open() bool { return len(x.conditions) == 0 }

// meets tells whether a record is there and meets every condition.
func (x *Search) meets(i int64) bool {
	if !x.S.Exists(i) && !(x.Buried && x.S.Buried(i, x.W.Now().Unix())) {
		return false
	}
	x.row = Row{W: x.W, S: x.S, I: i}
	return x.Suits(&x.row)
}

// below is the highest index at or under i that may meet the conditions, -1
// when there is none: those between lo and hi, and the late ones.
func (x *Search) below(i int64) int64 {
	best := min(i, x.hi, x.S.Count()-1)
	if best < x.lo {
		best = -1
	}
	pos, _ := slices.BinarySearch(x.S.late, i+1)
	if pos > 0 {
		best = max(best, x.S.late[pos-1])
	}
	return best
}

// above is the lowest index at or over i that may meet the conditions, count
// when there is none.
func (x *Search) above(i int64) int64 {
	count := x.S.Count()
	best := max(i, x.lo)
	if best > x.hi {
		best = count
	}
	pos, _ := slices.BinarySearch(x.S.late, i)
	if pos < len(x.S.late) {
		best = min(best, x.S.late[pos])
	}
	return min(best, count)
}

// batch is how many records are looked at before others get a turn.
const batch = 512

// Down collects up to n indexes from start downwards, after skipping some.
func (x *Search) Down(ctx context.Context, start int64, skip int64, n int) ([]int64, error) {
	if skip > 0 && x.open() {
		x.W.Mu.RLock()
		start, skip = x.S.nth(skip), 0
		x.W.Mu.RUnlock()
	}
	return x.walk(ctx, start, skip, n, func(i int64) (int64, int64) { i = x.below(i); return i, i - 1 })
}

// up collects up to n indexes from start upwards, and gives them newest first.
func (x *Search) up(ctx context.Context, start int64, n int) ([]int64, error) {
	found, err := x.walk(ctx, start, 0, n, func(i int64) (int64, int64) {
		if i = x.above(i); i >= x.S.Count() {
			return -1, i
		}
		return i, i + 1
	})
	slices.Reverse(found)
	return found, err
}

// walk collects up to n indexes that meet the conditions, after skipping some. next tells
// which comes at an index or behind it, -1 for none, and where to go on.
func (x *Search) walk(ctx context.Context, at, skip int64, n int, next func(int64) (int64, int64)) (found []int64, _ error) {
	for i := int64(0); i >= 0 && len(found) < n; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x.W.Mu.RLock()
		for range batch {
			if i, at = next(at); i < 0 || len(found) == n {
				break
			}
			if x.meets(i) {
				if skip--; skip < 0 {
					found = append(found, i)
				}
			}
		}
		x.W.Mu.RUnlock()
	}
	return found, nil
}

// Indexes finds the page's records, newest first. The position comes from the
// token; a Page without one counts from the newest record.
func (x *Search) Indexes(ctx context.Context, p Place) ([]int64, error) {
	if p.back {
		return x.up(ctx, p.index+1, int(p.Size))
	}
	if p.Token != "" {
		return x.Down(ctx, p.index-1, 0, int(p.Size))
	}
	skip := p.Page * p.Size
	if x.Quirks[PageIgnored] {
		skip = 0
	}
	return x.Down(ctx, math.MaxInt64-1, skip, int(p.Size))
}

// Sid is the SID of a record.
func (x *Search) Sid(i int64) string {
	x.W.Mu.RLock()
	defer x.W.Mu.RUnlock()
	return x.W.SID(x.S, i)
}

// Rows appends the records as a template shows them, some at a time, so that
// writers need not wait.
func (x *Search) Rows(dst []byte, found []int64, shape, here string) []byte {
	first := true
	for some := range slices.Chunk(found, 64) {
		x.W.Mu.RLock()
		for _, i := range some {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = x.W.Show(dst, x.S, i, shape, here)
		}
		x.W.Mu.RUnlock()
	}
	return dst
}

// Place is where in a list a page stands.
type Place struct {
	Size, Page int64
	Token      string
	back       bool  // the token asks for what is newer
	index      int64 // the token's record
}

const (
	defaultSize = 50
	maxSize     = 1000
)

// ReadSize reads PageSize and Page, and takes PageToken as it is.
func ReadSize(q format.Query, on Quirks) (Place, *format.Answer) {
	p := Place{Size: defaultSize, Token: q.Given["PageToken"].Value}
	if g, there := q.Given["PageSize"]; there {
		size, ok := format.Whole(g.Value)
		switch {
		case (!ok || size == 0) && on[SizeForgiven]:
			size = defaultSize
		case !ok || size == 0:
			return p, format.Invalid("Page size must be a number greater than 0.")
		case size > maxSize && on[SizeRefused]:
			return p, format.Invalid("Page size must be at most 1000.")
		}
		p.Size = min(size, maxSize)
	}
	if g, there := q.Given["Page"]; there {
		page, ok := format.Whole(g.Value)
		if !ok {
			return p, format.Invalid("Page must be a number, 0 or greater.")
		}
		p.Page = page
	}
	return p, nil
}

// ReadPlace reads where in the list a query's page stands. The caller holds the
// world for reading.
func (x *Search) ReadPlace(q format.Query) (Place, *format.Answer) {
	p, r := ReadSize(q, x.Quirks)
	if r != nil || p.Token == "" {
		return p, r
	}
	if len(p.Token) < 2 || p.Token[0] != 'P' || p.Token[1] != 'A' && p.Token[1] != 'B' {
		return p, format.Invalid("Page token is invalid.")
	}
	index, ok := x.W.Find(x.S, p.Token[2:])
	if !ok {
		return p, format.Invalid("Page token is invalid.")
	}
	p.back, p.index = p.Token[1] == 'B', index
	return p, nil
}
