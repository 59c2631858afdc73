// Package sample lets a long test run a part of its cases in `make test` and all of them in `make prove`.
package sample

import (
	"cmp"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// IsFullRun reports whether tests run all their cases, because UNDERSTUDY_PROVE is set.
func IsFullRun() bool { return os.Getenv("UNDERSTUDY_PROVE") != "" }

// Count returns full if UNDERSTUDY_PROVE is set, and usual otherwise. internal/house/steps.txt lists both numbers
// for each test.
func Count(usual, full int) int {
	if IsFullRun() {
		return full
	}
	return usual
}

// CountFrom returns the number in an environment variable that `make prove` sets, or usual if it is not set.
func CountFrom(variable string, usual int) int {
	n, _ := strconv.Atoi(os.Getenv(variable)) // 0 if the variable is not a number
	return cmp.Or(n, usual)
}

// Seed returns UNDERSTUDY_SEED, or a new seed. It logs the seed, so that a failure can be repeated.
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

// OneIn returns a function that reports whether to run the next case of a test. The test calls it before each case. It
// chooses one case in n by Seed, or all cases if UNDERSTUDY_PROVE is set. Only one goroutine may call the function.
func OneIn(t testing.TB, n int) func() bool {
	t.Helper()
	if IsFullRun() {
		return func() bool { return true }
	}
	chance := rand.New(rand.NewPCG(Seed(t), uint64(n)))
	left := chance.IntN(n)
	return func() bool {
		if left--; left >= 0 {
			return false
		}
		left = n - 1 + chance.IntN(3) - 1 // a random step, because a fixed step might always skip the same cases
		return true
	}
}
