// Both stores against the rules of places.

package store_test

import (
	"testing"

	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

func TestSeekInMemory(t *testing.T) {
	fewer(t, crowded)
	storetest.RunSeek(t, func(t testing.TB) storetest.Seeker {
		m := store.NewMemory(store.Options{Specs: specs(t)})
		t.Cleanup(func() { _ = m.Close() })
		return m
	})
}

func TestTextInMemory(t *testing.T) {
	fewer(t, crowded)
	storetest.RunText(t, func(t testing.TB) storetest.Seeker {
		m := store.NewMemory(store.Options{Specs: specs(t)})
		t.Cleanup(func() { _ = m.Close() })
		return m
	})
}

func TestSeek(t *testing.T) {
	fewer(t, crowded)
	storetest.RunSeek(t, func(t testing.TB) storetest.Seeker { return openDB(t, storetest.File(t)) })
}

func TestText(t *testing.T) {
	fewer(t, crowded)
	storetest.RunText(t, func(t testing.TB) storetest.Seeker { return openDB(t, storetest.File(t)) })
}
