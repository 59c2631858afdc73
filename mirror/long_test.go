// Pages that take long to save.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
)

// TestALongSaveHoldsNobodyUp (M7): a page that takes long to save is answered
// after a second. When it was given up the page waits a minute before it is saved
// again, and everything else goes on.
func TestALongSaveHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var saves atomic.Int32
		var long atomic.Bool
		long.Store(true)
		s := open(t, 3, over(func(st Store) Store {
			return &oddStore{Store: st, save: func() error {
				if saves.Add(1); !long.Load() {
					return nil
				}
				time.Sleep(2 * time.Second)
				return fmt.Errorf("%w: %w", understudy.ErrNotStored, context.DeadlineExceeded)
			}}
		}))
		begin := time.Now()
		a := s.get(t, s.newest(t))
		want(t, a, request.Cold, "not stored yet: saving takes long")
		took := time.Since(begin)
		checktest.Equal(t, took, 2*time.Second, "answered after: took")
		checktest.MustEqual(t, len(a.Page.Rows), 3, "answered after: len(a.Page.Rows)")
		checktest.True(t, !a.Stored, "answered after: a.Stored is true")
		time.Sleep(2 * time.Second)
		if saves.Load() != 1 || s.writer.saving.failureReason() != "" {
			t.Errorf("%d saves, trouble %q", saves.Load(), s.writer.saving.failureReason())
		}
		fill := func() error {
			_, err := s.Fill(t.Context(), request.Fill{Target: s.newest(t), RecordsOnly: true})
			return err
		}
		long.Store(false)
		if err := fill(); !errors.Is(err, understudy.ErrNotStored) || saves.Load() != 1 {
			t.Errorf("tried again at once: %v, %d saves", err, saves.Load())
		}
		s.get(t, s.target(t, "Calls.json", "PageSize=2"))
		if saves.Load() != 2 {
			t.Errorf("another page: %d saves", saves.Load())
		}
		time.Sleep(time.Minute)
		if err := fill(); err != nil || saves.Load() != 3 {
			t.Errorf("a minute later: %v, %d saves", err, saves.Load())
		}
	})
}
