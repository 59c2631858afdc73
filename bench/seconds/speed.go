package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"
)

// reference is how long sorting takes on the machine of which `make test` may
// take 14 minutes: two cores, quiet.
const reference = 100 * time.Millisecond

// slower begins the line of one measured speed.
const slower = "slower\t"

// sorting is work of a fixed size for two cores: one million numbers each, put
// into an order of chance and sorted.
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

// measure keeps how many times slower than the reference this machine is now:
// the median of nine rounds.
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

// allowed is the most that `make test` may take on this machine: a slow machine
// is given more, up to twice as much, a fast one no less.
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
