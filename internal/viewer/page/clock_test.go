// Clock: pages as of an earlier moment, and moments as they are typed.

package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

func TestAsOf(t *testing.T) {
	h := viewertest.Open(t)
	at := viewertest.Ago(90)
	param := page.AsOf{At: at}.Param().String()
	list := h.Page("/twilio/calls?"+param, viewertest.Berlin)
	h.Mirror.Lock()
	for i, uri := range h.Mirror.Asked {
		if strings.Contains(uri, "/Calls.json") != h.Mirror.AsOf[i].Equal(at) {
			t.Errorf("the mirror is asked for %s as of %v", uri, h.Mirror.AsOf[i])
		}
	}
	h.Mirror.Unlock()
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
	viewertest.CheckGolden(t, "asof", list)
	id := h.FirstID("/twilio/calls", `CA[0-9a-f]{32}`)
	record := h.Page("/twilio/calls/"+id+"?"+param, viewertest.Berlin)
	if !strings.Contains(record, `href="/twilio/calls/`+id+`">Back to now`) ||
		!strings.Contains(record, `href="/twilio/calls/`+id+".json?"+shown) {
		t.Error("a record of an earlier moment lacks its banner or its data")
	}
	if status, _, head := h.Get("/twilio/calls/"+id+".json?"+param, viewertest.All); status != 200 ||
		head.Get("Content-Type") != "application/json" {
		t.Errorf("data of an earlier moment: %d", status)
	}
	viewertest.CheckHTML(t, "as of", list)
	viewertest.CheckHTML(t, "as of", record)
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
	h := viewertest.Open(t)
	id := h.FirstID("/twilio/calls", `CA[0-9a-f]{32}`)
	for given, want := range map[string]string{
		"2026-06-01T10:00": "2026-06-01T08:00:00Z", "2026-06-01": "2026-05-31T22:00:00Z", "2026-06-01T10:00:30": "2026-06-01T08:00:30Z",
		"2026-06-01T10:00:00+02:00": "2026-06-01T08:00:00Z", "2026-06-01T08:00:00.5Z": "", "2026-06-01T08:00:00Z": "",
		"2026-06-01 10:00": "2026-06-01T08:00:00Z",
	} {
		for _, path := range []string{"/twilio/calls", "/twilio/calls/" + id, "/twilio/calls.json"} {
			status, _, head := h.Get(path+"?"+understudy.OwnAsOf+"="+strings.ReplaceAll(given, " ", "%20"), viewertest.Berlin)
			location := ""
			if want != "" {
				location = path + "?" + understudy.Query{{Name: understudy.OwnAsOf, Value: want}}.String()
			}
			got, moved := head.Get("Location"), 303
			if path == "/twilio/calls.json" { // data is answered, and says where it stands
				got, moved = strings.TrimSuffix(strings.TrimPrefix(head.Get("Link"), "<"), `>; rel="canonical"`), 200
			}
			if want == "" {
				moved = 200
			}
			if status != moved || got != location {
				t.Errorf("%s as of %s: %d, %q; want %q", path, given, status, got, location)
			}
		}
	}
	for _, bad := range []string{"yesterday", "2026-13-01", "2026-06-01T12:06:00Z", "1969-12-31T23:59:59Z", "9999-01-01", "12"} {
		for _, path := range []string{"/twilio/calls", "/twilio/calls/" + id, "/twilio/calls.json", "/twilio/calls/" + id + ".json"} {
			if status, body, _ := h.Get(path+"?"+understudy.OwnAsOf+"="+bad, viewertest.All); status != 400 || !strings.Contains(body,
				understudy.OwnAsOf) {
				t.Errorf("%s as of %s: %d", path, bad, status)
			}
		}
	}
	if status, _, _ := h.Get("/twilio/calls?"+understudy.OwnAsOf+"=2026-01-01&"+understudy.OwnAsOf+"=2026-01-02",
		viewertest.All); status != 400 {
		t.Errorf("two moments: %d", status)
	}
	if status, _, head := h.Get("/twilio/calls?"+understudy.OwnAsOf+"=", viewertest.All); status != 303 ||
		head.Get("Location") != "/twilio/calls" {
		t.Errorf("an input left empty: %d %s", status, head.Get("Location"))
	}
}

func TestAsOfOfWhatIsNotKnown(t *testing.T) {
	h := viewertest.Open(t)
	for err, want := range map[error]int{understudy.ErrNotFound: 404, understudy.ErrNoStoredAnswer: 404, understudy.ErrInvalid: 400,
		understudy.ErrUnavailable: 503} {
		h.Mirror.Lock()
		h.Mirror.Change = func(request.Request, *request.Response) (*request.Response, error) {
			return nil, fmt.Errorf("mirror: calls as of then: %w: that is too much to look through", err)
		}
		h.Mirror.Unlock()
		status, body, _ := h.Get("/twilio/calls?"+page.AsOf{At: viewertest.Ago(9)}.Param().String(), viewertest.All)
		checktest.Equal(t, status, want, "%v: status; body %s", err, body)
		checktest.True(t, !(want != 503 && !strings.Contains(body, "See the current version")),
			`%v: want != 503 && !strings.Contains(body, "See the current version"); want is %v`, err, want)
		checktest.True(t, !(want == 400 && !strings.Contains(body, "That is too much to look through.")),
			"%v: want is %v", err, want)
	}
}

func FuzzMoment(f *testing.F) {
	for _, seed := range []string{"2026-06-01T12:00:00Z", "2026-06-01", "2026-06-01T10:00", "2026-06-01T10:00:00 02:00", "0000-00-00", "..",
		"2026-06-01T24:00:00Z"} {
		f.Add(seed)
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	viewertest.Must(f, err)
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
