// Kept: what upstream does not list any more stands where people look for it.

package viewer

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"understudy"
	"understudy/request"
)

// A conference's page shows the participants that are kept when upstream, as the
// provider does at the end of a conference, lists none any more.
func TestKeptParticipantsOnTheirConference(t *testing.T) {
	before := open(t)
	conference := before.firstID("/twilio/conferences?Status=in-progress", `CF[0-9a-f]{32}`)
	path := "/Conferences/" + conference + "/Participants.json"
	participant := regexp.MustCompile(`/twilio/participants/` + conference + `~CA[0-9a-f]{32}`)
	were := len(participant.FindAllString(before.page("/twilio/conferences/"+conference, all), -1))
	if were == 0 {
		t.Fatal("the conference has no participants")
	}
	h := open(t, searched(t, path))
	h.mirror.mu.Lock()
	fetch := h.mirror.fetch
	h.mirror.fetch = func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
		if strings.Contains(f.Target.Key.URI, path) {
			return nothing(ctx, f)
		}
		return fetch(ctx, f)
	}
	h.mirror.mu.Unlock()
	page := h.page("/twilio/conferences/"+conference, all)
	if got := len(participant.FindAllString(page, -1)); got != were || !strings.Contains(page, "Twilio lists none of them any more.") {
		t.Errorf("%d of %d participants are where people look", got, were)
	}
	if page := h.page("/twilio/conferences/"+conference, as{token: "watchertoken"}); participant.MatchString(page) ||
		strings.Contains(page, " kept") {
		t.Error("a role without participants meets them")
	}
}
