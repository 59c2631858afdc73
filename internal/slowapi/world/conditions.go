// Requests for lists: which records match the filters, and where a page begins.
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

// Request is a request for one of Twilio's paths. It is for one goroutine.
type Request struct {
	Incoming       *table.Request
	World          *World
	Quirks         Quirks
	Query          format.Query
	Account        int        // the number of the account
	Sequence       *Sequence  // the records of the kind in the path; nil if the path has no kind
	Parent         int64      // the index of the record to which a list belongs
	Index          int64      // the index of the record that the path names
	ListCondition  *Condition // the condition for the records of the kind that belong to the list; nil if all do
	Filters        []Filter
	Key            string            // the name of the JSON array in a list
	Shape          string            // the name of the template for the records
	Preset         map[string]string // the fields that a new record gets besides those in the form
	IncludeDeleted bool              // whether recently deleted records are included

	conditions []Condition // the conditions of the list itself and of the filters in the query
	lo, hi     int64       // the lowest and the highest index that a matching record can have, unless it is among the late records
	row        Row
}

// IsVisible reports whether this request may show a record.
func (x *Request) IsVisible(i int64) bool {
	return x.Sequence.HasRecord(i) || x.IncludeDeleted && x.Sequence.IsRecentlyDeleted(i, x.World.Now().Unix())
}

// List returns the response with a page of a list. rows is the JSON of count records. next and previous are the
// tokens of the pages beside it. next is "" on the last page.
func (x *Request) List(p PagePosition, rows []byte, count int, next, previous string) format.Answer {
	shape, base := "page", string(x.Query.Echo([]byte(x.Incoming.Path+"?"), KeysOf(x.Filters)))
	if strings.HasPrefix(x.Incoming.Path, format.MonitorVersion+"/") {
		shape, base = "monitor_page", x.Incoming.BaseURL+base
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
	return format.Answer{Status: http.StatusOK, Body: x.World.Shapes[shape].Append(make([]byte, 0, 1024+len(rows)), v, "")}
}

// Variant returns the name of the template that begins with prefix. If there is none, it returns that of the list. The template
// of a single record may have more fields than that of a list. That of a new record may have fewer, or a secret.
func (x *Request) Variant(prefix string) string {
	if x.World.Shapes[prefix+x.Shape] != nil {
		return prefix + x.Shape
	}
	return x.Shape
}

// NewNotFound returns the 404 response for the path of the request.
func (x *Request) NewNotFound() format.Answer { return *format.NewNotFound(x.Incoming.Path) }

// ReadFilters parses the filters in the query. It returns an error response if one is not valid, otherwise nil. The
// caller holds Mu.
func (x *Request) ReadFilters() *format.Answer {
	x.hi, x.IncludeDeleted = math.MaxInt64, false
	if x.ListCondition != nil {
		x.conditions, x.lo, x.hi = append(x.conditions, *x.ListCondition), x.ListCondition.Lo, x.ListCondition.Hi
	}
	for _, f := range x.Filters {
		g := x.Query.Given[f.Key]
		if g.Value == "" {
			continue // a filter that is missing or empty matches all records
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

// Match reports whether a record meets all conditions.
func (x *Request) Match(r *Row) bool {
	return !slices.ContainsFunc(x.conditions, func(c Condition) bool { return !c.Match(r) })
}

// olderCandidate returns the highest index up to i whose record may meet the conditions. It returns -1 if there is
// none. Candidates are the indexes from lo to hi, and the late records.
func (x *Request) olderCandidate(i int64) int64 {
	best := min(i, x.hi, x.Sequence.Count()-1)
	if best < x.lo {
		best = -1
	}
	pos, _ := slices.BinarySearch(x.Sequence.late, i+1)
	if pos > 0 {
		best = max(best, x.Sequence.late[pos-1])
	}
	return best
}

// newerCandidate returns the lowest index from i on whose record may meet the conditions. It returns Count if there is none.
func (x *Request) newerCandidate(i int64) int64 {
	count := x.Sequence.Count()
	best := max(i, x.lo)
	if best > x.hi {
		best = count
	}
	pos, _ := slices.BinarySearch(x.Sequence.late, i)
	if pos < len(x.Sequence.late) {
		best = min(best, x.Sequence.late[pos])
	}
	return min(best, count)
}

// testBatch is the number of records that are tested before Mu is released, so that writers can continue.
const testBatch = 512

// CollectDown returns at most n matching indexes, from start downwards. It leaves out the first skip matches.
func (x *Request) CollectDown(ctx context.Context, start int64, skip int64, n int) ([]int64, error) {
	if skip > 0 && len(x.conditions) == 0 {
		x.World.Mu.RLock()
		start, skip = x.Sequence.nthNewest(skip), 0
		x.World.Mu.RUnlock()
	}
	return x.walk(ctx, start, skip, n, func(i int64) (int64, int64) { i = x.olderCandidate(i); return i, i - 1 })
}

// collectUp returns the first n matching indexes, from start upwards. In the result, the newest is first.
func (x *Request) collectUp(ctx context.Context, start int64, n int) ([]int64, error) {
	found, err := x.walk(ctx, start, 0, n, func(i int64) (int64, int64) {
		if i = x.newerCandidate(i); i >= x.Sequence.Count() {
			return -1, i
		}
		return i, i + 1
	})
	slices.Reverse(found)
	return found, err
}

// walk returns at most n matching indexes, without the first skip matches. next returns the first candidate at or after an
// index in the direction of the walk, or -1 if there is none. It also returns the index at which to continue.
func (x *Request) walk(ctx context.Context, at, skip int64, n int, next func(int64) (int64, int64)) (found []int64, _ error) {
	for i := int64(0); i >= 0 && len(found) < n; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x.World.Mu.RLock()
		for range testBatch {
			if i, at = next(at); i < 0 || len(found) == n {
				break
			}
			if !x.IsVisible(i) {
				continue
			}
			x.row = Row{World: x.World, Sequence: x.Sequence, Index: i}
			if x.Match(&x.row) {
				if skip--; skip < 0 {
					found = append(found, i)
				}
			}
		}
		x.World.Mu.RUnlock()
	}
	return found, nil
}

// CollectPage returns the indexes of the records on a page, newest first. The page token decides where the page
// begins. Without a token, this is decided by the number of the page.
func (x *Request) CollectPage(ctx context.Context, p PagePosition) ([]int64, error) {
	if p.backwards {
		return x.collectUp(ctx, p.index+1, int(p.Size))
	}
	if p.Token != "" {
		return x.CollectDown(ctx, p.index-1, 0, int(p.Size))
	}
	skip := p.Page * p.Size
	if x.Quirks[PageIgnored] {
		skip = 0
	}
	return x.CollectDown(ctx, math.MaxInt64-1, skip, int(p.Size))
}

// RecordSID returns the SID of a record. The caller does not hold Mu.
func (x *Request) RecordSID(i int64) string {
	x.World.Mu.RLock()
	defer x.World.Mu.RUnlock()
	return x.World.SID(x.Sequence, i)
}

// AppendRows appends the JSON of records, separated by commas. It releases Mu after every 64 records, so that writers
// do not wait long.
func (x *Request) AppendRows(dst []byte, found []int64) []byte {
	first := true
	for some := range slices.Chunk(found, 64) {
		x.World.Mu.RLock()
		for _, i := range some {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = x.World.Show(dst, x.Sequence, i, x.Shape, x.Incoming.BaseURL)
		}
		x.World.Mu.RUnlock()
	}
	return dst
}

// PagePosition says which page of a list is requested.
type PagePosition struct {
	Size, Page int64
	Token      string
	backwards  bool  // whether the page token requests records that are newer than index
	index      int64 // the index of the record in the page token
}

const (
	defaultSize = 50   // the default number of records on a page
	maxSize     = 1000 // the maximum number of records on a page
)

// ReadPageSize parses PageSize and Page. It copies PageToken without checking it.
func (x *Request) ReadPageSize() (PagePosition, *format.Answer) {
	p := PagePosition{Size: defaultSize, Token: x.Query.Given["PageToken"].Value}
	if g, there := x.Query.Given["PageSize"]; there {
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
	if g, there := x.Query.Given["Page"]; there {
		page, ok := format.ParseWhole(g.Value)
		if !ok {
			return p, format.NewInvalid("Page must be a number, 0 or greater.")
		}
		p.Page = page
	}
	return p, nil
}

// ReadPosition parses PageSize, Page and PageToken. It returns an error response if one is not valid. The caller holds Mu.
func (x *Request) ReadPosition() (PagePosition, *format.Answer) {
	p, r := x.ReadPageSize()
	if r != nil || p.Token == "" {
		return p, r
	}
	if len(p.Token) < 2 || p.Token[0] != 'P' || p.Token[1] != 'A' && p.Token[1] != 'B' {
		return p, format.NewInvalid("Page token is invalid.")
	}
	index, ok := x.World.Find(x.Sequence, p.Token[2:])
	if !ok {
		return p, format.NewInvalid("Page token is invalid.")
	}
	p.backwards, p.index = p.Token[1] == 'B', index
	return p, nil
}
