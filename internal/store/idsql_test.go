// IDs in a database: written as bytes or text, read back whichever it was.

package store

import (
	"bytes"
	"database/sql"
	"errors"
	"testing"

	"understudy"
)

type call struct{}

func (call) Prefix() string { return "CA" }

func TestIDsInSQL(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const hex, short, uuid = "ad91e02ba1474c47aa8c1f3c2240c0df", "rZHgK6FHTEeqjB88IkDA3w", "ad91e02b-a147-4c47-aa8c-1f3c2240c0df"
	id, ok := understudy.ParseID[call]("CA" + hex)
	one, also := understudy.ParseAnyID("CA" + hex)
	if !ok || !also {
		t.Fatal("not read")
	}
	raw, _ := id.MarshalBinary()
	long, _ := one.MarshalBinary()
	for _, c := range []struct {
		held        any
		typed, with bool // an ID reads it; an AnyID does
	}{
		{raw, true, false}, {long, true, true},
		{"CA" + hex, true, true}, {"CA" + short, true, true}, {[]byte("CA" + hex), true, true},
		{hex, true, false}, {short, true, false}, {uuid, true, false},
		{append([]byte("SM"), raw...), false, true}, {"SM" + hex, false, true},
		{raw[:15], false, false}, {append(bytes.Clone(raw), 0), false, false}, {"CA" + uuid, false, false}, {uuid[:35] + "-", false, false},
		{"ad91e02b-a147-4c47-aa8c_1f3c2240c0df", false, false}, {"CA" + hex + "0", false, false}, {int64(7), false, false}, {3.5, false, false},
	} {
		var got understudy.ID[call]
		err := db.QueryRow("SELECT ?", c.held).Scan(&got)
		if c.typed != (err == nil) || c.typed != (got == id) || err != nil && !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%v: read as %v, %v", c.held, got, err)
		}
		var some understudy.AnyID
		err = db.QueryRow("SELECT ?", c.held).Scan(&some)
		if c.with != (err == nil) || c.with != (some.Raw == one.Raw) || err != nil && !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%v: read as %v, %v", c.held, some, err)
		}
	}
	// NULL is an id for a pointer alone.
	var none *understudy.ID[call]
	var nothing *understudy.AnyID
	if err := db.QueryRow("SELECT NULL, NULL").Scan(&none, &nothing); err != nil || none != nil || nothing != nil {
		t.Error(none, nothing, err)
	}
	if err := db.QueryRow("SELECT ?, ?", raw, long).Scan(&none, &nothing); err != nil || *none != id || *nothing != one {
		t.Error(none, nothing, err)
	}
	if err := db.QueryRow("SELECT NULL").Scan(&id); !errors.Is(err, understudy.ErrInvalid) {
		t.Error(err)
	}
	if err := db.QueryRow("SELECT NULL").Scan(&one); !errors.Is(err, understudy.ErrInvalid) {
		t.Error(err)
	}
}
