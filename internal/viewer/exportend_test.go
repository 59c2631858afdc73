// Ends of exports: why a file lacks what its list has.

package viewer

import (
	"fmt"
	"strings"
	"testing"

	"understudy"
	"understudy/request"
)

// An export says why it ends before its list: of an earlier moment, of a list that records cannot make, and
// without a word of what is hidden to a role that may not count it.
func TestAnExportSaysWhyItsNextPageIsMissing(t *testing.T) {
	h := open(t)
	for name, c := range map[string]struct {
		path   string
		unmade error
		want   string
	}{
		"then": {"?understudy.as_of=2026-05-24T00%3A00%3A00Z&", nil, "the next page of the list is not kept as it was then"},
		"a filter": {"?", fmt.Errorf("mirror: %w: the filter is not of records", understudy.ErrInvalid),
			"upstream is asked for the first one alone; the list cannot be made from records"},
		"not walked": {"?", fmt.Errorf("mirror: %w: calls: they were walked too long ago", understudy.ErrNotMirrored),
			"the list is not made from records: calls: they were walked too long ago"},
	} {
		h.onlyHeld(1)
		held := h.mirror.change
		h.mirror.change = func(a request.Request, answer *request.Response) (*request.Response, error) {
			if a.Local != nil {
				return nil, c.unmade
			}
			return held(a, answer)
		}
		status, body, _ := h.get("/twilio/calls.json"+c.path+"PageSize=20&understudy.columns=sid", all)
		if status != 200 || !strings.Contains(body, c.want+`"}`) {
			t.Errorf("%s: %d, ends %.300s", name, status, body[max(0, len(body)-300):])
		}
	}
}
