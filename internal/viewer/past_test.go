// The past: timelines, comparisons and earlier moments, and that none of them
// tells what is hidden.

package viewer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/request"
)

// archive is a history that says what it is told.
type archive struct {
	versions map[string][]understudy.Version // by id, newest first
	err      error
	limits   []int
	edition  int64 // 0: not known
}

func (a *archive) History(_ context.Context, source, kind, id string, limit int) ([]understudy.Version, error) {
	a.limits = append(a.limits, limit)
	all := a.versions[source+"/"+kind+"/"+id]
	if a.err != nil {
		return nil, a.err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("store: history: %w", understudy.ErrNotFound)
	}
	return all[:min(len(all), limit)], nil
}

func (a *archive) Edition(context.Context, string) (change, silent int64, err error) {
	if a.edition == 0 {
		return 0, 0, errors.ErrUnsupported
	}
	return a.edition, 0, nil
}

// told is a moment before noon.
func told(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }

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
		must(t, json.NewDecoder(bytes.NewReader(body[from:])).Decode(&old))
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
		v := understudy.Version{Number: int64(9000 - i), Shape: shape, Body: b, From: told(i + 1), Until: until}
		if b == nil {
			v.Number, v.Shape, v.Gone = 0, "", true
		}
		until = v.From
		all = append(all, v)
	}
	return all
}

// remembering opens a viewer that knows the past of its newest call.
func remembering(t *testing.T, past func(now []byte) [][]byte) (h *fixture, kept *archive, path string) {
	t.Helper()
	kept = &archive{versions: map[string][]understudy.Version{}}
	h = open(t, func(o *page.Options) { o.History = kept })
	id := h.firstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	path = "/twilio/calls/" + id
	_, body, _ := h.get(path+".json", all)
	kept.versions["twilio/calls/"+id] = versions("calls", past([]byte(body))...)
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
	shown := h.page(path, berlin)
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
	golden(t, "timeline", shown)
	for _, limit := range kept.limits {
		if limit != fewVersions+2 {
			t.Errorf("asked for %d versions", limit)
		}
	}

	// Support sees neither the number, nor that it changed, nor our numbers of versions.
	masked := h.page(path, as{token: "supporttoken", zone: "Europe/Berlin"})
	if n := strings.Count(masked, `<span class="pill dot ">Changed</span>`); n != 2 {
		t.Errorf("support sees %d changes, want 2", n)
	}
	for _, secret := range []string{"5550111", "555 0111", "999", "version 9", "14:04:00", page.WriteMoment(told(1))} {
		if strings.Contains(timelineOf(t, masked), secret) {
			t.Errorf("support's timeline shows %q", secret)
		}
	}
	if !strings.Contains(timelineOf(t, masked), "in‑progress") {
		t.Error("support does not see that the state changed")
	}
	// clerk does not see prices: that version is none.
	if clerk := timelineOf(t, h.page(path, as{token: "clerktoken"})); strings.Contains(clerk, "0.0150") ||
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
	page := timelineOf(t, h.page(path, all))
	for _, want := range []string{"Came back", "Gone", "First seen", "price", "Price"} {
		if !strings.Contains(page, want) && want != "price" {
			t.Errorf("the timeline lacks %q: %s", want, page)
		}
	}
	if n := strings.Count(page, ">Gone<"); n != 1 {
		t.Errorf("gone %d times", n)
	}
	kept.versions["twilio/calls/"+path[len("/twilio/calls/"):]][0].Body = nil
	if page := timelineOf(t, h.page(path, all)); !strings.Contains(page, "is not kept") {
		t.Errorf("a version without a body: %s", page)
	}
	kept.err = errors.New("disk on fire")
	if page := h.page(path, all); !strings.Contains(page, "could not be read") || strings.Contains(page, "disk on fire") {
		t.Error("a history that cannot be read is not said to be so")
	}
	kept.err, kept.versions = nil, nil
	if page := h.page(path, all); strings.Contains(page, "Timeline") {
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
	page := timelineOf(t, h.page(path, all))
	if n := strings.Count(page, "<li"); n != fewVersions {
		t.Errorf("%d entries at first", n)
	}
	if strings.Contains(page, "First seen") {
		t.Error("the oldest of a cut timeline is called the first")
	}
	older := path + "?" + ownVersions + "=100"
	if !strings.Contains(page, `href="`+older+`#timeline"`) {
		t.Errorf("no way to older ones: %s", page[len(page)-600:])
	}
	if n := strings.Count(timelineOf(t, h.page(older, all)), "<li"); n != 100 {
		t.Errorf("%d entries of 100", n)
	}
	most := timelineOf(t, h.page(path+"?"+ownVersions+"=500", all))
	if !strings.Contains(most, "Only the newest 500") || strings.Contains(most, ">Older<") {
		t.Error("the bound is not told")
	}
	for _, n := range []string{"0", "501", "x", "-1", ""} {
		if status, _, _ := h.get(path+"?"+ownVersions+"="+n, all); status != 400 {
			t.Errorf("%s=%s: %d", ownVersions, n, status)
		}
	}
	kept.versions["twilio/calls/"+path[len("/twilio/calls/"):]] = kept.versions["twilio/calls/"+path[len("/twilio/calls/"):]][:500]
	if page := timelineOf(t, h.page(path+"?"+ownVersions+"=500", all)); !strings.Contains(page, "First seen") ||
		strings.Contains(page, "Only the newest") {
		t.Error("500 of 500 are called cut")
	}
}

// L2: a version that is not kept, since something in it was taken back or the limit
// took it, shows to who sees everything alone.
func TestTimelineTellsNothingOfWhatIsNotKept(t *testing.T) {
	h, kept, path := remembering(t, func(now []byte) [][]byte {
		now = edited(t, now, "from", `"+12125550111"`) // the same last four
		return [][]byte{now, edited(t, now, "from", `"+19995550111"`), edited(t, now, "from", `"+18885550111"`),
			edited(t, now, "status", `"queued"`)}
	})
	all := kept.versions["twilio/calls/"+path[len("/twilio/calls/"):]]
	masked := as{token: "supporttoken"}
	before := timelineOf(t, h.page(path, masked))
	all[1].Body, all[2].Body = nil, nil
	if after := timelineOf(t, h.page(path, masked)); after != before || strings.Contains(after, "is not kept") {
		t.Errorf("the timeline was\n%s\nand is\n%s", before, after)
	}
	if page := timelineOf(t, h.page(path, as{token: "alltoken"})); !strings.Contains(page, "is not kept") {
		t.Error("who sees everything is not told")
	}
}

// However often something hidden changed, the page of who does not see it is
// the same.
func TestTimelineTellsNothingOfWhatIsHidden(t *testing.T) {
	masked := as{token: "supporttoken"}
	var want string
	for _, hidden := range []int{1, 30, 200} {
		h, kept, path := remembering(t, func(now []byte) [][]byte {
			all := [][]byte{now}
			for i := range hidden {
				all = append(all, edited(t, now, "from", fmt.Sprintf(`"+1%03d5550111"`, i), "status", `"in-progress"`))
			}
			return append(all, edited(t, now, "status", `"queued"`))
		})
		all := kept.versions["twilio/calls/"+path[len("/twilio/calls/"):]]
		all[len(all)-2].From, all[len(all)-1].From = told(300), told(301) // when that began is no secret
		page := timelineOf(t, h.page(path, masked))
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
		return path + "?" + understudy.Query{compareParam(told(a), told(b))}.String()
	}
	shown := h.page(between(4, 1), berlin)
	for _, want := range []string{"in‑progress", "completed", "$0.015", "+1 999 555 0111", "+1 212 555 0111", "3 fields changed",
		"Unchanged"} {
		if !strings.Contains(strings.ReplaceAll(shown, "\u00a0", " "), want) {
			t.Errorf("the comparison lacks %q", want)
		}
	}
	golden(t, "compare", shown)
	wellFormed(t, "compare", shown)
	masked := h.page(between(4, 1), as{token: "supporttoken"})
	if !strings.Contains(masked, "2 fields changed") || strings.Contains(masked, "555 0111") {
		t.Error("support's comparison shows what changed in a number")
	}
	if same := h.page(between(2, 1), as{token: "supporttoken"}); !strings.Contains(same, "Both look the same") {
		t.Error("support sees a change of a number")
	}
	// A moment between two versions means the one that stood then.
	_, body, _ := h.get(path+"?compare="+url.QueryEscape(page.WriteMoment(told(4).Add(time.Second))+".."+page.WriteMoment(noon)), all)
	if !strings.Contains(body, "3 fields changed") {
		t.Error("moments between versions are not found")
	}
	// A form gives one moment after the other; the address becomes one that can be passed on.
	both := "?compare=" + url.QueryEscape(page.WriteMoment(told(4))) + "&compare=" + url.QueryEscape(page.WriteMoment(told(1)))
	status, _, head := h.get(path+both, all)
	if status != 303 || head.Get("Location") != between(4, 1) {
		t.Errorf("a form: %d, %s", status, head.Get("Location"))
	}
	for value, want := range map[string]int{
		"x": 400, "1..2": 400, "..": 400, page.WriteMoment(told(4)): 400, page.WriteMoment(told(9)) + ".." + page.WriteMoment(told(1)): 404,
		page.WriteMoment(told(4)) + ".." + page.WriteMoment(told(3)) + ".." + page.WriteMoment(told(1)): 400, "": 400,
	} {
		if status, _, _ := h.get(path+"?compare="+url.QueryEscape(value), all); status != want {
			t.Errorf("compare=%s: %d, want %d", value, status, want)
		}
	}
	if status, _, _ := h.get(between(4, 1), as{token: "countertoken"}); status != 403 {
		t.Errorf("who sees no calls compares them: %d", status)
	}
	if status, _, _ := h.get(strings.Replace(between(4, 1), "?", ".json?", 1), all); status != 400 {
		t.Errorf("a comparison as data: %d", status)
	}
}

func TestGoneRecordLeadsToItsPast(t *testing.T) {
	h, kept, path := remembering(t, func(now []byte) [][]byte { return [][]byte{nil, now} })
	id := "CA00000000000000000000000000000000"
	kept.versions["twilio/calls/"+id] = kept.versions["twilio/calls/"+path[len("/twilio/calls/"):]]
	status, body, _ := h.get("/twilio/calls/"+id, all)
	if status != 404 || !strings.Contains(body, "This call is gone") ||
		!strings.Contains(body, `href="/twilio/calls/`+id+"?"+strings.ReplaceAll(page.AsOf{At: told(2)}.Param().String(), "&", "&amp;")+`"`) {
		t.Errorf("%d: %s", status, body)
	}
	if status, body, _ := h.get("/twilio/calls/CA00000000000000000000000000000001", all); status != 404 || strings.Contains(body, "is gone") {
		t.Errorf("a record that never was: %d", status)
	}
}

func TestAsOf(t *testing.T) {
	h := open(t)
	at := told(90)
	param := page.AsOf{At: at}.Param().String()
	list := h.page("/twilio/calls?"+param, berlin)
	h.mirror.mu.Lock()
	for i, uri := range h.mirror.asked {
		if strings.Contains(uri, "/Calls.json") != h.mirror.as[i].Equal(at) {
			t.Errorf("the mirror is asked for %s as of %v", uri, h.mirror.as[i])
		}
	}
	h.mirror.mu.Unlock()
	shown := strings.ReplaceAll(param, "&", "&amp;")
	for _, want := range []string{"As it was known on", `href="/twilio/calls">Back to now`, `value="2026-06-01T12:35:00"`} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q", want)
		}
	}
	// Whatever leads on from here to a list or a record keeps the moment.
	_, inside, _ := strings.Cut(list, "<main")
	for _, href := range hrefs(inside) {
		if strings.HasPrefix(href, "/twilio/calls") && href != "/twilio/calls" && !strings.Contains(href, understudy.OwnAsOf+"=") {
			t.Errorf("%s forgets the moment", href)
		}
	}
	if !strings.Contains(inside, `rel="next" href="/twilio/calls?`) || !strings.Contains(inside, shown) {
		t.Error("no older page")
	}
	golden(t, "asof", list)
	id := h.firstID("/twilio/calls", `CA[0-9a-f]{32}`)
	record := h.page("/twilio/calls/"+id+"?"+param, berlin)
	if !strings.Contains(record, `href="/twilio/calls/`+id+`">Back to now`) ||
		!strings.Contains(record, `href="/twilio/calls/`+id+".json?"+shown) {
		t.Error("a record of an earlier moment lacks its banner or its data")
	}
	if status, _, head := h.get("/twilio/calls/"+id+".json?"+param, all); status != 200 || head.Get("Content-Type") != "application/json" {
		t.Errorf("data of an earlier moment: %d", status)
	}
	wellFormed(t, "as of", list)
	wellFormed(t, "as of", record)
}

// hrefs are the addresses a page links to.
func hrefs(page string) []string {
	var all []string
	for _, part := range strings.Split(page, `href="`)[1:] {
		href, _, _ := strings.Cut(part, `"`)
		all = append(all, strings.ReplaceAll(href, "&amp;", "&"))
	}
	return all
}

func TestAsOfForms(t *testing.T) {
	h := open(t)
	id := h.firstID("/twilio/calls", `CA[0-9a-f]{32}`)
	for given, want := range map[string]string{
		"2026-06-01T10:00": "2026-06-01T08:00:00Z", "2026-06-01": "2026-05-31T22:00:00Z", "2026-06-01T10:00:30": "2026-06-01T08:00:30Z",
		"2026-06-01T10:00:00+02:00": "2026-06-01T08:00:00Z", "2026-06-01T08:00:00.5Z": "", "2026-06-01T08:00:00Z": "",
		"2026-06-01 10:00": "2026-06-01T08:00:00Z",
	} {
		for _, path := range []string{"/twilio/calls", "/twilio/calls/" + id, "/twilio/calls.json"} {
			status, _, head := h.get(path+"?"+understudy.OwnAsOf+"="+strings.ReplaceAll(given, " ", "%20"), berlin)
			location := ""
			if want != "" {
				location = path + "?" + understudy.Query{{Name: understudy.OwnAsOf, Value: want}}.String()
			}
			if (status == 303) != (want != "") || head.Get("Location") != location {
				t.Errorf("%s as of %s: %d, %q; want %q", path, given, status, head.Get("Location"), location)
			}
		}
	}
	for _, bad := range []string{"yesterday", "2026-13-01", "2026-06-01T12:06:00Z", "1969-12-31T23:59:59Z", "9999-01-01", "12"} {
		for _, path := range []string{"/twilio/calls", "/twilio/calls/" + id, "/twilio/calls.json", "/twilio/calls/" + id + ".json"} {
			if status, body, _ := h.get(path+"?"+understudy.OwnAsOf+"="+bad, all); status != 400 || !strings.Contains(body, understudy.OwnAsOf) {
				t.Errorf("%s as of %s: %d", path, bad, status)
			}
		}
	}
	if status, _, _ := h.get("/twilio/calls?"+understudy.OwnAsOf+"=2026-01-01&"+understudy.OwnAsOf+"=2026-01-02", all); status != 400 {
		t.Errorf("two moments: %d", status)
	}
	if status, _, head := h.get("/twilio/calls?"+understudy.OwnAsOf+"=", all); status != 303 || head.Get("Location") != "/twilio/calls" {
		t.Errorf("an input left empty: %d %s", status, head.Get("Location"))
	}
}

func TestAsOfOfWhatIsNotKnown(t *testing.T) {
	h := open(t)
	for err, want := range map[error]int{understudy.ErrNotFound: 404, understudy.ErrNotHeld: 404, understudy.ErrInvalid: 400,
		understudy.ErrUnavailable: 503} {
		h.mirror.mu.Lock()
		h.mirror.change = func(request.Request, *request.Response) (*request.Response, error) {
			return nil, fmt.Errorf("mirror: calls as of then: %w: that is too much to look through", err)
		}
		h.mirror.mu.Unlock()
		status, body, _ := h.get("/twilio/calls?"+page.AsOf{At: told(9)}.Param().String(), all)
		if status != want || want != 503 && !strings.Contains(body, "See it as it is now") || want == 400 &&
			!strings.Contains(body, "That is too much to look through.") {
			t.Errorf("%v: %d %s", err, status, body)
		}
	}
}

func FuzzMoment(f *testing.F) {
	for _, seed := range []string{"2026-06-01T12:00:00Z", "2026-06-01", "2026-06-01T10:00", "2026-06-01T10:00:00 02:00", "0000-00-00", "..",
		"2026-06-01T24:00:00Z"} {
		f.Add(seed)
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	must(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		at, ok := page.ParseMoment(text, zone)
		if !ok {
			return
		}
		again, ok := page.ParseMoment(page.WriteMoment(at), time.UTC)
		if !ok || !again.Equal(at) {
			t.Errorf("%q is %v, written %s, read %v", text, at, page.WriteMoment(at), again)
		}
	})
}
