package crawl_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
)

// without is paged, and has no rows on some pages.
func without(more func(s *shelf, page, count int) object, empty ...int) func(*shelf, url.Values, http.Header) (int, any) {
	all := paged(more)
	return func(s *shelf, q url.Values, h http.Header) (int, any) {
		status, body := all(s, q, h)
		if slices.Contains(empty, num(q, "page", 1)) {
			body.(object)["rows"] = []any{}
		}
		return status, body
	}
}

func totalPages(s *shelf, _, _ int) object {
	return object{"meta": object{"total_pages": (s.rows + 9) / 10}}
}

func totalRows(s *shelf, _, _ int) object { return object{"total": s.rows} }

// A page without rows ends a list only where the page behind it has none either, or upstream says
// that the list ends.
func TestAnEmptyPageInTheMiddleIsNoEnd(t *testing.T) {
	t.Parallel()
	proveAll(t, map[string]*proof{
		"an empty page":                    {shelf{paging: byNumber, rows: 50, answer: without(plain, 3)}, 40, ""},
		"an empty first page":              {shelf{paging: byNumber, rows: 50, answer: without(plain, 1)}, 40, ""},
		"an empty page behind a short one": {shelf{paging: byNumber, rows: 45, answer: without(plain, 4)}, 35, ""},
		"two empty pages and a page count": {shelf{paging: byNumber, rows: 60, answer: without(totalPages, 3, 4)}, 40, ""},
		"an empty list":                    {shelf{paging: byNumber, rows: 0, answer: paged(plain)}, 0, ""},
		"404 behind an empty page":         {shelf{paging: byNumber, rows: 20, answer: notFoundFrom(4, plain)}, 20, ""},
		"offsets over an empty page":       {shelf{paging: byOffset, rows: 45, answer: plainOffsets(20)}, 35, ""},
		"a total that says what is missing": {shelf{paging: withTotal, rows: 50, answer: without(totalRows, 3)}, 40,
			"announced 50 rows and returned 40"},
	})
}

// notFoundFrom answers 404 from a page on.
func notFoundFrom(first int, more func(*shelf, int, int) object) func(*shelf, url.Values, http.Header) (int, any) {
	pages := paged(more)
	return func(s *shelf, q url.Values, h http.Header) (int, any) {
		if num(q, "page", 1) >= first {
			return http.StatusNotFound, object{"detail": "Invalid page."}
		}
		return pages(s, q, h)
	}
}

// plainOffsets has pages of ten rows by offset, of which one is empty, and says nothing of what follows.
func plainOffsets(hole int) func(*shelf, url.Values, http.Header) (int, any) {
	all := filtered(func(i int) bool { return i >= hole && i < hole+10 })
	return func(s *shelf, q url.Values, h http.Header) (int, any) {
		status, body := all(s, q, h)
		return status, object{"rows": body.(object)["rows"]}
	}
}

// A count of pages contradicts an end as a total does.
func TestACountOfPagesContradictsAnEnd(t *testing.T) {
	t.Parallel()
	absent := func(answer func(*shelf, url.Values, http.Header) (int, any)) func(*shelf, url.Values, http.Header) (int, any) {
		return func(s *shelf, q url.Values, h http.Header) (int, any) {
			status, body := answer(s, q, h)
			if body.(object)["next"] == nil {
				delete(body.(object), "next")
			}
			return status, body
		}
	}
	counted := func(pages any) func(s *shelf, q url.Values, h http.Header) (int, any) {
		tokens := tokened(1000, 400)
		return func(s *shelf, q url.Values, h http.Header) (int, any) {
			status, body := tokens(s, q, h)
			stated := pages
			if stated == nil {
				stated = len(body.(object)["rows"].([]any))
			}
			body.(object)["meta"] = object{"total_pages": stated}
			return status, body
		}
	}
	proveAll(t, map[string]*proof{
		"tokens end before the last page": {shelf{paging: byToken, rows: 25, answer: counted(5)}, 25, "announced 5 pages and returned 3"},
		"tokens are absent before the last page": {shelf{paging: byToken, rows: 25, answer: absent(counted(5))}, 25,
			"announced 5 pages and returned 3"},
		"tokens are absent on the last page": {shelf{paging: byToken, rows: 25, answer: absent(counted(3))}, 25, ""},
		"tokens end with the last page":      {shelf{paging: byToken, rows: 25, answer: counted(3)}, 25, ""},
		"tokens end behind the last page":    {shelf{paging: byToken, rows: 25, answer: counted(2)}, 25, ""},
		"a count of the page's rows":         {shelf{paging: byToken, rows: 25, answer: counted(nil)}, 25, ""},
		"404 before the last page": {shelf{paging: byNumber, rows: 20, answer: notFoundFrom(4, says(object{"total_pages": 9}))}, 20,
			"status 404"},
	})
}
