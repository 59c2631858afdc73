// Remains: a file is the same before and after, less what belongs to nothing.

package store_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// TestRemainsUnderLoad cleans again and again while pages are saved and read.
func TestRemainsUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := storetest.OpenAt(t, path)
	w := storetest.NewWorld(3, 2000)
	var wg sync.WaitGroup
	end := make(chan struct{})
	for i := range 2 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-end:
					return
				default:
				}
				p, _ := w.List(50, n%40, (n*50)%1900, storetest.Epoch.Add(time.Duration(n+i)*time.Second))
				if _, err := db.Save(t.Context(), p); err != nil && !strings.Contains(err.Error(), understudy.ErrOutdated.Error()) {
					t.Error(err)
					return
				}
				_, _ = db.ReadPage(t.Context(), p.Key) // it may be replaced meanwhile
			}
		})
	}
	for range 10 {
		if _, err := store.Clean(db); err != nil {
			t.Error(err)
		}
	}
	close(end)
	wg.Wait()
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Fatalf("verify: %v, %v", r.Problems, err)
	}
}
