// Bytes: for every request of a program, the drop-in's response equals
// upstream's, byte for byte.

package sdk

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/twilio/twilio-go/rest/api/v2010"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// values are what random filters are made of: some from the world, some not.
type values map[string][]string

func valuesOf(t testing.TB, direct *api.ApiService) values {
	t.Helper()
	calls, err := direct.ListCall((&api.ListCallParams{}).SetLimit(60).SetPageSize(60))
	if err != nil {
		t.Fatal(err)
	}
	v := values{
		"Status":        {"completed", "busy", "no-answer", "active", "nonsense", "Completed"},
		"FriendlyName":  {"Field office", "a b", "50% off & more", "日本", "x;y"},
		"PhoneNumber":   {"+1", "*5*", "00"},
		"Origin":        {"twilio", "hosted"},
		"Beta":          {"true", "false", "perhaps"},
		"ParentCallSid": {"CA00", "nonsense"},
		"To":            {"client:support_anna", "+1500", " +15005550006"},
		"From":          {"+266696687", "whatsapp:+1500"},
	}
	for _, c := range calls {
		v["To"] = append(v["To"], *c.To)
		v["From"] = append(v["From"], *c.From)
		if c.ParentCallSid != nil {
			v["ParentCallSid"] = append(v["ParentCallSid"], *c.ParentCallSid)
		}
		at := moment(t, c.DateCreated)
		v["time"] = append(v["time"], at.Format(time.RFC3339), at.Format(time.DateOnly), at.Format("2006-01"), at.Format("2006"),
			at.Format("2006-01-02T15:04:05-0700"), at.Add(time.Hour).In(time.FixedZone("", 5400)).Format(time.RFC3339), "yesterday", ">="+at.Format(time.DateOnly))
	}
	return v
}

// lists are the lists of these kinds and their filters.
var lists = []struct {
	path    string
	filters []string
}{
	{rig.Version + "/Accounts.json", []string{"FriendlyName", "Status"}},
	{rig.Base + "/Calls.json", []string{"To", "From", "ParentCallSid", "Status", "StartTime", "StartTime<", "StartTime>", "EndTime", "EndTime<", "EndTime>"}},
	{rig.Base + "/Messages.json", []string{"To", "From", "DateSent", "DateSent<", "DateSent>"}},
	{rig.Base + "/IncomingPhoneNumbers.json", []string{"Beta", "FriendlyName", "PhoneNumber", "Origin"}},
	{rig.Base + "/IncomingPhoneNumbers/Local.json", []string{"Beta", "FriendlyName", "PhoneNumber", "Origin"}},
	{rig.Base + "/IncomingPhoneNumbers/Mobile.json", []string{"PhoneNumber"}},
	{rig.Base + "/IncomingPhoneNumbers/TollFree.json", []string{"PhoneNumber"}},
}

// randomList is a random list request, in a random order and encoding.
func randomList(r *rand.Rand, v values) string {
	l := lists[[]int{0, 1, 1, 1, 2, 2, 2, 3, 4, 5, 6}[r.IntN(11)]]
	var query []string
	for _, f := range l.filters {
		switch r.IntN(8) {
		case 0, 1:
			name := strings.TrimRight(f, "<>")
			from := v[name]
			if from == nil {
				from = v["time"]
			}
			query = append(query, spell(r, f)+"="+spell(r, from[r.IntN(len(from))]))
		case 2:
			if r.IntN(3) == 0 {
				query = append(query, spell(r, f)+[]string{"", "="}[r.IntN(2)])
			}
		}
	}
	sizes := []string{"1", "2", "7", "10", "50", "100", "1000", "1001", "0", "-1", "abc", "", "007"}
	if r.IntN(3) > 0 {
		query = append(query, "PageSize="+sizes[min(r.IntN(18), len(sizes)-1)])
	}
	if r.IntN(3) == 0 {
		query = append(query, "Page="+[]string{"0", "1", "3", "99", "x"}[r.IntN(5)])
	}
	if r.IntN(10) == 0 {
		query = append(query, "PageToken="+[]string{"PACA00", "nonsense", ""}[r.IntN(3)])
	}
	if r.IntN(5) == 0 {
		query = append(query, []string{"Unknown=1", "unknown", "To%5B%5D=x", "status=completed", "a=b=c", "%20=1"}[r.IntN(6)])
	}
	r.Shuffle(len(query), func(i, j int) { query[i], query[j] = query[j], query[i] })
	if len(query) == 0 {
		return l.path
	}
	return l.path + "?" + strings.Join(query, "&")
}

// spell encodes a text in one of the ways that mean the same.
func spell(r *rand.Rand, text string) string {
	canonical := url.QueryEscape(text)
	switch r.IntN(4) {
	case 0:
		return strings.ReplaceAll(canonical, "+", "%20")
	case 1:
		return regexp.MustCompile(`%[0-9A-F]{2}`).ReplaceAllStringFunc(canonical, strings.ToLower)
	case 2: // every byte escaped
		var b strings.Builder
		for _, c := range []byte(text) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
		return b.String()
	}
	return canonical
}

var token34 = regexp.MustCompile(`"auth_token":"[^"]*"`)

func TestBytesAreUpstreams(t *testing.T) {
	t.Parallel()
	r := rig.Random(t)
	p, through, up := startPair(t, "--latency", "1ms", "--records", "300")
	v := valuesOf(t, p.direct)
	tally := map[int]int{}
	nonEmpty := 0
	alike := func() bool { return tally[200] < 150 || tally[400] < 10 || nonEmpty < 40 }
	for n := 0; n < 200 || n < 400 && alike(); n++ {
		path := randomList(r, v)
		for range 3 { // the page, and two that follow
			want := rig.Get(t, rig.Account+":"+rig.APIToken, up+path)
			want.Body = token34.ReplaceAll(want.Body, []byte(`"auth_token":""`))
			tally[want.Status]++
			for _, round := range []string{"cold", "held"} {
				have := rig.Get(t, rig.Account+":"+rig.DemoToken, through+path)
				if have.Status != want.Status || string(have.Body) != string(want.Body) {
					t.Fatalf("%s, %s: status %d, want %d; %s", path, round, have.Status, want.Status, rig.FirstDifference(want.Body, have.Body))
				}
				if a, b := want.Header.Get("Content-Type"), have.Header.Get("Content-Type"); a != b {
					t.Fatalf("%s, %s: Content-Type %q, want %q", path, round, b, a)
				}
			}
			var page struct {
				Next  string `json:"next_page_uri"`
				Start int    `json:"start"`
				End   int    `json:"end"`
			}
			if want.Status != 200 || json.Unmarshal(want.Body, &page) != nil || page.Next == "" {
				break
			}
			nonEmpty++
			path = page.Next
		}
	}
	t.Logf("answers by status: %v", tally)
	if alike() {
		t.Errorf("the requests were too much alike: %v, %d pages with a next one", tally, nonEmpty)
	}
}

// What is asked differently and means the same is asked of upstream once.
func TestOneKeyForOneMeaning(t *testing.T) {
	t.Parallel()
	r := rig.Random(t)
	_, through, up := startPair(t, "--latency", "1ms", "--records", "50")
	var first rig.Reply
	for i := range 20 {
		query := []string{spell(r, "StartTime>") + "=" + spell(r, "2024-01-02T03:04:05Z"), "Status=" + spell(r, "completed"), spell(r, "To") + "="}
		if r.IntN(2) == 0 {
			query = append(query, "PageSize=50")
		}
		r.Shuffle(len(query), func(i, j int) { query[i], query[j] = query[j], query[i] })
		have := rig.Get(t, rig.Account+":"+rig.DemoToken, through+rig.Base+"/Calls.json?"+strings.Join(query, "&"))
		if i == 0 {
			first = have
		} else if string(have.Body) != string(first.Body) {
			t.Fatalf("%v: %s", query, rig.FirstDifference(first.Body, have.Body))
		}
	}
	targets := 0
	for target, n := range rig.ReadAPIStats(t, up).ByTarget {
		if strings.Contains(target, "/Calls.json?") && !strings.Contains(target, "PageToken") {
			targets += n
		}
	}
	if targets != 1 {
		t.Errorf("upstream was asked %d times, want once", targets)
	}
	// An empty filter, a bare one and none are echoed differently: three keys.
	echoes := []string{}
	for _, query := range []string{"?To=", "?To", ""} {
		echoes = append(echoes, string(rig.Get(t, rig.Account+":"+rig.DemoToken, through+rig.Base+"/Calls.json"+query).Body))
	}
	if slices.Sort(echoes); len(slices.Compact(echoes)) != 3 {
		t.Error("an empty filter, a bare one and none are answered alike")
	}
}

// A HEAD is a GET less its body, and an answer may be asked for again by its ETag.
func TestHeadAndETag(t *testing.T) {
	t.Parallel()
	_, through, _ := startPair(t, "--latency", "1ms", "--records", "50")
	user := rig.Account + ":" + rig.DemoToken
	for _, path := range []string{"/Calls.json", "/Messages.json?PageSize=5", "/IncomingPhoneNumbers.json"} {
		full := rig.Get(t, user, through+rig.Base+path)
		head, err := rig.Ask("HEAD", user, through+rig.Base+path, "")
		checktest.MustNoError(t, err, "HEAD %s", path)
		checktest.MustEqual(t, head.Status, 200, "HEAD %s: head.Status", path)
		checktest.MustEqual(t, len(head.Body), 0, "HEAD %s: len(head.Body)", path)
		for _, name := range []string{"Content-Length", "Content-Type", "ETag"} {
			if full.Header.Get(name) == "" || full.Header.Get(name) != head.Header.Get(name) {
				t.Errorf("%s: %s is %q for GET and %q for HEAD", path, name, full.Header.Get(name), head.Header.Get(name))
			}
		}
		again := rig.Get(t, user, through+rig.Base+path, "If-None-Match", full.Header.Get("ETag"))
		if again.Status != 304 || len(again.Body) != 0 {
			t.Errorf("%s: asked again by its ETag: %d with %d bytes, want 304", path, again.Status, len(again.Body))
		}
		if vary := strings.Join(full.Header.Values("Vary"), ","); !strings.Contains(vary, "Authorization") {
			t.Errorf("%s: Vary is %q", path, vary)
		}
		if cache := full.Header.Get("Cache-Control"); !strings.Contains(cache, "private") {
			t.Errorf("%s: Cache-Control is %q", path, cache)
		}
		packed := rig.Get(t, user, through+rig.Base+path, "Accept-Encoding", "gzip")
		if plain, err := packed.Decode(); err != nil || string(plain) != string(full.Body) {
			t.Errorf("%s: packed differs: %v", path, err)
		}
	}
}
