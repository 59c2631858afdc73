// Failure: what keeps a search from an answer for now is 503 everywhere, and
// says what it is.

package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

// unready is a search that cannot answer.
type unready struct{ err error }

func (u unready) Find(context.Context, understudy.Caller, query.SearchRequest) (*query.SearchResult, error) {
	return nil, u.err
}

func TestSearchesThatCannotBeAnsweredNow(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	for _, test := range []struct {
		err    error
		status int
		says   string
	}{
		{fmt.Errorf("search: store: seek: %w: 17 of 2000", understudy.ErrIndexing), 503, "17 of 2000 records are in it."},
		{fmt.Errorf("search: store: seek: %w", understudy.ErrClosed), 503, ""},
		{wrapped{"search: too many searches at once; try again in a moment", understudy.ErrUnavailable}, 503,
			"Too many searches at once; try again in a moment."},
		{fmt.Errorf("search: %w", context.DeadlineExceeded), 503, "takes too long"},
		{fmt.Errorf("search: %w: the cursor is of another search", understudy.ErrInvalid), 400, "The cursor is of another search."},
		{errors.New("search: disk on fire"), 500, "Something went wrong"},
	} {
		h.Viewer.Visitor.Options.Search = unready{test.err}
		for _, path := range []string{
			"/search?q=kind%3Acalls", "/search.json?q=kind%3Acalls", "/search.csv?q=kind%3Acalls", "/search.jsonl?q=kind%3Acalls",
			"/twilio/calls?understudy.sort=-duration", "/twilio/calls?understudy.q=busy", "/twilio/calls.csv?understudy.sort=-duration",
			"/twilio/calls.jsonl?understudy.q=busy", "/twilio/calls.json?understudy.sort=-duration&understudy.columns=sid",
		} {
			status, body, head := h.Get(path, viewertest.All)
			checktest.Equal(t, status, test.status, "%s, %v: status", path, test.err)
			checktest.Contains(t, body, test.says, "%s, %v: body", path, test.err)
			checktest.Lacks(t, body, "store:", "%s, %v: body", path, test.err)
			checktest.Lacks(t, body, "on fire", "%s, %v: body", path, test.err)
			if (head.Get("Retry-After") != "") != (status == 503) {
				t.Errorf("%s, %v: Retry-After %q", path, test.err, head.Get("Retry-After"))
			}
		}
		// A list as upstream has it does without its counts.
		if status, _, _ := h.Get("/twilio/calls", viewertest.All); status != 200 {
			t.Errorf("a plain list, %v: %d", test.err, status)
		}
	}
}

// wrapped is an error of a kind that does not say so.
type wrapped struct {
	text string
	kind error
}

func (w wrapped) Error() string { return w.text }

func (w wrapped) Unwrap() error { return w.kind }

func TestOutage(t *testing.T) {
	h := viewertest.Open(t, func(o *page.Options) { o.Snapshot = outOfReach })
	h.StopUpstream()
	for _, path := range []string{"/twilio/messages", "/twilio/calls/CA1", "/twilio/messages.json"} {
		status, body, head := h.Get(path, viewertest.Berlin)
		checktest.Equal(t, status, 503, "%s: status; body %s", path, body)
		checktest.Equal(t, head.Get("Retry-After"), "21", `%s: head.Get("Retry-After"); body %s`, path, body)
		checktest.Contains(t, body, "Twilio is not answering", "%s: body", path)
		if strings.HasSuffix(path, ".json") {
			continue
		}
		for _, want := range []string{"Twilio is down", "status 503", "14:03:00", "14:05:21", "5,000 stored", `href="/twilio/calls"`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not say %q", path, want)
			}
		}
	}
	h.Mirror.Lock()
	h.Mirror.Change = func(_ request.Request, a *request.Response) (*request.Response, error) {
		b := *a
		b.Outcome, b.Detail, b.Age = request.Stale, "stale: upstream 503", 3*60*1e9
		return &b, nil
	}
	h.Mirror.Unlock()
	page := h.Page("/twilio/calls", viewertest.All)
	if !strings.Contains(page, "Twilio has not answered (upstream 503). This is the copy from 3 min ago.") ||
		!strings.Contains(page, "cached, 3 min old, refreshing in the background") {
		t.Error("a page from before the outage does not say so")
	}
	h.Mirror.Lock()
	h.Mirror.Change = func(request.Request, *request.Response) (*request.Response, error) {
		return nil, errors.New("mirror: secret=abc: broken")
	}
	h.Mirror.Unlock()
	status, body, _ := h.Get("/twilio/calls", viewertest.All)
	if status != http.StatusInternalServerError || strings.Contains(body, "secret") {
		t.Errorf("a fault of ours: %d %s", status, body)
	}
}
