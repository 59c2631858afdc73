// What it costs to know what is covered.

package crawl

import "testing"

func BenchmarkCovered(b *testing.B) {
	w := newWorld(b)
	x := w.walker(Settings{})
	m := kindState{V: stateVersion, Keep: true, ListsWalkedAt: 1, CaughtUp: 1 << 30}
	for i := range int64(maxPartitions) {
		m.Spans = m.Spans.add(i*100, (i+1)*100, i+1)
	}
	m.Spans = m.Spans.add(minClock, 0, 1).add(maxPartitions*100, maxClock, 1)
	x.walks["post/letters"].state.Store(&m)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := x.Coverage("post", "letters", "", "", 0, 0); !ok {
			b.Fatal("not covered")
		}
	}
}
