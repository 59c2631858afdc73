// A malicious upstream: lists without an end, in every paging style, and links that lead
// elsewhere, before walks of ours and before readers that follow our links.

package faults

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/crawl"
	"understudy/internal/sample"
)

const (
	hostileSize   = 5  // rows of a page
	hostileRows   = 15 // of a list that has an end
	hostilePages  = 60 // sync.pages
	hostileSecret = "upstream-secret-of-the-hostile-1"
	hostileCaller = "a-token-of-a-caller-of-the-hostile-1"
	evilValue     = "t\r\nX-Evil: 1\r\n\r\nGET /evil"
)

// hostileStyle is a paging style. Pages begin at a row, whose number is what a request
// names; a style that leads on by a word of upstream's has that number as the word.
type hostileStyle struct {
	name, keys, post string
	bare             bool
	begin            string                  // the query of the first page
	place            func(url.Values) string // what a request names; "" = the first page
	lead             func(a *hostileAnswer)  // says how the list goes on
	next             func(a *ourAnswer) string
}

// hostileAnswer is an answer under way.
type hostileAnswer struct {
	header http.Header
	body   map[string]any
	ids    []string
	next   string // the place of the page after it, "" = it is the last
	link   string // to that page
}

// ourAnswer is an answer of ours, as a client reads it.
type ourAnswer struct {
	rig.Reply
	asked url.Values
	body  map[string]any
	ids   []string
}

func (a *ourAnswer) text(name string) string {
	text, _ := a.body[name].(string)
	return text
}

// on is the query of a page that is named by a parameter, "" without a value.
func on(name, value string) string {
	if value == "" {
		return ""
	}
	return url.Values{name: {value}}.Encode()
}

func param(name string) func(url.Values) string {
	return func(q url.Values) string { return q.Get(name) }
}

// afterRow is the place behind the row that a cursor names, in either direction.
func afterRow(q url.Values) string {
	id := cmp.Or(q.Get("after"), q.Get("before"))
	n, err := strconv.Atoi(strings.TrimPrefix(id, "r"))
	switch {
	case err != nil:
		return id
	case q.Has("before"):
		return strconv.Itoa(n + hostileSize)
	}
	return strconv.Itoa(n + 1)
}

func hostileStyles() []*hostileStyle {
	none := func(*hostileAnswer) {}
	more := func(a *hostileAnswer) { a.body["more"] = a.next != "" }
	token := func(a *hostileAnswer) { a.body["next"] = a.next }
	tokenOf := func(a *ourAnswer) string { return on("at", a.text("next")) }
	number := func(q url.Values) string {
		page, _ := strconv.Atoi(q.Get("page"))
		size, _ := strconv.Atoi(q.Get("limit"))
		return strconv.Itoa(max(0, page-1) * min(cmp.Or(size, hostileSize), hostileSize))
	}
	count := func(name string, step, first int) func(a *ourAnswer) string {
		return func(a *ourAnswer) string {
			if more, said := a.body["more"].(bool); said && !more || len(a.ids) == 0 {
				return ""
			}
			at, err := strconv.Atoi(a.asked.Get(name))
			if err != nil {
				at = first
			}
			return on(name, strconv.Itoa(at+step))
		}
	}
	row := func(name string, last bool) func(a *ourAnswer) string {
		return func(a *ourAnswer) string {
			switch more, _ := a.body["more"].(bool); {
			case !more || len(a.ids) == 0:
				return ""
			case last:
				return on(name, a.ids[len(a.ids)-1])
			}
			return on(name, a.ids[0])
		}
	}
	return []*hostileStyle{
		{name: "body", keys: "style: body, next: next, tokens: [at]", place: param("at"),
			lead: func(a *hostileAnswer) { a.body["next"] = a.link },
			next: func(a *ourAnswer) string { return a.text("next") }},
		{name: "header", keys: "style: header, tokens: [at]", bare: true, place: param("at"),
			lead: func(a *hostileAnswer) {
				if a.link != "" {
					a.header.Set("Link", "<"+a.link+`>; rel="next"`)
				}
			},
			next: func(a *ourAnswer) string {
				link, _, _ := strings.Cut(strings.TrimPrefix(a.Header.Get("Link"), "<"), ">")
				return link
			}},
		{name: "cursor", keys: "style: cursor, next: more, cursor: after, back: before", place: afterRow, lead: more, next: row("after", true)},
		{name: "cursor back", keys: "style: cursor, next: more, cursor: after, back: before", begin: "before=r-5", place: afterRow, lead: more,
			next: row("before", false)},
		{name: "token", keys: "style: token, next: next, cursor: at", place: param("at"), lead: token, next: tokenOf},
		{name: "token in a header", keys: `style: token, next: "header:X-Next", cursor: at`, bare: true, place: param("at"),
			lead: func(a *hostileAnswer) { a.header.Set("X-Next", a.next) },
			next: func(a *ourAnswer) string { return on("at", a.Header.Get("X-Next")) }},
		{name: "token in a form", keys: "style: token, next: next, cursor: at", post: "form", place: param("at"), lead: token, next: tokenOf},
		{name: "token in an object", keys: "style: token, next: next, cursor: at", post: "json", place: param("at"), lead: token, next: tokenOf},
		{name: "number", keys: "style: number, page: page, first_page: 1", bare: true, place: number, lead: none, next: count("page", 1, 1)},
		{name: "number and more", keys: "style: number, page: page, first_page: 1, next: more", place: number, lead: more,
			next: count("page", 1, 1)},
		{name: "offset", keys: "style: offset, page: start", bare: true, place: param("start"), lead: none, next: count("start", hostileSize, 0)},
		{name: "offset and total", keys: "style: offset, page: start, total: total", place: param("start"),
			lead: func(a *hostileAnswer) {
				if a.body["total"] = hostileRows; a.next != "" {
					a.body["total"] = 1 << 40
				}
			}, next: count("start", hostileSize, 0)},
		{name: "none", keys: "style: none", place: param("start"), lead: none, next: func(*ourAnswer) string { return "" }},
	}
}

// hostileWay is a way of being hostile. why is what a walk must say, "" where the list is a
// good one but for what it says beside its rows: then the walk is complete.
type hostileWay struct {
	name, why string
	styles    string // a pattern; "" = every one
	answer    func(x *hostileAPI, a *hostileAnswer, at int)
	instead   func(x *hostileAPI, w http.ResponseWriter, r *http.Request) // the whole answer of a page that is not the first
}

const (
	leading  = "^(body|header|token.*|cursor.*)$" // upstream says what the next page is called
	paged    = "^[^n].*|^number"                  // there is more than one page
	byLink   = "^(body|header)$"
	noEnd    = "no end|page again|as endless|repeats it|lead nowhere|has no record with which"
	unending = "as endless; raise sync.pages"
)

// rows puts rows into an answer: those from a place on, of a list whose rows come again
// after so many, 0: never.
func (a *hostileAnswer) rows(at, again int) {
	for i := at; i < at+hostileSize; i++ {
		n := i
		if again > 0 {
			n %= again
		}
		a.ids = append(a.ids, "r"+strconv.Itoa(n))
	}
	a.next = strconv.Itoa(at + hostileSize)
	if again > 0 && again != hostileRows*2 {
		// A token of 0 says that there is no more; 00 is the same place.
		if a.next = strconv.Itoa((at + hostileSize) % again); a.next == "0" {
			a.next = "00"
		}
	}
}

// good is a page of a list that has an end.
func (a *hostileAnswer) good(at int) {
	for i := at; i < min(at+hostileSize, hostileRows); i++ {
		a.ids = append(a.ids, "r"+strconv.Itoa(i))
	}
	if at+hostileSize < hostileRows {
		a.next = strconv.Itoa(at + hostileSize)
	}
}

func hostileWays() []hostileWay {
	loop := func(rows int) func(*hostileAPI, *hostileAnswer, int) {
		return func(_ *hostileAPI, a *hostileAnswer, at int) { a.rows(at, rows) }
	}
	called := func(name string) func(*hostileAPI, *hostileAnswer, int) {
		return func(_ *hostileAPI, a *hostileAnswer, at int) {
			if a.good(at); at == 0 {
				a.next = name
				a.ids[0], a.ids[len(a.ids)-1] = a.ids[0]+name, a.ids[len(a.ids)-1]+name // of the cursors
			}
		}
	}
	leads := func(link func(x *hostileAPI, next string) string) func(*hostileAPI, *hostileAnswer, int) {
		return func(x *hostileAPI, a *hostileAnswer, at int) {
			if a.good(at); a.next != "" {
				a.link = link(x, a.next)
			}
		}
	}
	return []hostileWay{
		{name: "endless", why: unending, styles: paged, answer: loop(0)},
		{name: "empties", why: noEnd, styles: leading + "|more|total", answer: func(_ *hostileAPI, a *hostileAnswer, at int) {
			a.next = strconv.Itoa(at + hostileSize)
		}},
		{name: "loop1", why: noEnd, styles: paged, answer: loop(hostileSize)},
		{name: "loop2", why: noEnd, styles: paged, answer: loop(2 * hostileSize)},
		{name: "loop7", why: noEnd, styles: paged, answer: loop(7 * hostileSize)},
		{name: "repeats", why: noEnd, styles: paged, answer: loop(2 * hostileRows)}, // under ever new names
		{name: "still", why: noEnd, styles: leading, answer: func(x *hostileAPI, a *hostileAnswer, _ int) {
			for range hostileSize { // ever new rows, and the next page is always called the same
				a.ids = append(a.ids, fmt.Sprint("n", x.made.add()))
			}
			a.ids[0], a.ids[hostileSize-1], a.next = "same", "same", "same"
		}},
		{name: "split", styles: "^(body|cursor|token|token in (a form|an object))$", answer: called(evilValue)},
		{name: "long", why: "longer than|headers ex", styles: leading, answer: called(strings.Repeat("x", 1<<20))},
		{name: "giant", why: "larger than the limit", instead: func(_ *hostileAPI, w http.ResponseWriter, _ *http.Request) {
			for block := []byte(strings.Repeat(" ", 1<<16)); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}},
		{name: "redirect", why: "redirect", styles: paged, instead: func(x *hostileAPI, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, x.evil.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		}},
		{name: "host", styles: byLink, answer: leads(func(x *hostileAPI, at string) string { return x.evil.URL + "/host?at=" + at })},
		{name: "user", styles: byLink, answer: leads(func(x *hostileAPI, at string) string {
			return strings.Replace(x.evil.URL, "//", "//made.example@", 1) + "/user?at=" + at
		})},
		{name: "slashes", styles: byLink, answer: leads(func(x *hostileAPI, at string) string {
			return strings.TrimPrefix(x.evil.URL, "http:") + "/slashes?at=" + at
		})},
		{name: "metadata", styles: byLink, answer: leads(func(_ *hostileAPI, at string) string {
			return "http://169.254.169.254/metadata?at=" + at
		})},
		{name: "scheme", styles: byLink, answer: leads(func(x *hostileAPI, at string) string {
			return strings.Replace(x.evil.URL, "http", "ftp", 1) + "/scheme?at=" + at
		})},
		{name: "outside", why: "does not lead to a list|cannot|no path|names no", styles: byLink,
			answer: leads(func(_ *hostileAPI, at string) string { return "/secrets/outside?at=" + at })},
		{name: "above", why: "does not lead to a list|segment|cannot", styles: byLink,
			answer: leads(func(_ *hostileAPI, at string) string { return "/above/../secrets?at=" + at })},
		{name: "other", why: "does not lead to a list", styles: byLink,
			answer: leads(func(_ *hostileAPI, at string) string { return "/endless?at=" + at })},
	}
}

// tally counts, for many at once.
type tally struct {
	mu sync.Mutex
	n  int
}

func (c *tally) add() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

// hostileAPI is an API of one style, with a list for each way. evil is another server,
// which nobody may ask.
type hostileAPI struct {
	t     *testing.T
	style *hostileStyle
	ways  []hostileWay
	evil  *httptest.Server
	made  tally

	mu    sync.Mutex
	asked map[string]int
}

func (x *hostileAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if r.Header.Get("Authorization") != "Bearer "+hostileSecret || r.Header.Get("X-Evil") != "" {
		x.t.Errorf("%s: %s has header %v", x.style.name, r.URL, r.Header)
	}
	q := r.URL.Query()
	if body, err := io.ReadAll(r.Body); err == nil && len(body) > 0 {
		q = url.Values{}
		var object map[string]any
		if x.style.post == "form" {
			q, _ = url.ParseQuery(string(body))
		} else if json.Unmarshal(body, &object) == nil {
			for key, value := range object {
				q.Set(key, fmt.Sprint(value))
			}
		}
	}
	x.mu.Lock()
	x.asked[name]++
	x.mu.Unlock()
	for _, way := range x.ways {
		if way.name == name {
			x.serve(w, r, way, q)
			return
		}
	}
	http.Error(w, `{"error":"no such list"}`, http.StatusNotFound)
}

func (x *hostileAPI) serve(w http.ResponseWriter, r *http.Request, way hostileWay, q url.Values) {
	place := x.style.place(q)
	at, err := strconv.Atoi(place)
	if at = max(at, 0); err != nil && strings.Contains(place, evilValue) {
		at = hostileSize // what the page after the first is called arrived as it was
	}
	w.Header().Set("Content-Type", "application/json")
	if way.instead != nil && (at > 0 || x.style.name == "none") {
		way.instead(x, w, r)
		return
	}
	a := &hostileAnswer{header: w.Header(), body: map[string]any{}}
	if way.answer != nil {
		way.answer(x, a, at)
	} else {
		a.good(at)
	}
	if a.link == "" && a.next != "" {
		a.link = "/" + way.name + "?" + on("at", a.next)
	}
	x.style.lead(a)
	rows := []map[string]string{}
	for _, id := range a.ids {
		rows = append(rows, map[string]string{"id": id})
	}
	if x.style.bare {
		_ = json.NewEncoder(w).Encode(rows)
		return
	}
	a.body["rows"] = rows
	_ = json.NewEncoder(w).Encode(a.body)
}

func (x *hostileAPI) count(way string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.asked[way]
}

// TestAHostileUpstream: whatever an upstream does with its lists, in whichever paging style, a
// walk of ours ends with an error that says which list and why, after a bounded number of
// requests, and never calls the list complete; a reader that follows our links costs no more
// than one request and one ahead for each of its own, is never led elsewhere, and no other
// server is ever asked.
func TestAHostileUpstream(t *testing.T) {
	t.Parallel()
	run := sample.OneIn(t, 6)
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked: %s %v", r.URL, r.Header)
	}))
	defer evil.Close()
	dir := t.TempDir()
	files := map[string]string{"up.secret": hostileSecret, "caller.secret": hostileCaller}
	var apis []*hostileAPI
	sources, credentials := "", ""
	for i, style := range hostileStyles() {
		x := &hostileAPI{t: t, style: style, evil: evil, asked: map[string]int{}}
		for _, way := range hostileWays() {
			if regexp.MustCompile(way.styles).MatchString(style.name) && run() {
				x.ways = append(x.ways, way)
			}
		}
		if len(x.ways) == 0 {
			continue
		}
		up := httptest.NewServer(x)
		defer up.Close()
		name := fmt.Sprint("s", i)
		apis = append(apis, x)
		files[name+".yaml"] = x.spec(name)
		sources += fmt.Sprintf("  %s: {spec: ./%s.yaml, upstream: %q, user: me, secret: \"file:up.secret\", listen: \"127.0.0.1:0\", "+
			"rate: 5000, concurrency: 50, max_body: 4MiB, polls: []}\n", name, name, up.URL)
		credentials += fmt.Sprintf("  - {name: %s, source: %s, secret: \"file:caller.secret\", role: all}\n", name, name)
	}
	files["understudy.yml"] = fmt.Sprintf("data: ./data\nviewer: {listen: \"127.0.0.1:0\", role: all}\nsync: {pages: %d}\n"+
		"mirror: {wait: 1s, try: 2s}\nsources:\n%scredentials:\n%s", hostilePages, sources, credentials)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	house := rig.Start(t, dir, "serve")
	token := rig.CommandToken(t, dir)
	var readers sync.WaitGroup
	for _, x := range apis {
		readers.Go(func() {
			for _, way := range x.ways {
				x.read(way, house)
			}
		})
	}
	readers.Wait()
	before := map[string]int{}
	for _, x := range apis {
		for _, way := range x.ways {
			before[x.style.name+way.name] = x.count(way.name)
			x.order(http.MethodPost, way, house, token)
		}
	}
	for _, x := range apis {
		for _, way := range x.ways {
			x.walked(way, house, token, before[x.style.name+way.name])
		}
	}
}

// source is the name of the API in the settings.
func (x *hostileAPI) source() string {
	for i, s := range hostileStyles() {
		if s.name == x.style.name {
			return fmt.Sprint("s", i)
		}
	}
	return ""
}

func (x *hostileAPI) spec(name string) string {
	key, post := "rows", ""
	if x.style.bare {
		key = `""`
	}
	if x.style.post != "" {
		post = ", post: " + x.style.post
	}
	text := fmt.Sprintf("name: %s\nhosts: [{url: \"https://made.example\"}]\nauth: {style: bearer}\nwhole_lists: true\n"+
		"paging: {%s, size: limit, default_size: %d, max_size: %d}\nkinds:\n", name, x.style.keys, hostileSize, hostileSize)
	for _, way := range x.ways {
		text += fmt.Sprintf("  - {name: %s, id: [id], lists: [{path: /%s, key: %s%s}], fields: [{name: id}]}\n", way.name, way.name, key, post)
	}
	return text
}

// order has a kind walked, or asks how that goes.
func (x *hostileAPI) order(method string, way hostileWay, house *binary.Server, token string) (r crawl.Report) {
	x.t.Helper()
	body := ""
	if method == http.MethodPost {
		body = fmt.Sprintf(`{"source":%q,"kind":%q}`, x.source(), way.name)
	}
	got, err := rig.Ask(method, "", house.URL("viewer")+"/-/sync?source="+x.source()+"&kind="+way.name, body,
		"Authorization", "Bearer "+token, "Content-Type", "application/json")
	checktest.MustNoError(x.t, err, "%s, %s", x.style.name, way.name)
	checktest.MustEqual(x.t, got.Status, http.StatusOK, "%s, %s: got.Status", x.style.name, way.name)
	checktest.MustTrue(x.t, json.Unmarshal(got.Body, &r) == nil, "%s, %s: json.Unmarshal(got.Body, &r) is %v",
		x.style.name, way.name, json.Unmarshal(got.Body, &r))
	return r
}

// walked waits for the end of a walk and looks at what it says and what it has cost.
func (x *hostileAPI) walked(way hostileWay, house *binary.Server, token string, before int) {
	x.t.Helper()
	var r crawl.Report
	rig.Await(x.t, func() string {
		r = x.order(http.MethodGet, way, house, token)
		if r.Complete || r.Failed || !r.Stuck.IsZero() {
			return ""
		}
		return fmt.Sprintf("%s, %s: %+v", x.style.name, way.name, r)
	})
	asked := x.count(way.name) - before
	most := 4 * hostilePages // by number each page may be read twice
	if way.name != "endless" && way.name != "empties" {
		most = 2 * hostilePages
	}
	switch {
	case asked > most:
		x.t.Errorf("%s, %s: a walk cost %d requests", x.style.name, way.name, asked)
	case way.why == "":
		checktest.True(x.t, r.Complete, "%s, %s: r.Complete is false", x.style.name, way.name)
		checktest.MustTrue(x.t, r.Progress != nil, "%s, %s: r.Progress is nil", x.style.name, way.name)
		checktest.Equal(x.t, r.Progress.Done, hostileRows, "%s, %s: r.Progress.Done", x.style.name, way.name)
	case r.Complete, !regexp.MustCompile(way.why).MatchString(r.Why), !strings.Contains(r.Why, "/"+way.name), len(r.Why) > 2000:
		x.t.Errorf("%s, %s: complete %v, %.2000s", x.style.name, way.name, r.Complete, r.Why)
	}
}

// read follows our links as a client does.
func (x *hostileAPI) read(way hostileWay, house *binary.Server) {
	x.t.Helper()
	const reads = 40
	home := house.URL(x.source())
	from, asked := x.count(way.name), 0
	began := time.Now()
	for link := "?" + x.style.begin; link != "" && asked < reads; asked++ {
		to, err := url.Parse(home + "/" + way.name)
		if err != nil {
			x.t.Fatal(err)
		}
		if !strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "http") && !strings.HasPrefix(link, "?") {
			link = "?" + link
		}
		if to, err = to.Parse(link); err != nil {
			x.t.Errorf("%s, %s: our link %.200q: %v", x.style.name, way.name, link, err)
			return
		}
		if "http://"+to.Host != home {
			x.t.Errorf("%s, %s: a reader is led to %s", x.style.name, way.name, link)
			return
		}
		r, err := rig.Ask(http.MethodGet, "", to.String(), "", "Authorization", "Bearer "+hostileCaller)
		if err != nil {
			x.t.Errorf("%s, %s: %.200s: %v", x.style.name, way.name, to, err)
			return
		}
		if r.Status >= 300 {
			if len(r.Body) == 0 || r.Header.Get("Location") != "" {
				x.t.Errorf("%s, %s: %.200s: %d %v %s", x.style.name, way.name, to, r.Status, r.Header, r.Body)
			}
			break
		}
		a := &ourAnswer{Reply: r, asked: to.Query(), body: map[string]any{}}
		var rows []struct{ ID string }
		if x.style.bare {
			err = json.Unmarshal(r.Body, &rows)
		} else if err = json.Unmarshal(r.Body, &a.body); err == nil {
			var in struct{ Rows []struct{ ID string } }
			_ = json.Unmarshal(r.Body, &in)
			rows = in.Rows
		}
		if err != nil {
			x.t.Errorf("%s, %s: %.200s: %v: %.200s", x.style.name, way.name, to, err, r.Body)
			return
		}
		for _, row := range rows {
			a.ids = append(a.ids, row.ID)
		}
		link = x.style.next(a)
	}
	const again = 10 // tries of one page
	if cost := x.count(way.name) - from; cost > 2*asked+again {
		x.t.Errorf("%s, %s: %d requests for %d of a reader", x.style.name, way.name, cost, asked)
	}
	if took := time.Since(began); took > 20*time.Second {
		x.t.Errorf("%s, %s: a reader waited %v", x.style.name, way.name, took)
	}
}
