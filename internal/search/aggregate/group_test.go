package aggregate

import (
	"math/big"
	"testing"
)

// What is taken out of a group leaves nothing, a value that fits in no cell included; what two groups hold is the same
// as what one does.
func TestGroupsGiveBackWhatTheyTook(t *testing.T) {
	t.Parallel()
	large, _ := new(big.Rat).SetString("123456789012345678901234567890.0000001")
	values := []value{{millionths: 1_500_000, ok: true}, {odd: large, ok: true}, {}, {millionths: -250_000, ok: true}}
	var one, left, right group
	for i, v := range values {
		one.add(v, 1, true)
		[]*group{&left, &right}[i%2].add(v, 1, true)
	}
	left.merge(&right)
	want := "123456789012345678901234567891.2500001"
	for _, g := range []*group{&one, &left} {
		if got := Decimal(g.total()); got != want || g.rows != 4 || g.values != 3 {
			t.Errorf("%s of %d values in %d rows, want %s", got, g.values, g.rows, want)
		}
		for i, v := range values {
			if rows := g.add(v, -1, true); rows != int64(len(values)-1-i) {
				t.Errorf("%d rows are left", rows)
			}
		}
		if g.total().Sign() != 0 || g.values != 0 || len(g.times) != 0 {
			t.Errorf("%s of %d values is left, and %v", Decimal(g.total()), g.values, g.times)
		}
	}
}
