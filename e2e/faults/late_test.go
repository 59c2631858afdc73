// Late changes: what happens upstream without a hint is in the feed once.

package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/sample"
)

const (
	lateUsual    = 1000 // calls; the full count is five thousand
	lateInserted = 20
)

// often makes sweeps come every few seconds.
const often = "{newest: 2s}\nsync: {sweep: 10s}"

// TestLateChanges: of the calls and messages of any age one in a hundred is
// deleted, redacted, re-priced or re-stated, and twenty calls come with older
// clocks. What the API's own lists show as different before and after is what
// the feed has to tell, each once.
func TestLateChanges(t *testing.T) {
	t.Parallel()
	calls := sample.CountFrom("PROVE_LATE", lateUsual)
	up := rig.StartAPI(t, "--latency", "2ms", "--records", strconv.Itoa(calls)).URL("slowapi")
	for range 5 { // by one state each: then the newest have ended, too
		rig.Control(t, up, "/-/advance", `{"seconds":60}`)
	}
	rng := rig.Random(t)
	places := rng.Perm(calls)
	inserted, changed := places[:lateInserted], places[lateInserted:lateInserted+calls/100]
	var gone, back []string
	for _, i := range inserted {
		gone, back = append(gone, fmt.Sprintf(`{"index":%d,"delete":true}`, i)), append(back, fmt.Sprintf(`{"index":%d,"restore":true}`, i))
	}
	edit(t, up, "calls", gone)
	s, _ := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: often, Source: "sync: [calls, messages]"})
	viewer := s.URL("viewer")
	rig.Await(t, func() string { return rig.Incomplete(t, viewer, time.Time{}, "calls", "messages") })
	before := map[string]map[string]string{"Calls": everyRecord(t, up, "Calls"), "Messages": everyRecord(t, up, "Messages")}
	from := int64(0)
	feedAfter(t, viewer, 0, func(c fed) { from = c.N })

	edit(t, up, "calls", back)
	for n, i := range changed {
		what := []string{`"delete":true`, `"price":"-9.99"`, `"status":"busy"`}[n%3]
		edit(t, up, "calls", []string{fmt.Sprintf(`{"index":%d,%s}`, i, what)})
		what = []string{`"body":""`, `"delete":true`, `"price":"-0.5"`}[n%3]
		edit(t, up, "messages", []string{fmt.Sprintf(`{"index":%d,%s}`, 2*i, what)})
	}
	want := differences(before["Calls"], everyRecord(t, up, "Calls"), "calls")
	want = append(want, differences(before["Messages"], everyRecord(t, up, "Messages"), "messages")...)
	slices.Sort(want)
	if len(want) < lateInserted+calls/100 {
		t.Fatalf("only %d records differ", len(want))
	}
	for range 2 { // a second sweep finds nothing that the first did not
		since := time.Now().Add(time.Second)
		rig.Await(t, func() string { return rig.Incomplete(t, viewer, since, "calls", "messages") })
		var got []string
		feedAfter(t, viewer, from, func(c fed) { got = append(got, c.Kind+" "+c.ID+" "+c.What) })
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("the feed tells %d:\n%s\nwant %d:\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
		}
	}
	t.Logf("%d late changes among %d calls and %d messages", len(want), calls, 2*calls)
}

func edit(t *testing.T, api, kind string, records []string) {
	t.Helper()
	rig.Control(t, api, "/-/edit", fmt.Sprintf(`{"kind":%q,"records":[%s]}`, kind, strings.Join(records, ",")))
}

// differences are what must be told of two states of a kind.
func differences(before, after map[string]string, kind string) (out []string) {
	for id, body := range after {
		switch was, there := before[id]; {
		case !there:
			out = append(out, kind+" "+id+" came")
		case was != body:
			out = append(out, kind+" "+id+" changed")
		}
	}
	for id := range maps.Keys(before) {
		if _, there := after[id]; !there {
			out = append(out, kind+" "+id+" went")
		}
	}
	return out
}

// everyRecord is a whole list of the API, asked for directly, by id.
func everyRecord(t *testing.T, api, list string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for next := rig.Base + "/" + list + ".json?PageSize=1000"; next != ""; {
		var page map[string]json.RawMessage
		if err := json.Unmarshal(rig.Get(t, rig.Account+":"+rig.APIToken, api+next).Body, &page); err != nil {
			t.Fatal(err)
		}
		var rows []json.RawMessage
		if err := json.Unmarshal(page[strings.ToLower(list)], &rows); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			var r struct{ Sid string }
			if err := json.Unmarshal(row, &r); err != nil {
				t.Fatal(err)
			}
			out[r.Sid] = string(row)
		}
		next = ""
		_ = json.Unmarshal(page["next_page_uri"], &next) // null at the end
	}
	return out
}

// fed is a change as the feed tells it.
type fed struct {
	N              int64
	Kind, ID, What string
}

// feedAfter yields the changes after a number, as pages.
func feedAfter(t *testing.T, viewer string, after int64, yield func(fed)) {
	t.Helper()
	for {
		q := url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {"1000"}}
		var page struct{ Changes []fed }
		if r := rig.Get(t, rig.Account+":"+rig.DemoToken, viewer+"/-/feed.json?"+q.Encode()); json.Unmarshal(r.Body, &page) != nil || r.Status != 200 {
			t.Fatalf("feed: %d %s", r.Status, r.Body)
		}
		for _, c := range page.Changes {
			yield(c)
			after = c.N
		}
		if len(page.Changes) == 0 {
			return
		}
	}
}
