// Numbers and times as cells hold them.

package columns

import (
	"fmt"
	"math/big"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// FuzzNumber: a number that a cell holds is the one that is written; one it does not hold is
// kept beside the cells, and what is no number is no value.
func FuzzNumber(f *testing.F) {
	for _, text := range []string{"-0.00750", "12", "+3.5", "2147.483647", "2147.483648", "-2147.483648", "-2147.483647", "0.0000001", "1e3",
		"-1e-3", ".5", "5.", "", "-", "1.2.3", "00000000000000000000000001", "0.1000000000000000000000", "99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		body := fmt.Appendf(nil, `{"n":%q}`, text)
		doc, err := jsonspan.Parse(body)
		if err != nil {
			t.Skip()
		}
		c := &Column{Field: &spec.Field{Name: "n", Type: spec.TypeDecimal}, Sort: Number, cells: []uint32{0}}
		unreadable := c.putValue(0, query.Find(body, doc, query.Field{Name: "n", Type: spec.TypeDecimal}))
		want, ok := query.ParseDecimal(text)
		n, odd, have := c.Millionths(0)
		if have != ok || unreadable != (!ok && text != "") {
			t.Fatalf("%q: a value %t, unreadable %t; it is a number: %t", text, have, unreadable, ok)
		}
		if !ok {
			return
		}
		got := big.NewRat(n, Scale)
		if odd != nil {
			got = odd
		}
		exact, _ := new(big.Rat).SetString(want.String())
		if got.Cmp(exact) != 0 {
			t.Fatalf("%q: %s", text, got)
		}
		if c.clear(0, unreadable); len(c.large) != 0 || c.unreadable != 0 {
			t.Fatalf("%q stays", text)
		}
	})
}

// A text that no row has any more is kept nowhere.
func TestWordsThatNobodyHasAreGone(t *testing.T) {
	t.Parallel()
	var w valueTable
	a, b := w.addReference([]byte(`"+15550100123"`)), w.addReference([]byte(`"+447700900123"`))
	checktest.MustEqual(t, w.addReference([]byte(`"+15550100123"`)), a, "w.add([]byte(`\"+15550100123\"`))")
	checktest.MustEqual(t, w.country[a], "US", "w.country[a]")
	checktest.MustEqual(t, w.country[b], "GB", "w.country[b]")
	w.release(a)
	w.release(b)
	checktest.MustEqual(t, w.text[b], "", "w.text[b]")
	checktest.MustEqual(t, w.raw[b], "", "w.raw[b]")
	checktest.MustEqual(t, len(w.codes), 1, "len(w.at)")
	c := w.addReference([]byte(`"failed"`))
	checktest.MustEqual(t, c, b, "%d: c", c)
	checktest.MustEqual(t, w.reuses, 1, "%d: w.reused", c)
	checktest.MustEqual(t, w.text[c], "failed", "%d: w.text[c]", c)
	checktest.MustEqual(t, w.country[c], "", "%d: w.country[c]", c)
}
