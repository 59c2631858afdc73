// Tests of the world: its shape, its size, and that it is always the same.
package slowapi

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/world"
)

func TestWorldShape(t *testing.T) {
	const n = 6000
	r := start(t, Options{Records: n})
	calls := r.walk(root+"/Calls.json?PageSize=1000", nil)
	var neverStarted, children, sameSecond, disordered int
	at := map[string]record{}
	for _, one := range calls {
		at[one["sid"].(string)] = one
	}
	for i, one := range calls {
		if one["start_time"] == nil && (one["status"] == "canceled" || one["status"] == "failed") {
			neverStarted++
			if one["end_time"] != nil {
				t.Fatal("a call that never started ended")
			}
		}
		if sid, has := one["parent_call_sid"].(string); has {
			children++
			if parent := at[sid]; parent == nil || parent["direction"] != "inbound" || one["direction"] != "outbound-dial" {
				t.Fatalf("call %v has parent %v", one["sid"], parent)
			}
		}
		if i > 0 {
			gap := when(t, calls[i-1]["date_created"]).Sub(when(t, one["date_created"]))
			if gap == 0 {
				sameSecond++
			}
			if gap < 0 {
				disordered++
			}
		}
		if len(one["subresource_uris"].(record)) != 9 {
			t.Fatal("a call has not nine subresource URIs")
		}
	}
	share := func(name string, got int, want, give float64) {
		if percent := 100 * float64(got) / n; percent < want-give || percent > want+give {
			t.Errorf("%s: %.2f %%, want %v", name, percent, want)
		}
	}
	share("never started", neverStarted, 3, 0.6)
	share("with a parent", children, 20, 0.01)
	share("in one second with the next", sameSecond, 1, 0.4)
	if disordered > 0 {
		t.Errorf("%d calls are older than the one after them", disordered)
	}
	newest, oldest := when(t, calls[0]["date_created"]), when(t, calls[n-1]["date_created"])
	if want := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC); !newest.Equal(want) {
		t.Errorf("the newest is of %s, want %s", newest, want)
	}
	if days := newest.Sub(oldest).Hours() / 24; days < 89.9 || days > 90.1 {
		t.Errorf("they lie over %.2f days", days)
	}
}

func when(t *testing.T, date any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC1123Z, date.(string))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestMessagesSayRealThings(t *testing.T) {
	r := start(t, Options{Records: 2000})
	found := map[string]int{}
	media := 0
	for _, one := range r.walk(root+"/Messages.json?PageSize=1000", nil) {
		text := one["body"].(string)
		if one["num_media"] == "1" {
			media++
		}
		if (one["num_media"] == "1") != strings.HasPrefix(one["sid"].(string), "MM") {
			t.Fatalf("%v has %v media", one["sid"], one["num_media"])
		}
		if !utf8.ValidString(text) || utf8.RuneCountInString(text) > 1600 {
			t.Fatalf("body %q", text)
		}
		for name, has := range map[string]bool{
			"empty": text == "", "newline": strings.Contains(text, "\n"), "HTML": strings.Contains(text, "<b>"),
			"backslash": strings.Contains(text, `\`), "quote": strings.Contains(text, `"`), "long": len(text) > 700,
			"several segments": len(one["num_segments"].(string)) > 1 || one["num_segments"].(string) > "2",
			"emoji":            strings.ContainsAny(text, "👍📦🎉"),
		} {
			if has {
				found[name]++
			}
		}
		for name, script := range map[string]*unicode.RangeTable{
			"Arabic": unicode.Arabic, "Hebrew": unicode.Hebrew, "Han": unicode.Han, "Hiragana": unicode.Hiragana,
			"Hangul": unicode.Hangul, "Cyrillic": unicode.Cyrillic, "Thai": unicode.Thai, "Devanagari": unicode.Devanagari,
		} {
			if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(script, r) }) {
				found[name]++
			}
		}
	}
	if media != 200 {
		t.Errorf("%d of 4000 messages have media, want 200", media)
	}
	for _, name := range []string{"empty", "newline", "HTML", "backslash", "quote", "long", "several segments", "emoji", "Arabic", "Hebrew",
		"Han", "Hiragana", "Hangul", "Cyrillic", "Thai", "Devanagari"} {
		if found[name] == 0 {
			t.Errorf("no message with %s", name)
		}
	}
}

func TestBenchPage(t *testing.T) {
	r := start(t, Options{})
	body := r.get(root + "/Calls.json")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(body)
	_ = z.Close()
	if len(body) < 95_000 || len(body) > 110_000 || packed.Len() < 6_000 || packed.Len() > 8_500 {
		t.Errorf("50 calls are %d bytes, %d with gzip; want about 100 KB and 7 KB", len(body), packed.Len())
	}
}

func TestSameWorldSameBytes(t *testing.T) {
	o := Options{Records: 200, Seed: 7}
	a, b := start(t, o), start(t, o)
	o.Seed = 8
	other := start(t, o)
	for _, target := range []string{"/2010-04-01/Accounts.json", root + "/Calls.json", root + "/Messages.json?PageSize=400",
		root + "/IncomingPhoneNumbers.json", root + "/Calls.json?Status=completed&Page=1", root + "/Conferences.json", root + "/Recordings.json",
		root + "/Notifications.json", root + "/Queues.json", root + "/Usage/Records.json", root + "/AvailablePhoneNumbers/US/Local.json"} {
		read := func(r running) string { // without the address, which media_url holds
			return strings.ReplaceAll(string(r.get(target)), r.web.URL, "")
		}
		if one := read(a); one != read(b) || one == read(other) {
			t.Errorf("%s: two servers of one world differ, or two worlds do not", target)
		}
	}
	for _, r := range []running{a, b} {
		r.control("/-/advance", `{"calls":3,"messages":2,"seconds":90}`, 200)
		r.write("POST", root+"/Calls.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}}, 201)
		r.control("/-/advance", `{"seconds":9}`, 200)
	}
	for _, list := range []string{"/Calls.json", "/Messages.json"} {
		if !bytes.Equal(a.get(root+list), b.get(root+list)) {
			t.Errorf("%s: two servers differ after the same has happened", list)
		}
	}
}

func TestInstancesAreRows(t *testing.T) {
	r := start(t, Options{Records: 60})
	for _, list := range []string{"/Calls", "/Messages", "/IncomingPhoneNumbers"} {
		all := string(r.get(root + list + ".json"))
		for _, sid := range sids(r.page(root + list + ".json").records) {
			if row := string(r.get(root + list + "/" + sid + ".json")); !strings.Contains(all, row) {
				t.Fatalf("%s is not the row of its list", sid)
			}
		}
	}
	if all := string(r.get("/2010-04-01/Accounts.json")); !strings.Contains(all, string(r.get(root+".json"))) || !strings.Contains(all,
		`"auth_token":"slowapitoken"`) {
		t.Error("the account is not the row of its list, or carries no auth_token")
	}
}

// TestTenMillion shows that size costs nothing: pages by token and windows of
// time are quick anywhere, and memory stays where it was.
func TestTenMillion(t *testing.T) {
	s, err := New(Options{Records: 10_000_000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	calls := s.twilio.world.Below[0][kinds.Calls]
	deep := "PA" + string(s.twilio.world.AppendSID(nil, calls, 1234567))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for name, target := range map[string]string{
		"first":         "/Calls.json",
		"deep token":    "/Calls.json?Page=170000&PageToken=" + deep,
		"back token":    "/Calls.json?Page=170000&PageToken=PB" + deep[2:],
		"deep page":     "/Calls.json?Page=190000",
		"window":        "/Calls.json?StartTime%3E=2026-04-01T10:00:00Z&StartTime%3C=2026-04-01T10:05:00Z",
		"old window":    "/Calls.json?EndTime%3E=2026-03-04&EndTime%3C=2026-03-05&StartTime=2026-03",
		"past":          "/Calls.json?StartTime%3C=2001-01-01",
		"future":        "/Messages.json?DateSent%3E=2036-01-01",
		"message deep":  "/Messages.json?Page=390000",
		"conferences":   "/Conferences.json?Page=9000",
		"notifications": "/Notifications.json?Page=3900",
		"notified":      "/Notifications.json?Log=0&MessageDate%3E=2026-04-01&MessageDate%3C=2026-04-02",
		"of one call":   "/Calls/" + deep[2:] + "/Notifications.json",
		"its events":    "/Calls/" + deep[2:] + "/Events.json",
		"usage":         "/Usage/Records/Daily.json?PageSize=1000",
		"balance":       "/Balance.json",
		"queues":        "/Queues.json",
		"ended":         "/Conferences.json?DateUpdated%3E=2026-04-01&DateUpdated%3C=2026-04-02&PageSize=20",
		"recordings":    "/Recordings.json?Page=39000",
		"recorded":      "/Recordings.json?DateCreated%3E=2026-04-01&DateCreated%3C=2026-04-02",
		"of a call":     "/Calls/" + deep[2:] + "/Recordings.json",
		"by its call":   "/Recordings.json?CallSid=" + deep[2:],
		"spoken":        "/Transcriptions.json?Page=3900",
		"media": "/Messages/" + string(s.twilio.world.AppendSID(nil, s.twilio.world.Below[0][kinds.Messages], kinds.MediaPlace(1, 500_000))) +
			"/Media.json",
		"message since": "/Messages.json?DateSent%3E=2026-05-31&PageSize=1000",
	} {
		begin := time.Now()
		if body := ask(s, root+target); body.Code != 200 {
			t.Errorf("%s: %d %s", name, body.Code, body.Body)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// ask is a GET without a network.
func ask(s *Server, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", target, nil)
	r.SetBasicAuth(mainSID, "slowapitoken")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestTimesNeverFall(t *testing.T) {
	for _, n := range []int{1, 2, 3, 50, 4000, 9_000_000} {
		w := world.New(Options{Records: n, Seed: 3, Epoch: time.Unix(2e9, 0)}.withDefaults().world())
		s := w.Below[0][kinds.Calls]
		last := s.Created(0)
		for i := int64(1); i < min(s.Base, 3000); i++ {
			at := s.Created(i)
			if at < last {
				t.Fatalf("%d records: %d is older than the one before", n, i)
			}
			if first := s.FirstSince(at); s.Created(first) != at || first > 0 && s.Created(first-1) >= at {
				t.Fatalf("%d records: firstSince(%d) is %d", n, at, first)
			}
			last = at
		}
	}
}

func BenchmarkFirstPage(b *testing.B) { benchmarkPage(b, "/Calls.json") }
func BenchmarkWindow(b *testing.B) {
	benchmarkPage(b, "/Calls.json?StartTime%3E=2026-04-01&StartTime%3C=2026-04-02")
}
func BenchmarkDeepPage(b *testing.B) { benchmarkPage(b, "/Calls.json?Page=150000") }

func benchmarkPage(b *testing.B, target string) {
	s, err := New(Options{Records: 10_000_000})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if got := ask(s, root+target); got.Code != 200 {
			b.Fatal(fmt.Sprint(got.Code, got.Body))
		}
	}
}
