// As of: lists and records as they were known at a time, through the drop-in.

package answers

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// callPage is a list of calls.
type callPage struct {
	Calls []json.RawMessage `json:"calls"`
	Next  string            `json:"next_page_uri"`
	URI   string            `json:"uri"`
}

func callsIn(t *testing.T, r rig.Reply, what string) (p callPage) {
	t.Helper()
	if r.Status != 200 {
		t.Fatalf("%s: %d %s", what, r.Status, rig.Tail(string(r.Body), 300))
	}
	if err := json.Unmarshal(r.Body, &p); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return p
}

func sidOf(t *testing.T, row json.RawMessage) string {
	t.Helper()
	var c struct{ SID string }
	if err := json.Unmarshal(row, &c); err != nil {
		t.Fatal(err)
	}
	return c.SID
}

func sameRows(a, b []json.RawMessage) bool {
	return slices.EqualFunc(a, b, func(x, y json.RawMessage) bool { return string(x) == string(y) })
}

func TestAsOf(t *testing.T) {
	t.Parallel()
	nobody := time.Now() // the demo's polls begin with it
	house := rig.StartDemo(t, "--latency", "5ms", "--records", "60")
	user, masked := rig.Account+":"+rig.DemoToken, rig.Account+":"+rig.MaskedToken
	base, api := house.URL("twilio"), house.URL("slowapi")
	calls := "/2010-04-01/Accounts/" + rig.Account + "/Calls"
	asOf := func(query string, at time.Time) string {
		return base + calls + ".json?" + query + "&understudy.as_of=" + url.QueryEscape(at.UTC().Format(time.RFC3339Nano))
	}
	first := callsIn(t, rig.Get(t, user, base+calls+".json?PageSize=1000"), "the first look")
	known := time.Now()
	priced, ended := sidOf(t, first.Calls[20]), sidOf(t, first.Calls[40])
	rig.Control(t, api, "/-/edit", fmt.Sprintf(`{"kind":"calls","records":[{"sid":%q,"price":"-8.88"},{"sid":%q,"status":"canceled"}]}`, priced, ended))
	second := callsIn(t, rig.Get(t, user, base+calls+".json?PageSize=1000", "Cache-Control", "no-cache"), "the second look")
	if sameRows(first.Calls, second.Calls) {
		t.Fatal("nothing changed upstream")
	}
	later := time.Now()

	before := upstreamRequests(t, api)
	if got := callsIn(t, rig.Get(t, user, asOf("PageSize=1000", known)), "as of the first look"); !sameRows(got.Calls, first.Calls) {
		t.Error("as of the first look the list is another")
	} else if !strings.Contains(got.URI, "understudy.as_of=") {
		t.Errorf("its own link forgets the time: %s", got.URI)
	}
	if got := callsIn(t, rig.Get(t, user, asOf("PageSize=1000", later)), "as of the second look"); !sameRows(got.Calls, second.Calls) {
		t.Error("as of the second look the list is another")
	}
	if got := callsIn(t, rig.Get(t, user, asOf("PageSize=50", nobody)), "before the first look"); len(got.Calls) != 0 {
		t.Errorf("%d calls were known before anybody looked", len(got.Calls))
	}
	walkAsOf(t, user, base, asOf("PageSize=7", known), first.Calls)
	filteredAsOf(t, user, asOf("PageSize=1000&Status=completed", known), first.Calls)
	one := base + calls + "/" + ended + ".json?understudy.as_of="
	{
		r := rig.Get(t, user, one+url.QueryEscape(known.UTC().Format(time.RFC3339Nano)))
		checktest.Equal(t, r.Status, 200, "the record as it was: r.Status")
		checktest.Equal(t, string(r.Body), string(first.Calls[40]), "the record as it was: string(r.Body)")
		checktest.Contains(t, r.Header.Get("Cache-Status"), "composed as of",
			`the record as it was: r.Header.Get("Cache-Status")`)
	}
	if r := rig.Get(t, user, one+url.QueryEscape(nobody.UTC().Format(time.RFC3339Nano))); r.Status != 404 {
		t.Errorf("a record nobody had seen: %d", r.Status)
	}
	if r := rig.Get(t, masked, asOf("PageSize=3", known)); r.Status != 200 || strings.Contains(string(r.Body), string(phoneOf(t, first.Calls[0]))) {
		t.Errorf("masked: %d %s", r.Status, rig.Tail(string(r.Body), 600))
	}
	refusedAsOf(t, user, masked, base, known)
	if after := upstreamRequests(t, api); after > before+4 { // polls go on
		t.Errorf("upstream was asked %d times meanwhile", after-before)
	}
}

// upstreamRequests is how many requests the simulated API has had.
func upstreamRequests(t *testing.T, api string) int {
	t.Helper()
	return rig.ReadAPIStats(t, api).Requests
}

// walkAsOf follows links to the end and finds what was known.
func walkAsOf(t *testing.T, user, base, first string, want []json.RawMessage) {
	t.Helper()
	var got []json.RawMessage
	for at := first; ; {
		p := callsIn(t, rig.Get(t, user, at), "a page as of the first look")
		got = append(got, p.Calls...)
		if p.Next == "" {
			break
		}
		at = base + p.Next
	}
	if !sameRows(got, want) {
		t.Errorf("a walk as of the first look found %d calls, want %d, or in another order", len(got), len(want))
	}
}

func filteredAsOf(t *testing.T, user, at string, all []json.RawMessage) {
	t.Helper()
	var want []json.RawMessage
	for _, row := range all {
		if strings.Contains(string(row), `"status":"completed"`) {
			want = append(want, row)
		}
	}
	if got := callsIn(t, rig.Get(t, user, at), "completed calls as of the first look"); !sameRows(got.Calls, want) || len(want) == 0 {
		t.Errorf("%d completed calls, want %d", len(got.Calls), len(want))
	}
}

func phoneOf(t *testing.T, row json.RawMessage) string {
	t.Helper()
	var c struct{ To, From string }
	if err := json.Unmarshal(row, &c); err != nil {
		t.Fatal(err)
	}
	return c.To
}

// refusedAsOf asks for what cannot be: always a reason, never upstream.
func refusedAsOf(t *testing.T, user, masked, base string, known time.Time) {
	t.Helper()
	root := base + "/2010-04-01/Accounts/" + rig.Account
	at := "understudy.as_of=" + url.QueryEscape(known.UTC().Format(time.RFC3339Nano))
	for _, c := range []struct {
		user, url string
		status    int
		says      string
	}{
		{user, root + "/Calls.json?understudy.as_of=yesterday", 400, "is not a time"},
		{user, root + "/Calls.json?understudy.as_of=", 400, "is not a time"},
		{user, root + "/Calls.json?understudy.as_of=2999-01-01", 400, "future"},
		{user, root + "/Calls.json?Nonsense=1&" + at, 400, "Nonsense"},
		{user, root + "/Calls.json?PageToken=PACA00000000000000000000000000000000&Page=1&" + at, 400, "token"},
		{user, root + "/Usage/Records.json?" + at, 400, "whole pages"},
		{user, root + "/Recordings/RE00000000000000000000000000000000.wav?" + at, 400, "no history"},
		{masked, root + "/Calls.json?To=%2B15005550006&" + at, 403, ""},
	} {
		r := rig.Get(t, c.user, c.url)
		var failure struct {
			Status  int
			Message string
		}
		err := json.Unmarshal(r.Body, &failure)
		checktest.MustNoError(t, err, "%s", c.url)
		checktest.Equal(t, r.Status, c.status, "%s: r.Status", c.url)
		checktest.Equal(t, failure.Status, c.status, "%s: failure.Status", c.url)
		checktest.Contains(t, failure.Message, c.says, "%s: failure.Message", c.url)
	}
}
