// Processes that are killed under load.

package nodes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// resumeTime is how long polls and full syncs of a killed process may rest.
const resumeTime = 5 * time.Second

// TestKilledNodeFailsNoReadOfTheOthers: random processes are killed at random moments, and started again. The others answer
// every read, and poll and sync what the killed process did. Nothing is lost that was answered as written, and all processes
// have the same changes. One process at a time writes the table of messages, which in the end has all of them.
func TestKilledNodeFailsNoReadOfTheOthers(t *testing.T) {
	t.Parallel()
	kills := sample.Count(4, 200)
	// A walk through 3000 calls, one with each request, takes longer than the time after which it begins anew.
	tables := newReports(t)
	g := &group{records: "3000", more: "sync: {page: 1, sweep: 10s}\n", polls: "[messages]", mirror: "{newest: 1s}",
		source: "sync: [calls], " + tables.source()}
	g.start(t, 3, databases.Database(t))
	tables.noteWriters(t)
	random := rig.Random(t)
	lists := []string{"/Messages.json?", "/Calls.json?"}
	count := func() (n [2]int) {
		for target, times := range rig.ReadAPIStats(t, g.api).ByTarget {
			for i, list := range lists {
				if strings.Contains(target, list) {
					n[i] += times
				}
			}
		}
		return n
	}
	awaitLists := func(patience time.Duration) time.Duration {
		t.Helper()
		began, before := time.Now(), count()
		rig.AwaitFor(t, patience, func() string {
			for i, n := range count() {
				if n == before[i] {
					return fmt.Sprintf("no request upstream for %s since %v", lists[i], time.Since(began))
				}
			}
			return ""
		})
		return time.Since(began)
	}
	awaitLists(rig.Patience)
	l := startLoad(t, g, random, sample.Count(1, 3))
	var longest time.Duration
	awaited := 0
	for i := 0; i < kills && !t.Failed(); i++ {
		rig.Pause(t.Context(), time.Duration(random.IntN(300))*time.Millisecond)
		victim := random.IntN(len(g.nodes))
		l.places[victim].set(nil).Kill()
		if i%4 == 0 {
			awaited, longest = awaited+1, max(longest, awaitLists(resumeTime))
		}
		g.restart(t, l.places[victim], victim)
	}
	l.check()
	writers := tables.check(t, l)
	checktest.True(t, writers > kills/20, "%d sessions have written the table", writers) // many end without a write in their time
	t.Logf("%d kills: %d reads, the slowest %v, %d stale; %d writes, %d of them refused, %d texts kept; %d requests ended with their process; %d sessions wrote "+
		"the table; after %d kills polls and syncs were awaited, at most %v", kills, l.reads.Load(), time.Duration(l.slowest.Load()),
		l.stale.Load(), l.writes.Load(), l.refused.Load(),
		len(l.written), l.ended.Load(), writers, awaited, longest)
}

// restart starts a process that was killed.
func (g *group) restart(t *testing.T, p *place, node int) {
	t.Helper()
	rig.ChooseLane(t, g.dirs[node])
	s, err := binary.Start(rig.Program, g.dirs[node], "serve")
	checktest.MustNoError(t, err, "start it again")
	t.Cleanup(func() { checktest.NoError(t, s.Stop(), "stop") })
	g.nodes[node] = s
	p.set(s)
}
