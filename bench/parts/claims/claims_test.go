package claims

import (
	"math"
	"math/rand/v2"
	"testing"

	"understudy/bench/rig"
)

// TestFusedAtan2 compares the measured function with package math's in all quadrants.
func TestFusedAtan2(t *testing.T) {
	for range 100_000 {
		y, x := rand.NormFloat64(), rand.NormFloat64()
		if got, want := fusedAtan2(y, x), math.Atan2(y, x); math.Abs(got-want) > 4e-16*max(1, math.Abs(want)) {
			t.Fatalf("atan2(%g, %g) is %g, want %g", y, x, got, want)
		}
	}
}

// TestNamesOfClaims allows names that are anchors of their headings.
func TestNamesOfClaims(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range all {
		if c.name == "" || seen[c.name] || c.systems == "" || c.says == "" || c.figure == "" {
			t.Errorf("claim %q is incomplete or there twice", c.name)
		}
		seen[c.name] = true
	}
}

// TestEncodingsAreEqual measures messages a few times. The experiment compares the bytes of the three encoders.
func TestEncodingsAreEqual(t *testing.T) {
	f, err := measureMessages(t.Context(), &rig.Run{Options: rig.Options{Quick: true}})
	if err != nil || f.ours == "" {
		t.Errorf("%q: %v", f.ours, err)
	}
}
