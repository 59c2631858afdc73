// Slices: arc tangents, distances and bearings of many points at once.

package geo

// chunk is the number of points whose triangles are computed before their angles are.
const chunk = 256

// FillAtan2 sets each element of dst to the arc tangent of y/x, as Atan2 does. All slices must have the same length. dst may be y or x.
func FillAtan2(dst, y, x []float64) {
	y, x = y[:len(dst)], x[:len(dst)]
	for i := 0; i < len(dst); {
		if hasVectors {
			i += atan2Vector(dst[i:], y[i:], x[i:])
		}
		// The vectors stop before a special case, and before the last elements. Without vectors this is all.
		end := len(dst)
		if hasVectors {
			end = min(i+width, end)
		}
		for ; i < end; i++ {
			dst[i] = Atan2(y[i], x[i])
		}
	}
}

// FillDistances sets each element of dst to the distance in metres from one point to the point with this latitude and longitude,
// as DistanceTo does. All slices must have the same length. dst may be lat or lon.
func FillDistances(dst []float64, from Point, lat, lon []float64) {
	var y, x [chunk]float64
	at := newOrigin(from)
	for lat, lon = lat[:len(dst)], lon[:len(dst)]; len(dst) > 0; {
		n, i := min(len(dst), chunk), 0
		if hasVectors {
			i = legsVector(y[:n], x[:n], &at, lat, lon)
		}
		for ; i < n; i++ {
			y[i], x[i] = legs(from, Point{lat[i], lon[i]})
		}
		FillAtan2(dst[:n], y[:n], x[:n])
		for i, angle := range dst[:n] {
			dst[i] = 2 * EarthRadius * angle
		}
		dst, lat, lon = dst[n:], lat[n:], lon[n:]
	}
}

// FillBearings sets each element of dst to the direction in degrees from one point to the point with this latitude and longitude, as
// BearingTo does. All slices must have the same length. dst may be lat or lon.
func FillBearings(dst []float64, from Point, lat, lon []float64) {
	var y, x [chunk]float64
	at := newOrigin(from)
	for lat, lon = lat[:len(dst)], lon[:len(dst)]; len(dst) > 0; {
		n, i := min(len(dst), chunk), 0
		if hasVectors {
			i = courseVector(y[:n], x[:n], &at, lat, lon)
		}
		for ; i < n; i++ {
			y[i], x[i] = course(from, Point{lat[i], lon[i]})
		}
		FillAtan2(dst[:n], y[:n], x[:n])
		for i, angle := range dst[:n] {
			dst[i] = convertToCompass(angle)
		}
		dst, lat, lon = dst[n:], lat[n:], lon[n:]
	}
}

// origin is the point from which distances and bearings are computed, with the sine and the cosine of its latitude.
type origin struct{ lat, lon, sin, cos float64 }

func newOrigin(p Point) origin { return origin{p.Lat, p.Lon, sinDegrees(p.Lat), cosDegrees(p.Lat)} }
