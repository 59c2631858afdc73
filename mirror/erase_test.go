// Erasing: memory lets go of what the store has, and what upstream still shows
// passes to readers unstored.

package mirror

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/store/erase"
	"understudy/request"
)

// erase erases one call, as a person who asks for it.
func (s *stage) erase(t *testing.T, id string) {
	t.Helper()
	if _, found, err := s.memory.Eraser.EraseNumber(t.Context(), "twilio", "calls/"+id); err != nil || found.Records() != 1 {
		t.Fatalf("found %+v, %v", found, err)
	}
	done, err := s.memory.Eraser.EraseListed(t.Context(), erase.Job{Gone: s.DropErased})
	if err != nil || len(done) != 1 {
		t.Fatalf("receipts %+v, %v", done, err)
	}
}

func TestTheErasedPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, shortAges)
		list, one, other := s.newest(t), s.call(t, sid(1)), s.call(t, sid(2))
		want(t, s.get(t, list), request.Cold, "")
		want(t, s.get(t, one), request.Composed, "composed")
		s.erase(t, sid(1))
		if s.entries.hot.Find(list.Key) != nil || s.entries.hot.Find(one.Key) != nil {
			t.Fatal("memory still holds a page that shows it")
		}
		for i := range 2 {
			a := s.get(t, one)
			if want(t, a, request.Cold, "not stored: erased"); a.Stored || a.Page.Status != 200 {
				t.Fatalf("%+v", a)
			}
			if a = s.get(t, list); a.Stored || a.Detail != "not stored: erased" {
				t.Fatalf("%s, stored %v", a.Detail, a.Stored)
			}
			if i == 0 {
				want(t, s.get(t, other), request.Composed, "composed") // the list's other records are kept
			}
			time.Sleep(shortHard + time.Hour) // past every age
		}
		if _, err := s.memory.Record(t.Context(), "twilio", "calls", "calls", sid(1)); !errors.Is(err, understudy.ErrNotFound) {
			t.Fatalf("the record: %v", err)
		}
		if err := s.DropErased(t.Context(), "unheard", nil); !errors.Is(err, understudy.ErrInvalid) {
			t.Fatalf("of another source: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.DropErased(ctx, "twilio", []string{"unheard"}); err != nil {
			t.Fatalf("of a kind it does not have: %v", err)
		}
	})
}
