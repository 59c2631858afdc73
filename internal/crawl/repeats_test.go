// Ids that come again on another page, over real HTTP.

package crawl_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// numbered has pages of ten rows by number or token. row says which id the row at a place has at an
// answer, and which content.
func numbered(row func(i, asked int) (id, n int)) func(*shelf, url.Values, http.Header) (int, any) {
	return func(s *shelf, q url.Values, _ http.Header) (int, any) {
		size := num(q, "size", 10)
		from := num(q, "token", size*(num(q, "page", 1)-1))
		rows := []any{}
		for i := from; i < min(from+size, s.rows); i++ {
			id, n := row(i, s.asked)
			rows = append(rows, object{"id": fmt.Sprintf("b%03d", id), "n": n})
		}
		var next any
		if from+size < s.rows {
			next = strconv.Itoa(from + size)
		}
		return http.StatusOK, object{"rows": rows, "next": next}
	}
}

var repeated = map[string]*proof{
	"an id that two records have on two pages": {shelf{paging: byToken, rows: 25, answer: numbered(func(i, _ int) (id, n int) {
		return i % 20, i
	})}, 20, "several contents with the id b000; check whether id is the right id field in the spec"},
	"an id that two records have on one page": {shelf{paging: byNumber, rows: 8, answer: numbered(func(i, _ int) (id, n int) {
		return i % 7, i
	})}, 7, "several contents with the id b000"},
	"an id that two records have far apart": {shelf{paging: byNumber, rows: 42, answer: numbered(func(i, _ int) (id, n int) {
		return i % 41, i
	})}, 41, "several contents with the id b000"},
	"a row that comes twice": {shelf{paging: byToken, rows: 25, answer: numbered(func(i, _ int) (id, n int) {
		return i % 20, i % 20
	})}, 20, ""},
	"a row that moved and changed": {shelf{paging: byNumber, rows: 25, answer: numbered(func(i, asked int) (id, n int) {
		if id = i; asked > 1 {
			id-- // one came before it
		}
		return id + 1, asked / 2
	})}, 25, ""},
	"contents that change with each answer": {shelf{paging: byNumber + ", size: size", rows: 95,
		answer: numbered(func(i, asked int) (id, n int) {
			return i, asked
		})}, 95, ""},
}

// byLastID has things from the newest to the oldest, without a word of whether there are more. The
// parameter before leads to older ones, after to newer ones.
func byLastID(s *shelf, q url.Values, _ http.Header) (int, any) {
	from, to := 0, s.rows // places of an ascending list
	if before := q.Get("before"); before != "" {
		to, _ = strconv.Atoi(before[1:])
	}
	if after := q.Get("after"); after != "" {
		from, _ = strconv.Atoi(after[1:])
		from++
	}
	rows := s.cut(max(from, to-10), min(10, to-from))
	slices.Reverse(rows)
	return http.StatusOK, object{"rows": rows}
}

var lastIDs = map[string]*proof{
	"the last id until a page has no rows": {shelf{paging: "style: cursor, cursor: before", rows: 25, answer: byLastID}, 25, ""},
	"the last id in the wrong direction": {shelf{paging: "style: cursor, cursor: after", rows: 25, answer: byLastID}, 10,
		"the page after a record shows earlier records again"},
	"the last id though the answer says more": {shelf{paging: "style: cursor, cursor: before", rows: 25,
		answer: func(s *shelf, q url.Values, h http.Header) (int, any) {
			status, body := byLastID(s, q, h)
			body.(object)["has_more"] = true
			return status, body
		}}, 25, "has_more: true"},
}

func TestAListByTheLastIDIsCompleteAfterAPageWithoutRows(t *testing.T) { proveAll(t, lastIDs) }

// A list is not complete where several of its records have one id. Records that change or move while
// the list is walked are not taken for that.
func TestAListWhoseIDsAreNotUniqueIsNotComplete(t *testing.T) { proveAll(t, repeated) }

// A list whose ids were unique when it was walked is covered no more once a sweep finds an id twice.
func TestAnIDThatIsNoLongerUniqueEndsTheCoverage(t *testing.T) {
	t.Parallel()
	shared := atomic.Bool{}
	s := &shelf{paging: byToken, rows: 25, answer: numbered(func(i, _ int) (id, n int) {
		if shared.Load() {
			return i % 20, i
		}
		return i, i
	})}
	h := s.open(t)
	if state := h.end(); !state.Complete {
		t.Fatalf("not complete: %s", state.Why)
	}
	shared.Store(true)
	h.ahead.Add(int64(25 * time.Hour))
	must(t, h.walker.Keep(t.Context(), "shelf", "things"))
	h.await("the sweep", func() bool {
		state, err := h.walker.ReadState(t.Context(), "shelf", "things")
		must(t, err)
		return strings.Contains(state.Why, "several contents with the id")
	})
	if c, ok := h.walker.Coverage("shelf", "things", "", "", 0, 0); ok {
		t.Errorf("covered: %+v", c)
	}
}
