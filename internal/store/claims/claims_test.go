package claims_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// Of many who begin one action at once, over two connections to one file, one is the first.
func TestOneIsTheFirst(t *testing.T) {
	path := storetest.File(t)
	var all []*store.DB
	for range 2 {
		db, err := store.Open(t.Context(), store.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		all = append(all, db)
	}
	var firsts atomic.Int64
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			first, at, result, err := all[i%2].Actions.ClaimAction(context.Background(), "anna\x00send", noon)
			if err != nil {
				t.Error(err)
			}
			if first {
				firsts.Add(1)
			} else if !at.Equal(noon) || result != nil {
				t.Errorf("not the first: at %v with %q", at, result)
			}
		})
	}
	wg.Wait()
	if firsts.Load() != 1 {
		t.Errorf("%d were the first", firsts.Load())
	}
}

func TestClaims(t *testing.T) {
	path := storetest.File(t)
	db, err := store.Open(t.Context(), store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	claim := func(name string, now time.Time) (bool, string) {
		t.Helper()
		first, _, result, err := db.Actions.ClaimAction(t.Context(), name, now)
		if err != nil {
			t.Fatal(err)
		}
		return first, string(result)
	}
	if first, _ := claim("one", noon); !first {
		t.Error("the first is not the first")
	}
	if err := db.Actions.SettleAction(t.Context(), "one", []byte(`{"state":"done"}`)); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"", strings.Repeat("x", 5000)} {
		if err := db.Actions.SettleAction(t.Context(), "one", []byte(wrong)); err == nil {
			t.Errorf("%d bytes are kept", len(wrong))
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = store.Open(t.Context(), store.Options{Path: path}); err != nil { // another process
		t.Fatal(err)
	}
	defer db.Close()
	if first, result := claim("one", noon.Add(23*time.Hour)); first || result != `{"state":"done"}` {
		t.Errorf("after a restart: first %v, %q", first, result)
	}
	if first, _ := claim("one", noon.Add(25*time.Hour)); !first {
		t.Error("a claim lasts longer than a day")
	}
}
