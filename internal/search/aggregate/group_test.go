package aggregate

import (
	"math/big"
	"testing"

	"understudy/internal/checktest"
)

// What is taken out of a group leaves nothing, a value that fits in no cell included; what two groups hold is the same
// as what one does.
func TestGroupsGiveBackWhatTheyTook(t *testing.T) {
	t.Parallel()
	large, _ := new(big.Rat).SetString("123456789012345678901234567890.0000001")
	values := []value{{millionths: 1_500_000, present: true}, {large: large, present: true}, {}, {millionths: -250_000, present: true}}
	var one, left, right group
	for i, v := range values {
		one.add(v, 1, true)
		[]*group{&left, &right}[i%2].add(v, 1, true)
	}
	left.merge(&right)
	want := "123456789012345678901234567891.2500001"
	for _, g := range []*group{&one, &left} {
		got := Decimal(g.valueSum())
		checktest.Equal(t, got, want, "got")
		checktest.Equal(t, g.rows, 4, "g.rows; got %s", got)
		checktest.Equal(t, g.values, 3, "g.values; got %s", got)
		for i, v := range values {
			if rows := g.add(v, -1, true); rows != int64(len(values)-1-i) {
				t.Errorf("%d rows are left", rows)
			}
		}
		checktest.Equal(t, g.valueSum().Sign(), 0, "g.total().Sign()")
		checktest.Equal(t, g.values, 0, "g.values")
		checktest.Equal(t, len(g.durations), 0, "len(g.times)")
	}
}
