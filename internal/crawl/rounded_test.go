// APIs that begin a page before the offset that was asked for.

package crawl_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	draw "understudy/internal/sample"
)

// rounded has pages by offset that begin at the last multiple of step before it; step 0: of the limit.
func rounded(step int, more func(s *shelf, from, size int) object) func(*shelf, url.Values, http.Header) (int, any) {
	return func(s *shelf, q url.Values, _ http.Header) (int, any) {
		size, every := num(q, "size", 10), step
		if every == 0 {
			every = size
		}
		from := num(q, "from", 0)
		from -= from % every
		body := object{"rows": s.cut(from, size)}
		for name, value := range more(s, from, size) {
			body[name] = value
		}
		return http.StatusOK, body
	}
}

func silent(*shelf, int, int) object { return nil }

func counting(s *shelf, _, _ int) object { return object{"total": s.rows} }

func leading(s *shelf, from, size int) object {
	if from+size < s.rows {
		return object{"next": from + size}
	}
	return object{"next": nil}
}

const (
	byLimit = "style: offset, page: from, size: size, default_size: 10, max_size: 20"
	unsized = "style: offset, page: from"

	roundedWhy = "a page begins before the requested offset and repeats the previous page"
)

var roundedShelves = map[string]*proof{
	"a total":                      {shelf{paging: byLimit + ", total: total", rows: 45, answer: rounded(0, counting)}, 45, ""},
	"a next offset":                {shelf{paging: byLimit + ", next: next", rows: 45, answer: rounded(0, leading)}, 45, ""},
	"a next offset, no size":       {shelf{paging: unsized + ", next: next", rows: 45, answer: rounded(0, leading)}, 45, ""},
	"nothing, and a short page":    {shelf{paging: byLimit, rows: 45, answer: rounded(0, silent)}, 45, ""},
	"nothing, and full pages":      {shelf{paging: byLimit, rows: 40, answer: rounded(0, silent)}, 40, ""},
	"nothing, and one row at last": {shelf{paging: byLimit, rows: 41, answer: rounded(0, silent)}, 41, ""},
	"nothing, and one page":        {shelf{paging: byLimit, rows: 7, answer: rounded(0, silent)}, 7, "repeats it"},
	"half a limit, a total":        {shelf{paging: byLimit + ", total: total", rows: 45, answer: rounded(5, counting)}, 45, ""},
	"half a limit, a next offset":  {shelf{paging: byLimit + ", next: next", rows: 43, answer: rounded(5, leading)}, 43, ""},
	"an odd step, nothing":         {shelf{paging: byLimit, rows: 45, answer: rounded(7, silent)}, 45, ""},
	"two limits, a total":          {shelf{paging: unsized + ", total: total", rows: 45, answer: rounded(20, counting)}, 10, roundedWhy},
	"more than a limit, sized":     {shelf{paging: byLimit, rows: 45, answer: rounded(25, silent)}, 20, roundedWhy},
	"two limits, nothing":          {shelf{paging: unsized, rows: 45, answer: rounded(20, silent)}, 10, roundedWhy},
}

// A walk over offsets that upstream rounds down holds every row, and says that it is complete only
// where the end is proven.
func TestAWalkOverRoundedOffsetsSaysWhatIsTrueOfItsEnd(t *testing.T) {
	t.Parallel()
	proveAll(t, roundedShelves)
	for rows := 30; rows < 50 && draw.IsFullRun(); rows += 3 {
		for _, step := range []int{0, 4, 5, 7, 9, 13, 19, 20, 21, 25, 29} {
			for name, paging := range map[string]string{"sized": byLimit, "not sized": unsized} {
				s := &shelf{paging: paging, rows: rows, answer: rounded(step, silent)}
				h := s.open(t)
				if state, held := h.end(), h.held(); state.Complete && held < rows {
					t.Errorf("steps of %d, %s: complete with %d of %d rows", step, name, held, rows)
				}
				h.stop()
			}
		}
	}
}

// A list made from records has links of its own, so that none is made where upstream's links have
// parameters that clients go by.
func TestListsWhoseLinksHaveParametersAreNotMadeFromRecords(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]bool{``: true, `; results="true"; cursor="0:10:0"`: false} {
		s := &shelf{paging: "style: header, page: page, first_page: 1, size: size, default_size: 10", rows: 25,
			answer: func(s *shelf, q url.Values, h http.Header) (int, any) {
				page := num(q, "page", 1)
				if 10*page < s.rows {
					h.Set("Link", fmt.Sprintf(`</things?page=%d>; rel="next"`, page+1)+params)
				}
				return http.StatusOK, object{"rows": s.cut(10*(page-1), 10)}
			}}
		h := s.open(t)
		if state := h.end(); !state.Complete {
			t.Errorf("%q: not complete: %s", params, state.Why)
		}
		c, covered := h.walker.Coverage("shelf", "things", "", "", 0, 0)
		if covered != want {
			t.Errorf("%q: covered %v: %s", params, covered, c.Missing)
		}
	}
}
