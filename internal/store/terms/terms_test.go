// Terms leave the file when what they say does, and verify sees when they do not
// fit.

package terms_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
)

// tokenOf is what stands for a value in the index, made here once more.
func tokenOf(shape uint16, field, value string) int64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint16(nil, shape))
	h.Write([]byte(field + "\x00" + value))
	n := h.Sum64()
	n ^= n >> 32
	return int64(n & (1<<60 - 1))
}

// numberToken is what stands for a number in the field to, made here once more: its last four digits before the five
// that come before them.
func numberToken(t *testing.T, number string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(number[len(number)-9:], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return tokenOf(1, "to", "#")>>30<<30 | n%10_000*100_000 + n/10_000
}

// Packed are the bytes that the tables have for a token: of each chunk that has
// it the difference to the token before and the postings, or the chunk's key.
func Packed(t *testing.T, path string, token int64) (all [][]byte) {
	t.Helper()
	db := storetest.SQL(t, path)
	defer db.Close()
	rows, err := db.Query("SELECT token, body FROM term_chunk")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var at int64
		var body []byte
		if err := rows.Scan(&at, &body); err != nil {
			t.Fatal(err)
		}
		if at == token {
			all = append(all, binary.BigEndian.AppendUint64(nil, uint64(at)))
		}
		for len(body) > 0 {
			d, n := binary.Uvarint(body)
			length, m := binary.Uvarint(body[n:])
			end := n + m + int(length)
			if at += int64(d); at == token && d > 0 {
				all = append(all, body[:end])
			}
			body = body[end:]
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTermsLeave changes a number many records have, lets one go and erases
// another: then no byte of their numbers' hashes is in the files.
func TestTermsLeave(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	db := storetest.OpenAt(t, path)
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
	var were [][]byte
	for _, number := range numbers {
		some := Packed(t, path, numberToken(t, number))
		if len(some) == 0 {
			t.Fatalf("%s is not in the index", number)
		}
		were = append(were, some...)
	}
	in := func() (n int) {
		for _, name := range []string{path, path + "-wal"} {
			data, err := os.ReadFile(name)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			for _, piece := range were {
				n += bytes.Count(data, piece)
			}
		}
		return n
	}
	if in() == 0 {
		t.Fatal("the index is not in the files")
	}
	call(0, "+14155550100", 10)
	gone := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/g"}, Kind: "calls", Shape: "calls", ID: fmt.Sprintf("CA%032x", 1),
		Status: 404, At: storetest.Epoch.Add(20 * time.Second)}
	if _, err := db.Save(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Eraser.EraseNumber(t.Context(), "twilio", numbers[2]); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Eraser.EraseListed(t.Context(), erase.Job{}); err != nil {
		t.Fatal(err)
	}
	for _, number := range numbers {
		if some := Packed(t, path, numberToken(t, number)); len(some) > 0 {
			t.Errorf("%s is in the index", number)
		}
	}
	if n := in(); n > 0 {
		t.Errorf("what the index had of the numbers is %d times in the files", n)
	}
	if len(Packed(t, path, numberToken(t, "+14155550100"))) == 0 {
		t.Error("another's number left the index")
	}
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %q, %v", r.Problems, err)
	}
}

// TestEscapedTimes finds a record by a time that its body spells with an escape,
// far from the time of its place.
func TestEscapedTimes(t *testing.T) {
	t.Parallel()
	db := storetest.OpenAt(t, storetest.File(t))
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
