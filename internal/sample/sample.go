// Package sample lets a long test run a part of its cases in `make test` and
// all of them in `make prove`.
package sample

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Whole reports whether the test runs all its cases: UNDERSTUDY_PROVE is set.
func Whole() bool { return os.Getenv("UNDERSTUDY_PROVE") != "" }

// Seed is UNDERSTUDY_SEED, or a new one. It is logged, so that a failure can be
// repeated.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("UNDERSTUDY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("UNDERSTUDY_SEED: %v", err)
		}
	}
	t.Logf("UNDERSTUDY_SEED=%d", seed)
	return seed
}

// OneIn gives a function that says of each case, as it comes, whether it is
// run: all of them with UNDERSTUDY_PROVE, else one in n, chosen by Seed. It is
// for one goroutine.
func OneIn(t testing.TB, n int) func() bool {
	t.Helper()
	if Whole() {
		return func() bool { return true }
	}
	chance := rand.New(rand.NewPCG(Seed(t), uint64(n)))
	left := chance.IntN(n)
	return func() bool {
		if left--; left >= 0 {
			return false
		}
		left = n - 1 + chance.IntN(3) - 1 // a fixed step might always miss the same cases
		return true
	}
}
