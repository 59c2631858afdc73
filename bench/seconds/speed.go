package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"
)

// reference is how long sorting takes on a quiet machine with two cores. On that machine `make test` may take 14 minutes.
const reference = 100 * time.Millisecond

// slower is the beginning of a line with a measured speed.
const slower = "slower\t"

// sorting is a fixed amount of work for two cores. Each core shuffles and sorts one million numbers.
func sorting() time.Duration {
	began := time.Now()
	var both sync.WaitGroup
	for seed := range uint64(2) {
		both.Go(func() {
			numbers := rand.New(rand.NewPCG(seed, 1)).Perm(1_000_000)
			slices.Sort(numbers)
		})
	}
	both.Wait()
	return time.Since(began)
}

// measure stores how many times slower than the reference this machine is now, as the median of nine rounds.
func measure(keep string) error {
	rounds := make([]time.Duration, 9)
	for i := range rounds {
		rounds[i] = sorting()
	}
	slices.Sort(rounds)
	file, err := os.OpenFile(keep, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(file, "%s%.2f\n", slower, rounds[4].Seconds()/reference.Seconds()); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// allowed returns the maximum time for `make test` on this machine. A slow machine gets up to twice as much time; a fast
// machine does not get less.
func allowed(most time.Duration, speeds []float64) time.Duration {
	if len(speeds) == 0 {
		return most
	}
	sum := 0.0
	for _, s := range speeds {
		sum += s
	}
	factor := min(max(sum/float64(len(speeds)), 1), 2)
	return time.Duration(float64(most) * factor).Round(time.Second)
}
