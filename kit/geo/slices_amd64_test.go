package geo

import "testing"

// TestWithoutVectors runs the tests on the way that processors without AVX2 take.
func TestWithoutVectors(t *testing.T) {
	defer func(was bool) { hasVectors = was }(hasVectors)
	hasVectors = false
	t.Run("special", TestSpecialCasesAreThoseOfMath)
	t.Run("error", TestErrorIsBelowTwoUnits)
	t.Run("distances", TestDistancesAndBearings)
	t.Run("lengths", TestSlicesOfAnyLength)
}
