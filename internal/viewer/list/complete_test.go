// Complete: what a word may become.

package list_test

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// patient searches for as long as it takes, however busy the machine is.
type patient struct{ page.Search }

func (p patient) Find(ctx context.Context, c understudy.Caller, a query.SearchRequest) (*query.SearchResult, error) {
	return p.Search.Find(context.WithoutCancel(ctx), c, a)
}

// What a word may become is offered from the fields and values that the role sees fully.
func TestWordsAreCompletedByWhatTheRoleSees(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t), func(o *page.Options) { o.Search = patient{o.Search} })
	offers := func(who viewertest.Browser, query string) string {
		t.Helper()
		status, body, head := h.Get("/search/complete?"+query, who)
		var got struct{ Offers []struct{ Text, Note string } }
		err := json.Unmarshal([]byte(body), &got)
		checktest.MustNoError(t, err, "%s; body %s", query, body)
		checktest.MustEqual(t, status, 200, "%s: status; body %s", query, body)
		checktest.MustContains(t, head.Get("Cache-Control"), "no-store", `%s: head.Get("Cache-Control"); body %s`,
			query, body)
		var all []string
		for _, o := range got.Offers {
			all = append(all, o.Text+" ("+o.Note+")")
		}
		return strings.Join(all, ", ")
	}
	masked := viewertest.Support
	for _, c := range []struct {
		who         viewertest.Browser
		word, kinds string
		want, lacks string
	}{
		{viewertest.All, "sta", "", "status: (Status of Accounts, Calls", ""},
		{viewertest.All, "status:fa", "calls", "status:failed (6)", "queued"},
		{viewertest.All, "status:que", "calls", "status:queued ()", ""},
		{viewertest.All, "error_code:3000", "messages", "error_code:30003 (Handset unreachable · ", ""},
		{viewertest.All, "kind:me", "", "kind:messages (Messages)", "calls"},
		{viewertest.All, "date:", "", "date:today (today), date:-1h", ""},
		{viewertest.All, "has:bo", "", "has:body (Body of Messages)", ""},
		{viewertest.All, "nothing:", "", "", ":"},
		{viewertest.All, "status:", "nothing", "", ":"},
		{masked, "bo", "", "", "body"},
		{masked, "body:", "", "", "body"},
		{masked, "has:bo", "", "", "body"},
	} {
		query := url.Values{"word": {c.word}}
		if c.kinds != "" {
			query.Set("kind", c.kinds)
		}
		got := offers(c.who, query.Encode())
		if !strings.Contains(got, c.want) || c.lacks != "" && strings.Contains(got, c.lacks) {
			t.Errorf("%s of %q: %s", c.word, c.kinds, got)
		}
	}
	for query, want := range map[string]int{"word=" + strings.Repeat("x", 300): 400, "wrod=x": 400, "word=%zz": 400} {
		if status, body, _ := h.Get("/search/complete?"+query, viewertest.All); status != want || !strings.Contains(body, `class="status"`) {
			t.Errorf("%s: %d %.200s", query, status, body)
		}
	}
	if status, _, _ := viewertest.Open(t).Get("/search/complete?word=sta", viewertest.All); status != 404 {
		t.Errorf("without a search: %d", status)
	}
}
