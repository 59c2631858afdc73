// Near: a search near a point can show the nearest first.

package list_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/checktest"
	"understudy/internal/search"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/spec"
	"understudy/upstream"
)

const mapsSpec = `
name: maps
hosts: [{url: "https://maps.example"}]
auth: {style: none}
paging: {style: header, size: per_page, default_size: 30, page: page, first_page: 1}
kinds:
  - name: places
    id: [id]
    lists: [{path: /places, key: ""}]
    fields: [{name: id}, {name: lat, type: latitude}, {name: lng, type: longitude}]
`

// mapsGate is the gate as the search needs it.
type mapsGate struct{ *access.Gate }

func (g mapsGate) CanSeeField(c understudy.Caller, source, kind, field string) bool {
	return g.Level(c, source, kind, field) == access.See
}

func (g mapsGate) MakeView(c understudy.Caller, r *understudy.Record) ([]byte, error) {
	v, err := g.Gate.MakeView(c, &understudy.Page{Key: understudy.Key{Source: r.Source}, Kind: r.Kind, Status: 200, Body: r.Body})
	if err != nil {
		return nil, err
	}
	return v.Body, nil
}

// withPlaces adds a source with three places, of which p1 is the nearest to 37.8,-122.4.
func withPlaces(t *testing.T) func(*page.Options) {
	return func(o *page.Options) {
		sp, err := upstream.ReadSpec("maps.yaml", []byte(mapsSpec))
		viewertest.Must(t, err)
		o.Sources = append(o.Sources, &spec.Source{Name: "maps", Spec: sp, User: viewertest.Account})
		roles := access.Roles{"support": {"twilio": {"*": "see"}, "maps": {"*": "see", "places.lat": "hide"}}}
		specs := map[string]*spec.Spec{"maps": sp, "twilio": o.Sources[0].Spec}
		o.Gate, err = access.New(specs, roles)
		viewertest.Must(t, err)
		all := viewertest.Credential("everything", "alltoken", understudy.RoleAll)
		some := viewertest.Credential("masked", "supporttoken", "support")
		all.Source, some.Source = "maps", "maps"
		o.Callers, err = callers.New(callers.Options{Sources: o.Sources, Now: o.Now, Credentials: []callers.Credential{all, some}})
		viewertest.Must(t, err)
		db := storetest.Open(t, store.Options{Specs: map[string]*spec.Spec{"maps": sp}})
		target, err := sp.Resolve("maps", "/places", "")
		viewertest.Must(t, err)
		p := &understudy.Page{Key: target.Key, Kind: "places", Shape: target.List.Shape, List: true, Status: 200,
			ContentType: "application/json", At: viewertest.Noon}
		body := []byte("[")
		for i, at := range []string{"37.9,-122.4", "37.81,-122.4", "38,-122.4"} {
			lat, lng, _ := strings.Cut(at, ",")
			start := len(body)
			body = fmt.Appendf(body, `{"id":"p%d","lat":%s,"lng":%s}`, i, lat, lng)
			p.Rows = append(p.Rows, understudy.Row{ID: fmt.Sprint("p", i), Start: start, End: len(body)})
			body = append(body, ',')
		}
		body[len(body)-1] = ']'
		p.Body = body
		_, err = db.Save(t.Context(), p)
		viewertest.Must(t, err)
		o.Search, err = search.New(search.Options{Sources: o.Sources[1:], Store: db, Gate: mapsGate{o.Gate}, Key: bytes.Repeat([]byte{7}, 32),
			Now: o.Now, Limits: search.Limits{Time: time.Minute}})
		viewertest.Must(t, err)
	}
}

func TestSearchShowsTheNearestFirst(t *testing.T) {
	h := viewertest.Open(t, withPlaces(t))
	const query = "/search?source=maps&q=near:37.8,-122.4"
	page := h.Page(query+"&sort=near", viewertest.All)
	order := []int{strings.Index(page, `title="p1"`), strings.Index(page, `title="p0"`), strings.Index(page, `title="p2"`)}
	checktest.True(t, order[0] > 0 && slices.IsSorted(order), "the places p1, p0 and p2 are at %v of the page", order)
	checktest.Contains(t, page, `value="near" selected`, "the order of the page")
	checktest.Contains(t, h.Page(query, viewertest.All), "nearest first", "a page near a point")
	checktest.Contains(t, page, `aria-label="A map of the 3 results on this page around 37.8, -122.4. The nearest is 0.7 mi away."`, "the map")
	checktest.Equal(t, strings.Count(page, `class="dot"`), 3, "places on the map")
	plain := h.Page("/search?source=maps&q=p1", viewertest.All)
	checktest.True(t, !strings.Contains(plain, `class="map"`), "a page without a point has a map")
	checktest.True(t, !strings.Contains(plain, "nearest first"), "a page without a point offers the order")
	for path, browser := range map[string]viewertest.Browser{
		"/search?source=maps&q=p1&sort=near": viewertest.All, query + "&sort=near": viewertest.Support,
	} {
		status, _, _ := h.Get(path, browser)
		checktest.True(t, status == 400 || status == 403, "%s has the status %d", path, status)
	}
}
