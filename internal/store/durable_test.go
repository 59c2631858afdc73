// What is promised is on the disk before it is acknowledged, also through a crash of
// the machine; a page need not be.

package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/request"
)

func TestPromisesAreDurable(t *testing.T) {
	const normal, full = 1, 2
	w := storetest.NewWorld(5, 10)
	page := func() *understudy.Page { p, _ := w.List(10, 0, 0, storetest.Epoch); return p }
	addJob := func(db *store.DB) error {
		_, err := db.Jobs.AddJobs(t.Context(), storetest.Epoch, understudy.Job{Kind: "a", MaxAttempts: 1})
		return err
	}
	for _, one := range []struct {
		name, table string
		want        int64
		do          func(db *store.DB) error
		before      func(db *store.DB) error // what must be there
	}{
		{"a page", "page", normal, func(db *store.DB) error { _, err := db.Save(t.Context(), page()); return err }, nil},
		{"the answer to a write", "block", full, func(db *store.DB) error {
			p := page()
			p.Key.URI = ""
			_, err := db.Save(t.Context(), p)
			return err
		}, nil},
		{"an invalidation", "kind", full, func(db *store.DB) error {
			_, err := db.Touch(t.Context(), request.Invalidation{Source: storetest.Source, Kind: "calls"})
			return err
		}, nil},
		{"a page that is forgotten", "page", full, func(db *store.DB) error {
			_, err := db.ForgetPage(t.Context(), page().Key)
			return err
		}, nil},
		{"a record that is forgotten", "page", full, func(db *store.DB) error {
			_, _, err := db.ForgetRecord(t.Context(), storetest.Source, "calls", w.ID(3))
			return err
		}, nil},
		{"a job", "job", full, addJob, nil},
		{"the end of a job that is cancelled", "job", full, func(db *store.DB) error {
			_, err := db.Jobs.CancelJob(t.Context(), 1, storetest.Epoch)
			return err
		}, addJob},
		{"how far a job is", "job", normal, func(db *store.DB) error {
			return db.Jobs.MarkJob(t.Context(), 1, 1, []byte("page 7"))
		}, func(db *store.DB) error {
			err := addJob(db)
			if err == nil {
				_, err = db.Jobs.ClaimJobs(t.Context(), understudy.Claim{Worker: "w", Now: storetest.Epoch, Limit: 1,
					Priority: understudy.PrioritySteady, Kinds: []understudy.ClaimKind{{Name: "a", MaxRunning: 1, Lease: time.Minute}}})
			}
			return err
		}},
		{"how an action ended", "claim", full, func(db *store.DB) error {
			return db.Actions.SettleAction(t.Context(), "send", []byte("sent"))
		}, func(db *store.DB) error {
			_, _, _, err := db.Actions.ClaimAction(t.Context(), "send", storetest.Epoch)
			return err
		}},
		{"a note", "annotation", full, func(db *store.DB) error {
			return db.Annotations.AddNote(t.Context(), storetest.Source, "calls", w.ID(3),
				understudy.Note{By: "robin", At: storetest.Epoch, Text: "called back"})
		}, nil},
		{"an erasure", "erasure", full, func(db *store.DB) error {
			var err error
			for own := range 8 { // each call has one of them
				_, _, one := db.Eraser.EraseNumber(t.Context(), storetest.Source, fmt.Sprintf("+1415555010%d", own))
				err = errors.Join(err, one)
			}
			return err
		}, nil},
		{"a small value", "kv", normal, func(db *store.DB) error {
			return db.KV.SetValue(t.Context(), "walk", []byte("page 7"))
		}, nil},
		{"a small value that is promised", "kv", full, func(db *store.DB) error {
			return db.KV.ChangeDurably(t.Context(), "credential", func([]byte) ([]byte, error) { return []byte("digest"), nil })
		}, nil},
		{"the end of a small value", "kv", full, func(db *store.DB) error {
			return db.KV.SetValue(t.Context(), "session", nil)
		}, func(db *store.DB) error { return db.KV.SetValue(t.Context(), "session", []byte("open")) }},
	} {
		t.Run(one.name, func(t *testing.T) {
			db := storetest.OpenAt(t, filepath.Join(t.TempDir(), "understudy.db"))
			if _, err := db.Save(t.Context(), page()); err != nil { // the kind is known from now on
				t.Fatal(err)
			}
			w.Changed[3]++
			if one.before != nil {
				if err := one.before(db); err != nil {
					t.Fatal(err)
				}
			}
			seen, err := store.WatchSync(db, one.table)
			if err != nil {
				t.Fatal(err)
			}
			if err := one.do(db); err != nil {
				t.Fatal(err)
			}
			how, err := seen()
			if err != nil || len(how) == 0 {
				t.Fatalf("nothing was written: %v", err)
			}
			for _, n := range how {
				if n != one.want {
					t.Errorf("synchronous = %d, want %d", n, one.want)
				}
			}
		})
	}
}

// A job that runs at most once is claimed on the disk before it is handed out.
func TestClaimsOfJobsThatRunOnceAreDurable(t *testing.T) {
	db := storetest.OpenAt(t, filepath.Join(t.TempDir(), "understudy.db"))
	for _, once := range []bool{false, true} {
		if _, err := db.Jobs.AddJobs(t.Context(), storetest.Epoch, understudy.Job{Kind: "a", MaxAttempts: 1, AtMostOnce: once}); err != nil {
			t.Fatal(err)
		}
	}
	seen, err := store.WatchSync(db, "job")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{1, 2} {
		got, err := db.Jobs.ClaimJobs(t.Context(), understudy.Claim{Worker: "w", Now: storetest.Epoch, Limit: 1,
			Priority: understudy.PrioritySteady, Kinds: []understudy.ClaimKind{{Name: "a", MaxRunning: 2, Lease: time.Minute}}})
		checktest.MustNoError(t, err, "claimed")
		checktest.MustEqual(t, len(got.Jobs), 1, "claimed: len(got.Jobs)")
		checktest.MustEqual(t, got.Jobs[0].AtMostOnce, (want == 2), "claimed: got.Jobs[0].AtMostOnce")
		how, err := seen()
		checktest.MustNoError(t, err, "once %v", got.Jobs[0].AtMostOnce)
		checktest.MustTrue(t, len(how) != 0, "once %v: len(how) is 0", got.Jobs[0].AtMostOnce)
		checktest.Equal(t, how[len(how)-1], want, "once %v: how[len(how)-1]", got.Jobs[0].AtMostOnce)
	}
}
