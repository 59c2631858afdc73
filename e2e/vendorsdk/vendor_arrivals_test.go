// Arrivals: GitHub's and Stripe's packages walk lists while records come and go, and miss
// nothing that was there all the time.

package vendorsdk

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// tide is an API whose records come and go before each page that a package asks for.
type tide struct {
	*testing.T
	rng    *rand.Rand
	api    string            // the simulated API
	auth   string            // of its account
	lists  map[string]string // the path of each list, by the drivers' name for it
	large  string            // asks for pages of 100
	grows  string            // the list that grows at its end: what came lately need not be there
	counts bool              // pages are named by numbers: each removal may hide a row, and rows come twice
	come   func(x *tide)
	remove func(x *tide, list string, row tidal)
	sdk    func(ctx context.Context, address, token, does string) ([]byte, error)

	mu         sync.Mutex // of all below
	comes      bool
	goes       bool               // records go
	removed    map[string]int     // by list
	first, now map[string][]tidal // what was there when the first walk began, and this one, by list
}

// tidal is what is read of a record.
type tidal struct {
	ID     json.RawMessage `json:"id"`
	Number int             `json:"number"`
}

// direct asks the simulated API itself.
func (x *tide) direct(method, uri, body string) rig.Reply {
	x.Helper()
	r, err := rig.Ask(method, "", x.api+uri, body, "Authorization", x.auth)
	if err != nil || r.Status >= 300 {
		x.Errorf("%s %s: %v, %d %.300s", method, uri, err, r.Status, r.Body)
	}
	return r
}

// page is one page of a list of the simulated API.
func (x *tide) page(uri string) (rows []tidal, next string) {
	x.Helper()
	r := x.direct(http.MethodGet, uri, "")
	if err := json.Unmarshal(r.Body, &rows); err == nil {
		for link := range strings.SplitSeq(r.Header.Get("Link"), ", ") {
			if to, ok := strings.CutSuffix(link, `>; rel="next"`); ok {
				next = strings.TrimPrefix(to, "<"+x.api)
			}
		}
		return rows, next
	}
	var list struct {
		Data []tidal
		More bool `json:"has_more"`
	}
	if err := json.Unmarshal(r.Body, &list); err != nil {
		x.Errorf("%s: %v", uri, err)
	}
	if path, _, _ := strings.Cut(uri, "?"); list.More {
		next = path + "?limit=100&starting_after=" + strings.Trim(string(list.Data[len(list.Data)-1].ID), `"`)
	}
	return list.Data, next
}

// look is what is there now, by list.
func (x *tide) look() map[string][]tidal {
	x.Helper()
	all := map[string][]tidal{}
	for name, path := range x.lists {
		for uri := path + "?" + x.large; uri != ""; {
			var rows []tidal
			rows, uri = x.page(uri)
			all[name] = append(all[name], rows...)
		}
	}
	return all
}

// change lets records come and go before a page is asked for.
func (x *tide) change(r *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.comes {
		x.come(x)
	}
	if !x.goes {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(x.lists)) {
		rows := x.now[name]
		at := x.rng.IntN(len(rows))
		if x.rng.IntN(3) > 0 {
			continue
		}
		x.remove(x, name, rows[at])
		x.removed[name]++
		x.now[name] = slices.Delete(slices.Clone(rows), at, at+1)
	}
}

// during is an address before another. Records come and go before each page that is asked for
// there. The first page of each list is wanted anew.
func (x *tide) during(address string) string {
	return rig.Between(x.T, address, func(r *http.Request) bool {
		r.Header.Del("Accept-Encoding") // addresses in answers are read
		if !slices.ContainsFunc(slices.Collect(maps.Values(x.lists)), func(path string) bool { return path == r.URL.Path }) {
			return true
		}
		x.change(r)
		if q := r.URL.Query(); !q.Has("page") && !q.Has("starting_after") {
			r.Header.Set("Cache-Control", "no-cache")
		}
		return true
	})
}

// walk is one walk by a package. What was there when it began (in the list that grows at its
// end: when the first walk began), and at its end, has to be in it.
func (x *tide) walk(what, address, token string, comes, goes bool) {
	x.Helper()
	x.mu.Lock()
	if x.comes, x.goes, x.now = comes, goes, x.look(); x.first == nil {
		x.first = x.now
	}
	began := maps.Clone(x.now)
	if x.grows != "" {
		began[x.grows] = x.first[x.grows]
	}
	x.mu.Unlock()
	out, err := x.sdk(x.Context(), address, token, strings.Join(slices.Sorted(maps.Keys(x.lists)), ","))
	var found map[string][]tidal
	if err != nil || json.Unmarshal(out, &found) != nil {
		x.Fatalf("%s: %v: %.500s", what, err, out)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	end := x.look()
	for name := range x.lists {
		times, wanted, missing := map[string]int{}, 0, []string(nil)
		for _, row := range found[name] {
			if times[string(row.ID)]++; times[string(row.ID)] > 1 && !x.counts {
				x.Errorf("%s: %s: %s appears twice", what, name, row.ID)
			}
		}
		for _, row := range began[name] {
			if !slices.ContainsFunc(end[name], func(r tidal) bool { return string(r.ID) == string(row.ID) }) {
				continue
			}
			if wanted++; times[string(row.ID)] == 0 {
				missing = append(missing, string(row.ID))
			}
		}
		x.Logf("%s: %s: %d rows, %d of them all the time, of %d", what, name, len(found[name]), wanted, len(end[name]))
		if len(missing) > 0 && !x.counts || len(missing) > x.removed[name] {
			x.Errorf("%s: %s: missing: %v; %d have gone", what, name, missing, x.removed[name])
		}
		if wanted < len(began[name])/2 {
			x.Errorf("%s: %s: only %d of %d rows were there all the time", what, name, wanted, len(began[name]))
		}
	}
}

// rounds are walks of nothing held, and of what was held before, while records come; then
// while some go, too; then of lists that rest, and in an outage.
func (x *tide) rounds(house string, down *atomic.Bool, tokens [4]string) {
	x.Helper()
	x.removed = map[string]int{}
	front := x.during(house)
	x.walk("nothing held", front, tokens[0], true, false)
	x.walk("held", front, tokens[1], true, false)
	x.walk("records go", front, tokens[2], true, true)
	x.walk("at rest", front, tokens[3], false, false)
	down.Store(true)
	x.walk("in an outage", house, tokens[0], false, false)
}

func comeGitHub(x *tide) {
	switch issues := x.now["issues"]; x.rng.IntN(3) {
	case 0:
		rig.Control(x.T, x.api, "/-/advance", fmt.Sprintf(`{"issues":%d}`, 1+x.rng.IntN(4)))
	case 1:
		x.direct(http.MethodPost, fmt.Sprintf("/repos/acme/tracker/issues/%d/comments", issues[x.rng.IntN(len(issues))].Number), `{"body":"More"}`)
	}
}

func removeGitHub(x *tide, list string, row tidal) {
	if list == "issues" { // of those that are open
		x.direct(http.MethodPatch, fmt.Sprintf("/repos/acme/tracker/issues/%d", row.Number), `{"state":"closed"}`)
		return
	}
	x.direct(http.MethodDelete, "/repos/acme/tracker/issues/comments/"+string(row.ID), "")
}

// stage starts an API, and what is wanted of it is passed on until it is down.
func (x *tide) stage(down *atomic.Bool, shape, records string) (up string) {
	x.api = rig.StartAPI(x.T, "--shape", shape, "--records", records, "--latency", "0s").URL("slowapi")
	return rig.Between(x.T, x.api, func(*http.Request) bool { return !down.Load() })
}

// A program may want the same page from upstream once a second: each walk is of another one.
var programs = []string{"first", "second", "third", "fourth"}

func TestGitHubPackagesWalkDuringArrivals(t *testing.T) {
	t.Parallel()
	seed, run := sample.Seed(t), sample.OneIn(t, 3)
	for name, sdk := range githubSDKs {
		if !run() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &tide{T: t, rng: rand.New(rand.NewPCG(seed, 1)), auth: "token " + rig.APIToken, large: "per_page=100", counts: true,
				grows: "comments", come: comeGitHub, remove: removeGitHub, sdk: sdk,
				lists: map[string]string{"issues": "/repos/acme/tracker/issues", "comments": "/repos/acme/tracker/issues/comments"}}
			var down atomic.Bool
			house := startGitHub(t, x.stage(&down, "github", "220"), programs...).URL("github")
			var tokens [4]string
			for i, name := range programs {
				tokens[i] = name + rig.ProgramSecret
			}
			x.rounds(house, &down, tokens)
		})
	}
}

func TestStripePackagesWalkDuringArrivals(t *testing.T) {
	t.Parallel()
	seed, run := sample.Seed(t), sample.OneIn(t, 3)
	for name, sdk := range stripeSDKs {
		if !run() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &tide{T: t, rng: rand.New(rand.NewPCG(seed, 2)), auth: "Bearer " + stripeKey, large: "limit=100", sdk: sdk,
				lists: map[string]string{"customers": "/v1/customers"},
				come: func(x *tide) {
					if x.rng.IntN(2) == 0 {
						rig.Control(x.T, x.api, "/-/advance", fmt.Sprintf(`{"customers":%d}`, 1+x.rng.IntN(3)))
					}
				},
				remove: func(x *tide, _ string, row tidal) {
					x.direct(http.MethodDelete, "/v1/customers/"+strings.Trim(string(row.ID), `"`), "")
				}}
			var down atomic.Bool
			up := x.stage(&down, "stripe", "90")
			version, err := sdk(t.Context(), up, stripeKey, "version")
			if err != nil {
				t.Fatal(err)
			}
			house := stripeHouse(t, up, strings.TrimSpace(string(version)), programs...)
			var tokens [4]string
			for i, name := range programs {
				tokens[i] = rig.StripeToken + name
			}
			x.rounds(house, &down, tokens)
		})
	}
}
