//go:build unix

// The price of a page: lists of calls and messages, from request to the bytes of the answer.
package slowapi_test

import (
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

// cpu returns the time this process has computed for, which other processes do not lengthen.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // never fails with these arguments
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func BenchmarkListPage(b *testing.B) {
	s, err := slowapi.New(slowapi.Options{Records: 100_000})
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []string{"Calls", "Messages"} {
		for _, size := range []string{"50", "1000"} {
			b.Run(kind+size, func(b *testing.B) {
				b.ReportAllocs()
				began := cpu()
				for i := range b.N {
					target := root + "/" + kind + ".json?PageSize=" + size + "&Page=" + strconv.Itoa(i%50)
					if w := slowapitest.Serve(s, target); w.Code != http.StatusOK {
						b.Fatalf("%s: %d", target, w.Code)
					}
				}
				b.ReportMetric(float64(cpu()-began)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
