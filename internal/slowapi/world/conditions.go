// Requests: which records of a sequence meet every condition, and where in a list a page stands.
package world

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// Request is a request to one of Twilio's paths.
type Request struct {
	In      *table.Request
	W       *World
	Quirks  Quirks
	Q       format.Query
	Account int
	S       *Sequence  // of the kind of the path, nil for none
	Parent  int64      // the record that a list belongs to
	Index   int64      // the record itself
	Narrow  *Condition // what a list shows of the kind; nil for all
	Filters []Filter
	Key     string            // of a list
	Shape   string            // the template of the records
	Preset  map[string]string // what a creation sets beside its form
	Buried  bool              // records deleted lately are asked for too

	conditions []Condition // what a list is narrowed by
	lo, hi     int64       // where the records that meet them lie, beside late ones
	row        Row
}

// Shows reports whether a record is there for this request.
func (x *Request) Shows(i int64) bool {
	return x.S.Exists(i) || x.Buried && x.S.Buried(i, x.W.Now().Unix())
}

// List answers with a page of a list: so many rows, and the tokens of the pages around it.
func (x *Request) List(p Place, rows []byte, count int, next, previous string) format.Answer {
	shape, base := "page", string(x.Q.Echo([]byte(x.In.Path+"?"), KeysOf(x.Filters)))
	if strings.HasPrefix(x.In.Path, format.MonitorVersion+"/") {
		shape, base = "monitor_page", x.In.BaseURL+base
	}
	uri := func(page int64, token string) string {
		if token != "" {
			token = "&PageToken=" + format.Encode(token)
		}
		return base + "PageSize=" + strconv.FormatInt(p.Size, 10) + "&Page=" + strconv.FormatInt(page, 10) + token
	}
	first := uri(0, "")
	v := table.Values{"key": x.Key, "first": first, "own": first, "page": p.Page, "size": p.Size, "start": 0, "end": 0,
		"rows": json.RawMessage(rows)}
	if count > 0 {
		v["start"], v["end"] = p.Page*p.Size, p.Page*p.Size+int64(count)-1
	}
	if next != "" {
		v["next"] = uri(p.Page+1, next)
	}
	if p.Page > 0 {
		v["own"] = uri(p.Page, p.Token)
	}
	if p.Page > 0 && count > 0 {
		v["previous"] = uri(p.Page-1, previous)
	}
	return format.Answer{Status: http.StatusOK, Body: x.W.Shapes[shape].Append(make([]byte, 0, 1024+len(rows)), v, "")}
}

// Variant returns the template whose name begins so, and else that of the lists: a record alone
// may say more than in a list, and one that was made just now less, or a secret.
func (x *Request) Variant(begins string) string {
	if x.W.Shapes[begins+x.Shape] != nil {
		return begins + x.Shape
	}
	return x.Shape
}

// NotFound returns the answer when what the path names is not there.
func (x *Request) NotFound() format.Answer { return *format.NewNotFound(x.In.Path) }

// ReadFilters reads what narrows the list. The caller holds the world for reading.
func (x *Request) ReadFilters() *format.Answer {
	x.hi, x.Buried = math.MaxInt64, false
	if x.Narrow != nil {
		x.conditions, x.lo, x.hi = append(x.conditions, *x.Narrow), x.Narrow.Lo, x.Narrow.Hi
	}
	for _, f := range x.Filters {
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
func (x *Request) Suits(r *Row) bool {
	for n := range x.conditions {
		if !x.conditions[n].Meets(r) {
			return false
		}
	}
	return true
}

// open tells whether every record is asked for.
func (x *Request) open() bool { return len(x.conditions) == 0 }

// meets tells whether a record is there and meets every condition.
func (x *Request) meets(i int64) bool {
	if !x.Shows(i) {
		return false
	}
	x.row = Row{W: x.W, S: x.S, I: i}
	return x.Suits(&x.row)
}

// below is the highest index at or under i that may meet the conditions, -1
// when there is none: those between lo and hi, and the late ones.
func (x *Request) below(i int64) int64 {
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
func (x *Request) above(i int64) int64 {
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
func (x *Request) Down(ctx context.Context, start int64, skip int64, n int) ([]int64, error) {
	if skip > 0 && x.open() {
		x.W.Mu.RLock()
		start, skip = x.S.nth(skip), 0
		x.W.Mu.RUnlock()
	}
	return x.walk(ctx, start, skip, n, func(i int64) (int64, int64) { i = x.below(i); return i, i - 1 })
}

// up collects up to n indexes from start upwards, and gives them newest first.
func (x *Request) up(ctx context.Context, start int64, n int) ([]int64, error) {
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
func (x *Request) walk(ctx context.Context, at, skip int64, n int, next func(int64) (int64, int64)) (found []int64, _ error) {
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
func (x *Request) Indexes(ctx context.Context, p Place) ([]int64, error) {
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
func (x *Request) Sid(i int64) string {
	x.W.Mu.RLock()
	defer x.W.Mu.RUnlock()
	return x.W.SID(x.S, i)
}

// Rows appends the records as a template shows them, some at a time, so that
// writers need not wait.
func (x *Request) Rows(dst []byte, found []int64) []byte {
	first := true
	for some := range slices.Chunk(found, 64) {
		x.W.Mu.RLock()
		for _, i := range some {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = x.W.Show(dst, x.S, i, x.Shape, x.In.BaseURL)
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
func (x *Request) ReadSize() (Place, *format.Answer) {
	p := Place{Size: defaultSize, Token: x.Q.Given["PageToken"].Value}
	if g, there := x.Q.Given["PageSize"]; there {
		size, ok := format.ParseWhole(g.Value)
		switch {
		case (!ok || size == 0) && x.Quirks[SizeForgiven]:
			size = defaultSize
		case !ok || size == 0:
			return p, format.NewInvalid("Page size must be a number greater than 0.")
		case size > maxSize && x.Quirks[SizeRefused]:
			return p, format.NewInvalid("Page size must be at most 1000.")
		}
		p.Size = min(size, maxSize)
	}
	if g, there := x.Q.Given["Page"]; there {
		page, ok := format.ParseWhole(g.Value)
		if !ok {
			return p, format.NewInvalid("Page must be a number, 0 or greater.")
		}
		p.Page = page
	}
	return p, nil
}

// ReadPlace reads where in the list the page stands. The caller holds the world for reading.
func (x *Request) ReadPlace() (Place, *format.Answer) {
	p, r := x.ReadSize()
	if r != nil || p.Token == "" {
		return p, r
	}
	if len(p.Token) < 2 || p.Token[0] != 'P' || p.Token[1] != 'A' && p.Token[1] != 'B' {
		return p, format.NewInvalid("Page token is invalid.")
	}
	index, ok := x.W.Find(x.S, p.Token[2:])
	if !ok {
		return p, format.NewInvalid("Page token is invalid.")
	}
	p.back, p.index = p.Token[1] == 'B', index
	return p, nil
}
