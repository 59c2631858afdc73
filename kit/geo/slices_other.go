//go:build !amd64

// Without vectors.

package geo

const (
	hasVectors = false
	width      = 1
)

func atan2One(_, _ float64) float64 { return 0 }

func atan2Vector(_, _, _ []float64) int { return 0 }

func legsVector(_, _ []float64, _ *origin, _, _ []float64) int { return 0 }

func courseVector(_, _ []float64, _ *origin, _, _ []float64) int { return 0 }
