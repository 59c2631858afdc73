package shadow

import "testing"

// TestOneDifferenceTurnsAListBack: equal samples in a row turn a list to its records, equal refusals are not among
// them, and one difference turns it back and begins anew.
func TestOneDifferenceTurnsAListBack(t *testing.T) {
	var l List
	for range 2 {
		for n := range Enough {
			if l.count(difference{}, false) {
				t.Fatal("a refusal turned it")
			}
			if turned := l.count(difference{}, true); turned != (n == Enough-1) || l.RecordsFirst() != turned {
				t.Fatalf("after %d equal samples: turned %v, records first %v", n+1, turned, l.RecordsFirst())
			}
		}
		for _, turns := range []bool{true, false} {
			if l.count(difference{Field: "price"}, true) != turns || l.RecordsFirst() || l.Compared() {
				t.Fatalf("after a difference: %+v, records first %v", l.agreement, l.RecordsFirst())
			}
		}
	}
	if a := l.agreement; a.All != 2*(2*Enough+2) || a.Differing != 4 || a.Last.Field != "price" {
		t.Errorf("%+v", a)
	}
}
