package paging

import (
	"strconv"
	"testing"

	"understudy"
	"understudy/internal/checktest"
)

// A walk by overlapping pages sees every row, each page has the last row of the one
// before it or one before that, and it costs few pages more.
func TestOverlapping(t *testing.T) {
	for _, r := range []Rules{
		{Style: "number", Page: "page", First: 1, Size: "size", Max: 1000}, {Style: "header", Page: "page", Size: "size", Max: 1000},
		{Style: "offset", Page: "start", Size: "size", Max: 1000}, {Style: "offset", Page: "start", First: 1, Size: "size"},
	} {
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		for _, size := range []int64{10, 17, 100, 1000} {
			q := understudy.Query{{Name: "q", Value: "x"}, {Name: "size", Value: strconv.FormatInt(size, 10)}}
			const rows = 5000
			first, end, pages, alone := q, int64(0), 0, 0
			for end < rows {
				at, n, err := r.readPosition(&Answer{Query: q})
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 { // of an offset
					n = size
				}
				from := at - int64(r.First)
				if r.Style != "offset" {
					from *= n
				}
				checktest.MustTrue(t, !(from >= end && end > 0),
					"%s %d: from >= end && end > 0; from is %v, end is %v", r.Style, size, from, end)
				checktest.MustTrue(t, from+n > end, "%s %d: from+n is %v", r.Style, size, from+n)
				checktest.MustTrue(t, from >= end-size, "%s %d: from is %v", r.Style, size, from)
				end = from + n
				pages++
				before := q
				next, ok := r.OverlappingQuery(first, q, int(n))
				if !ok { // no page of such a size has that row and more
					alone++
					next, end = r.queryAt(q, at+1), end+1
				}
				if q = next; !has(q, "q", "x") {
					t.Fatalf("%s lost its filter", q)
				}
				{
					earlier, ok := r.PreviousQuery(q)
					checktest.MustTrue(t, ok, "before %s: ok is false", q)
					checktest.MustTrue(t, has(earlier, "q", "x"), `before %s: has(earlier, "q", "x") is false`, q)
					checktest.MustTrue(t, earlier.String() != q.String(), "before %s: earlier.String() is %v", q,
						earlier.String())
				}
				if _, ok := r.PreviousQuery(before); ok != (pages > 1) {
					t.Fatalf("before %s: %v", before, ok)
				}
			}
			if pages > 2*rows/int(size)+2 || alone > pages/4 {
				t.Errorf("%s: %d pages of %d for %d rows, %d without the row before", r.Style, pages, size, rows, alone)
			}
		}
	}
	for _, r := range []Rules{
		{Style: "number", Page: "page"}, {Style: "cursor", Next: "more", Cursor: "after"},
		{Style: "header", Page: "page", Tokens: []string{"after"}},
	} {
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		if q, ok := r.OverlappingQuery(nil, nil, 5); ok {
			t.Errorf("%+v: %s", r, q)
		}
	}
}

func has(q understudy.Query, name, value string) bool {
	got, _ := q.Get(name)
	return got == value
}
