// What is erased leaves nothing, and is told of once.

package erase_test

import (
	"fmt"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
)

// Jobs, notes and names of fields hold no texts; if one does it goes, too.
func TestBesideErased(t *testing.T) {
	db, err := store.Open(t.Context(), storetest.EraseOptions(t, func() time.Time { return storetest.Epoch }))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	save := func(uri, body string) {
		id := "SM00000000000000000000000000000001"
		p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: uri}, Kind: "messages", Shape: "messages", ID: id, Status: 200,
			Body: []byte(body),
			Rows: []understudy.Row{{ID: id, End: len(body)}}, At: storetest.Epoch}
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	save("/a", `{"from": "+14155550100", "by": {"+14155550100": 1}, "body": "a text that is long enough"}`)
	save("/b", `{"from": "+14155550100", "by": {"+14155550100": 2}, "body": "a text that is long enough"}`)
	for name, value := range map[string]string{"walk/a": "at /Messages.json?To=%2B14155550100", "walk/b": "at page 7",
		"feed/c": "said: a text that is long enough!", "watch/d": "from +1 415 555 0100"} {
		if err := db.KV.SetValue(t.Context(), name, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	watched := map[string]bool{}
	err = db.KV.Watch(t.Context(), "watch/", func(name string, value []byte) error { watched[name] = value != nil; return nil })
	if err != nil || !watched["watch/d"] {
		t.Fatalf("watched: %v, %v", watched, err)
	}
	numbers, err := db.Jobs.AddJobs(t.Context(), storetest.Epoch, understudy.Job{Kind: "sync calls",
		Payload:     []byte(`{"to":"+1 415 555 0100"}`),
		MaxAttempts: 1},
		understudy.Job{Kind: "sync calls", Payload: []byte(`{"page":7}`), MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := db.Verifier.FindTexts(t.Context(), "4155550100"); err != nil || len(found) < 4 {
		t.Fatalf("held at first: %v, %v", found, err)
	}
	if _, _, err := db.Eraser.EraseNumber(t.Context(), "twilio", "+14155550100"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Eraser.EraseListed(t.Context(), erase.Job{}); err != nil {
		t.Fatal(err)
	}
	if found, err := db.Verifier.FindTexts(t.Context(), "4155550100", "a text that is long", "415 555"); err != nil || len(found) > 0 {
		t.Fatalf("still held: %v, %v", found, err)
	}
	checktest.True(t, !watched["watch/d"], "the erased value is still in memory")
	notes, err := db.KV.ReadValues(t.Context(), "")
	checktest.MustNoError(t, err, "values")
	checktest.MustEqual(t, len(notes), 1, "values: len(notes)")
	checktest.MustEqual(t, string(notes["walk/b"]), "at page 7", `values: string(notes["walk/b"])`)
	jobs, err := db.Jobs.ReadJobs(t.Context(), understudy.JobFilter{Limit: 10})
	checktest.MustNoError(t, err, "jobs")
	checktest.MustEqual(t, len(jobs), 1, "jobs: len(jobs)")
	checktest.MustEqual(t, jobs[0].Number, numbers[1], "jobs: jobs[0].Number")
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Fatalf("verify: %v, %v", r.Problems, err)
	}
}

// L5: a record that went twice is listed twice, and what the first took out is
// not there for the second, in another transaction. Nothing is damaged by that.
func TestListedTwiceFarApart(t *testing.T) {
	o := storetest.EraseOptions(t, func() time.Time { return storetest.Epoch })
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	at := storetest.Epoch
	save := func(id, body string) {
		at = at.Add(time.Second)
		p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/calls/" + id}, Kind: "calls", Shape: "calls", ID: id, Status: 404,
			At: at, Body: []byte("{}")}
		if body != "" {
			p.Status, p.Body = 200, []byte(fmt.Sprintf(`{"sid": %q, "status": %q}`, id, body))
			p.Rows = []understudy.Row{{ID: id, End: len(p.Body)}}
		}
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	id := func(n int) string { return fmt.Sprintf("CA%032d", n) }
	comeAndGo := func(n int) {
		save(id(n), "queued")
		save(id(n), "completed")
		save(id(n), "")
	}
	const more = 40 // more than one transaction takes
	comeAndGo(0)
	for n := range more {
		comeAndGo(n + 1)
	}
	comeAndGo(0)
	done, err := db.Eraser.EraseListed(t.Context(), erase.Job{})
	checktest.MustNoError(t, err, "%+v", done)
	checktest.MustEqual(t, len(done), 1, "the erasures done: number")
	checktest.True(t, !done[0].Done.IsZero(), "it is not done: %+v", done[0])
	checktest.Equal(t, done[0].Versions, 2*(more+1), "versions, of which equal ones are kept once")
	if w, err := db.Eraser.CountWaiting(t.Context()); err != nil || w.Records != 0 {
		t.Errorf("waiting %+v, %v", w, err)
	}
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %q, %v", r.Problems, err)
	}
}
