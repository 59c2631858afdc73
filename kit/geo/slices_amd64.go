// Vectors of AVX2 with FMA, and how to detect them.

package geo

// width is the number of float64 in a vector.
const width = 4

// hasVectors is true if the processor has AVX2 and FMA, and the system saves their registers. It is set once, at the start.
var hasVectors = hasAVX2()

// constants has what the assembly reads, each number once for each element of a vector. slices_amd64.s names the entries.
//
//lint:ignore U1000 the assembly reads it
var constants = repeat(
	0, 1, 2, 4, 0.5, quarter, quarterLow, tooLarge, 90, 180, radians,
	a12, a11, a10, a9, a8, a7, a6, a5, a4, a3, a2, a1, a0,
	s7, s6, s5, s4, s3, s2, s1, s0,
)

// repeat returns a table of 32 constants.
func repeat(numbers ...float64) (table [32][width]float64) {
	for i, number := range numbers {
		for j := range width {
			table[i][j] = number
		}
	}
	return table
}

// hasAVX2 reports whether AVX2 and FMA can be used (Intel, Software Developer's Manual, volume 1, 14.7.1).
func hasAVX2() bool {
	const (
		fma, osxsave, avx = 1 << 12, 1 << 27, 1 << 28 // leaf 1, ECX
		avx2              = 1 << 5                    // leaf 7, EBX
		registers         = 6                         // XCR0: the system saves XMM and YMM
	)
	if most, _, _ := cpuid(0, 0); most < 7 {
		return false
	}
	_, _, c := cpuid(1, 0)
	if c&fma == 0 || c&osxsave == 0 || c&avx == 0 || xgetbv()&registers != registers {
		return false
	}
	_, b, _ := cpuid(7, 0)
	return b&avx2 != 0
}

// cpuid returns the registers EAX, EBX and ECX of a leaf of the instruction CPUID.
func cpuid(leaf, part uint32) (a, b, c uint32)

// xgetbv returns the lower half of the register XCR0.
func xgetbv() uint32

// atan2One computes the arc tangent of two numbers below tooLarge, of which one is not zero.
//
//go:noescape
func atan2One(y, x float64) float64

// atan2Vector computes arc tangents four at a time. It stops before the first four of which one is a special case, and returns how
// many it has computed.
//
//go:noescape
func atan2Vector(dst, y, x []float64) int

// legsVector computes the legs of all points but those behind the last multiple of four, whose number it returns.
//
//go:noescape
func legsVector(y, x []float64, from *origin, lat, lon []float64) int

// courseVector computes the courses to all points but those behind the last multiple of four, whose number it returns.
//
//go:noescape
func courseVector(y, x []float64, from *origin, lat, lon []float64) int
