// M7: one odd page delays no other.

package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/request"
)

// TestAPageOfOneSecondIsLinear saves pages of one second, and as many rows of a
// second each. The first make others move: that is some work a row, not some work
// a row and row. The square shows from 10,000 rows on: UNDERSTUDY_PROVE=1.
func TestAPageOfOneSecondIsLinear(t *testing.T) {
	rows := sample.Count(2000, 10_000)
	took := func(step int64) time.Duration {
		db := storetest.OpenItems(t, store.Options{SaveTime: time.Hour})
		begin := time.Now()
		for i := range 6 {
			if _, err := db.Save(t.Context(), storetest.ItemsPage(fmt.Sprint("page", i), rows, step)); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(begin)
	}
	var apart, same time.Duration
	for range 3 { // another process may have had the machine
		if apart, same = took(1), took(0); same < 6*apart {
			return
		}
	}
	t.Errorf("rows of one second take %v, rows of a second each %v", same, apart)
}

// TestASaveHasADeadline: a page that takes too long is given up, says so, and
// leaves nothing; what is saved next is.
func TestASaveHasADeadline(t *testing.T) {
	db := storetest.OpenItems(t, store.Options{SaveTime: time.Microsecond})
	long := storetest.ItemsPage("long", 5000, 0)
	_, err := db.Save(t.Context(), long)
	var reason interface{ ShortString() string }
	checktest.MustTrue(t, errors.Is(err, understudy.ErrNotStored),
		"saved in a microsecond: err is %v, want understudy.ErrNotStored", err)
	checktest.MustTrue(t, errors.Is(err, context.DeadlineExceeded),
		"saved in a microsecond: err is %v, want context.DeadlineExceeded", err)
	checktest.MustTrue(t, errors.As(err, &reason), "saved in a microsecond: errors.As(err, &reason) is false")
	if want := "saving it took more than 1µs"; reason.ShortString() != want {
		t.Errorf("the reason is %q, want %q", reason.ShortString(), want)
	}
	if _, err := db.ReadPage(t.Context(), long.Key); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("its page: %v, want nothing", err)
	}
	// The connection is of use to others, which have their own time.
	if _, err := db.Touch(t.Context(), request.Invalidation{Source: "items", Kind: "items"}); err != nil {
		t.Errorf("the next write: %v", err)
	}
	// A caller's own end is no fault of the page.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Save(ended, long); errors.Is(err, understudy.ErrNotStored) || !errors.Is(err, context.Canceled) {
		t.Errorf("a save for nobody: %v", err)
	}
}

// TestADamagedPageIsReplaced: a stored page that cannot be unpacked is replaced by the next answer, and can then be read again.
func TestADamagedPageIsReplaced(t *testing.T) {
	path := storetest.File(t)
	db, err := store.Open(t.Context(), store.Options{Path: path, Specs: storetest.Specs(t), SaveTime: storetest.Patience})
	checktest.MustNoError(t, err, "open")
	t.Cleanup(func() { checktest.NoError(t, db.Close(), "close") })
	page := storetest.ItemsPage("page", 3, 1)
	_, err = db.Save(t.Context(), page)
	checktest.MustNoError(t, err, "save")
	other := storetest.SQL(t, path)
	_, err = other.Exec("UPDATE page SET body = randomblob(length(body))")
	checktest.MustNoError(t, err, "damage")
	checktest.MustNoError(t, other.Close(), "close")
	_, err = db.ReadPage(t.Context(), page.Key)
	checktest.MustTrue(t, err != nil, "the damaged page can be read")
	_, err = db.Save(t.Context(), page)
	checktest.MustNoError(t, err, "save again")
	again, err := db.ReadPage(t.Context(), page.Key)
	checktest.MustNoError(t, err, "read the replaced page")
	checktest.Equal(t, string(again.Body), string(page.Body), "body of the replaced page")
	_, err = db.ForgetPage(t.Context(), page.Key)
	checktest.MustNoError(t, err, "forget")
	_, err = db.ReadPage(t.Context(), page.Key)
	checktest.True(t, errors.Is(err, understudy.ErrNotFound), "the page is stored twice: %v", err)
}
