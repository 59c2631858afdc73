// Near: a list of records with coordinates is answered the nearest first, also in an outage.

package answers

import (
	"encoding/json"
	"fmt"
	"math"
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

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

const nearSpec = `name: maps
hosts: [{url: "https://maps.example.com"}]
auth: {style: bearer}
whole_lists: true
paging: {style: number, page: page, first_page: 1, size: per_page, default_size: 9, max_size: 50, total: total,
  answer: '{{key}:{rows},"total":{total}}'}
kinds:
  - {name: places, id: [id], clock: created, lists: [{path: /places, key: places}],
     fields: [{name: id}, {name: created, type: epoch}, {name: state}, {name: lat, type: latitude}, {name: lon, type: longitude}]}
`

// newPlace returns the coordinates of a place: each is a kilometre farther to the north of a point than another, in a mixed order.
func newPlace(i int) (lat, lon float64, state string) {
	return math.Round((37.8+float64(i*37%120)/111.2)*1e6) / 1e6, -122.4, []string{"open", "closed"}[i%2]
}

func placesAPI(down *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		size, err := strconv.Atoi(r.URL.Query().Get("per_page"))
		if err != nil {
			size = 9
		}
		var rows []string
		for n := 119 - max(page-1, 0)*size; n >= 0 && len(rows) < size; n-- {
			lat, lon, state := newPlace(n)
			rows = append(rows, fmt.Sprintf(`{"id":"p%d","created":%d,"state":%q,"lat":%g,"lon":%g}`, n, 1_700_000_000+n, state, lat, lon))
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"places":[%s],"total":120}`, strings.Join(rows, ","))
	}
}

func TestListsNearAPoint(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	up := httptest.NewServer(placesAPI(&down))
	defer up.Close()
	const whole, part, blind = "a-token-of-the-desk-567", "a-token-of-the-clerk-89", "a-token-of-the-guest-12"
	start := func(sync string) *binary.Server {
		dir := t.TempDir()
		for name, text := range map[string]string{"maps.yaml": nearSpec, "maps.token": "upstreamtoken-1234", "desk.secret": whole,
			"clerk.secret": part, "guest.secret": blind, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  twilio: {spec: ./maps.yaml, upstream: "` + up.URL + `", secret: "file:maps.token", listen: "127.0.0.1:0", rate: 200` + sync + `}
roles:
  clerk: {twilio: {"*": see, rows: {places: {where: {state: open}}}}}
  guest: {twilio: {"*": see, places.lat: hide}}
credentials:
  - {name: desk, source: twilio, secret: "file:desk.secret", role: all}
  - {name: clerk, source: twilio, secret: "file:clerk.secret", role: clerk}
  - {name: guest, source: twilio, secret: "file:guest.secret", role: guest}
`} {
			checktest.MustNoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600), "write")
		}
		return rig.Start(t, dir, "serve")
	}
	house := start(", sync: [places]")
	ask := func(house *binary.Server, secret, query string) rig.Reply {
		return rig.Get(t, "", house.URL("twilio")+"/places?"+query, "Authorization", "Bearer "+secret)
	}
	empty := ask(start(""), whole, "understudy.near=37.8,-122.4")
	checktest.Equal(t, empty.Status, http.StatusServiceUnavailable, "without records: %s", empty.Body)
	rig.Await(t, func() string { return rig.IncompleteAs(t, "", house.URL("viewer"), time.Time{}, "places") })

	walk := func(secret, near string) (ids []string) {
		t.Helper()
		for page := 1; ; page++ {
			r := ask(house, secret, fmt.Sprintf("per_page=7&page=%d&understudy.near=%s", page, url.QueryEscape(near)))
			checktest.MustEqual(t, r.Status, http.StatusOK, "%s", r.Body)
			var answer struct {
				Places []struct{ ID string }
			}
			checktest.MustNoError(t, json.Unmarshal(r.Body, &answer), "%s", r.Body)
			for _, p := range answer.Places {
				ids = append(ids, p.ID)
			}
			if len(answer.Places) < 7 {
				return ids
			}
		}
	}
	for _, isDown := range []bool{false, true} {
		down.Store(isDown)
		for secret, states := range map[string]string{whole: "open closed", part: "open"} {
			var want []string
			for kilometres := range 50 {
				for i := range 120 {
					if _, _, state := newPlace(i); i*37%120 == kilometres && strings.Contains(states, state) {
						want = append(want, fmt.Sprint("p", i))
					}
				}
			}
			if got := walk(secret, "37.8,-122.4~49.5km"); !slices.Equal(got, want) {
				t.Errorf("down: %t, %s places: %v, want %v", isDown, states, got, want)
			}
			checktest.Equal(t, len(walk(secret, "-37.8,-122.4~1km")), 0, "places on the other side of the equator")
		}
		checktest.Equal(t, ask(house, blind, "understudy.near=37.8,-122.4").Status, http.StatusForbidden, "for a role that sees no latitude")
		checktest.Equal(t, ask(house, whole, "understudy.near=here").Status, http.StatusBadRequest, "without a point")
	}
}
