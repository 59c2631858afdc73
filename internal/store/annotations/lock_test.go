package annotations

import (
	"strconv"
	"testing"

	"understudy"
	"understudy/kit/lockwatch"
)

// BenchmarkRWMutex compares the book with one under a Mutex: goroutines look up records while one reads all annotations of a kind.
func BenchmarkRWMutex(b *testing.B) {
	book := &Book{byPlace: map[place]*understudy.Annotation{}}
	for i := range 10_000 {
		book.byPlace[place{"twilio", "calls", strconv.Itoa(i)}] = &understudy.Annotation{}
	}
	var mu lockwatch.Mutex
	for name, lock := range map[string][2]func(){"RWMutex": {func() {}, func() {}}, "Mutex": {mu.Lock, mu.Unlock}} {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(p *testing.PB) {
				for n := 0; p.Next(); n++ {
					lock[0]()
					if n%1000 == 0 {
						book.Annotations("twilio", "calls")
					} else {
						book.Annotation("twilio", "calls", "7")
					}
					lock[1]()
				}
			})
		})
	}
}
