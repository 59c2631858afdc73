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
	t.Parallel()
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

// refusing has pages by number up to some rows, says how many there are, and refuses the page behind.
func refusing(status, served int, error string, total object) func(*shelf, url.Values, http.Header) (int, any) {
	return func(s *shelf, q url.Values, _ http.Header) (int, any) {
		page := num(q, "page", 1)
		if 10*(page-1) >= served {
			return status, object{"error": error}
		}
		answer := object{"rows": s.cut(10*(page-1), min(10, served-10*(page-1)))}
		for name, value := range total {
			answer[name] = value
		}
		return http.StatusOK, answer
	}
}

func TestARefusalBehindATotalProvesTheEndUnlessItMayBeALimit(t *testing.T) {
	t.Parallel()
	const inObject = byNumber + ", total: total.value"
	refuses := "the page after the last one has status "
	proveAll(t, map[string]*proof{
		"400 behind 25 of 25": {shelf{paging: withTotal, rows: 25, answer: refusing(400, 25, "no such page", object{"total": 25})}, 25, ""},
		"404 behind 20 of 20": {shelf{paging: withTotal, rows: 20, answer: refusing(404, 20, "Invalid page.", object{"total": 20})}, 20, ""},
		"416 behind 20 of 20": {shelf{paging: withTotal, rows: 20, answer: refusing(416, 20, "", object{"total": 20})}, 20, ""},
		"400 behind a round number": {shelf{paging: withTotal, rows: 45, answer: refusing(400, 30, "bad request", object{"total": 30})}, 30,
			refuses + "400"},
		"422 of a limit": {shelf{paging: withTotal, rows: 45,
			answer: refusing(422, 28, "Only the first 28 search results are available", object{"total": 28})}, 28, refuses + "422"},
		"404 of a limit": {shelf{paging: withTotal, rows: 45,
			answer: refusing(404, 30, "Result window is too large", object{"total": 30})}, 30, refuses + "404"},
		"403": {shelf{paging: withTotal, rows: 45, answer: refusing(403, 28, "", object{"total": 28})}, 28, refuses + "403"},
		"a total that is the least": {shelf{paging: inObject, rows: 45,
			answer: refusing(404, 28, "", object{"total": object{"value": 28, "relation": "gte"}})}, 28, refuses + "404"},
		"a total that is exact": {shelf{paging: inObject, rows: 28,
			answer: refusing(404, 28, "", object{"total": object{"value": 28, "relation": "eq"}})}, 28, ""},
		"a total that is a guess": {shelf{paging: withTotal, rows: 45,
			answer: refusing(404, 28, "", object{"total": 28, "total_is_exact": false})}, 28, refuses + "404"},
	})
}

func TestATotalAboveTheRowsShownLeavesTheEndOpen(t *testing.T) {
	t.Parallel()
	proveAll(t, map[string]*proof{
		"one that the spec does not name": {shelf{paging: byNumber, rows: 25, answer: paged(says(object{"total": 28}))}, 25,
			"announced at least 27 rows and returned 25"},
		"one that the spec does not name, of all rows": {shelf{paging: byNumber, rows: 25, answer: paged(says(object{"total": 25}))}, 25, ""},
		"the least that there are": {shelf{paging: byNumber + ", total: total.value", rows: 30,
			answer: paged(says(object{"total": object{"value": 30, "relation": "gte"}}))}, 30, "announced at least 30 rows and returned 30"},
	})
}

func TestAPageThatLacksRowsLeavesTheEndOpen(t *testing.T) {
	t.Parallel()
	second := func(clue string) func(*shelf, int, int) object {
		return func(_ *shelf, page, _ int) object { return object{clue: page == 2} }
	}
	tokens := tokened(1000, 400)
	proveAll(t, map[string]*proof{
		"a full page in the middle": {shelf{paging: byNumber, rows: 25, answer: paged(second("incomplete_results"))}, 25,
			"the answer says that rows are left out (incomplete_results: true)"},
		"a short page in the middle": {shelf{paging: byNumber + ", total: total", rows: 25,
			answer: func(s *shelf, q url.Values, h http.Header) (int, any) {
				status, body := paged(second("timed_out"))(s, q, h)
				if num(q, "page", 1) == 2 {
					body.(object)["rows"] = s.cut(10, 6)
				}
				return status, body
			}}, 21, "the answer says that rows are left out (timed_out: true)"},
		"a page that a token leads on from": {shelf{paging: byToken, rows: 25,
			answer: func(s *shelf, q url.Values, h http.Header) (int, any) {
				status, body := tokens(s, q, h)
				body.(object)["partial"] = strings.HasSuffix(q.Get("token"), "-10")
				return status, body
			}}, 25, "the answer says that rows are left out (partial: true)"},
	})
}

func TestATokenOnAFullPageIsFollowedThoughItSaysNoMore(t *testing.T) {
	t.Parallel()
	tokens := tokened(1000, 400)
	proveAll(t, map[string]*proof{
		"no more on every page": {shelf{paging: byToken + ", more: more, default_size: 10", rows: 45,
			answer: func(s *shelf, q url.Values, h http.Header) (int, any) {
				status, body := tokens(s, q, h)
				body.(object)["more"] = false
				return status, body
			}}, 45, ""},
	})
}

// ending has pages by number, and an answer behind the last one.
func ending(status int, none any) func(*shelf, url.Values, http.Header) (int, any) {
	pages := paged(plain)
	return func(s *shelf, q url.Values, h http.Header) (int, any) {
		if 10*(num(q, "page", 1)-1) >= s.rows {
			return status, none
		}
		return pages(s, q, h)
	}
}

func TestAnAnswerWithoutRowsEndsAList(t *testing.T) {
	t.Parallel()
	proveAll(t, map[string]*proof{
		"null":          {shelf{paging: byNumber, rows: 20, answer: ending(200, object{"rows": nil})}, 20, ""},
		"null at once":  {shelf{paging: byNumber, rows: 0, answer: ending(200, object{"rows": nil})}, 0, ""},
		"known members": {shelf{paging: withTotal, rows: 20, answer: ending(200, object{"total": 20})}, 20, ""},
		"status 204":    {shelf{paging: byNumber, rows: 20, answer: ending(204, nil)}, 20, ""},
		"204 at once":   {shelf{paging: byNumber, rows: 0, answer: ending(204, nil)}, 0, ""},
	})
}

func TestAListAnsweredWith206IsWalkedToItsEnd(t *testing.T) {
	t.Parallel()
	proveAll(t, map[string]*proof{
		"by offset": {shelf{paging: byOffset, rows: 25, answer: func(s *shelf, q url.Values, h http.Header) (int, any) {
			from := num(q, "from", 0)
			h.Set("Content-Range", strconv.Itoa(from)+"-"+strconv.Itoa(min(from+9, 24))+"/25")
			if from+10 < s.rows {
				return http.StatusPartialContent, object{"rows": s.cut(from, 10)}
			}
			return http.StatusOK, object{"rows": s.cut(from, 10)}
		}}, 25, ""},
	})
}
