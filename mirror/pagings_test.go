// A made-up API in every paging style, over real HTTP.

package mirror

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// things is the made-up API: a list of things, the newest first, cut in pages of five
// unless asked for up to ten, however many are asked for.
type things struct {
	way wayOfPaging

	mu   sync.Mutex
	now  func() time.Time
	rows []madeUp
	last int
	came map[string]time.Time
	gone map[string]time.Time

	asked atomic.Int64
	then  func(n int64) // if not nil: after so many answers, with the lock held

	strict bool // a page after a thing that is not there is refused
}

type madeUp struct {
	ID   string `json:"id"`
	At   int64  `json:"at"`
	Text string `json:"text"`
}

// wayOfPaging is a style: the keys of its spec, and what the API answers at a place.
type wayOfPaging struct {
	name, keys string
	bare       bool   // the body is the array
	one        bool   // there is one page
	post       string // asked by POST, the parameters in its body: form or json
	answer     func(x *things, q url.Values, h http.Header) (rows []madeUp, envelope map[string]any)
}

func number(q url.Values, name string, or int) int {
	if n, err := strconv.Atoi(q.Get(name)); err == nil {
		return n
	}
	return or
}

// cut is the rows from one on, as many as are asked for and given.
func (x *things) cut(from int, q url.Values) []madeUp {
	from = max(0, min(from, len(x.rows)))
	return x.rows[from:min(len(x.rows), from+min(number(q, "limit", 5), 10))]
}

// below is where the rows after one begin, whether it is there or not.
func (x *things) below(id string) int {
	n, _ := strconv.Atoi(id)
	i := slices.IndexFunc(x.rows, func(t madeUp) bool { at, _ := strconv.Atoi(t.ID); return at < n })
	if i < 0 {
		return len(x.rows)
	}
	return i
}

// numbered is a page by its number, from 1, and whether one comes after it.
func (x *things) numbered(q url.Values) (rows []madeUp, page int, more bool) {
	page = number(q, "page", 1)
	from := (page - 1) * min(number(q, "limit", 5), 10)
	rows = x.cut(from, q)
	return rows, page, from+len(rows) < len(x.rows)
}

func (x *things) link(q url.Values, page int) string {
	next := url.Values{"page": {strconv.Itoa(page)}}
	if q.Has("limit") {
		next.Set("limit", q.Get("limit"))
	}
	return "https://elsewhere.example/things?" + next.Encode()
}

const sized = ", size: limit, default_size: 5, max_size: 10"

var waysOfPaging = []wayOfPaging{
	{name: "body", keys: "style: body, next: next, page: page, first_page: 1" + sized,
		answer: func(x *things, q url.Values, _ http.Header) ([]madeUp, map[string]any) {
			rows, page, more := x.numbered(q)
			next := any(nil)
			if more {
				next = x.link(q, page+1)
			}
			return rows, map[string]any{"next": next}
		}},
	{name: "header", keys: "style: header, page: page, first_page: 1" + sized, bare: true,
		answer: func(x *things, q url.Values, h http.Header) ([]madeUp, map[string]any) {
			rows, page, more := x.numbered(q)
			if more {
				h.Set("Link", fmt.Sprintf(`<%s>; rel="next", <%s>; rel="first"`, x.link(q, page+1), x.link(q, 1)))
			}
			return rows, nil
		}},
	{name: "number", keys: "style: number, page: page, first_page: 1" + sized, bare: true,
		answer: func(x *things, q url.Values, _ http.Header) ([]madeUp, map[string]any) {
			rows, _, _ := x.numbered(q)
			return rows, nil
		}},
	{name: "number and more", keys: "style: number, page: page, first_page: 1, next: meta.more" + sized,
		answer: func(x *things, q url.Values, _ http.Header) ([]madeUp, map[string]any) {
			rows, _, more := x.numbered(q)
			return rows, map[string]any{"meta": map[string]any{"more": more}}
		}},
	{name: "number of unknown size", keys: "style: number, page: page, first_page: 1, size: limit",
		answer: func(x *things, q url.Values, _ http.Header) ([]madeUp, map[string]any) {
			rows, _, _ := x.numbered(q)
			return rows, map[string]any{}
		}},
	{name: "offset", keys: "style: offset, page: start" + sized,
		answer: func(x *things, q url.Values, _ http.Header) ([]madeUp, map[string]any) {
			return x.cut(number(q, "start", 0), q), map[string]any{}
		}},
	{name: "offset and total", keys: "style: offset, page: start, size: limit, total: total",
		answer: func(x *things, q url.Values, _ http.Header) ([]madeUp, map[string]any) {
			return x.cut(number(q, "start", 0), q), map[string]any{"total": len(x.rows)}
		}},
	{name: "cursor", keys: "style: cursor, next: has_more, cursor: after, back: before" + sized,
		answer: func(x *things, q url.Values, _ http.Header) ([]madeUp, map[string]any) {
			if before := q.Get("before"); before != "" {
				n, _ := strconv.Atoi(before)
				end := x.below(strconv.Itoa(n + 1)) // where it stands, or would
				from := max(0, end-min(number(q, "limit", 5), 10))
				return x.rows[from:end], map[string]any{"has_more": from > 0}
			}
			from := 0
			if q.Has("after") {
				from = x.below(q.Get("after"))
			}
			rows := x.cut(from, q)
			return rows, map[string]any{"has_more": from+len(rows) < len(x.rows)}
		}},
	{name: "token", keys: "style: token, next: page.token, cursor: token" + sized,
		answer: func(x *things, q url.Values, _ http.Header) ([]madeUp, map[string]any) {
			rows, token := x.tokened(q)
			return rows, map[string]any{"page": map[string]any{"token": token}}
		}},
	{name: "token in a header", keys: `style: token, next: "header:X-Next", more: "header:X-More", cursor: token` + sized, bare: true,
		answer: func(x *things, q url.Values, h http.Header) ([]madeUp, map[string]any) {
			rows, token := x.tokened(q)
			h.Set("X-Next", "end")
			if h.Set("X-More", strconv.FormatBool(token != nil)); token != nil {
				h.Set("X-Next", token.(string))
			}
			return rows, nil
		}},
	tokenInBody("form"),
	tokenInBody("json"),
	{name: "none", keys: "style: none", one: true,
		answer: func(x *things, _ url.Values, _ http.Header) ([]madeUp, map[string]any) {
			return x.rows, map[string]any{}
		}},
}

// tokenInBody is the style token in a list that is asked by POST.
func tokenInBody(post string) wayOfPaging {
	return wayOfPaging{name: "token in a body of " + post, post: post, keys: "style: token, next: meta.next_cursor, cursor: token" + sized,
		answer: func(x *things, q url.Values, _ http.Header) ([]madeUp, map[string]any) {
			rows, token := x.tokened(q)
			return rows, map[string]any{"meta": map[string]any{"next_cursor": token}}
		}}
}

// asked are the parameters of a request; the error is that it is not asked as the API takes it.
func (way *wayOfPaging) asked(r *http.Request) (url.Values, error) {
	if way.post == "" {
		return r.URL.Query(), nil
	}
	if r.Method != http.MethodPost || r.URL.RawQuery != "" {
		return nil, fmt.Errorf("%s %s: want a POST without a query", r.Method, r.URL)
	}
	if way.post == "form" {
		err := r.ParseForm()
		return r.PostForm, err
	}
	body, q := map[string]any{}, url.Values{}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	for name, value := range body {
		q.Set(name, fmt.Sprint(value))
	}
	return q, nil
}

// tokened is a page at an opaque token, and the token of the one after it.
func (x *things) tokened(q url.Values) (rows []madeUp, next any) {
	from := 0
	if token := q.Get("token"); token != "" {
		id, _ := base64.StdEncoding.DecodeString(token)
		from = x.below(string(id))
	}
	rows = x.cut(from, q)
	if from+len(rows) < len(x.rows) {
		next = base64.StdEncoding.EncodeToString([]byte(rows[len(rows)-1].ID))
	}
	return rows, next
}

func (x *things) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := x.asked.Add(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.then != nil {
		defer func() { x.then(n) }()
	}
	q, err := x.way.asked(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	after := r.URL.Query().Get("after")
	if x.strict && after != "" && !slices.ContainsFunc(x.rows, func(t madeUp) bool { return t.ID == after }) {
		http.Error(w, `{"error": "no such thing"}`, http.StatusBadRequest)
		return
	}
	rows, envelope := x.way.answer(x, q, w.Header())
	rows = append([]madeUp{}, rows...)
	w.Header().Set("Content-Type", "application/json")
	if x.way.bare {
		_ = json.NewEncoder(w).Encode(rows)
		return
	}
	envelope["rows"] = rows
	_ = json.NewEncoder(w).Encode(envelope)
}

// add puts new things on top.
func (x *things) add(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for range n {
		x.last++
		id := strconv.Itoa(x.last)
		x.rows = slices.Insert(x.rows, 0, madeUp{id, x.now().Unix(), "new"})
		x.came[id] = x.now()
	}
}

// change takes things away, or changes what they say.
func (x *things) change(rng *rand.Rand, n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for range n {
		if len(x.rows) == 0 {
			return
		}
		i := rng.IntN(len(x.rows))
		if rng.IntN(2) == 0 {
			i = rng.IntN(min(8, len(x.rows))) // near the top, where most is read
		}
		if rng.IntN(3) == 0 {
			x.rows[i].Text += "."
			continue
		}
		x.gone[x.rows[i].ID] = x.now()
		x.rows = slices.Delete(x.rows, i, i+1)
	}
}
