// The past: timelines and comparisons, and that none of them tells what is hidden.

package viewer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// edited is a JSON object with other values for some members, its order kept.
func edited(t testing.TB, body []byte, pairs ...string) []byte {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		name := `"` + pairs[i] + `":`
		from := bytes.Index(body, []byte(name))
		if from < 0 {
			t.Fatalf("no %s in %s", name, body)
		}
		from += len(name)
		var old json.RawMessage
		viewertest.Must(t, json.NewDecoder(bytes.NewReader(body[from:])).Decode(&old))
		at := from + bytes.Index(body[from:], old)
		body = bytes.Join([][]byte{body[:at], []byte(pairs[i+1]), body[at+len(old):]}, nil)
	}
	return body
}

// versions are bodies newest first, each seen a minute after the one before;
// nil is a going.
func versions(shape string, bodies ...[]byte) []understudy.Version {
	var all []understudy.Version
	until := time.Time{}
	for i, b := range bodies {
		v := understudy.Version{Number: int64(9000 - i), Shape: shape, Body: b, From: viewertest.Ago(i + 1), Until: until}
		if b == nil {
			v.Number, v.Shape, v.Gone = 0, "", true
		}
		until = v.From
		all = append(all, v)
	}
	return all
}

// remembering opens a viewer that knows the past of its newest call.
func remembering(t *testing.T, past func(now []byte) [][]byte) (h *viewertest.Fixture, kept *viewertest.History, path string) {
	t.Helper()
	kept = &viewertest.History{Versions: map[string][]understudy.Version{}}
	h = viewertest.Open(t, func(o *page.Options) { o.History = kept })
	id := h.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	path = "/twilio/calls/" + id
	_, body, _ := h.Get(path+".json", viewertest.All)
	kept.Versions["twilio/calls/"+id] = versions("calls", past([]byte(body))...)
	return h, kept, path
}

// threeLooks is a call that ran, ended and got its price, and a line of it that
// support does not see.
func threeLooks(t *testing.T) func(now []byte) [][]byte {
	return func(now []byte) [][]byte {
		priced := edited(t, now, "status", `"completed"`, "price", `"-0.01500"`, "from", `"+12125550111"`)
		secret := edited(t, priced, "from", `"+19995550111"`) // the same last four
		unpriced := edited(t, secret, "price", `null`)
		running := edited(t, unpriced, "status", `"in-progress"`)
		return [][]byte{priced, secret, unpriced, running}
	}
}

func TestTimeline(t *testing.T) {
	h, kept, path := remembering(t, threeLooks(t))
	shown := h.Page(path, viewertest.Berlin)
	plain := strings.ReplaceAll(shown, "\u00a0", " ")
	for _, want := range []string{"Timeline", "First seen", "version 9000", "version 8997", "in‑progress", "+1 999 555 0111", "$0.015",
		"shown here"} {
		if !strings.Contains(plain, want) {
			t.Errorf("the timeline lacks %q", want)
		}
	}
	if n := strings.Count(shown, `<span class="pill dot ">Changed</span>`); n != 3 {
		t.Errorf("%d changes, want 3", n)
	}
	viewertest.CheckGolden(t, "timeline", shown)
	for _, limit := range kept.Limits {
		if limit != viewer.FewVersions+2 {
			t.Errorf("asked for %d versions", limit)
		}
	}

	// Support sees neither the number, nor that it changed, nor our numbers of versions.
	masked := h.Page(path, viewertest.Browser{Token: "supporttoken", Zone: "Europe/Berlin"})
	if n := strings.Count(masked, `<span class="pill dot ">Changed</span>`); n != 2 {
		t.Errorf("support sees %d changes, want 2", n)
	}
	for _, secret := range []string{"5550111", "555 0111", "999", "version 9", "14:04:00", page.WriteMoment(viewertest.Ago(1))} {
		if strings.Contains(timelineOf(t, masked), secret) {
			t.Errorf("support's timeline shows %q", secret)
		}
	}
	if !strings.Contains(timelineOf(t, masked), "in‑progress") {
		t.Error("support does not see that the state changed")
	}
	// clerk does not see prices: that version is none.
	if clerk := timelineOf(t, h.Page(path, viewertest.Clerk)); strings.Contains(clerk, "0.0150") ||
		strings.Count(clerk, "Changed</span>") != 2 {
		t.Errorf("clerk's timeline: %s", clerk)
	}
}

// timelineOf is the timeline of a page.
func timelineOf(t *testing.T, page string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `id="timeline"`)
	if !ok {
		t.Fatal("no timeline")
	}
	part, _, _ := strings.Cut(rest, "</section>")
	return part
}

func TestTimelineOfWhatWentAndCameBack(t *testing.T) {
	h, kept, path := remembering(t, func(now []byte) [][]byte { return [][]byte{now, nil, nil, edited(t, now, "price", "null")} })
	page := timelineOf(t, h.Page(path, viewertest.All))
	for _, want := range []string{"Restored", "Deleted", "First seen", "price", "Price"} {
		if !strings.Contains(page, want) && want != "price" {
			t.Errorf("the timeline lacks %q: %s", want, page)
		}
	}
	if n := strings.Count(page, ">Deleted<"); n != 1 {
		t.Errorf("gone %d times", n)
	}
	kept.Versions["twilio/calls/"+path[len("/twilio/calls/"):]][0].Body = nil
	if page := timelineOf(t, h.Page(path, viewertest.All)); !strings.Contains(page, "were not kept") {
		t.Errorf("a version without a body: %s", page)
	}
	kept.Err = errors.New("disk on fire")
	if page := h.Page(path, viewertest.All); !strings.Contains(page, "could not be read") || strings.Contains(page, "disk on fire") {
		t.Error("a history that cannot be read is not said to be so")
	}
	kept.Err, kept.Versions = nil, nil
	if page := h.Page(path, viewertest.All); strings.Contains(page, "Timeline") {
		t.Error("a record that was never seen has a timeline")
	}
}

func TestLongTimeline(t *testing.T) {
	h, kept, path := remembering(t, func(now []byte) [][]byte {
		var all [][]byte
		for i := range 600 {
			all = append(all, edited(t, now, "duration", fmt.Sprintf(`"%d"`, 1000-i)))
		}
		return all
	})
	page := timelineOf(t, h.Page(path, viewertest.All))
	if n := strings.Count(page, "<li"); n != viewer.FewVersions {
		t.Errorf("%d entries at first", n)
	}
	if strings.Contains(page, "First seen") {
		t.Error("the oldest of a cut timeline is called the first")
	}
	older := path + "?" + viewer.OwnVersions + "=100"
	if !strings.Contains(page, `href="`+older+`#timeline"`) {
		t.Errorf("no way to older ones: %s", page[len(page)-600:])
	}
	if n := strings.Count(timelineOf(t, h.Page(older, viewertest.All)), "<li"); n != 100 {
		t.Errorf("%d entries of 100", n)
	}
	most := timelineOf(t, h.Page(path+"?"+viewer.OwnVersions+"=500", viewertest.All))
	if !strings.Contains(most, "Only the newest 500") || strings.Contains(most, ">Older<") {
		t.Error("the bound is not told")
	}
	for _, n := range []string{"0", "501", "x", "-1", ""} {
		if status, _, _ := h.Get(path+"?"+viewer.OwnVersions+"="+n, viewertest.All); status != 400 {
			t.Errorf("%s=%s: %d", viewer.OwnVersions, n, status)
		}
	}
	kept.Versions["twilio/calls/"+path[len("/twilio/calls/"):]] = kept.Versions["twilio/calls/"+path[len("/twilio/calls/"):]][:500]
	if page := timelineOf(t, h.Page(path+"?"+viewer.OwnVersions+"=500", viewertest.All)); !strings.Contains(page, "First seen") ||
		strings.Contains(page, "Only the newest") {
		t.Error("500 of 500 are called cut")
	}
}

// L2: a version that were not kept, since something in it was taken back or the limit
// took it, shows to who sees everything alone.
func TestTimelineTellsNothingOfWhatIsNotKept(t *testing.T) {
	h, kept, path := remembering(t, func(now []byte) [][]byte {
		now = edited(t, now, "from", `"+12125550111"`) // the same last four
		return [][]byte{now, edited(t, now, "from", `"+19995550111"`), edited(t, now, "from", `"+18885550111"`),
			edited(t, now, "status", `"queued"`)}
	})
	all := kept.Versions["twilio/calls/"+path[len("/twilio/calls/"):]]
	masked := viewertest.Support
	before := timelineOf(t, h.Page(path, masked))
	all[1].Body, all[2].Body = nil, nil
	if after := timelineOf(t, h.Page(path, masked)); after != before || strings.Contains(after, "were not kept") {
		t.Errorf("the timeline was\n%s\nand is\n%s", before, after)
	}
	if page := timelineOf(t, h.Page(path, viewertest.All)); !strings.Contains(page, "were not kept") {
		t.Error("who sees everything is not told")
	}
}

// However often something hidden changed, the page of who does not see it is
// the same.
func TestTimelineTellsNothingOfWhatIsHidden(t *testing.T) {
	masked := viewertest.Support
	var want string
	for _, hidden := range []int{1, 30, 200} {
		h, kept, path := remembering(t, func(now []byte) [][]byte {
			all := [][]byte{now}
			for i := range hidden {
				all = append(all, edited(t, now, "from", fmt.Sprintf(`"+1%03d5550111"`, i), "status", `"in-progress"`))
			}
			return append(all, edited(t, now, "status", `"queued"`))
		})
		all := kept.Versions["twilio/calls/"+path[len("/twilio/calls/"):]]
		all[len(all)-2].From, all[len(all)-1].From = viewertest.Ago(300), viewertest.Ago(301) // when that began is no secret
		page := timelineOf(t, h.Page(path, masked))
		if want == "" {
			want = page
		}
		if page != want || strings.Count(page, "<li") != 3 {
			t.Errorf("after %d hidden changes the timeline is %s\nwant %s", hidden, page, want)
		}
	}
}

func TestCompare(t *testing.T) {
	h, _, path := remembering(t, threeLooks(t))
	between := func(a, b int) string {
		return path + "?" + understudy.Query{viewer.CompareParam(viewertest.Ago(a), viewertest.Ago(b))}.String()
	}
	shown := h.Page(between(4, 1), viewertest.Berlin)
	for _, want := range []string{"in‑progress", "completed", "$0.015", "+1 999 555 0111", "+1 212 555 0111", "3 fields changed",
		"Unchanged"} {
		if !strings.Contains(strings.ReplaceAll(shown, "\u00a0", " "), want) {
			t.Errorf("the comparison lacks %q", want)
		}
	}
	viewertest.CheckGolden(t, "compare", shown)
	viewertest.CheckHTML(t, "compare", shown)
	masked := h.Page(between(4, 1), viewertest.Support)
	if !strings.Contains(masked, "2 fields changed") || strings.Contains(masked, "555 0111") {
		t.Error("support's comparison shows what changed in a number")
	}
	if same := h.Page(between(2, 1), viewertest.Support); !strings.Contains(same, "Both versions look the same") {
		t.Error("support sees a change of a number")
	}
	// A moment between two versions means the one that stood then.
	betweenVersions := page.WriteMoment(viewertest.Ago(4).Add(time.Second)) + ".." + page.WriteMoment(viewertest.Noon)
	_, body, _ := h.Get(path+"?compare="+url.QueryEscape(betweenVersions), viewertest.All)
	if !strings.Contains(body, "3 fields changed") {
		t.Error("moments between versions are not found")
	}
	// A form gives one moment after the other; the address becomes one that can be passed on.
	both := "?compare=" + url.QueryEscape(page.WriteMoment(viewertest.Ago(4))) + "&compare=" +
		url.QueryEscape(page.WriteMoment(viewertest.Ago(1)))
	status, _, head := h.Get(path+both, viewertest.All)
	if status != 303 || head.Get("Location") != between(4, 1) {
		t.Errorf("a form: %d, %s", status, head.Get("Location"))
	}
	for value, want := range map[string]int{
		"x": 400, "1..2": 400, "..": 400, page.WriteMoment(viewertest.Ago(4)): 400, page.WriteMoment(viewertest.Ago(9)) + ".." +
			page.WriteMoment(viewertest.Ago(1)): 404,
		page.WriteMoment(viewertest.Ago(4)) + ".." + page.WriteMoment(viewertest.Ago(3)) + ".." + page.WriteMoment(viewertest.Ago(1)): 400,
		"": 400,
	} {
		if status, _, _ := h.Get(path+"?compare="+url.QueryEscape(value), viewertest.All); status != want {
			t.Errorf("compare=%s: %d, want %d", value, status, want)
		}
	}
	if status, _, _ := h.Get(between(4, 1), viewertest.Counter); status != 403 {
		t.Errorf("who sees no calls compares them: %d", status)
	}
	if status, _, _ := h.Get(strings.Replace(between(4, 1), "?", ".json?", 1), viewertest.All); status != 400 {
		t.Errorf("a comparison as data: %d", status)
	}
}

func TestGoneRecordLeadsToItsPast(t *testing.T) {
	h, kept, path := remembering(t, func(now []byte) [][]byte { return [][]byte{nil, now} })
	id := "CA00000000000000000000000000000000"
	kept.Versions["twilio/calls/"+id] = kept.Versions["twilio/calls/"+path[len("/twilio/calls/"):]]
	status, body, _ := h.Get("/twilio/calls/"+id, viewertest.All)
	checktest.Equal(t, status, 404, "%d: status; body %s", status, body)
	checktest.Contains(t, body, "This call was deleted", "%d: body", status)
	checktest.Contains(t, body,
		`href="/twilio/calls/`+id+"?"+strings.ReplaceAll(page.AsOf{At: viewertest.Ago(2)}.Param().String(), "&", "&amp;")+`"`,
		"%d: body", status)
	if status, body, _ := h.Get("/twilio/calls/CA00000000000000000000000000000001", viewertest.All); status != 404 || strings.Contains(body,
		"was deleted") {
		t.Errorf("a record that never was: %d", status)
	}
}
