// A tracker: lists that show what is open unless asked, with lists of values, are made from
// records as the API says them, in an outage too.

package answers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

const trackerSpec = `name: tracker
hosts: [{url: "https://tracker.example.com"}]
auth: {style: bearer}
whole_lists: true
paging: {style: cursor, next: more, cursor: after, size: limit, default_size: 10, max_size: 50, answer: '{"tickets":{rows},"more":{more}}'}
kinds:
  - name: tickets
    id: [id]
    clock: created
    lists:
      - path: /tickets
        key: tickets
        filters:
          - {name: state, field: state, default: open, none: [all]}
          - {name: owner, field: owner, many: one, none: ["*"]}
          - {name: labels, field: labels.name, many: all}
          - {name: sort, op: order, default: created}
    instances: [{path: "/tickets/{Ticket}", id: [Ticket]}]
    fields: [{name: id}, {name: created, type: epoch_ms}, {name: state}, {name: owner}, {name: labels}, {name: labels.name}]
`

// tracker is a made-up API of n tickets, ticket n the newest.
type tracker struct {
	n    int
	down atomic.Bool
}

func (x *tracker) ticket(i int) string {
	return fmt.Sprintf(`{"id":"T%d","created":%d,"state":%q,"owner":"o%d","labels":[{"name":"a%d"},{"name":"b%d"}]}`, i,
		1_700_000_000_000+int64(i)*1000, []string{"open", "closed"}[i%2], i%3, i%4, i%5)
}

// list is what it says to a query.
func (x *tracker) list(q url.Values) string {
	or := func(name, or string) string {
		if v, ok := q[name]; ok {
			return v[0]
		}
		return or
	}
	limit, _ := strconv.Atoi(or("limit", "10"))
	after, err := strconv.Atoi(strings.TrimPrefix(or("after", "T"+strconv.Itoa(x.n+1)), "T"))
	if err != nil {
		return `{"tickets":[],"more":false}`
	}
	var all []string
	for i := after - 1; i > 0; i-- {
		state, owners, labels := or("state", "open"), strings.Split(or("owner", "*"), ","), strings.Split(or("labels", ""), ",")
		fits := (state == "all" || state == []string{"open", "closed"}[i%2]) &&
			(owners[0] == "*" || slices.Contains(owners, fmt.Sprintf("o%d", i%3))) &&
			(labels[0] == "" || !slices.ContainsFunc(labels, func(l string) bool {
				return l != fmt.Sprintf("a%d", i%4) && l != fmt.Sprintf("b%d", i%5)
			}))
		if fits {
			all = append(all, x.ticket(i))
		}
	}
	if or("sort", "created") == "id" {
		slices.Sort(all)
	}
	rows := all[:min(limit, len(all))]
	return fmt.Sprintf(`{"tickets":[%s],"more":%v}`, strings.Join(rows, ","), limit < len(all))
}

func (x *tracker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch id, one := strings.CutPrefix(r.URL.Path, "/tickets/T"); {
	case x.down.Load():
		http.Error(w, `{}`, http.StatusServiceUnavailable)
	case one:
		i, _ := strconv.Atoi(id)
		fmt.Fprint(w, x.ticket(i))
	default:
		fmt.Fprint(w, x.list(r.URL.Query()))
	}
}

func TestListsWithDefaults(t *testing.T) {
	t.Parallel()
	x := &tracker{n: 131}
	up := httptest.NewServer(x)
	defer up.Close()
	dir := t.TempDir()
	const token = "a-token-of-the-desk-567"
	for name, text := range map[string]string{"tracker.yaml": trackerSpec, "tracker.token": "upstreamtoken-1234", "desk.secret": token,
		"understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  twilio: {spec: ./tracker.yaml, upstream: "` + up.URL + `", secret: "file:tracker.token", listen: "127.0.0.1:0", polls: [tickets], sync: [tickets], rate: 200, lists_from: records}
credentials:
  - {name: desk, source: twilio, secret: "file:desk.secret", role: all}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	house := rig.Start(t, dir, "serve")
	rig.Await(t, func() string { return rig.IncompleteAs(t, "", house.URL("viewer"), time.Time{}, "tickets") })
	rng := rig.Random(t)
	pick := func(all ...string) string { return all[rng.IntN(len(all))] }
	composed := 0
	for i := range 400 {
		x.down.Store(i >= 200)
		var params []string
		for name, value := range map[string]string{
			"state": pick("", "", "open", "closed", "all", "none"), "owner": pick("", "", "*", "o1", "o0,o2", "o9"),
			"labels": pick("", "", "a1", "a1,b2", "b0,a3,a3", "x"), "limit": pick("", "3", "50"), "after": pick("", "", "T64", "T131", "T2"),
		} {
			if value != "" {
				params = append(params, name+"="+url.QueryEscape(value))
			}
		}
		slices.Sort(params)
		query := strings.Join(params, "&")
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		r, err := rig.Ask(http.MethodGet, "", house.URL("twilio")+"/tickets?"+query, "", "Authorization", "Bearer "+token)
		if err != nil || r.Status != http.StatusOK {
			t.Errorf("%s: %v, %d %s", query, err, r.Status, r.Body)
			continue
		}
		var got, want any
		checktest.MustTrue(t, json.Unmarshal(r.Body, &got) == nil, "json.Unmarshal(r.Body, &got) is %v",
			json.Unmarshal(r.Body, &got))
		checktest.MustTrue(t, json.Unmarshal([]byte(x.list(values)), &want) == nil,
			"json.Unmarshal([]byte(x.list(values)), &want) != nil")
		checktest.MustEqual(t, string(r.Body), x.list(values), "string(r.Body)")
		if strings.Contains(r.Header.Get("Cache-Status"), "composed") {
			composed++
		}
	}
	if composed < 200 {
		t.Errorf("%d of 400 were made from records", composed)
	}
	x.down.Store(false)
	r, err := rig.Ask(http.MethodGet, "", house.URL("twilio")+"/tickets?state=all&sort=id&limit=5", "", "Authorization", "Bearer "+token)
	checktest.MustNoError(t, err, "another order")
	checktest.Equal(t, string(r.Body), x.list(url.Values{"state": {"all"}, "sort": {"id"}, "limit": {"5"}}),
		"another order: string(r.Body)")
	checktest.Contains(t, r.Header.Get("Cache-Status"), "not stored", `another order: r.Header.Get("Cache-Status")`)
}
