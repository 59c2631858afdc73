// Geo: arc tangents, distances and bearings, one at a time.

// Package geo computes arc tangents, and distances and bearings on a sphere, one at a time and for whole slices.
//
// On amd64 Atan2 and the functions on slices use AVX2 and FMA where the processor has both. Results with and without them may
// differ in the last bit. The method is that of the Cephes library (S. Moshier), but without branches and with
// one division: the argument is reduced by one of eight octants, and a polynomial computes the rest.
package geo

import "math"

// EarthRadius is the mean radius of the earth in metres (Moritz, Geodetic Reference System 1980).
const EarthRadius = 6371008.8

// MetersPerMile is the length of an international mile in metres.
const MetersPerMile = 1609.344

// Point is a place on the earth. Lat is the latitude from -90 to 90 degrees, and Lon is the longitude from -180 to 180 degrees.
type Point struct{ Lat, Lon float64 }

// IsValid reports whether the latitude and the longitude are within their ranges. It returns false if one of them is NaN.
func (p Point) IsValid() bool { return math.Abs(p.Lat) <= 90 && math.Abs(p.Lon) <= 180 }

const (
	signBit = 1 << 63
	// tooLarge is the number 2^1022. The sum of two numbers below it does not overflow.
	tooLarge = 0x1p1022

	quarter = math.Pi / 4
	radians = math.Pi / 180 // a degree
)

// The polynomials approximate (atan(√z)/√z - 1)/z for z from 0 to 0.25 and (sin(√z)/√z - 1)/z for z up to (π/2)², so that atan and sin
// have relative errors below 2^-61. tools/remez computes them.
const (
	a0, a1, a2, a3   = -0.33333333333333315, 0.1999999999999324, -0.14285714284958087, 0.11111111068417637
	a4, a5, a6, a7   = -0.090909076654165935, 0.076922769985687423, -0.066662179893293941, 0.058777627730166891
	a8, a9, a10, a11 = -0.052297701903774828, 0.045885553408612147, -0.037097598303354858, 0.023625903401816875
	a12              = -0.0083479526286926019

	s0, s1, s2, s3 = -0.16666666666666666, 0.0083333333333331944, -0.00019841269841209205, 2.7557319211134692e-06
	s4, s5, s6, s7 = -2.5052106872559184e-08, 1.6058939693368267e-10, -7.642991155597864e-13, 2.7211713716919033e-15
)

// octant says how a reduced arc tangent becomes an angle: high + (low ± atangent). high + low is a multiple of π/4.
type octant struct {
	shift     float64 // 1 if π/4 was subtracted from the angle, else 0
	high, low float64
	flip      uint64 // the sign bit if the angle falls while the tangent rises
}

// octants has an entry for each octant: 1 if the tangent is above a half, plus 2 if |y| > |x|, plus 4 if x is negative.
var octants = [8]octant{
	newOctant(0, 0, 0), newOctant(1, 1, 0), newOctant(0, 2, signBit), newOctant(1, 1, signBit),
	newOctant(0, 4, signBit), newOctant(1, 3, signBit), newOctant(0, 2, 0), newOctant(1, 3, 0),
}

// quarterLow is what π/4 has beyond the precision of a float64.
const quarterLow = 3.061616997868383e-17

func newOctant(shift, quarters float64, flip uint64) octant {
	high := quarters * quarter
	return octant{shift, high, math.FMA(quarters, quarter, -high) + quarters*quarterLow, flip}
}

// Atan2 returns the angle of the point (x, y) as math.Atan2 does, with the same results in all special cases. Its error is at most 2
// units in the last place. The result always has the sign of y; math.Atan2 loses it if y/x is too small and x is negative.
func Atan2(y, x float64) float64 {
	yBits, xBits := math.Float64bits(y), math.Float64bits(x)
	a, b := yBits&^signBit, xBits&^signBit
	least, most := min(a, b), max(a, b)
	if most-1 >= tooLargeBits-1 {
		return atan2Special(y, x)
	}
	if hasVectors {
		return atan2One(y, x)
	}
	n, d := math.Float64frombits(least), math.Float64frombits(most)
	// A difference of two of these bit patterns is negative if the second number is larger. A branch would often be mispredicted.
	i := xBits>>63<<2 | (b-a)>>63<<1 | (math.Float64bits(d*0.5)-least)>>63
	o := &octants[i&7]
	t := (n - o.shift*d) / (d + o.shift*n)
	t = math.Float64frombits(math.Float64bits(t) ^ o.flip)
	z := t * t
	z2 := z * z
	z4 := z2 * z2
	p := (a0 + a1*z + (a2+a3*z)*z2) + (a4+a5*z+(a6+a7*z)*z2)*z4 + (a8+a9*z+(a10+a11*z)*z2+a12*z4)*(z4*z4)
	sum := o.high + t
	r := sum + (o.high - sum + t + (o.low + t*z*p)) // o.high - sum + t is what the sum lost
	return math.Float64frombits(math.Float64bits(r) | yBits&signBit)
}

const tooLargeBits = 0x7fd << 52 // the bits of tooLarge

// atan2Special computes the angle if both numbers are zero, or one of them is very large, infinite or NaN.
func atan2Special(y, x float64) float64 {
	if math.IsInf(y, 0) || math.IsInf(x, 0) || x != x || y != y || x == 0 && y == 0 {
		return math.Atan2(y, x)
	}
	return Atan2(y/4, x/4)
}

// sinDegrees returns the sine of an angle from -90 to 90 degrees.
func sinDegrees(angle float64) float64 {
	r := angle * radians
	z := r * r
	p := s0 + z*(s1+z*(s2+z*(s3+z*(s4+z*(s5+z*(s6+z*s7))))))
	return r + r*z*p
}

func cosDegrees(angle float64) float64 { return sinDegrees(90 - math.Abs(angle)) }

// legs returns the legs y and x of a right triangle. Its angle at the origin is half the angle between two points, as seen
// from the centre of the earth. x is the other leg of the haversine formula, computed for the antipode. So neither of them
// loses precision, at any distance.
func legs(from, to Point) (y, x float64) {
	across, along := (to.Lon-from.Lon)/2, (to.Lat-from.Lat)/2
	cosines := cosDegrees(from.Lat) * cosDegrees(to.Lat)
	sLat, sLon := sinDegrees(along), sinDegrees(fold(across))
	mLat, cLon := sinDegrees((to.Lat+from.Lat)/2), cosDegrees(fold(across))
	return math.Sqrt(sLat*sLat + cosines*(sLon*sLon)), math.Sqrt(mLat*mLat + cosines*(cLon*cLon))
}

// fold returns the angle from 0 to 90 degrees that has the same sine as the amount of an angle up to 180 degrees.
func fold(angle float64) float64 {
	angle = math.Abs(angle)
	return min(angle, 180-angle)
}

// DistanceTo returns the length of the great circle from p to q in metres. Both must be valid.
func (p Point) DistanceTo(q Point) float64 {
	y, x := legs(p, q)
	return 2 * EarthRadius * Atan2(y, x)
}

// course returns the components to the east and to the north of the direction from one point to another, both halved.
func course(from, to Point) (east, north float64) {
	across, along := (to.Lon-from.Lon)/2, (to.Lat-from.Lat)/2
	sLon, c := sinDegrees(fold(across)), cosDegrees(to.Lat)
	east = math.Copysign(sLon, across) * sinDegrees(90-math.Abs(across)) * c
	north = sinDegrees(along)*cosDegrees(along) + sinDegrees(from.Lat)*c*(sLon*sLon)
	return east, north
}

// BearingTo returns the direction in which the great circle from p to q begins: 0 is north, 90 is east, and all results are
// below 360. Both points must be valid. If they are equal or opposite, the result has no meaning.
func (p Point) BearingTo(q Point) float64 { return convertToCompass(Atan2(course(p, q))) }

func convertToCompass(angle float64) float64 {
	angle *= 180 / math.Pi
	if angle < 0 {
		angle += 360
	}
	if angle == 360 { // a small negative angle was rounded
		return 0
	}
	return angle
}
