// Many records past their retention.

package erase_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
)

// Each record that is too old is listed once, be they more than one transaction
// lists, and those on the other side of the line stay.
func TestExpireMany(t *testing.T) {
	const many = 1300
	now := storetest.Epoch
	db, err := store.Open(t.Context(), storetest.EraseOptions(t, func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p := &understudy.Page{Key: understudy.Key{Source: storetest.Source, URI: "/messages"}, Kind: "messages", Shape: "messages", List: true,
		Status: 200, At: now}
	for n := range many {
		from := len(p.Body)
		p.Body = append(p.Body, fmt.Sprintf(`{"sid": "SM%032d"}`, n)...)
		clock := now.Unix() - int64(n/2) // two of each second
		if n%10 == 9 {
			clock = 0 // counts from when it was seen
		}
		p.Rows = append(p.Rows, understudy.Row{ID: fmt.Sprintf("SM%032d", n), Clock: clock, Start: from, End: len(p.Body)})
	}
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	now = now.Add(storetest.Keep) // the line is at the newest clock: those of that second stay
	want := 0
	for _, r := range p.Rows {
		if r.Clock != 0 && r.Clock < storetest.Epoch.Unix() {
			want++
		}
	}
	for _, more := range []int{want, 0} {
		if n, err := db.Expire(t.Context(), storetest.Source, "messages"); err != nil || n != more {
			t.Fatalf("%d listed, %v, want %d", n, err, more)
		}
	}
	now = now.Add(time.Second)
	if n, err := db.Expire(t.Context(), storetest.Source, "messages"); err != nil || n != many-want {
		t.Fatalf("%d listed a second later, %v, want %d", n, err, many-want)
	}
	{
		done, err := db.Eraser.EraseListed(t.Context(), erase.Job{})
		checktest.MustNoError(t, err, "")
		checktest.MustEqual(t, len(done), 1, "len(done)")
		checktest.MustEqual(t, done[0].Records, many, "done[0].Records")
	}
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %q, %v", r.Problems, err)
	}
}

// A page that was stored whole is deleted once its kind has a retention: nobody could find in it what is
// too old.
func TestARetentionThatIsSetLaterDeletesPagesThatAreStoredWhole(t *testing.T) {
	o := storetest.EraseOptions(t, func() time.Time { return storetest.Epoch })
	keep := o.Retention
	o.Retention = nil
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	body := `[{"sid": "CA1"}]`
	p := &understudy.Page{Key: understudy.Key{Source: storetest.Source, URI: "/calls?x=1"}, Kind: "calls", Shape: "calls", List: true,
		Status: 200, At: storetest.Epoch, Body: []byte(body), NotStored: "it was asked otherwise",
		Rows: []understudy.Row{{ID: "CA1", Start: 1, End: len(body) - 1}}}
	if _, err := db.Save(t.Context(), p.OutageCopy()); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	o.Retention = map[string]map[string]time.Duration{storetest.Source: {"calls": keep[storetest.Source]["messages"]}}
	if db, err = store.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ReadPage(t.Context(), p.Key); err != nil {
		t.Fatalf("before the records past their retention are looked for: %v", err)
	}
	if _, err := db.Expire(t.Context(), storetest.Source, "calls"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ReadPage(t.Context(), p.Key); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("the page is still there: %v", err)
	}
}
