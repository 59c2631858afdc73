// What saving and loading cost.

package store_test

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"understudy"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// warmDB is a store with ten thousand calls.
func warmDB(b *testing.B) *store.DB {
	db := storetest.OpenAt(b, filepath.Join(b.TempDir(), "understudy.db"))
	for _, p := range storetest.Pages(storetest.NewWorld(99, 10_000), 50, storetest.Epoch) {
		if _, err := db.Save(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
	return db
}

func BenchmarkSaveNewPage(b *testing.B) {
	db := warmDB(b)
	w := storetest.NewWorld(7, 1<<30)
	n, bytes := 0, 0
	var used time.Duration
	// A yardstick for a machine that others use too: one zstd of the same page,
	// measured between the saves.
	yard, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		b.Fatal(err)
	}
	var packed []byte
	var measured time.Duration
	kernels := 0
	var pages []*understudy.Page
	b.ReportAllocs()
	start := storetest.CPUTime()
	for b.Loop() {
		if len(pages) == 0 {
			b.StopTimer()
			used += storetest.CPUTime() - start
			for range 50 {
				p, _ := w.List(50, n, n*50, storetest.Epoch)
				pages, n = append(pages, p), n+1
			}
			runtime.GC() // the garbage of making pages is not that of saving them
			start = storetest.CPUTime()
			for _, p := range pages {
				packed = yard.EncodeAll(p.Body, packed[:0])
			}
			measured, kernels = measured+storetest.CPUTime()-start, kernels+len(pages)
			start = storetest.CPUTime()
			b.StartTimer()
		}
		p := pages[0]
		pages = pages[1:]
		if _, err := db.Save(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		bytes += len(p.Body)
	}
	used += storetest.CPUTime() - start
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64(measured.Microseconds())/float64(kernels), "zstd-us/page")
	b.ReportMetric(float64(bytes)/float64(b.N), "body-B/op")
}

func BenchmarkSaveUnchangedPage(b *testing.B) {
	db := warmDB(b)
	p, _ := storetest.NewWorld(99, 10_000).List(50, 3, 150, storetest.Epoch)
	for b.Loop() {
		p.At = p.At.Add(time.Second)
		if _, err := db.Save(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPage(b *testing.B) {
	db := warmDB(b)
	pages := storetest.Pages(storetest.NewWorld(99, 10_000), 50, storetest.Epoch)
	for i := 0; b.Loop(); i++ {
		if _, err := db.ReadPage(b.Context(), pages[i%len(pages)].Key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	db := warmDB(b)
	w := storetest.NewWorld(99, 10_000)
	for i := 0; b.Loop(); i++ {
		if _, err := db.Record(b.Context(), storetest.Source, "calls", "calls", w.ID(i%w.N)); err != nil {
			b.Fatal(err)
		}
	}
}
