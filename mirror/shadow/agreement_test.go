package shadow

import (
	"testing"

	"understudy/internal/checktest"
)

// TestOneDifferenceTurnsAListBack: equal samples in a row turn a list to its records, equal refusals are not among
// them, and one difference turns it back and begins anew.
func TestOneDifferenceTurnsAListBack(t *testing.T) {
	var l List
	for range 2 {
		for n := range SamplesNeeded {
			if l.count(difference{}, false) {
				t.Fatal("a refusal turned it")
			}
			if turned := l.count(difference{}, true); turned != (n == SamplesNeeded-1) || l.IsRecordsFirst() != turned {
				t.Fatalf("after %d equal samples: turned %v, records first %v", n+1, turned, l.IsRecordsFirst())
			}
		}
		for _, turns := range []bool{true, false} {
			checktest.MustEqual(t, l.count(difference{Field: "price"}, true), turns,
				`after a difference: l.count(difference{Field: "price"}, true)`)
			checktest.MustTrue(t, !l.IsRecordsFirst(), "after a difference: l.IsRecordsFirst() is true")
			checktest.MustTrue(t, !l.HasEqualSample(), "after a difference: l.HasEqualSample() is true")
		}
	}
	a := l.agreement
	checktest.Equal(t, a.All, 2*(2*SamplesNeeded+2), "a.All")
	checktest.Equal(t, a.Differing, 4, "a.Differing")
	checktest.Equal(t, a.Last.Field, "price", "a.Last.Field")
}
