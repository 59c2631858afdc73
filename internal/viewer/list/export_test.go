// Export: all rows of a view, in every form, whatever happens on the way.

package list_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/export"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/kit/limiter"
	"understudy/request"
)

// composed makes the mirror compose whatever is wished for.
func composed(h *viewertest.Fixture) {
	h.Mirror.Lock()
	defer h.Mirror.Unlock()
	h.Mirror.Change = func(a request.Request, answer *request.Response) (*request.Response, error) {
		if a.Local == nil {
			return nil, errors.New("not wished for")
		}
		return answer, nil
	}
}

// onlyHeld makes the mirror compose nothing and keep the first pages of lists.
func onlyHeld(h *viewertest.Fixture, pages int) {
	h.Mirror.Lock()
	defer h.Mirror.Unlock()
	n := 0
	h.Mirror.Change = func(a request.Request, answer *request.Response) (*request.Response, error) {
		switch {
		case a.Local != nil:
			return nil, fmt.Errorf("mirror: %w: nobody has walked it", understudy.ErrNotMirrored)
		case n == pages:
			return nil, understudy.ErrNoStoredAnswer
		case a.OnlyIfCached != (n > 0):
			return nil, errors.New("upstream would be asked for more than the first page")
		}
		n++
		return answer, nil
	}
}

func TestExport(t *testing.T) {
	h := viewertest.Open(t)
	composed(h)
	const view = "?PageSize=5&Status=busy&understudy.columns=sid%2Cstart_time%2Cto%2Cprice"
	status, body, head := h.Get("/twilio/calls.csv"+view, viewertest.All)
	records, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	viewertest.Must(t, err)
	checktest.MustEqual(t, status, 200, "status")
	checktest.MustTrue(t, slices.Equal(records[0], []string{"sid", "start_time", "to", "price"}), "records[0] is %v",
		records[0])
	checktest.MustTrue(t, len(records) >= 12, "len(records) is %v, want >= 12", len(records))
	if head.Get("Content-Type") != "text/csv; charset=utf-8; header=present" ||
		head.Get("Content-Disposition") != `attachment; filename="twilio-calls-20260601T120500Z.csv"` {
		t.Errorf("%v", head)
	}
	seen := map[string]bool{}
	for _, r := range records[1:] {
		checktest.True(t, !seen[r[0]], "seen[r[0]] is true")
		checktest.True(t, strings.HasPrefix(r[0], "CA"), "r[0] is %q", r[0])
		checktest.True(t, strings.HasSuffix(r[1], "Z"), "r[1] is %q", r[1])
		checktest.True(t, strings.HasPrefix(r[2], "+"), "r[2] is %q", r[2])
		seen[r[0]] = true
	}
	// The same view in the other forms has the same rows.
	_, body, head = h.Get("/twilio/calls.jsonl"+view, viewertest.All)
	lines := 0
	for s := bufio.NewScanner(strings.NewReader(body)); s.Scan(); lines++ {
		var one map[string]any
		{
			err := json.Unmarshal(s.Bytes(), &one)
			checktest.MustNoError(t, err, "line %d", lines)
			checktest.MustEqual(t, len(one), 4, "line %d: len(one)", lines)
			checktest.MustTrue(t, one["sid"] == records[lines+1][0], `line %d: one["sid"] is %v`, lines, one["sid"])
		}
	}
	var doc struct {
		Rows     []map[string]any
		Count    int
		Complete bool
	}
	_, body, _ = h.Get("/twilio/calls.json"+view, viewertest.All)
	viewertest.Must(t, json.Unmarshal([]byte(body), &doc))
	checktest.Equal(t, lines, len(records)-1, "lines")
	checktest.MustEqual(t, len(doc.Rows), lines, "len(doc.Rows)")
	checktest.Equal(t, doc.Count, lines, "doc.Count")
	checktest.True(t, doc.Complete, "doc.Complete is false")
	checktest.Equal(t, head.Get("Content-Type"), "application/jsonl; charset=utf-8", `head.Get("Content-Type")`)
	// The position is left out: an export begins at the newest.
	older := viewertest.Href(plain(h, "/twilio/calls?PageSize=5&Status=busy"), "Older")
	composed(h)
	if _, again, _ := h.Get(strings.Replace(older, "/calls?", "/calls.csv?understudy.columns=sid&", 1), viewertest.All); strings.Count(again,
		"\r\n") != len(records) {
		t.Errorf("from an older page there are %d lines, want %d", strings.Count(again, "\r\n"), len(records))
	}
	// Masked for who sees masks, refused for who may not filter.
	_, masked, _ := h.Get("/twilio/messages.csv?understudy.columns=from%2Cbody%2Csid", viewertest.Support)
	if !strings.HasPrefix(masked, "from,sid\r\n********") || strings.Contains(masked, "+1") {
		t.Errorf("%.200s", masked)
	}
	if status, body, head := h.Get("/twilio/calls.csv?From=%2B1", viewertest.Support); status != 403 ||
		head.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", status, body)
	}
	{
		status, body, head := h.Do("HEAD", "/twilio/calls.csv", "", viewertest.All)
		checktest.Equal(t, status, 200, "HEAD: status; body %q", body)
		checktest.Equal(t, body, "", "HEAD: body")
		checktest.True(t, head.Get("Content-Disposition") != "",
			`HEAD: head.Get("Content-Disposition") is empty; body %q`, body)
	}
}

// plain is a page with a mirror that does nothing strange.
func plain(h *viewertest.Fixture, path string) string {
	h.Mirror.Lock()
	h.Mirror.Change = nil
	h.Mirror.Unlock()
	return h.Page(path, viewertest.All)
}

// Of a list that cannot be composed the held pages are sent, and the file says
// that they are not all; upstream is asked for the first at most.
func TestExportOfWhatIsHeld(t *testing.T) {
	h := viewertest.Open(t)
	const notHeld = "the next page of the list is not stored here and an export requests only the first page from upstream; " +
		"the list can't be built from stored records yet: nobody has walked it"
	for path, check := range map[string]func(string) bool{
		"/twilio/calls.csv?PageSize=20": func(b string) bool {
			return strings.Count(b, "\r\n") == 42 && strings.Contains(b, "\r\n# not complete after 40 rows: "+notHeld)
		},
		"/twilio/calls.jsonl?PageSize=20": func(b string) bool {
			lines := strings.Split(strings.TrimSpace(b), "\n")
			return len(lines) == 41 && strings.HasPrefix(lines[40], `{"understudy.incomplete":"`+notHeld) &&
				strings.HasSuffix(lines[40], `"understudy.rows":40}`)
		},
		"/twilio/calls.json?PageSize=20&understudy.columns=sid": func(b string) bool {
			return json.Valid([]byte(b)) && strings.Contains(b, `"count":40,"complete":false,"why":"`+notHeld)
		},
	} {
		onlyHeld(h, 2)
		if status, body, _ := h.Get(path, viewertest.All); status != 200 || !check(body) {
			t.Errorf("%s: %d, ends %.300s", path, status, body[max(0, len(body)-300):])
		}
	}
}

// What fails in the middle ends with a mark, what fails at once is an error.
func TestExportBrokenOff(t *testing.T) {
	h := viewertest.Open(t)
	h.StopUpstream()
	{
		status, body, head := h.Get("/twilio/calls.csv", viewertest.All)
		checktest.Equal(t, status, 503, "status; body %s", body)
		checktest.Equal(t, head.Get("Content-Type"), "application/json", `head.Get("Content-Type"); body %s`, body)
		checktest.Contains(t, body, `"status":503`, "body")
	}
	h = viewertest.Open(t)
	h.Mirror.Lock()
	h.Mirror.Change = func(a request.Request, answer *request.Response) (*request.Response, error) {
		if strings.Contains(a.Target.Key.URI, "Page=20") {
			return nil, errors.New("mirror: secret=abc: broken")
		}
		return answer, nil
	}
	h.Mirror.Unlock()
	_, body, _ := h.Get("/twilio/messages.csv?PageSize=20", viewertest.All)
	if !strings.HasSuffix(body, ": the remaining rows could not be read; export again\r\n") || strings.Contains(body, "secret") {
		t.Errorf("ends %q", body[max(0, len(body)-100):])
	}
	h = viewertest.Open(t, func(o *page.Options) { o.ExportRows = 30 })
	if _, body, _ := h.Get("/twilio/messages.csv?PageSize=20", viewertest.All); !strings.HasSuffix(body,
		"# not complete after 30 rows: an export has at most 30 rows; narrow it with filters\r\n") || strings.Count(body, "\r\n") != 32 {
		t.Errorf("ends %q", body[max(0, len(body)-100):])
	}
}

// A later page that upstream refuses is told in upstream's words, as a first one is.
func TestExportRefusedLater(t *testing.T) {
	h := viewertest.Open(t)
	h.Mirror.Change = func(a request.Request, answer *request.Response) (*request.Response, error) {
		if !strings.Contains(a.Target.Key.URI, "PageToken") {
			return answer, nil
		}
		page, turned := *answer.Page, *answer
		page.Status, page.Body, page.Rows = 400, []byte(`{"code":20001,"message":"Page token is invalid.","status":400}`), nil
		turned.Page = &page
		return &turned, nil
	}
	status, body, _ := h.Get("/twilio/calls.csv?PageSize=5", viewertest.All)
	checktest.Equal(t, status, 400, "status; body %s", body)
	checktest.Contains(t, body, "refused this (400)", "body")
	checktest.Contains(t, body, "Page token", "body")
}

func TestExportOfAListNotComputedYetIsUnavailable(t *testing.T) {
	h := viewertest.Open(t)
	h.Mirror.Change = func(request.Request, *request.Response) (*request.Response, error) {
		return &request.Response{Page: viewertest.Refusal(http.StatusAccepted, `{}`)}, nil
	}
	for _, path := range []string{"/twilio/calls", "/twilio/calls.csv", "/twilio/calls.jsonl"} {
		status, body, header := h.Get(path, viewertest.All)
		if status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", path, status)
		}
		if header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
		if !strings.Contains(body, "Twilio is still computing this") {
			t.Errorf("%s: %s", path, body)
		}
	}
}

// TestExportOfACircle (M6): a list whose links form a circle ends, and says so.
func TestExportOfACircle(t *testing.T) {
	h := viewertest.Open(t)
	n := 0
	h.Mirror.Change = func(a request.Request, answer *request.Response) (*request.Response, error) {
		if a.Local != nil {
			return nil, fmt.Errorf("mirror: %w: nobody has walked it", understudy.ErrNotMirrored)
		}
		n++
		page := *answer.Page
		page.Next = understudy.Key{Source: page.Key.Source, URI: fmt.Sprintf("%s?Page=%d", page.Key.Path(), 1+n%7)}
		turned := *answer
		turned.Page = &page
		return &turned, nil
	}
	status, body, _ := h.Get("/twilio/calls.csv", viewertest.All)
	checktest.Equal(t, status, 200, "%d after %d pages: status", status, n)
	checktest.True(t, n <= 30, "%d after %d pages: n is %v, want <= 30", status, n, n)
	checktest.Contains(t, body, "form a circle", "%d after %d pages: body", status, n)
}

// An export ends with its policy, and says so.
func TestExportEndsWithItsPolicy(t *testing.T) {
	over := make(chan struct{})
	close(over)
	var callers []string
	ended := 0
	h := viewertest.Open(t, func(o *page.Options) {
		o.Exports = export.New(limiter.New(4, 2), func(c understudy.Caller) (<-chan struct{}, func()) {
			callers = append(callers, c.Name)
			return over, func() { ended++ }
		})
	})
	const why = "your access rights changed during the export; export again"
	for form, end := range map[string]string{".csv": "# not complete after 0 rows: " + why + "\r\n", ".json": `"complete":false,"why":"` +
		why + `"}` + "\n"} {
		if status, body, _ := h.Get("/twilio/messages"+form+"?understudy.columns=sid", viewertest.All); status != 200 ||
			!strings.HasSuffix(body, end) {
			t.Errorf("%s: %d, ends %q", form, status, body[max(0, len(body)-100):])
		}
	}
	if !slices.Equal(callers, []string{"everything", "everything"}) || ended != 2 {
		t.Errorf("exports of %q, %d ended", callers, ended)
	}
}

// HEAD answers as GET would begin.
func TestExportHead(t *testing.T) {
	h := viewertest.Open(t)
	for path, want := range map[string]int{"/twilio/calls.csv": 200, "/twilio/calls.csv?Status=nonsense&PageSize=0": 400,
		"/twilio/nothing.csv": 404} {
		got, _, _ := h.Get(path, viewertest.All)
		if head, _, _ := h.Do("HEAD", path, "", viewertest.All); head != got || got != want {
			t.Errorf("%s: HEAD %d, GET %d, want %d", path, head, got, want)
		}
	}
	if got, _, _ := h.Do("HEAD", "/twilio/messages.csv", "", viewertest.Clerk); got != 403 {
		t.Errorf("a role that sees nothing: %d", got)
	}
}

// A place for each export, no more than half of them of one caller, and no more.
func TestExportsAtOnce(t *testing.T) {
	h := viewertest.Open(t)
	take := func(who viewertest.Browser) (leave func()) {
		t.Helper()
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth(viewertest.Account, who.Token)
		c, err := h.Viewer.Visitor.Options.Callers.IdentifyPerson(r)
		viewertest.Must(t, err)
		one, err := h.Viewer.Visitor.Options.Exports.Begin(c)
		viewertest.Must(t, err)
		return one.End
	}
	refused := func(who viewertest.Browser, says string) {
		t.Helper()
		{
			status, body, head := h.Get("/twilio/calls.csv", who)
			checktest.Equal(t, status, 503, "status; body %s", body)
			checktest.True(t, head.Get("Retry-After") != "", `head.Get("Retry-After") is empty; body %s`, body)
			checktest.Contains(t, body, says, "body")
		}
	}
	given := func(who viewertest.Browser) {
		t.Helper()
		if status, _, _ := h.Get("/twilio/calls.csv", who); status != 200 {
			t.Errorf("%d", status)
		}
	}
	support, watcher := viewertest.Support, viewertest.Watcher
	first := take(viewertest.All)
	given(viewertest.All)
	take(viewertest.All)
	refused(viewertest.All, "You have too many running exports")
	given(support) // another's are no business of it
	take(support)
	take(support)
	refused(support, "You have too many running exports")
	refused(watcher, "Too many exports")
	first()
	given(watcher)
	given(viewertest.All)
}

// counting is a writer that holds nothing; broken fails after some bytes.
type counting struct {
	head   http.Header
	n, top int // bytes, and the largest piece
	broken int
}

func (c *counting) Header() http.Header { return c.head }

func (c *counting) WriteHeader(int) {}

func (c *counting) Write(b []byte) (int, error) {
	c.n += len(b)
	c.top = max(c.top, len(b))
	if c.broken > 0 && c.n > c.broken {
		return 0, errors.New("gone")
	}
	return len(b), nil
}

// An export goes out in small pieces, and ends with its reader.
func TestExportIsStreamed(t *testing.T) {
	h := viewertest.Open(t)
	const pages = 200
	h.Mirror.Fetch = endless(h, h.Mirror.Fetch, pages)
	r := httptest.NewRequest("GET", "/twilio/messages.jsonl?PageSize=1000", nil)
	r.SetBasicAuth(viewertest.Account, "alltoken")
	w := &counting{head: http.Header{}}
	h.Viewer.ServeHTTP(w, r)
	if w.n < 3<<20 || w.top > 128<<10 {
		t.Errorf("%d bytes, the largest piece %d", w.n, w.top)
	}
	before := h.Mirror.Count()
	w = &counting{head: http.Header{}, broken: 1 << 20}
	func() {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}()
		h.Viewer.ServeHTTP(w, r)
	}()
	if n := h.Mirror.Count() - before; n > pages/2 {
		t.Errorf("%d pages were read for a reader that had gone", n)
	}
}

// endless is a list of many pages that look like the first page of messages.
func endless(h *viewertest.Fixture, fetch func(context.Context, request.Fetch) (*understudy.Page, error),
	pages int) func(context.Context, request.Fetch) (*understudy.Page, error) {
	n := 0
	return func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
		if f.Target.Kind == nil || f.Target.Kind.Name != "messages" {
			return fetch(ctx, f)
		}
		first, err := h.Spec.Resolve("twilio", f.Target.Key.Path(), "PageSize=50")
		if err != nil {
			return nil, err
		}
		p, err := fetch(ctx, request.Fetch{Target: first, Reason: request.ReasonWaiting})
		if err != nil {
			return nil, err
		}
		q := *p
		q.Next = understudy.Key{}
		q.Rows = slices.Clone(p.Rows)
		for i := range q.Rows { // the same bodies, of other records
			q.Rows[i].ID = fmt.Sprintf("SM%032x", n*len(q.Rows)+i)
		}
		if n++; n < pages {
			next, err := h.Spec.Resolve("twilio", f.Target.Key.Path(), fmt.Sprintf("PageSize=1000&Page=%d&PageToken=PA%d", n, n))
			if err != nil {
				return nil, err
			}
			q.Next = next.Key
		}
		return &q, nil
	}
}
