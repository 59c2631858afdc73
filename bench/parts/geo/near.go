// Near: a search near a point among a million stored records.

package geo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"time"

	"understudy"
	"understudy/bench/rig"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/search"
	"understudy/internal/store"
	"understudy/kit/token"
	"understudy/spec"
	"understudy/upstream"
)

// places is the spec of records with coordinates.
const places = `
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
      [{name: id}, {name: created, type: iso8601}, {name: at, type: map}, {name: at.lat, type: latitude}, {name: at.lng, type: longitude}]
`

// epoch is the time of the newest place.
var epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// measureNear stores random places in a database and searches all of them for those near a point, in any order and the nearest first.
func measureNear(ctx context.Context, r *rig.Run) (err error) {
	sp, err := upstream.ReadSpec("maps.yaml", []byte(places))
	if err != nil {
		return err
	}
	specs := map[string]*spec.Spec{"maps": sp}
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(r.Dir, "places.db"), Specs: specs, SaveTime: time.Minute,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	records := r.Size(1_000_000, 3000)
	if err := savePlaces(ctx, db, sp, records); err != nil {
		return err
	}
	gate, err := access.New(specs, nil)
	if err != nil {
		return err
	}
	s, err := search.New(search.Options{Sources: []*spec.Source{{Name: "maps", Spec: sp}}, Store: db, Gate: seeing{gate},
		Key: make([]byte, token.KeySize), Now: func() time.Time { return epoch },
		Limits: search.Limits{Time: time.Hour, MaxRecords: records + 1, MaxSorted: records}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	caller := understudy.Caller{Name: "bench", Grant: &understudy.Grant{Role: understudy.RoleAll}}
	rows := [][]string{rig.SpreadHead}
	var medians []float64
	for _, order := range []string{"newest", "near"} {
		var took []time.Duration
		for range r.Times(9, 2) {
			began := time.Now()
			out, err := s.Find(ctx, caller, query.SearchRequest{Text: "near:37.8,-122.4~25mi", Sort: order, Limit: query.MaxHits})
			if err != nil {
				return err
			}
			took = append(took, time.Since(began))
			if want := records / everyNear; len(out.Hits) != want || out.Partial {
				return fmt.Errorf("%d places found near the point, want %d", len(out.Hits), want)
			}
		}
		rows = append(rows, rig.Spread(fmt.Sprintf("%d records, sort=%s", records, order), took))
		medians = append(medians, rig.Ms(rig.Median(took)))
	}
	r.Say("")
	r.Table(rows)
	r.AtMost("a search near a point among 1,000,000 records, median", medians[0], 25, "ms")
	r.AtMost("the same search, nearest first, median", medians[1], 25, "ms")
	return nil
}

// everyNear says which records are near the point: one of so many. The others are at least 5 degrees of latitude from it.
const everyNear = 10_000

// savePlaces saves random places in pages of 1,000.
func savePlaces(ctx context.Context, db *store.DB, sp *spec.Spec, records int) error {
	target, err := sp.Resolve("maps", "/places", "")
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for from := 0; from < records; from += 1000 {
		page := &understudy.Page{Key: target.Key, Kind: "places", Shape: target.List.Shape, List: true, Status: 200,
			ContentType: "application/json", At: epoch}
		var body bytes.Buffer
		for i := from; i < min(from+1000, records); i++ {
			lat, lon := rng.Float64()*120-90, rng.Float64()*360-180
			if i%everyNear == everyNear-1 {
				lat, lon = 37.8+rng.Float64()/5, -122.4+rng.Float64()/5
			}
			body.WriteByte(",["[(1000-i%1000)/1000])
			clock := epoch.Add(-time.Duration(i) * time.Minute)
			start := body.Len()
			fmt.Fprintf(&body, `{"id":"p%d","created":%q,"at":{"lat":%.6f,"lng":%.6f}}`, i, clock.Format(time.RFC3339), lat, lon)
			page.Rows = append(page.Rows, understudy.Row{ID: fmt.Sprint("p", i), Start: start, End: body.Len(), Clock: clock.Unix()})
		}
		body.WriteByte(']')
		page.Body = body.Bytes()
		if _, err := db.Save(ctx, page); err != nil {
			return err
		}
	}
	return nil
}

// seeing is the gate as the search needs it.
type seeing struct{ *access.Gate }

// CanSeeField implements lang.Gate.
func (g seeing) CanSeeField(c understudy.Caller, source, kind, field string) bool {
	return g.Level(c, source, kind, field) == access.See
}

// MakeView implements lang.Gate.
func (g seeing) MakeView(c understudy.Caller, r *understudy.Record) ([]byte, error) {
	v, err := g.Gate.MakeView(c, &understudy.Page{Key: understudy.Key{Source: r.Source}, Kind: r.Kind, Status: 200, Body: r.Body})
	if err != nil {
		return nil, err
	}
	return v.Body, nil
}
