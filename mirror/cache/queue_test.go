package cache

import (
	"testing"

	"understudy/internal/checktest"
)

// TestGhostsAreBounded: hashes that are evicted and come back again and again take no more memory than others. A hash that was
// taken and added again is forgotten only after all that were added before it.
func TestGhostsAreBounded(t *testing.T) {
	g := ghosts{seen: map[uint64]int{}}
	for range 10_000 {
		g.add(1, 100)
		checktest.MustTrue(t, g.take(1), "a hash is forgotten at once")
		checktest.MustTrue(t, !g.take(1), "a taken hash is remembered")
	}
	checktest.True(t, g.cost() <= 2*100*ghostCost, "hashes that come back take %d bytes", g.cost())
	g = ghosts{seen: map[uint64]int{}}
	g.add(1, 100)
	g.take(1)
	for n := range uint64(99) {
		g.add(2+n, 100)
	}
	g.add(1, 100) // its first place is beyond the limit now
	for n := range uint64(99) {
		g.add(200+n, 100)
	}
	checktest.True(t, g.take(1), "a hash is forgotten before 100 others were added")
	for n := range uint64(1000) {
		g.add(1000+n, 100)
	}
	checktest.Equal(t, len(g.seen), 100, "remembered hashes")
	checktest.True(t, !g.take(200), "an old hash is remembered")
}
