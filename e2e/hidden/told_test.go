// Told: two records that differ in what is hidden alone are told apart neither by
// headers nor by time.

package hidden

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// twins is an upstream of messages: the even ones are final, priced and short,
// the odd ones are neither. Nothing else differs but ids.
const twins = 600

func twinID(n int) string { return fmt.Sprintf("SM%032x", 0x7777000+n) }

func twin(n int) string {
	hidden := `"body":"a","num_segments":"1","status":"delivered","price":"-0.00750","to":"+15550200000","error_message":"zanzibar"`
	if n%2 != 0 {
		hidden = `"body":"` + strings.Repeat("long ", 200) + `","num_segments":"9","status":"sending","price":null,"to":"+15550300000","error_message":null`
	}
	return fmt.Sprintf(`{"sid":%q,"account_sid":%q,"date_created":"Mon, 01 Jun 2026 10:00:00 +0000","date_sent":"Mon, 01 Jun 2026 10:00:00 +0000","from":"+15550100000","direction":"outbound-api","messaging_service_sid":null,"uri":"%s/Messages/%s.json",%s}`,
		twinID(n), rig.Account, rig.Base, twinID(n), hidden)
}

// twinUpstream serves them; edits counts changes of what is hidden in the one of
// which it is asked.
func twinUpstream(t *testing.T, edits *atomic.Int64) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if id, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, rig.Base+"/Messages/"), ".json"); ok && id != "" && strings.HasPrefix(id, "SM") {
			n, _ := strconv.ParseInt(id[2:], 16, 64)
			body := twin(int(n) - 0x7777000)
			if edits.Load() > 0 {
				body = strings.Replace(body, "zanzibar", fmt.Sprint("zanzibar", edits.Load()), 1)
			}
			_, _ = fmt.Fprint(w, body)
			return
		}
		var all []string
		for n := range twins {
			all = append(all, twin(n))
		}
		_, _ = fmt.Fprintf(w, `{"messages":[%s],"page":0,"page_size":1000,"start":0,"end":%d,"uri":%q,"first_page_uri":%q,"next_page_uri":null,"previous_page_uri":null}`,
			strings.Join(all, ","), twins-1, r.URL.RequestURI(), r.URL.RequestURI())
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// timeDigits are the times in Server-Timing: what they are of must not differ.
var timeDigits = regexp.MustCompile(`dur=[0-9.]+`)

func TestHiddenIsNotToldByHeadersOrTime(t *testing.T) {
	var edits atomic.Int64
	house, _ := rig.StartServer(t, rig.Settings{
		Upstream: twinUpstream(t, &edits),
		More: `  - {name: part, source: twilio, user: part, secret: "file:masked.secret", role: part}
  - {name: rows, source: twilio, user: rows, secret: "file:masked.secret", role: rows}
  - {name: mute, source: twilio, user: mute, secret: "file:masked.secret", role: mute}
`,
		Roles: `  mute: {twilio: {"*": see, body: hide}}
  part: {twilio: {"*": see, body: hide, messages.status: hide, messages.to: hide, messages.error_message: hide}}
  rows: {twilio: {"*": see, rows: {"*": all, messages: {where: {status: [sent]}}}}}
`,
	})
	dropIn, web := house.URL("twilio"), house.URL("viewer")
	if r := rig.Get(t, rig.Account+":"+rig.DemoToken, dropIn+rig.Base+"/Messages.json?PageSize=1000"); r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	part, rows, mute := "part:"+rig.MaskedToken, "rows:"+rig.MaskedToken, "mute:"+rig.MaskedToken
	told := func(user string, n int, headers ...string) (string, int) {
		r, err := rig.Ask("GET", user, dropIn+rig.Base+"/Messages/"+twinID(n)+".json", "", headers...)
		if err != nil {
			t.Fatal(err)
		}
		ttl, age := 0, 0
		cache := r.Header.Get("Cache-Status")
		if i := strings.Index(cache, "ttl="); i >= 0 {
			_, _ = fmt.Sscanf(cache[i:], "ttl=%d", &ttl)
			cache = cache[:i]
		}
		_, _ = fmt.Sscan(r.Header.Get("Age"), &age)
		r.Header.Set("X-Times", timeDigits.ReplaceAllString(r.Header.Get("Server-Timing"), "N"))
		for _, name := range []string{"Date", "Age", "Cache-Status", "Server-Timing", "X-Request-Id", "Etag"} {
			r.Header.Del(name)
		}
		var head strings.Builder
		_ = r.Header.Write(&head)
		return strings.ReplaceAll(fmt.Sprint(r.Status, " ", cache, "\n", head.String(), string(r.Body)), twinID(n), "SM"), ttl + age
	}
	for n := 0; n < 20; n += 2 {
		for _, headers := range [][]string{nil, {"Cache-Control", "no-cache"}, nil, {"Cache-Control", "only-if-cached"}, {"Accept-Encoding", "gzip"}} {
			var one, other string
			var fresh, freshOther int
			for range 5 { // a slow machine may have saved the one and not yet the other
				one, fresh = told(part, n, headers...)
				other, freshOther = told(part, n+1, headers...)
				if one == other && max(fresh-freshOther, freshOther-fresh) <= 5 {
					break
				}
			}
			if one != other || max(fresh-freshOther, freshOther-fresh) > 5 {
				t.Errorf("%v: two records that look the same to a role:\n%s\nfresh for %d, and\n%s\nfresh for %d", headers, one, fresh, other, freshOther)
			}
		}
	}
	list := func(headers ...string) (words string, age, fresh int) {
		r, err := rig.Ask("GET", part, dropIn+rig.Base+"/Messages.json?PageSize=500", "", headers...)
		if err != nil || r.Status != 200 {
			t.Fatal(err, r.Status)
		}
		words, _, _ = strings.Cut(r.Header.Get("Cache-Status"), "ttl=")
		_, _ = fmt.Sscanf(r.Header.Get("Cache-Status")[len(words):], "ttl=%d", &fresh)
		_, _ = fmt.Sscan(r.Header.Get("Age"), &age)
		times := timeDigits.ReplaceAllString(r.Header.Get("Server-Timing"), "N")
		return words + fmt.Sprint(r.Header["Etag"], r.Header["Link"], times, len(r.Body)), age, fresh
	}
	list("Cache-Control", "no-cache")
	words, age, fresh := list()
	for n := 40; n < 50; n += 2 {
		edits.Add(1) // and another reader finds it out
		if r, err := rig.Ask("GET", rig.Account+":"+rig.DemoToken, dropIn+rig.Base+"/Messages/"+twinID(n)+".json", "", "Cache-Control", "no-cache"); err != nil || !strings.Contains(string(r.Body), fmt.Sprint("zanzibar", edits.Load())) {
			t.Fatal(err, string(r.Body))
		}
		now, nowAge, nowFresh := list()
		checktest.Equal(t, now, words, "a list before something hidden in it changed: now")
		checktest.True(t, nowAge >= age, "a list before something hidden in it changed: nowAge is %v", nowAge)
		checktest.True(t, max(nowAge+nowFresh-age-fresh, age+fresh-nowAge-nowFresh) <= 1,
			"a list before something hidden in it changed: max(nowAge+nowFresh-age-fresh, age+fresh-nowAge-nowFresh) is %v, want <= 1",
			max(nowAge+nowFresh-age-fresh, age+fresh-nowAge-nowFresh))
	}
	for _, pair := range []struct{ user, hidden, nowhere string }{
		{part, "kind:messages delivered", "kind:messages dexxxxred"},
		{part, "zanzibar", "zanzixyz"},
		{part, "number:+15550200000 kind:messages", "number:+15550900000 kind:messages"},
		{rows, "kind:messages status:delivered", "kind:messages status:dexxxxred"},
		{rows, "kind:messages zanzibar", "kind:messages zanzixyz"},
		{mute, "kind:messages long", "kind:messages lonx"},
		{mute, "kind:messages lon*", "kind:messages lox*"},
	} {
		sameTime(t, pair.user+" "+pair.hidden, func(hidden bool) time.Duration {
			q := pair.nowhere
			if hidden {
				q = pair.hidden
			}
			began := time.Now()
			r, err := rig.Ask("GET", pair.user, web+"/-/search?q="+url.QueryEscape(q), "")
			took := time.Since(began)
			checktest.MustNoError(t, err, "%s", q)
			checktest.MustEqual(t, r.Status, 200, "%s: r.Status", q)
			checktest.MustContains(t, string(r.Body), `"hits":[]`, "%s: string(r.Body)", q)
			return took
		})
	}
}

// sameTime compares two ways by pairs one right after the other, the order of
// which alternates, so that what else the machine does falls on both: it fails
// when a sign test over 200 pairs says that one is slower, with one chance in a
// million of being wrong, and by more than a quarter.
func sameTime(t *testing.T, what string, took func(hidden bool) time.Duration) {
	t.Helper()
	const pairs = 200
	var times [2][]time.Duration
	slower, differ := 0, 0
	took(true)
	took(false)
	for i := range pairs {
		var pair [2]time.Duration
		for j := range 2 {
			hidden := (i + j) % 2
			pair[hidden] = took(hidden == 1)
			times[hidden] = append(times[hidden], pair[hidden])
		}
		if pair[0] != pair[1] {
			differ++
		}
		if pair[1] > pair[0] {
			slower++
		}
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2])
	}
	nowhere, hidden := median(times[0]), median(times[1])
	z := (float64(slower) - float64(differ)/2) / math.Sqrt(float64(differ)/4)
	t.Logf("%s: %.2f ms against %.2f ms, z %.1f", what, hidden/1e6, nowhere/1e6, z)
	if z > 4.9 && hidden > 1.25*nowhere {
		t.Errorf("%s is slower in %d of %d pairs, %.2f ms against %.2f ms: its time tells that there are hidden ones", what, slower, pairs, hidden/1e6, nowhere/1e6)
	}
}
