package crawl_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// flaggedOn goes on by the last id; some pages say whether there is more.
func flaggedOn(pages ...int) func(*shelf, url.Values, http.Header) (int, any) {
	all := flagged(true, false)
	return func(s *shelf, q url.Values, h http.Header) (int, any) {
		status, body := all(s, q, h)
		after, _ := strconv.Atoi(strings.TrimPrefix(q.Get("after"), "b")) // 0: the first page
		if answer, ok := body.(object); ok && !slices.Contains(pages, (after+9)/10) {
			delete(answer, "has_more")
		}
		return status, body
	}
}

func TestAnAbsentFlagIsNoEndOfAList(t *testing.T) {
	proveAll(t, map[string]*proof{
		"more on the first page alone":   {shelf{paging: byFlag, rows: 45, answer: flaggedOn(0)}, 45, ""},
		"more on some pages":             {shelf{paging: byFlag, rows: 45, answer: flaggedOn(0, 1, 3)}, 45, ""},
		"more on all pages but the last": {shelf{paging: byFlag, rows: 40, answer: flaggedOn(0, 1, 2)}, 40, ""},
		"more on no page and a cursor that is ignored": {shelf{paging: byFlag, rows: 25,
			answer: func(s *shelf, _ url.Values, _ http.Header) (int, any) {
				return http.StatusOK, object{"rows": s.cut(0, 10)}
			}}, 10,
			"the page after a record ends with that record"},
	})
}
