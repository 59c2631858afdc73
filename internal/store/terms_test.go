// Terms leave the file when what they say does, and verify sees when they do not
// fit.

package store_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
)

// tokenOf is the word that stands for a value in the index, made here once
// more.
func tokenOf(shape uint16, field, value string) string {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint16(nil, shape))
	h.Write([]byte(field + "\x00" + value))
	n := h.Sum64()
	n ^= n >> 32
	var word strings.Builder
	for range 12 {
		word.WriteByte("0123456789abcdefghijklmnopqrstuv"[n&31])
		n >>= 5
	}
	return word.String()
}

// TestTermsLeave changes a number many records have, lets one go and erases
// another: then no byte of their numbers' hashes is in the files.
func TestTermsLeave(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	db := openDB(t, path)
	numbers := []string{"+491711111111", "+491722222222", "+491733333333"}
	call := func(n int, to string, at int) {
		id := fmt.Sprintf("CA%032x", n)
		body := fmt.Sprintf(`{"sid": %q, "start_time": "Mon, 01 Jun 2026 12:00:00 +0000", "status": "completed", "to": %q}`, id, to)
		p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/i/" + id}, Kind: "calls", Shape: "calls", ID: id, Status: 200,
			Body: []byte(body),
			Rows: []understudy.Row{{ID: id, End: len(body), Clock: storetest.Epoch.Unix()}},
			At:   storetest.Epoch.Add(time.Duration(at) * time.Second)}
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 300 {
		to := "+14155550100"
		if n < len(numbers) {
			to = numbers[n]
		}
		call(n, to, 0)
	}
	// A word is stored as what it has after the word before it: its end is looked for.
	ends := func(where string, number string, want bool) {
		t.Helper()
		word := tokenOf(1, "to", "#"+number[len(number)-9:])
		found := false
		for _, name := range []string{path, path + "-wal"} {
			data, err := os.ReadFile(name)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			found = found || bytes.Contains(data, []byte(word[4:]))
		}
		if found != want {
			t.Errorf("%s: the hash of %s is in the files: %v", where, number, found)
		}
	}
	for _, number := range numbers {
		ends("at first", number, true)
	}
	call(0, "+14155550100", 10)
	gone := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/g"}, Kind: "calls", Shape: "calls", ID: fmt.Sprintf("CA%032x", 1),
		Status: 404, At: storetest.Epoch.Add(20 * time.Second)}
	if _, err := db.Save(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.EraseNumber(t.Context(), "twilio", numbers[2]); err != nil {
		t.Fatal(err)
	}
	if _, err := db.EraseListed(t.Context(), erase.Job{}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Clean(db); err != nil {
		t.Fatal(err)
	}
	for i, number := range numbers {
		ends(fmt.Sprint("after ", i), number, false)
	}
	ends("another's", "+14155550100", true)
	if r, err := db.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %q, %v", r.Problems, err)
	}
}

// TestVerifySeesPlaces spoils places and terms.
func TestVerifySeesPlaces(t *testing.T) {
	for _, spoil := range []struct{ name, text, want string }{
		{"a place is missing", "DELETE FROM place WHERE record = 3", "does not stand at its place"},
		{"a place is another's", "UPDATE place SET record = 99 WHERE record = 3", "does not stand at its place"},
		{"a place too many", "INSERT INTO place VALUES (1, 17, 4)", "places are taken"},
		{"a row without a place", "UPDATE held SET place = NULL WHERE number = 3 * 64", "has no place"},
		{"one that is there counts as gone", "UPDATE place SET kind = -kind WHERE record = 3", "stands among those that are gone"},
		{"terms too many", "INSERT INTO terms (rowid, term) VALUES (7, 'aaaaaaaaaaaa')", "where none is"},
		{"another term", "INSERT INTO terms (rowid, term) SELECT -((place >> 1 << 10) + 1), 'aaaaaaaaaaaa' FROM held WHERE number = 3 * 64",
			"which are not"},
		{"times too few", "DELETE FROM span WHERE field = '~end_time'", "a time in end_time lies outside"},
		{"no terms", "INSERT INTO terms (terms) VALUES ('delete-all')", "found by 0 terms"},
	} {
		t.Run(strings.ReplaceAll(spoil.name, " ", "-"), func(t *testing.T) {
			path := storetest.File(t)
			db := openDB(t, path)
			p, _ := storetest.NewWorld(5, 10).List(10, 0, 0, storetest.Epoch)
			if _, err := db.Save(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if r, err := db.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
				t.Fatalf("verify: %q, %v", r.Problems, err)
			}
			other := raw(t, path)
			if _, err := other.Exec(spoil.text); err != nil {
				t.Fatal(err)
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := db.Verify(t.Context())
			if err != nil || !strings.Contains(strings.Join(r.Problems, "\n"), spoil.want) {
				t.Errorf("verify: %q, %v, want %q", r.Problems, err, spoil.want)
			}
			if !strings.Contains(spoil.text, "terms") {
				return
			}
			if err := db.Rebuild(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if r, err := db.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
				t.Errorf("verify, made anew: %q, %v", r.Problems, err)
			}
		})
	}
}

// TestEscapedTimes finds a record by a time that its body spells with an escape,
// far from the time of its place.
func TestEscapedTimes(t *testing.T) {
	t.Parallel()
	db := openDB(t, storetest.File(t))
	id := fmt.Sprintf("CA%032x", 1)
	body := fmt.Sprintf(`{"sid": %q, "start_time": "Mon, 01 Jun 2026 12:00:00 +0000",`+
		` "end_time": "Sun\u002c 01 Feb 2026 12:00:00 +0000"}`, id)
	_, err := db.Save(t.Context(), &understudy.Page{
		Key: understudy.Key{Source: "twilio", URI: "/c"}, Kind: "calls", Shape: "calls", ID: id, Status: 200, Body: []byte(body),
		Rows: []understudy.Row{{ID: id, End: len(body), Clock: storetest.Epoch.Unix()}}, At: storetest.Epoch,
	})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC).Unix()
	found := 0
	err = db.Seek(t.Context(), query.RecordQuery{
		Source: "twilio", Kinds: []string{"calls"}, Predicates: []query.Predicate{{Field: "end_time", From: at, To: at + 1}},
	}, func(query.Hit) bool { found++; return true })
	if err != nil || found != 1 {
		t.Errorf("found %d: %v", found, err)
	}
}
