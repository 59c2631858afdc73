package search

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/kit/token"
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
    clock: created
    lists: [{path: /places, key: ""}]
    fields:
      - {name: id}
      - {name: created, type: iso8601}
      - {name: at, type: map}
      - {name: at.lat, type: latitude}
      - {name: at.lng, type: longitude}
  - name: people
    id: [id]
    lists: [{path: /people, key: ""}]
    fields: [{name: id}]
`

// place is a record with coordinates. If it is not ok, it has none that are valid.
type place struct {
	id       string
	lat, lon float64
	ok       bool
}

// miles computes the distance by the spherical law of cosines and the chord, in other ways than kit/geo.
func (p place) miles(lat, lon float64) float64 {
	const degree = math.Pi / 180
	vector := func(lat, lon float64) [3]float64 {
		return [3]float64{math.Cos(lat*degree) * math.Cos(lon*degree), math.Cos(lat*degree) * math.Sin(lon*degree), math.Sin(lat * degree)}
	}
	a, b := vector(lat, lon), vector(p.lat, p.lon)
	chord := math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
	return 2 * math.Asin(min(1, chord/2)) * 6371008.8 / 1609.344
}

// savePlaces saves places as one page, each at its time: the first is the newest.
func savePlaces(t *testing.T, db *store.DB, sp *spec.Spec, places []place) {
	t.Helper()
	target, err := sp.Resolve("maps", "/places", "")
	if err != nil {
		t.Fatal(err)
	}
	page := &understudy.Page{Key: target.Key, Kind: "places", Shape: target.List.Shape, List: true, Status: 200,
		ContentType: "application/json", At: epoch}
	var body bytes.Buffer
	for i, p := range places {
		at := fmt.Sprintf(`{"lat":"%.6f","lng":%.6f}`, p.lat, p.lon)
		if !p.ok {
			at = []string{"null", `{"lat":"91","lng":"0"}`, `{"lat":null,"lng":"0"}`, `{"lat":"x","lng":"1"}`, `{"lng":1}`}[i/17%5]
		}
		body.WriteString([]string{"[", ","}[min(i, 1)])
		clock := epoch.Add(-time.Duration(i) * time.Minute)
		start := body.Len()
		fmt.Fprintf(&body, `{"id":%q,"created":%q,"at":%s}`, p.id, clock.Format(time.RFC3339), at)
		page.Rows = append(page.Rows, understudy.Row{ID: p.id, Start: start, End: body.Len(), Clock: clock.Unix()})
	}
	body.WriteByte(']')
	page.Body = body.Bytes()
	if _, err := db.Save(t.Context(), page); err != nil {
		t.Fatal(err)
	}
}

// newPlaces returns a searcher over random places on the earth: near San Francisco, near the antimeridian, at the poles, and without
// valid coordinates.
func newPlaces(t *testing.T, rng *rand.Rand, n int) (*Searcher, []place) {
	t.Helper()
	sp, err := upstream.ReadSpec("maps.yaml", []byte(mapsSpec))
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]*spec.Spec{"maps": sp}
	gate, err := access.New(specs, access.Roles{
		"seer": {"maps": {"*": "see"}}, "nolat": {"maps": {"*": "see", "places.at.lat": "hide"}},
		"nolng": {"maps": {"*": "see", "places.at.lng": "hide"}}, "people": {"maps": {"people": "see"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.Open(t, store.Options{Specs: specs})
	var places []place
	for i := range n {
		p := place{fmt.Sprint("p", i), rng.Float64()*180 - 90, rng.Float64()*360 - 180, true}
		switch i % 5 {
		case 1:
			p.lat, p.lon = 37.8+rng.NormFloat64()/3, -122.4+rng.NormFloat64()/3
		case 2:
			p.lat, p.lon = rng.NormFloat64(), math.Remainder(180+rng.NormFloat64(), 360)
		case 3:
			p.lat = 90 - math.Abs(rng.NormFloat64())
		}
		p.ok = i%17 != 0
		fmt.Sscanf(fmt.Sprintf("%.6f %.6f", p.lat, p.lon), "%g %g", &p.lat, &p.lon)
		places = append(places, p)
	}
	savePlaces(t, db, sp, places)
	s, err := New(Options{Sources: []*spec.Source{{Name: "maps", Spec: sp}}, Store: db, Gate: gated{gate}, Key: make([]byte, token.KeySize),
		Now: func() time.Time { return epoch }, Limits: Limits{Time: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	return s, places
}

// findIDs returns the ids of all hits, in their order.
func findIDs(t *testing.T, s *Searcher, a query.SearchRequest) (ids []string) {
	t.Helper()
	for {
		out, err := s.Find(t.Context(), as("seer"), a)
		if err != nil {
			t.Fatalf("%s: %v", a.Text, err)
		}
		for _, h := range out.Hits {
			ids = append(ids, h.ID)
		}
		if a.Cursor = out.Next; a.Cursor == "" {
			return ids
		}
	}
}

// TestNearFindsTheNearestFirst compares near: and sort=near with distances computed in another way.
func TestNearFindsTheNearestFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(sample.Seed(t), 1))
	s, places := newPlaces(t, rng, 300)
	for range sample.Count(20, 1000) {
		lat, lon, reach := rng.Float64()*180-90, rng.Float64()*360-180, rng.Float64()*3000
		switch rng.IntN(4) {
		case 0:
			lat, lon, reach = 37.8, -122.4, 25
		case 1:
			lat, lon = rng.NormFloat64(), 180
		case 2:
			lat = 90
		}
		text := fmt.Sprintf("near:%.4f,%.4f~%.3fmi", lat, lon, reach)
		fmt.Sscanf(text, "near:%g,%g~%gmi", &lat, &lon, &reach)
		near := slices.DeleteFunc(slices.Clone(places), func(p place) bool { return !p.ok || p.miles(lat, lon) > reach })
		slices.SortFunc(near, func(a, b place) int {
			return int(math.Copysign(1, a.miles(lat, lon)-b.miles(lat, lon)))
		})
		var want []string
		for _, p := range near {
			want = append(want, p.id)
		}
		if got := findIDs(t, s, query.SearchRequest{Text: text, Sort: "near", Limit: 7}); !slices.Equal(got, want) {
			t.Errorf("%s finds %v, want %v", text, got, want)
		}
		slices.Reverse(want)
		if got := findIDs(t, s, query.SearchRequest{Text: text, Sort: "-near"}); !slices.Equal(got, want) {
			t.Errorf("%s finds %v backwards, want %v", text, got, want)
		}
		slices.Sort(want)
		got := findIDs(t, s, query.SearchRequest{Text: fmt.Sprintf("near:%g,%g~%.6fkm", lat, lon, reach*1.609344)})
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s finds %v in km, want %v", text, got, want)
		}
		rest := findIDs(t, s, query.SearchRequest{Text: "kind:places -" + text})
		if len(rest)+len(want) != len(places) {
			t.Errorf("%s finds %d, and %d without it: %d in all, want %d", text, len(want), len(rest), len(want)+len(rest), len(places))
		}
	}
}

// TestNearReadsWhatTheColumnsFind asks the store only for the records near the point, also after they have moved, and for all records
// when the columns have no room.
func TestNearReadsWhatTheColumnsFind(t *testing.T) {
	rng := rand.New(rand.NewPCG(sample.Seed(t), 3))
	s, places := newPlaces(t, rng, 300)
	db, src := s.o.Store.(*store.DB), s.o.Sources[0]
	ask := query.SearchRequest{Text: "near:37.8,-122.4~100mi", Kinds: []string{"places"}}
	planned := func() (numbers []int64) {
		t.Helper()
		q, err := s.read(as("seer"), &ask, epoch)
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range s.narrow(t.Context(), q, q.Plan()) {
			numbers = append(numbers, of.Query.Numbers...)
		}
		return numbers
	}
	check := func() (found []string) {
		t.Helper()
		var want []string
		for _, p := range places {
			if p.ok && p.miles(37.8, -122.4) <= 100 {
				want = append(want, p.id)
			}
		}
		found = findIDs(t, s, ask)
		if !slices.Equal(found, want) {
			t.Errorf("found %v, want %v", found, want)
		}
		return found
	}
	if found, read := check(), planned(); len(read) != len(found) {
		t.Errorf("the store is asked for %d records, %d of which match", len(read), len(found))
	}
	for i := range places { // all move, most of them away or here
		j := rng.IntN(len(places))
		places[i].lat, places[j].lat = places[j].lat, places[i].lat
		places[i].lon, places[j].lon = places[j].lon, places[i].lon
	}
	savePlaces(t, db, src.Spec, places)
	if found, read := check(), planned(); len(read) != len(found) {
		t.Errorf("after they moved the store is asked for %d records, %d of which match", len(read), len(found))
	}
	s.tables.SetLimit(1)
	s.tables.Table("maps", src.Spec.Kind("places")) // it is full from the next change on
	places[0].ok = !places[0].ok
	savePlaces(t, db, src.Spec, append(slices.Clone(places), place{id: "new", lat: 80}))
	check()
	if read := planned(); read != nil {
		t.Errorf("without room for all records the store is asked for %d", len(read))
	}
}

// TestNearFiltersLists uses near: as understudy.q does on a list: the test that it compiles to finds the same records.
func TestNearFiltersLists(t *testing.T) {
	s, places := newPlaces(t, rand.New(rand.NewPCG(sample.Seed(t), 2)), 100)
	target, err := s.o.Sources[0].Spec.Resolve("maps", "/places", "")
	if err != nil {
		t.Fatal(err)
	}
	_, matches, err := s.CompileText(as("seer"), target, "near:37.8,-122.4~30km")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		body := fmt.Sprintf(`{"id":%q,"at":{"lat":%f,"lng":"%f"}}`, p.id, p.lat, p.lon)
		got := matches(&understudy.Record{Source: "maps", Kind: "places", ID: p.id, Body: []byte(body)})
		if want := p.miles(37.8, -122.4)*1.609344 <= 30; got != want {
			t.Errorf("%s at %v,%v is near: %t, want %t", p.id, p.lat, p.lon, got, want)
		}
	}
	near, err := s.CompileNear(t.Context(), as("seer"), target, "37.8,-122.4~30km")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		body := fmt.Sprintf(`{"id":%q,"at":{"lat":%f,"lng":"%f"}}`, p.id, p.lat, p.lon)
		meters, got := near.Distance(&understudy.Record{Source: "maps", Kind: "places", ID: p.id, Body: []byte(body)})
		want := p.miles(37.8, -122.4) * 1609.344
		if got != (want <= 30_000) || got && math.Abs(meters-want) > 1 {
			t.Errorf("%s at %v,%v: %v m, %t; want %v m", p.id, p.lat, p.lon, meters, got, want)
		}
	}
	if near.Numbers == nil {
		t.Error("the columns name no records")
	}
	for _, role := range []string{"nolat", "nolng"} {
		if _, _, err := s.CompileText(as(role), target, "near:37.8,-122.4"); !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("%s: %v, want ErrForbidden", role, err)
		}
		if _, err := s.CompileNear(t.Context(), as(role), target, "37.8,-122.4"); !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("%s: %v, want ErrForbidden", role, err)
		}
	}
	for _, text := range []string{"", "37.8", "1,2 or id:p1", "1,2) (id:p1", "1,2 id:p1"} {
		if _, err := s.CompileNear(t.Context(), as("seer"), target, text); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", text, err)
		}
	}
}

// TestNearRefusals asks near: wrongly, and as roles that do not see both coordinates: neither finding nor sorting by distance is allowed.
func TestNearRefusals(t *testing.T) {
	s, _ := newPlaces(t, rand.New(rand.NewPCG(1, 1)), 20)
	for _, c := range []struct {
		role, text, sort, why string
		kind                  error
	}{
		{"seer", "near:37.8", "", "write near:", understudy.ErrInvalid},
		{"seer", "near:37.8,-122.4,5", "", "write near:", understudy.ErrInvalid},
		{"seer", "near:91,0", "", "write near:", understudy.ErrInvalid},
		{"seer", "near:NaN,0", "", "write near:", understudy.ErrInvalid},
		{"seer", "near:1,-181", "", "write near:", understudy.ErrInvalid},
		{"seer", "near:1,2~5", "", "write near:", understudy.ErrInvalid},
		{"seer", "near:1,2~-5km", "", "write near:", understudy.ErrInvalid},
		{"seer", "near:1,2~NaNkm", "", "write near:", understudy.ErrInvalid},
		{"seer", "near=1,2", "", "write near:", understudy.ErrInvalid},
		{"seer", "near:1,2*", "", "write near:", understudy.ErrInvalid},
		{"seer", "kind:people near:1,2", "", "no coordinates", understudy.ErrInvalid},
		{"seer", "kind:places", "near", "no field near", understudy.ErrInvalid},
		{"seer", "kind:places -near:1,2", "near", "no field near", understudy.ErrInvalid},
		{"nolat", "kind:places near:1,2", "", "can't see at.lat of places", understudy.ErrForbidden},
		{"nolng", "kind:places near:1,2", "near", "can't see at.lng of places", understudy.ErrForbidden},
		{"nolng", "kind:places -near:1,2", "", "can't see at.lng of places", understudy.ErrForbidden},
		{"nolat", "at.lat>37", "", "can't see at.lat of places", understudy.ErrForbidden},
		{"people", "kind:places near:1,2", "", "can't see places", understudy.ErrForbidden},
	} {
		text := c.text
		if strings.HasPrefix(text, "near") {
			text = "kind:places " + text
		}
		_, err := s.Find(t.Context(), as(c.role), query.SearchRequest{Text: text, Sort: c.sort})
		if !errors.Is(err, c.kind) {
			t.Errorf("%s for %s, sorted by %q: %v, want %v", text, c.role, c.sort, err, c.kind)
		} else if !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s for %s: %v, want %q", text, c.role, err, c.why)
		}
	}
}
