// What a record that changed costs, and how soon changes are saved.

package history_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// TestBytesPerChange holds a record that changed five times to 2.5 times what
// one version costs, as sweeps find changes: page by page. 5,000 calls (fewer under the race detector),
// a hundred thousand with UNDERSTUDY_PROVE=1.
func TestBytesPerChange(t *testing.T) {
	t.Parallel()
	records := sample.Count(500, 100_000)
	path := filepath.Join(storetest.MemoryDir(t), "understudy.db")
	w := storetest.NewWorld(3, records)
	var first int64
	for round := range 6 {
		db := storetest.OpenAt(t, path)
		for i := range records {
			w.Changed[i] = round
		}
		var spent, used time.Duration
		for n, from := 0, 0; from < w.N; n++ {
			p, next := w.List(50, n, from, storetest.Epoch.Add(time.Duration(round)*time.Hour))
			from = next
			start, before := time.Now(), storetest.CPUTime()
			if _, err := db.Save(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			spent, used = spent+time.Since(start), used+storetest.CPUTime()-before
		}
		now := size(t, path, db)
		if first == 0 {
			first = now
		}
		t.Logf("changed %d times: %d bytes a record, %.2f times one version; %v and %v of processor a page, %.0f records a second",
			round, now/int64(records), float64(now)/float64(first), spent/time.Duration(records/50), used/time.Duration(records/50),
			float64(records)/spent.Seconds())
		if round == 5 && now*2 > first*5 {
			t.Errorf("%d bytes a record that changed five times, %.2f times the %d of one version; want at most 2.5 times", now/int64(records),
				float64(now)/float64(first), first/int64(records))
		}
	}
	db := storetest.OpenAt(t, path)
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Fatalf("verify: %q, %v", r.Problems, err)
	}
	for i := 0; i < records; i += records / 10 {
		all, err := db.ReadHistory(t.Context(), storetest.Source, "calls", w.ID(i), 0)
		if err != nil || len(all) != 6 {
			t.Fatalf("call %d: %d versions, %v", i, len(all), err)
		}
		for round, v := range all {
			if w.Changed[i] = 5 - round; string(v.Body) != string(w.AppendCall(nil, i)) {
				t.Errorf("call %d: version %d is not what it was", i, round)
			}
		}
	}
}

// size is the file's size once nothing is left in the log.
func size(t *testing.T, path string, db *store.DB) int64 {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
