// Answers that say an error beside their rows, and other ends that are none.

package crawl_test

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"
)

// TestAnErrorBesideNoRowsIsNoEnd walks lists that say an error with status 200, and other ends that prove nothing.
func TestAnErrorBesideNoRowsIsNoEnd(t *testing.T) {
	t.Parallel()
	proveAll(t, map[string]*proof{
		"a record that a page has twice": {shelf{paging: byToken, rows: 9, answer: func(s *shelf, _ url.Values, _ http.Header) (int, any) {
			return http.StatusOK, object{"rows": append(s.cut(0, 9), s.cut(3, 1)...), "next": nil}
		}}, 9, "two rows of one page"},
		"an error beside no rows": {shelf{paging: byToken, rows: 60, answer: failing}, 20, "overloaded"},
		"an error beside no rows, by offset": {shelf{paging: byOffset, rows: 60, answer: func(s *shelf, q url.Values, _ http.Header) (int, any) {
			from, _ := strconv.Atoi(q.Get("from"))
			if from >= 20 {
				return http.StatusOK, object{"rows": []any{}, "status": "error"}
			}
			return http.StatusOK, object{"rows": s.cut(from, 10)}
		}}, 28, "status: error"},
		"a total that the end by tokens contradicts": {shelf{paging: byToken, rows: 60, answer: func(s *shelf, q url.Values,
			h http.Header) (int, any) {
			status, body := failing(s, q, h)
			delete(body.(object), "error")
			body.(object)["total"] = s.rows
			return status, body
		}}, 20, "at least 59 rows"},
	})
}

// failing is an API that says an error beside no rows in place of its third page.
func failing(s *shelf, q url.Values, _ http.Header) (int, any) {
	from, _ := strconv.Atoi(q.Get("token"))
	if from == 20 {
		return http.StatusOK, object{"rows": []any{}, "error": "overloaded", "next": nil}
	}
	return http.StatusOK, object{"rows": s.cut(from, 10), "next": strconv.Itoa(from + 10)}
}
