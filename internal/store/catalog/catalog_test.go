package catalog

import (
	"strconv"
	"testing"

	"understudy/kit/lockwatch"
)

// BenchmarkRWMutex compares the catalog with one under a Mutex, if many goroutines look up kinds.
func BenchmarkRWMutex(b *testing.B) {
	x := New(nil, nil)
	for i := range 64 {
		x.kinds[kindName{"twilio", strconv.Itoa(i)}] = &Kind{}
	}
	b.Run("RWMutex", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				x.Kind("twilio", "7")
			}
		})
	})
	var mu lockwatch.Mutex
	find := func(source, kind string) *Kind {
		mu.Lock()
		defer mu.Unlock()
		return x.kinds[kindName{source, kind}]
	}
	b.Run("Mutex", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				find("twilio", "7")
			}
		})
	})
}
