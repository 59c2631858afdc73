package onlinestat_test

import (
	"fmt"
	"sync"

	"understudy/kit/onlinestat"
)

func Example() {
	times := onlinestat.NewSharded()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 25 {
				times.Add(float64(worker*25 + i + 1)) // milliseconds, say
			}
		})
	}
	wg.Wait()
	s := times.Stat()
	fmt.Printf("%d: mean %.1f, deviation %.2f, range %.0f, p99 within 0.8 %%: %.1f\n", s.Count(), s.Average(), s.Deviation(), s.Range(),
		s.Quantile(0.99))
	// Output: 100: mean 50.5, deviation 29.01, range 99, p99 within 0.8 %: 99.5
}
