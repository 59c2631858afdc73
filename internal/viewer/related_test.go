// Related: lists on the page of a record, and what upstream does not list any more.

package viewer_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

// A conference's page shows the participants that are kept when upstream, as the
// provider does at the end of a conference, lists none any more.
func TestKeptParticipantsOnTheirConference(t *testing.T) {
	before := viewertest.Open(t)
	conference := before.FirstID("/twilio/conferences?Status=in-progress", `CF[0-9a-f]{32}`)
	path := "/Conferences/" + conference + "/Participants.json"
	participant := regexp.MustCompile(`/twilio/participants/` + conference + `~CA[0-9a-f]{32}`)
	were := len(participant.FindAllString(before.Page("/twilio/conferences/"+conference, viewertest.All), -1))
	if were == 0 {
		t.Fatal("the conference has no participants")
	}
	h := viewertest.Open(t, viewertest.WithSearch(t, path))
	h.Mirror.Lock()
	fetch := h.Mirror.Fetch
	h.Mirror.Fetch = func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
		if strings.Contains(f.Target.Key.URI, path) {
			return viewertest.FetchNothing(ctx, f)
		}
		return fetch(ctx, f)
	}
	h.Mirror.Unlock()
	page := h.Page("/twilio/conferences/"+conference, viewertest.All)
	if got := len(participant.FindAllString(page, -1)); got != were || !strings.Contains(page, "Twilio no longer lists any of them.") {
		t.Errorf("%d of %d participants are where people look", got, were)
	}
	if page := h.Page("/twilio/conferences/"+conference, viewertest.Watcher); participant.MatchString(page) ||
		strings.Contains(page, " stored") {
		t.Error("a role without participants meets them")
	}
}

// The page of a record shows the lists under it and alerts about it, and asks
// for nothing the record says is empty or the role does not see.
func TestListsOnARecord(t *testing.T) {
	h := viewertest.Open(t)
	conference := h.FirstID("/twilio/conferences", `CF[0-9a-f]{32}`)
	page := h.Page("/twilio/conferences/"+conference, viewertest.All)
	for _, want := range []string{`aria-label="Participants"`, `aria-label="Recordings"`, `aria-label="Alerts"`,
		`href="/twilio/participants?ConferenceSid=` + conference + `"`, "Show all"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(page, `>Conference</th>`) {
		t.Error("a column with this record on every row")
	}
	page = h.Page("/twilio/conferences/"+conference, viewertest.Watcher)
	checktest.Lacks(t, page, `aria-label="Participants"`,
		"a role meets kinds it does not see, or not those it does: page")
	checktest.Lacks(t, page, "/twilio/participants",
		"a role meets kinds it does not see, or not those it does: page")
	checktest.Lacks(t, page, "Alerts", "a role meets kinds it does not see, or not those it does: page")
	checktest.Contains(t, page, `aria-label="Recordings"`,
		"a role meets kinds it does not see, or not those it does: page")
	message := regexp.MustCompile(`/twilio/messages/(SM[0-9a-f]{32})`).FindStringSubmatch(h.Page("/twilio/messages", viewertest.All))[1]
	h.Mirror.Lock()
	h.Mirror.Asked = nil
	h.Mirror.Unlock()
	h.Page("/twilio/messages/"+message, viewertest.All)
	h.Mirror.Lock()
	defer h.Mirror.Unlock()
	for _, uri := range h.Mirror.Asked {
		if strings.Contains(uri, "/Media.json") {
			t.Error("a message without media is asked for them")
		}
	}
	if n := len(h.Mirror.Asked); n > 1+viewer.MaxLists+1 {
		t.Errorf("%d questions for one page", n)
	}
}
