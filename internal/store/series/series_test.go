// Series: samples are kept as they were written, the oldest go, and an erased series
// leaves nothing.

package series_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

var (
	balance = understudy.Series{Source: "acme", Kind: "balance", Field: "left"}
	noon    = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
)

func open(t *testing.T, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func add(t *testing.T, db *store.DB, s understudy.Series, at time.Time, value string) {
	t.Helper()
	if err := db.Series.AddSamples(t.Context(), s, understudy.Sample{At: at, Value: value}); err != nil {
		t.Fatal(err)
	}
}

func TestSamplesAreAsTheyWereWritten(t *testing.T) {
	path := storetest.File(t)
	db := open(t, path)
	values := []string{"19.58189", "19.580", "-0.000000000000000000001", "1e3", "12345678901234567890.12"}
	for i, v := range values {
		add(t, db, balance, noon.Add(time.Duration(i)*time.Hour), v)
	}
	add(t, db, balance, noon, "7") // the first of a time stays
	other := balance
	other.Source = "other"
	add(t, db, other, noon, "1")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, path).Series.ReadSamples(t.Context(), balance)
	if err != nil || len(got) != len(values) {
		t.Fatalf("%v, %v", got, err)
	}
	for i, one := range got {
		if one.Value != values[i] || !one.At.Equal(noon.Add(time.Duration(i)*time.Hour)) {
			t.Errorf("%d: %v", i, one)
		}
	}
}

// TestTheOldestGo: of one more than may be kept the oldest goes, and of no other series.
func TestTheOldestGo(t *testing.T) {
	db := open(t, storetest.File(t))
	other := balance
	other.Field = "used"
	add(t, db, other, noon, "1")
	var many []understudy.Sample
	for i := range understudy.MaxSamples + 1 {
		many = append(many, understudy.Sample{At: noon.Add(time.Duration(i) * time.Second), Value: fmt.Sprint(i)})
	}
	if err := db.Series.AddSamples(t.Context(), balance, many...); err != nil {
		t.Fatal(err)
	}
	add(t, db, balance, noon.Add(24*time.Hour), "newest")
	got, err := db.Series.ReadSamples(t.Context(), balance)
	checktest.MustNoError(t, err, "")
	checktest.MustEqual(t, len(got), understudy.MaxSamples, "len(got)")
	checktest.MustEqual(t, got[0].Value, "2", "got[0].Value")
	if left, err := db.Series.ReadSamples(t.Context(), other); err != nil || len(left) != 1 {
		t.Errorf("of the other %v, %v", left, err)
	}
}

// TestForgottenSamplesLeaveNothing: not a byte of them is in the files.
func TestForgottenSamplesLeaveNothing(t *testing.T) {
	path := storetest.File(t)
	db := open(t, path)
	const secret = "424242.31337"
	add(t, db, balance, noon, secret)
	other := balance
	other.Kind = "quota"
	add(t, db, other, noon, "1")
	if gone, err := db.Series.ForgetSamples(t.Context(), "acme", "balance"); err != nil || gone != 1 {
		t.Fatalf("%d, %v", gone, err)
	}
	if got, err := db.Series.ReadSamples(t.Context(), balance); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if left, err := db.Series.ReadSamples(t.Context(), other); err != nil || len(left) != 1 {
		t.Errorf("of another kind: %v, %v", left, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), secret) {
		t.Errorf("the file still has it: %v", err)
	}
}

func TestOddSamplesAreRefused(t *testing.T) {
	db := open(t, storetest.File(t))
	for _, one := range []understudy.Sample{{At: noon}, {Value: "1"}, {At: noon, Value: strings.Repeat("1", 65)}} {
		if err := db.Series.AddSamples(t.Context(), balance, one); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%v: %v", one, err)
		}
	}
}
