// Rollup: counts by hour and day above a list.

package list_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

// Counts are those of the page; where it ends too soon they say so.
func TestRollup(t *testing.T) {
	h := viewertest.Open(t)
	if page := h.Page("/twilio/alerts?LogLevel=error", viewertest.All); strings.Count(page, `<th scope="row">`) != 1 {
		t.Error("filtered by one level, others are counted")
	}
	h.Mirror.Forget()
	alerts := func(ages ...time.Duration) func(context.Context, request.Fetch) (*understudy.Page, error) {
		return func(_ context.Context, f request.Fetch) (*understudy.Page, error) {
			var rows []string
			for i, age := range ages {
				rows = append(rows, `{"sid":"NO`+strings.Repeat("0", 31)+strconv.Itoa(i%10)+`","log_level":"`+[]string{"error",
					"warning"}[i%2]+`","date_created":"`+viewertest.Noon.Add(-age).Format(time.RFC3339)+`"}`)
			}
			p := &understudy.Page{Key: f.Target.Key, Kind: "alerts", Shape: "alerts", List: true, Status: 200, ContentType: "application/json",
				Body: []byte(`{"alerts":[` + strings.Join(rows, ",") + `]}`)}
			if len(ages) == 6 {
				p.Next = understudy.Key{Source: "twilio", URI: "/v1/Alerts?PageSize=50&Page=1&PageToken=PA1"}
			}
			return p, nil
		}
	}
	counts := func(who viewertest.Browser) []string {
		var all []string
		table := regexp.MustCompile(`(?s)<div class="rollup.*?</div>`).FindString(h.Page("/twilio/alerts", who))
		for _, row := range regexp.MustCompile(`(?s)<th scope="row">.*?</tr>`).FindAllString(table, -1) {
			all = append(all, strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(row, " ")), " "))
		}
		return all
	}
	const m, d = time.Minute, 24 * time.Hour
	h.Mirror.Fetch = alerts(m, 2*m, 30*m, 2*time.Hour, 30*time.Hour, 50*time.Hour, 90*time.Hour)
	if got := strings.Join(counts(viewertest.All), "; "); got != "error 1 2 2 3; warning 1 1 2 3; notice 0 0 0 0; debug 0 0 0 0" {
		t.Errorf("counts are %s", got)
	}
	h.Mirror.Forget()
	h.Mirror.Fetch = alerts(m, 2*m, 3*m, 20*m, 30*m, 2*time.Hour)
	if got := strings.Join(counts(viewertest.All),
		"; "); got != "error 2 3 at least 3 at least 3; warning 1 2 at least 3 at least 3; notice 0 0 at "+
		"least 0 at least 0; debug 0 0 at least 0 at least 0" {
		t.Errorf("counts of a full page are %s", got)
	}
	if got := counts(viewertest.Clerk); len(got) != 0 {
		t.Errorf("a role that does not see levels: %s", got)
	}
	page := h.Page("/twilio/alerts", viewertest.All)
	if !strings.Contains(page, `href="/twilio/alerts?LogLevel=error"`) {
		t.Error("a level leads nowhere")
	}
}
