// Failure: what keeps a search from an answer for now is 503 everywhere, and
// says what it is.

package viewer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/query"
)

// unready is a search that cannot answer.
type unready struct{ err error }

func (u unready) Find(context.Context, understudy.Caller, query.SearchRequest) (*query.SearchResult, error) {
	return nil, u.err
}

func TestSearchesThatCannotBeAnsweredNow(t *testing.T) {
	h := open(t, searched(t))
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
		h.viewer.Visitor.Options.Search = unready{test.err}
		for _, path := range []string{
			"/search?q=kind%3Acalls", "/search.json?q=kind%3Acalls", "/search.csv?q=kind%3Acalls", "/search.jsonl?q=kind%3Acalls",
			"/twilio/calls?understudy.sort=-duration", "/twilio/calls?understudy.q=busy", "/twilio/calls.csv?understudy.sort=-duration",
			"/twilio/calls.jsonl?understudy.q=busy", "/twilio/calls.json?understudy.sort=-duration&understudy.columns=sid",
		} {
			status, body, head := h.get(path, all)
			if status != test.status || !strings.Contains(body, test.says) || strings.Contains(body, "store:") || strings.Contains(body, "on fire") {
				t.Errorf("%s, %v: %d, without %q", path, test.err, status, test.says)
			}
			if (head.Get("Retry-After") != "") != (status == 503) {
				t.Errorf("%s, %v: Retry-After %q", path, test.err, head.Get("Retry-After"))
			}
		}
		// A list as upstream has it does without its counts.
		if status, _, _ := h.get("/twilio/calls", all); status != 200 {
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
