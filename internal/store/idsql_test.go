// IDs in a database: written as bytes or text, read back whichever it was.

package store

import (
	"bytes"
	"database/sql"
	"errors"
	"testing"

	"understudy"
	"understudy/internal/checktest"
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
		checktest.Equal(t, c.typed, (err == nil), "%v: c.typed; got %v", c.held, got)
		checktest.Equal(t, c.typed, (got == id), "%v: c.typed; %v", c.held, err)
		checktest.True(t, !(err != nil && !errors.Is(err, understudy.ErrInvalid)),
			"%v: err != nil && !errors.Is(err, understudy.ErrInvalid); err is %v; got %v", c.held, err, got)
		var some understudy.AnyID
		err = db.QueryRow("SELECT ?", c.held).Scan(&some)
		checktest.Equal(t, c.with, (err == nil), "%v: c.with", c.held)
		checktest.Equal(t, c.with, (some.Raw == one.Raw), "%v: c.with; %v", c.held, err)
		checktest.True(t, !(err != nil && !errors.Is(err, understudy.ErrInvalid)),
			"%v: err != nil && !errors.Is(err, understudy.ErrInvalid); err is %v", c.held, err)
	}
	// NULL is an id for a pointer alone.
	var none *understudy.ID[call]
	var nothing *understudy.AnyID
	{
		err := db.QueryRow("SELECT NULL, NULL").Scan(&none, &nothing)
		checktest.MustNoError(t, err, "")
		checktest.MustTrue(t, none == nil, "none is %v", none)
		checktest.True(t, nothing == nil, "nothing is %v", nothing)
	}
	{
		err := db.QueryRow("SELECT ?, ?", raw, long).Scan(&none, &nothing)
		checktest.MustNoError(t, err, "")
		checktest.Equal(t, *none, id, "*none")
		checktest.Equal(t, *nothing, one, "*nothing")
	}
	if err := db.QueryRow("SELECT NULL").Scan(&id); !errors.Is(err, understudy.ErrInvalid) {
		t.Error(err)
	}
	if err := db.QueryRow("SELECT NULL").Scan(&one); !errors.Is(err, understudy.ErrInvalid) {
		t.Error(err)
	}
}
