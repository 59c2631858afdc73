// Ends of lists: APIs that prove them or do not, over real HTTP.

package crawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"understudy"
	"understudy/internal/crawl"
	"understudy/internal/jobs"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/mirror"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// openSource starts Understudy before an API, whatever its spec.
func openSource(t *testing.T, web *httptest.Server, path string, settings crawl.Settings, src *spec.Source) *system {
	t.Helper()
	sp, h := src.Spec, &system{t: t, api: web, src: src}
	client, err := upstream.New(upstream.Options{Source: h.src, Base: web.URL, User: account, Secret: understudy.NewSecret("slowapitoken"),
		Rate: 1e4, Concurrency: 50})
	must(t, err)
	h.db, err = store.Open(t.Context(), store.Options{Path: path, Specs: map[string]*spec.Spec{src.Name: sp}, SaveTime: storetest.Patience})
	must(t, err)
	var walker *crawl.Crawler
	h.mirror, err = mirror.New(mirror.Options{
		Sources: []mirror.Source{{Source: h.src, Upstream: client}}, Store: h.db,
		PageSaved: func(l request.PageSaved) { _ = walker.HandlePageSaved(t.Context(), l) },
	})
	must(t, err)
	walker, err = crawl.New(crawl.Options{
		Sources: []*spec.Source{h.src}, Mirror: h.mirror, Store: counted{h.db, &h.read}, KV: h.db.KV, Jobs: enqueuer{h}, Settings: settings,
		Now: func() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) },
	})
	must(t, err)
	h.walker = walker
	var kinds []jobs.Kind
	for name, do := range walker.Work() {
		kinds = append(kinds, jobs.Kind{Name: name, Concurrency: 1, Attempts: 100, Backoff: time.Millisecond, MaxBackoff: 50 * time.Millisecond,
			Run: func(ctx context.Context, r *jobs.Run) error { return do(ctx, r) }})
	}
	h.runner, err = jobs.New(jobs.Options{Store: h.db.Jobs, Kinds: kinds, OnlyProcess: true})
	must(t, err)
	must(t, walker.Load(t.Context(), nil))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 4)
	for _, run := range []func(context.Context) error{client.Run, h.mirror.Run, h.runner.Run, walker.Run} {
		go func() { ended <- run(ctx) }()
	}
	stopped := false
	h.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		for range 4 {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("end: %v", err)
			}
		}
		must(t, client.Close())
		must(t, h.db.Close())
	}
	t.Cleanup(h.stop)
	return h
}

// shelf is an API with one list of things, and a habit.
type shelf struct {
	paging string // of its spec
	keys   string // further keys of its list
	rows   int
	answer func(s *shelf, q url.Values, h http.Header) (status int, body any)

	mu     sync.Mutex
	asked  int
	issued int            // tokens
	died   map[string]int // when a token was issued
}

// cut is some of the things.
func (s *shelf) cut(from, n int) (rows []any) {
	rows = []any{}
	for i := max(from, 0); i < min(from+n, s.rows); i++ {
		rows = append(rows, map[string]any{"id": fmt.Sprintf("b%03d", i)})
	}
	return rows
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	status, body := s.answer(s, r.URL.Query(), w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func num(q url.Values, name string, or int) int {
	if n, err := strconv.Atoi(q.Get(name)); err == nil {
		return n
	}
	return or
}

type object = map[string]any

// paged has pages by number from 1, of ten rows, whatever else an answer has.
func paged(more func(s *shelf, page, count int) object) func(*shelf, url.Values, http.Header) (int, any) {
	return func(s *shelf, q url.Values, _ http.Header) (int, any) {
		page := num(q, "page", 1)
		rows := s.cut(10*(page-1), 10)
		body := object{"rows": rows}
		for name, value := range more(s, page, len(rows)) {
			body[name] = value
		}
		return http.StatusOK, body
	}
}

// flagged goes on by the last id; yes and no are how it says whether there is more.
func flagged(yes, no any) func(*shelf, url.Values, http.Header) (int, any) {
	return func(s *shelf, q url.Values, _ http.Header) (int, any) {
		from := 0
		if after := q.Get("after"); after != "" {
			from, _ = strconv.Atoi(strings.TrimPrefix(after, "b"))
			from++
		}
		more := no
		if from+10 < s.rows {
			more = yes
		}
		return http.StatusOK, object{"rows": s.cut(from, 10), "has_more": more}
	}
}

// tokened goes on by tokens that end after some further requests; status is what a dead one
// gets.
func tokened(lives, status int) func(*shelf, url.Values, http.Header) (int, any) {
	return func(s *shelf, q url.Values, _ http.Header) (int, any) {
		from, token := 0, q.Get("token")
		if token != "" {
			issued, known := s.died[token]
			if !known || s.asked-issued > lives {
				return status, object{"ok": false, "error": "no such cursor"}
			}
			from, _ = strconv.Atoi(token[strings.IndexByte(token, '-')+1:])
		}
		var next any
		if from+10 < s.rows {
			s.issued++
			token = fmt.Sprintf("t%d-%d", s.issued, from+10)
			if s.died == nil {
				s.died = map[string]int{}
			}
			s.died[token], next = s.asked, token
		}
		return http.StatusOK, object{"rows": s.cut(from, 10), "next": next}
	}
}

// plainly leaves out the word by which the spec knows an error.
func plainly(answer func(*shelf, url.Values, http.Header) (int, any)) func(*shelf, url.Values, http.Header) (int, any) {
	return func(s *shelf, q url.Values, h http.Header) (int, any) {
		status, body := answer(s, q, h)
		delete(body.(object), "ok")
		return status, body
	}
}

const (
	onePage   = "style: none"
	partLists = ", whole: true"
	withTotal = byNumber + ", total: total"
	byNumber  = "style: number, page: page, first_page: 1, default_size: 10"
	byOffset  = "style: offset, page: from, default_size: 10"
	byFlag    = "style: cursor, next: has_more, cursor: after"
	byToken   = "style: token, next: next, cursor: token"
)

func plain(*shelf, int, int) object { return nil }

func says(all object) func(*shelf, int, int) object {
	return func(*shelf, int, int) object { return all }
}

// proof is what Understudy makes of a shelf.
type proof struct {
	shelf
	held int
	why  string // "" = it is complete
}

var shelves = map[string]*proof{
	"one page that says more": {shelf{paging: onePage, keys: partLists, rows: 25,
		answer: paged(says(object{"meta": object{"has_more": true}}))}, 10, "the answer says that there is more (meta.has_more: true)"},
	"one page that has a next token": {shelf{paging: onePage, keys: partLists, rows: 25,
		answer: paged(says(object{"meta": object{"next_cursor": "4976"}}))}, 10, "meta.next_cursor: 4976"},
	"one page of several": {shelf{paging: onePage, keys: partLists, rows: 25,
		answer: paged(says(object{"paging": object{"pageNo": 1, "pages": 3, "count": 25}}))}, 10, "the answer says that there is more (paging."},
	"one page with a total above it": {shelf{paging: onePage, keys: partLists, rows: 25,
		answer: paged(says(object{"total": 25}))}, 10, "total: 25"},
	"one page with GitLab's headers": {shelf{paging: onePage, keys: partLists, rows: 25,
		answer: func(s *shelf, q url.Values, h http.Header) (int, any) {
			h.Set("X-Next-Page", "2")
			return http.StatusOK, object{"rows": s.cut(0, 10)}
		}}, 10, "X-Next-Page: 2"},
	"one page with a Link header": {shelf{paging: onePage, keys: partLists, rows: 25,
		answer: func(s *shelf, q url.Values, h http.Header) (int, any) {
			h.Set("Link", `</things?page=2>; rel="next"`)
			return http.StatusOK, object{"rows": s.cut(0, 10)}
		}}, 10, "Link: /things?page=2"},
	"one full page": {shelf{paging: "style: none, default_size: 10", keys: ", whole: true", rows: 25, answer: paged(plain)}, 10,
		"the page is full (10 rows)"},
	"one page that nobody vouches for": {shelf{paging: onePage, rows: 8, answer: paged(plain)}, 8,
		"nothing says that this page is all"},
	"one page by the spec": {shelf{paging: onePage, keys: partLists, rows: 8, answer: paged(plain)}, 8, ""},
	"one page that says no more": {shelf{paging: onePage, rows: 8, answer: paged(func(*shelf, int, int) object {
		return object{"has_more": "N"}
	})}, 8, ""},
	"one page without a next one": {shelf{paging: onePage, rows: 8, answer: paged(says(object{"links": object{"next": nil}}))}, 8, ""},
	"a list that leaves some out": {shelf{paging: byFlag, keys: ", whole: false", rows: 25, answer: flagged(true, false)}, 25,
		"leaves out some things"},

	"yes as true and no as false": {shelf{paging: byFlag, rows: 25, answer: flagged(true, false)}, 25, ""},
	"yes as 1 and no as 0":        {shelf{paging: byFlag, rows: 25, answer: flagged(1, 0)}, 25, ""},
	"yes as text":                 {shelf{paging: byFlag, rows: 25, answer: flagged("true", "false")}, 25, ""},
	"yes as a digit":              {shelf{paging: byFlag, rows: 25, answer: flagged("1", "0")}, 25, ""},
	"yes as a letter":             {shelf{paging: byFlag, rows: 25, answer: flagged("Y", "N")}, 25, ""},
	"yes as a word":               {shelf{paging: byFlag, rows: 25, answer: flagged("Yes", "No")}, 25, ""},
	"more that was never there":   {shelf{paging: "style: cursor, next: more, cursor: after", rows: 25, answer: flagged(true, false)}, 25, ""},
	"a next that was never there": {shelf{paging: "style: token, next: nxt, cursor: token", rows: 8, answer: tokened(9, 400)}, 8,
		"no answer had nxt"},

	"a short page in the middle": {shelf{paging: byNumber, rows: 42, answer: func(s *shelf, q url.Values, _ http.Header) (int, any) {
		page := num(q, "page", 1)
		rows := s.cut(10*(page-1), 10)
		if page == 2 {
			rows = rows[1:]
		}
		return http.StatusOK, object{"rows": rows}
	}}, 41, ""},
	"pages that end with 404": {shelf{paging: byNumber, rows: 20, answer: func(s *shelf, q url.Values, _ http.Header) (int, any) {
		rows := s.cut(10*(num(q, "page", 1)-1), 10)
		if len(rows) == 0 {
			return http.StatusNotFound, object{"detail": "Invalid page."}
		}
		return http.StatusOK, object{"rows": rows}
	}}, 20, "the page after the last one has status 404"},
	"a page number that is ignored": {shelf{paging: byNumber, rows: 7, answer: func(s *shelf, _ url.Values, _ http.Header) (int, any) {
		return http.StatusOK, object{"rows": s.cut(0, 10)}
	}}, 7, "the page after the last one repeats it"},

	"a total on the first page alone": {shelf{paging: withTotal, rows: 25,
		answer: paged(func(s *shelf, page, _ int) object {
			if page > 1 {
				return nil
			}
			return object{"total": s.rows}
		})}, 25, ""},
	"a total with a fraction": {shelf{paging: withTotal, rows: 25,
		answer: paged(func(s *shelf, _, _ int) object {
			return object{"total": json.RawMessage(fmt.Sprintf("%d.0", s.rows))}
		})}, 25, ""},
	"a total that is -1": {shelf{paging: withTotal, rows: 25,
		answer: paged(says(object{"total": -1}))}, 25, ""},
	"a total of the page's own rows": {shelf{paging: withTotal, rows: 25,
		answer: paged(func(_ *shelf, _, n int) object {
			return object{"total": n}
		})}, 25, ""},
	"a total below what there is": {shelf{paging: withTotal, rows: 25,
		answer: paged(says(object{"total": 20}))}, 25, ""},
	"a total that a short page in the middle reaches": {shelf{paging: withTotal, rows: 22,
		answer: func(s *shelf, q url.Values, _ http.Header) (int, any) {
			from := []int{0, 10, 16, 22}[min(num(q, "page", 1)-1, 3)] // the second page has six rows
			to := []int{10, 16, 22, 22}[min(num(q, "page", 1)-1, 3)]
			return http.StatusOK, object{"rows": s.cut(from, to-from), "total": 16}
		}}, 22, ""},
	"a total above what is shown": {shelf{paging: withTotal, rows: 25,
		answer: paged(says(object{"total": 28}))}, 25,
		"announced 28 rows and returned 25"},
	"a size that is capped without say": {shelf{paging: byNumber + ", size: size, max_size: 100, total: total", rows: 35,
		answer: sized(10, 20)}, 35, ""},
	"sizes of which few are known": {shelf{paging: byNumber + ", size: size", rows: 35, answer: sized(10, 20, 50)}, 35, ""},

	"an offset among rows that are left out": {shelf{paging: "style: offset, page: from, default_size: 10", rows: 27,
		answer: filtered(func(i int) bool { return i > 20 && i < 25 })}, 23, ""},
	"offsets over a page without rows": {shelf{paging: "style: offset, page: from, next: next", rows: 40,
		answer: filtered(func(i int) bool { return i >= 10 && i < 20 })}, 30, ""},
	"offsets over pages without rows up to a total": {shelf{paging: byOffset + ", total: all_rows", rows: 120,
		answer: filtered(inTheMiddle)}, 70, "announced 120 rows and returned 70"},
	"offsets over pages without rows while more follow": {shelf{paging: byOffset + ", next: more", rows: 120,
		answer: filtered(inTheMiddle)}, 70, ""},
	"offsets over pages without rows where nothing is to be believed": {shelf{paging: byOffset, rows: 120,
		answer: filtered(inTheMiddle)}, 30, "the answer says that there is more (more: true)"},
	"a row that is deleted behind a total": {shelf{paging: withTotal, rows: 25,
		answer: paged(func(s *shelf, page, _ int) object {
			total := s.rows
			if s.rows = 24; page > 1 {
				return nil
			}
			return object{"total": total}
		})}, 24, ""},
	"a last page whose token is its own": {shelf{paging: byToken, rows: 20, answer: func(s *shelf, q url.Values, _ http.Header) (int, any) {
		from := num(q, "token", 0)
		return http.StatusOK, object{"rows": s.cut(from, 10), "next": strconv.Itoa(min(from+10, s.rows))}
	}}, 20, ""},
	"tokens that end with 200 and no list": {shelf{paging: byToken, rows: 60, answer: plainly(tokened(0, 200))}, 10,
		`3 new starts did not reach its end`},
	"tokens that end with 400":    {shelf{paging: byToken, rows: 60, answer: tokened(0, 400)}, 10, "3 new starts did not reach its end"},
	"tokens that end with 403":    {shelf{paging: byToken, rows: 60, answer: tokened(0, 403)}, 10, "3 new starts did not reach its end"},
	"a token that ended once 410": {shelf{paging: byToken, rows: 60, answer: once(410)}, 60, ""},
	"a token that ended once 404": {shelf{paging: byToken, rows: 60, answer: once(404)}, 60, ""},
	"a token that ended once 422": {shelf{paging: byToken, rows: 60, answer: once(422)}, 60, ""},
	"a token that ended once 403": {shelf{paging: byToken, rows: 60, answer: once(403)}, 60, ""},
	"a token that ended once 200": {shelf{paging: byToken, rows: 60, answer: once(200)}, 60, ""},
	"tokens that end with 200": {shelf{paging: byToken, rows: 60, answer: tokened(0, 200)}, 10,
		"(an answer that is marked as an error); 3 new starts"},
}

// once is an API whose tokens are all forgotten at its fourth answer.
func once(status int) func(*shelf, url.Values, http.Header) (int, any) {
	all := tokened(1000, status)
	return func(s *shelf, q url.Values, h http.Header) (int, any) {
		if s.asked == 4 {
			s.died = nil
		}
		return all(s, q, h)
	}
}

// filtered has pages of ten rows by offset, and leaves some out after it has cut them.
func filtered(hidden func(i int) bool) func(*shelf, url.Values, http.Header) (int, any) {
	return func(s *shelf, q url.Values, _ http.Header) (int, any) {
		from, rows := num(q, "from", 0), []any{}
		for i, row := range s.cut(from, 10) {
			if !hidden(from + i) {
				rows = append(rows, row)
			}
		}
		var next any
		if from+10 < s.rows {
			next = from + 10
		}
		return http.StatusOK, object{"rows": rows, "next": next, "more": next != nil, "all_rows": s.rows}
	}
}

func inTheMiddle(i int) bool { return i >= 30 && i < 80 }

// sized knows some page sizes alone, and gives the largest that is not above what was asked.
func sized(known ...int) func(*shelf, url.Values, http.Header) (int, any) {
	return func(s *shelf, q url.Values, _ http.Header) (int, any) {
		size := known[0]
		for _, n := range known {
			if n <= num(q, "size", 10) {
				size = n
			}
		}
		return http.StatusOK, object{"rows": s.cut(size*(num(q, "page", 1)-1), size), "total": s.rows}
	}
}

// A walk is complete only if the end of its list is proven. Whatever it is, all that was
// shown is held, the reason is one sentence, and no advice is part of it.
func TestAWalkIsCompleteOnlyIfItsEndIsProven(t *testing.T) {
	t.Parallel()
	proveAll(t, shelves)
}

func proveAll(t *testing.T, shelves map[string]*proof) {
	t.Helper()
	for name, c := range shelves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &c.shelf
			s.asked = 0
			h := s.open(t)
			state := h.end()
			if state.Complete != (c.why == "") {
				t.Errorf("complete %v, why %q", state.Complete, state.Why)
			}
			if !strings.Contains(state.Why, c.why) {
				t.Errorf("why %q, want %q", state.Why, c.why)
			}
			if n := utf8.RuneCountInString(state.Why); n > 300 {
				t.Errorf("why has %d characters", n)
			}
			if strings.Contains(state.Why, "whole_lists") {
				t.Errorf("why advises a setting: %q", state.Why)
			}
			if held := h.held(); held != c.held {
				t.Errorf("%d held, want %d", held, c.held)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.asked > 60 {
				t.Errorf("%d requests", s.asked)
			}
		})
	}
}

// Whatever status upstream has for a token that it has forgotten, the list is begun again.
func TestATokenRefusedWithAnyStatusBeginsTheListAgain(t *testing.T) {
	t.Parallel()
	all := map[string]*proof{}
	for _, status := range []int{405, 406, 409, 412, 419, 440, 498} {
		all[fmt.Sprint("once ", status)] = &proof{shelf{paging: byToken, rows: 60, answer: once(status)}, 60, ""}
		all[fmt.Sprint("always ", status)] = &proof{shelf{paging: byToken, rows: 60, answer: tokened(0, status)}, 10,
			"3 new starts did not reach its end"}
	}
	proveAll(t, all)
}

// A walk that goes on after a restart with a token that upstream has forgotten begins its
// list again.
func TestATokenThatDiedInARestartBeginsTheListAgain(t *testing.T) {
	t.Parallel()
	reached, release, alive := make(chan struct{}), make(chan struct{}), tokened(1000, http.StatusGone)
	s := &shelf{paging: byToken, rows: 60, answer: func(s *shelf, q url.Values, h http.Header) (int, any) {
		if s.asked == 4 {
			close(reached)
			<-release
		}
		return alive(s, q, h)
	}}
	path := storetest.File(t)
	h := s.openAt(t, path)
	<-reached
	h.stop()
	close(release)
	s.mu.Lock()
	s.died = nil
	s.mu.Unlock()
	again := s.openAt(t, path)
	if state := again.end(); !state.Complete {
		t.Errorf("not complete: %s", state.Why)
	}
	if held := again.held(); held != 60 {
		t.Errorf("%d of 60 are held", held)
	}
}

func (s *shelf) open(t *testing.T) *system { return s.openAt(t, storetest.File(t)) }

// openAt starts Understudy before the API and has its list synced.
func (s *shelf) openAt(t *testing.T, path string) *system {
	t.Helper()
	sp, err := upstream.ReadSpec("shelf.yaml", []byte("name: shelf\nhosts: [{url: \"https://shelf.example\"}]\nauth: {style: none}\n"+
		"errors: {bodies: [{field: ok, in: [\"false\"]}]}\n"+
		"paging: {"+s.paging+"}\nkinds:\n  - name: things\n    id: [id]\n    lists: [{path: /things, key: rows"+s.keys+"}]\n"+
		"    fields: [{name: id}]\n"))
	must(t, err)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	h := openSource(t, web, path, crawl.Settings{}, &spec.Source{Name: "shelf", Spec: sp, PublicURL: "http://127.0.0.1:4199"})
	must(t, h.walker.Keep(t.Context(), "shelf", "things"))
	return h
}

// end waits until the walk has ended, well or not.
func (h *system) end() (s crawl.State) {
	h.t.Helper()
	h.await("the end of the walk", func() bool {
		var err error
		s, err = h.walker.ReadState(h.t.Context(), "shelf", "things")
		must(h.t, err)
		return s.Complete || s.Failed
	})
	return s
}

// held counts the things that are held.
func (h *system) held() int {
	h.t.Helper()
	rows, err := h.db.ReadRows(context.Background(), query.RangeScan{Source: "shelf", Kind: "things", Shape: "things",
		NoClock: true, Limit: 1000})
	must(h.t, err)
	return len(slices.Clip(rows))
}
