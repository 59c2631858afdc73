package geo_test

import (
	"fmt"

	"understudy/kit/geo"
)

func Example() {
	sanFrancisco := geo.Point{Lat: 37.8, Lon: -122.4}
	// Oakland, New York and Tokyo
	lat, lon := []float64{37.8, 40.7, 35.7}, []float64{-122.3, -74, 139.7}
	miles, bearings := make([]float64, len(lat)), make([]float64, len(lat))
	geo.FillDistances(miles, sanFrancisco, lat, lon)
	geo.FillBearings(bearings, sanFrancisco, lat, lon)
	for i := range miles {
		fmt.Printf("%.1f miles, bearing %.1f\n", miles[i]/geo.MetersPerMile, bearings[i])
	}
	// Output:
	// 5.5 miles, bearing 90.0
	// 2564.6 miles, bearing 70.0
	// 5138.3 miles, bearing 303.4
}
