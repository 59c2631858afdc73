// Counted: lists by number and offset that say how many rows they have are made from records
// in an outage, as upstream says them.

package answers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
)

const countedSpec = `name: counted
hosts: [{url: "https://counted.example.com"}]
auth: {style: bearer}
whole_lists: true
headers: {back: [X-Total]}
paging: {style: number, page: page, first_page: 1, size: per_page, default_size: 9, max_size: 50, total: total,
  answer: '{{key}:{rows},"total":{total}}'}
pagings:
  offsets: {style: offset, page: from, size: per_page, default_size: 9, max_size: 50, total: total,
    answer: '{{key}:{rows},"total":{total}}'}
  headers:
    style: number
    page: page
    first_page: 1
    size: per_page
    default_size: 9
    max_size: 50
    next: "header:X-Next-Page"
    total: "header:X-Total"
    answer: "{rows}"
kinds:
  - {name: things, id: [id], clock: created, lists: [{path: /things, key: things, filters: [{name: state, field: state}]}],
     fields: [{name: id}, {name: created, type: epoch}, {name: state}]}
  - {name: parts, id: [id], clock: created, lists: [{path: /parts, key: parts, filters: [{name: state, field: state}], paging: offsets}],
     fields: [{name: id}, {name: created, type: epoch}, {name: state}]}
  - {name: tags, id: [id], clock: created, lists: [{path: /tags, key: "", filters: [{name: state, field: state}], paging: headers}],
     fields: [{name: id}, {name: created, type: epoch}, {name: state}]}
`

// countedAPI returns a made-up API with 120 rows in each of its lists.
func countedAPI(down *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		q, name := r.URL.Query(), r.URL.Path[1:]
		number := func(name string, or int) int {
			if n, err := strconv.Atoi(q.Get(name)); err == nil {
				return n
			}
			return or
		}
		var rows []string
		for i := 120; i > 0; i-- {
			if state := []string{"open", "closed", "open"}[i%3]; q.Get("state") == "" || q.Get("state") == state {
				rows = append(rows, fmt.Sprintf(`{"id":"%c%d","created":%d,"state":%q}`, name[0], i, 1_700_000_000+i, state))
			}
		}
		size, page := number("per_page", 9), number("page", 1)
		from := min((page-1)*size, len(rows))
		if name == "parts" {
			from = min(number("from", 0), len(rows))
		}
		end := min(from+size, len(rows))
		w.Header().Set("Content-Type", "application/json")
		shown := strings.Join(rows[from:end], ",")
		if name != "tags" {
			fmt.Fprintf(w, `{%q:[%s],"total":%d}`, name, shown, len(rows))
			return
		}
		w.Header().Set("X-Total", strconv.Itoa(len(rows)))
		if w.Header().Set("X-Next-Page", ""); end < len(rows) {
			w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
		}
		fmt.Fprintf(w, `[%s]`, shown)
	}
}

func TestListsThatCountTheirRowsAreMadeInAnOutage(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	up := httptest.NewServer(countedAPI(&down))
	defer up.Close()
	dir := t.TempDir()
	const whole, part = "a-token-of-the-desk-567", "a-token-of-the-clerk-89"
	for name, text := range map[string]string{"counted.yaml": countedSpec, "counted.token": "upstreamtoken-1234", "desk.secret": whole,
		"clerk.secret": part, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  twilio: {spec: ./counted.yaml, upstream: "` + up.URL + `", secret: "file:counted.token", listen: "127.0.0.1:0",
    sync: [things, parts, tags], rate: 200}
roles:
  clerk: {twilio: {"*": see, rows: {things: {where: {state: open}}}}}
credentials:
  - {name: desk, source: twilio, secret: "file:desk.secret", role: all}
  - {name: clerk, source: twilio, secret: "file:clerk.secret", role: clerk}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	house := rig.Start(t, dir, "serve")
	rig.Await(t, func() string {
		return rig.IncompleteAs(t, "", house.URL("viewer"), time.Time{}, "things", "parts", "tags")
	})
	want := map[string]rig.Reply{}
	for _, target := range []string{
		"/things", "/things?per_page=9", "/things?per_page=9&page=4", "/things?page=12", "/things?page=14&per_page=9", "/things?page=99",
		"/things?state=closed&per_page=7&page=2", "/things?state=none", "/parts", "/parts?from=50&per_page=20", "/parts?from=113&state=open",
		"/tags", "/tags?page=4", "/tags?page=6&per_page=20", "/tags?page=2&state=closed",
	} {
		want[target] = rig.Get(t, "", up.URL+target)
	}
	down.Store(true)
	composed := 0
	for target, want := range want {
		r := rig.Get(t, "", house.URL("twilio")+target, "Authorization", "Bearer "+whole)
		if strings.Contains(r.Header.Get("Cache-Status"), "composed") { // the newest pages are held
			composed++
		}
		if r.Status != http.StatusOK || string(r.Body) != string(want.Body) {
			t.Errorf("%s: %d %s\nwant %s", target, r.Status, r.Body, want.Body)
		}
		for _, name := range []string{"X-Total", "X-Next-Page"} {
			if got, want := r.Header.Get(name), want.Header.Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", target, name, got, want)
			}
		}
	}
	if composed < 11 {
		t.Errorf("%d of %d lists are made from records", composed, len(want))
	}
	// A caller that finds some records alone is not told how many there are, and is told why.
	r := rig.Get(t, "", house.URL("twilio")+"/things?page=2", "Authorization", "Bearer "+part)
	if r.Status == http.StatusOK || !strings.Contains(string(r.Body), "the total number of rows is not known") {
		t.Errorf("a caller with a row rule: %d %s", r.Status, r.Body)
	}
}
