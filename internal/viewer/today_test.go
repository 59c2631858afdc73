// Today: what the home page says is to be looked at is what its links find.

package viewer_test

import (
	"context"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/spec"
)

var todayCell = regexp.MustCompile(`<td><a href="(/search[^"]*)"[^>]*>([^<]*)</a></td>`)

// The counts of the home page are those of the searches that they lead to, for each role. What a
// role may not ask for is not on its page.
func TestHomeCountsWhatFailedAsItsLinksFindIt(t *testing.T) {
	day := func(o *page.Options) { o.Now = func() time.Time { return viewertest.Noon.AddDate(0, 0, -4) } } // on which messages failed
	single := func(o *page.Options) {
		o.Snapshot = func(ctx context.Context, source string) page.Snapshot {
			s := viewertest.Snapshot(ctx, source)
			s.Kinds["recordings"] = page.StoredKind{Records: 2} // which came with calls
			return s
		}
	}
	ruled := viewertest.Open(t, day, single, func(o *page.Options) {
		var err error
		if o.Gate, err = access.NewWith(access.Options{Specs: map[string]*spec.Spec{"twilio": o.Sources[0].Spec}, Roles: viewertest.Roles,
			Now:  o.Now,
			Rows: map[string]map[string]access.RowRules{"support": {"twilio": {access.Everything: {Age: 1000 * time.Hour}}}}}); err != nil {
			t.Fatal(err)
		}
	}, viewertest.WithSearch(t))
	_, rest, _ := strings.Cut(ruled.Page("/", viewertest.Support), "<h3>Needs attention</h3>")
	if table, _, _ := strings.Cut(rest, "</table>"); strings.Contains(table, "Recordings") || !strings.Contains(table, "Calls") {
		t.Error("a role with row rules reads that no recording failed, whose list was not fetched")
	}
	h := viewertest.Open(t, day, single, viewertest.WithSearch(t))
	for _, c := range []struct {
		who   viewertest.Browser
		kinds []string
		never string
	}{
		{viewertest.All, []string{"Calls", "Messages"}, "Recordings"}, // whose list was not fetched
		{viewertest.Support, []string{"Calls", "Messages"}, "/-/administration"},
		{viewertest.Clerk, []string{"Calls"}, "messages"},
	} {
		_, rest, _ := strings.Cut(h.Page("/", c.who), "<h3>Needs attention</h3>")
		table, after, _ := strings.Cut(rest, "</table>")
		for _, kind := range c.kinds {
			if !strings.Contains(table, `<th scope="row">`+kind+`</th>`) {
				t.Errorf("%s: %s are not on the page", c.who.Token, kind)
			}
		}
		if strings.Contains(table, c.never) || c.who.Token != viewertest.All.Token && strings.Contains(after, c.never) {
			t.Errorf("%s: the page has %s", c.who.Token, c.never)
		}
		some := 0
		for _, cell := range todayCell.FindAllStringSubmatch(table, -1) {
			found := h.Page(html.UnescapeString(cell[1]), c.who)
			if cell[2] != "0" {
				some++
			} else if !strings.Contains(found, "Nothing found") {
				t.Errorf("%s: 0, and %s finds some", c.who.Token, cell[1])
			}
			if cell[2] != "0" && !strings.Contains(found, cell[2]+" ") {
				t.Errorf("%s: %s, and %s finds another number", c.who.Token, cell[2], cell[1])
			}
		}
		if some == 0 && strings.Contains(table, "Messages") {
			t.Errorf("%s: nothing failed", c.who.Token)
		}
	}
}

// A headline compares at least 30 answers, and counts a network's millisecond for ours.
func TestHomeComparesThirtyAnswers(t *testing.T) {
	for _, c := range []struct {
		answers int64
		ours    time.Duration
		want    string
	}{{29, 2 * time.Millisecond, ""}, {30, 2 * time.Millisecond, "500×"}, {30, 10 * time.Microsecond, "1,000×"}, {30, time.Second, ""}} {
		h := viewertest.Open(t, func(o *page.Options) {
			o.Snapshot = func(context.Context, string) page.Snapshot {
				return page.Snapshot{Latencies: page.Latencies{StoredTimes: page.Times{Answers: c.answers, P50: c.ours},
					UpstreamTimes: page.Times{Answers: 9, P50: time.Second}}}
			}
		})
		for _, path := range []string{"/", "/-/administration"} {
			if shown := h.Page(path, viewertest.All); strings.Contains(shown, "faster than Twilio") != (c.want != "") || !strings.Contains(shown,
				c.want) {
				t.Errorf("%s after %d answers of %v: want %q", path, c.answers, c.ours, c.want)
			}
		}
	}
}
