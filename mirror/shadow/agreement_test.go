package shadow

import "testing"

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
			if l.count(difference{Field: "price"}, true) != turns || l.IsRecordsFirst() || l.HasEqualSample() {
				t.Fatalf("after a difference: %+v, records first %v", l.agreement, l.IsRecordsFirst())
			}
		}
	}
	if a := l.agreement; a.All != 2*(2*SamplesNeeded+2) || a.Differing != 4 || a.Last.Field != "price" {
		t.Errorf("%+v", a)
	}
}
