// The tables after many random changes.

package tables

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// compare compares each row with the body of its record.
func (r *rig) compare() {
	r.Helper()
	rows, err := r.user.Query(r.Context(), "SELECT to_jsonb(o) FROM shop.orders o")
	checktest.MustNoError(r, err, "read the table")
	all, err := pgx.CollectRows(rows, pgx.RowTo[map[string]any])
	checktest.MustNoError(r, err, "read the table")
	got := map[string]string{}
	for _, row := range all {
		maps.DeleteFunc(row, func(_ string, v any) bool { return v == nil })
		got[row["id"].(string)] = fmt.Sprint(row)
	}
	checktest.Equal(r, len(got), len(r.written), "rows")
	for id, body := range r.written {
		var want map[string]any
		checktest.MustNoError(r, json.Unmarshal([]byte(body), &want), "%s", body)
		maps.DeleteFunc(want, func(_ string, v any) bool { return v == nil })
		checktest.MustEqual(r, got[id], fmt.Sprint(want), "row %s", id)
	}
}

// TestRandomChangesAreApplied compares the tables with the records after random changes, during which the tables are stopped
// and started, their connections are ended, and the connection to the leader is lost.
func TestRandomChangesAreApplied(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(sample.Seed(t), 34))
	r := newRig(t)
	r.setPolicy(r.gate(seeAll, nil), understudy.RoleAll)
	pick := func() string {
		all := slices.Sorted(maps.Keys(r.written))
		return all[rng.IntN(len(all))]
	}
	for left := sample.Count(300, 10_000); left > 0; {
		switch n := rng.IntN(100); {
		case n < 80 || len(r.written) == 0:
			var bodies []string
			for range 1 + rng.IntN(20) {
				body := map[string]any{"id": fmt.Sprintf("o%d", rng.IntN(300)), "n": rng.IntN(1000), "note": strings.Repeat("é\"\\", rng.IntN(5)),
					"paid": rng.IntN(2) == 0, "ship": map[string]any{"city": rng.IntN(9)}}
				if left < 250 { // new fields
					body[fmt.Sprintf("new%d", rng.IntN(9))] = rng.IntN(5)
				}
				if left < 150 && rng.IntN(4) == 0 { // another type
					body["ship"] = []any{1.5, nil}
				}
				text, err := json.Marshal(body)
				checktest.MustNoError(t, err, "marshal")
				bodies = append(bodies, string(text))
			}
			slices.SortFunc(bodies, func(a, b string) int { return strings.Compare(idOf(a), idOf(b)) })
			bodies = slices.CompactFunc(bodies, func(a, b string) bool { return idOf(a) == idOf(b) })
			bodies = slices.DeleteFunc(bodies, func(b string) bool { return r.wasErased[idOf(b)] })
			if len(bodies) > 0 {
				r.save(bodies...)
			}
			left -= len(bodies)
		case n < 90:
			r.remove(pick())
			left--
		case n < 93:
			id := pick()
			r.eraseRecord(id)
			r.wasErased[id] = true
			checktest.MustEqual(t, r.value("SELECT count(*)::text FROM shop.orders WHERE id = $1", id), "0", "an erased row")
			left--
		case n < 95:
			r.exec(disconnect)
		case n < 97:
			_ = r.tables.Close()
			r.tables = New(r.tables.o)
			r.setPolicy(r.gate(seeAll, nil), understudy.RoleAll)
		case n < 98:
			checktest.NoError(t, r.tables.RequestRebuild(t.Context(), Command{Kind: "orders"}), "rebuild")
		}
	}
	r.await()
	r.compare()
}

func idOf(body string) string {
	var one struct{ ID string }
	_ = json.Unmarshal([]byte(body), &one)
	return one.ID
}
