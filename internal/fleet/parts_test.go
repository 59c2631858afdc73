package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/fleet"
	"understudy/internal/sample"
	"understudy/internal/store/nodes"
	"understudy/upstream/throttle"
)

// division is a table of nodes in memory, and the nodes on it. It has one budget with a number of parts.
type division struct {
	fakeTable
	t      *testing.T
	parts  int
	text   string
	writes int64
	now    time.Time
	nodes  []*member
}

// member is a node and its budget.
type member struct {
	*fleet.Fleet
	*throttle.Breaker
	table    *division
	id       string
	isAlive  bool         // whether its lease lasts
	snapshot []nodes.Node // what its last renewal has read; nil if it was used
	needs    int
	used     int
	has      int
	isValid  func() bool // nil before it has joined
}

func (m *member) Demand() (all, needed int) { return m.table.parts, m.needs }

func (m *member) SetParts(count, _ int, isValid func() bool) (used int) {
	m.has, m.isValid = count, isValid
	return m.used
}

// limit returns how many requests the node may be running.
func (m *member) limit() int {
	if !m.isAlive || m.isValid == nil || !m.isValid() {
		return 0
	}
	return max(m.has, m.used)
}

func (d *division) ReplaceParts(_ context.Context, writes int64, parts string) (bool, error) {
	d.check()
	if writes != d.writes {
		return false, nil
	}
	d.text, d.writes = parts, writes+1
	d.check()
	return true, nil
}

// check fails the test if the nodes together may use more than there is, or one may use more than the database says.
func (d *division) check() {
	var table map[string][]struct {
		Node string
		Has  int
	}
	checktest.MustNoError(d.t, json.Unmarshal([]byte(d.text), &table), "read the table")
	says := map[string]int{}
	for _, h := range table["api"] {
		says[h.Node] = h.Has
	}
	sum := 0
	for _, m := range d.nodes {
		sum += m.limit()
		if m.limit() > says[m.id] {
			d.t.Fatalf("%s may use %d parts; the database has %s", m.id, m.limit(), d.text)
		}
	}
	if sum > d.parts {
		d.t.Fatalf("the nodes may use %d of %d parts; the database has %s", sum, d.parts, d.text)
	}
}

func (d *division) join() {
	m := &member{table: d, id: fmt.Sprintf("n%02d", len(d.nodes))}
	now := func() time.Time { return d.now }
	m.Breaker = throttle.NewBreaker(throttle.Options{Now: now, Logger: slog.New(slog.DiscardHandler)})
	m.Fleet = fleet.New(fleet.Options{Table: d, Node: nodes.Node{ID: m.id}, SharedNow: now})
	m.AddBudget("api", m, m)
	d.nodes = append(d.nodes, m)
}

// read is the first half of a renewal.
func (d *division) read(m *member) {
	m.isAlive, m.snapshot = true, nil
	for _, n := range d.nodes {
		left := time.Duration(0)
		if n.isAlive {
			left = nodes.Lease
		}
		m.snapshot = append(m.snapshot, nodes.Node{ID: n.id, Left: left, Parts: d.text, PartsWrites: d.writes})
	}
}

// divide is the second half of a renewal.
func (d *division) divide(m *member) {
	if m.snapshot != nil {
		checktest.MustNoError(d.t, m.SplitBudgets(d.t.Context(), m.snapshot), "divide")
		m.snapshot = nil
		d.check()
	}
}

// end ends the lease of a node, and what it was doing.
func (m *member) end() {
	m.isAlive, m.snapshot, m.used = false, nil, 0
	m.EndLease()
}

// renew lets all living nodes renew their leases a few times, without anything else happening.
func (d *division) renew(times int) {
	for range times {
		for _, m := range d.nodes {
			if m.isAlive {
				d.read(m)
				d.divide(m)
			}
		}
	}
}

// start returns a division with nodes that have divided a budget, while nothing is needed.
func startDivision(t *testing.T, parts, nodes int) *division {
	d := &division{t: t, parts: parts, now: time.Unix(1e9, 0)}
	d.text = "{}"
	for range nodes {
		d.join()
		d.nodes[len(d.nodes)-1].isAlive = true
	}
	d.renew(3)
	return d
}

// counts returns how many parts each living node has.
func (d *division) counts() (all []int) {
	for _, m := range d.nodes {
		if m.isAlive {
			all = append(all, m.has)
		}
	}
	return all
}

func TestPartsGoWhereTheyAreNeeded(t *testing.T) {
	for _, c := range []struct {
		parts int
		needs []int
		want  []int
	}{
		{20, []int{0}, []int{20}},
		{20, []int{0, 0, 0}, []int{7, 7, 6}},
		{20, []int{0, 20, 0}, []int{1, 18, 1}},
		{20, []int{20, 20, 20}, []int{7, 7, 6}},
		{20, []int{3, 20, 0}, []int{3, 16, 1}},
		{20, []int{3, 6, 0}, []int{7, 9, 4}},
		{100, []int{0, 100, 0}, []int{6, 88, 6}},
		{5, []int{0, 5, 0}, []int{0, 5, 0}},
		{1, []int{0, 1, 0}, []int{0, 1, 0}},
	} {
		d := startDivision(t, c.parts, len(c.needs))
		for i, needs := range c.needs {
			d.nodes[i].needs = needs
		}
		d.renew(2)
		checktest.Equal(t, fmt.Sprint(d.counts()), fmt.Sprint(c.want), "parts of %d, needed %v", c.parts, c.needs)
		before := d.writes
		d.renew(2)
		checktest.Equal(t, d.writes, before, "writes of the database although nothing has changed")
	}
}

// TestWaitsAreShared: what the source asks one node, the others do, too, and nothing is written while it lasts.
func TestWaitsAreShared(t *testing.T) {
	d := startDivision(t, 20, 3)
	isHeld := func(limit string) (held []bool) {
		for _, m := range d.nodes {
			held = append(held, m.Admit("key", limit, true).Err != nil)
		}
		return held
	}
	d.nodes[1].Hold(&understudy.UpstreamError{Why: understudy.FailLimited, Status: 429, LimitName: "search", RetryAfter: 30 * time.Second})
	d.renew(2)
	checktest.Equal(t, fmt.Sprint(isHeld("search")), "[true true true]", "nodes that wait with requests of the limit")
	checktest.Equal(t, fmt.Sprint(isHeld("core")), "[false false false]", "nodes that wait with other requests")
	before := d.writes
	for range 29 {
		d.now = d.now.Add(time.Second)
		d.renew(2)
	}
	checktest.Equal(t, d.writes, before, "writes of the database although nothing has changed")
	checktest.Equal(t, fmt.Sprint(isHeld("search")), "[true true true]", "nodes that wait until the end")
	d.now = d.now.Add(time.Second)
	d.renew(2)
	checktest.Equal(t, fmt.Sprint(isHeld("search")), "[false false false]", "nodes that wait after the end")
	checktest.True(t, !strings.Contains(d.text, "waits"), "the database still has a wait that has ended: %s", d.text)
}

// TestNodesTakeTurns: if there are fewer parts than nodes, each node that needs one has one part of the time.
func TestNodesTakeTurns(t *testing.T) {
	d := startDivision(t, 2, 5)
	had := make([]int, 5)
	for i, m := range d.nodes {
		if i != 3 {
			m.needs = 2
		}
	}
	for range 200 {
		d.renew(1)
		for i, n := range d.counts() {
			had[i] += n
		}
	}
	t.Log(had)
	for i, n := range had {
		want := 60 // of 100, because the next node takes a part in its next renewal
		if i == 3 {
			want = 0
		}
		checktest.True(t, want <= n && n <= want+20, "node %d had %d parts in 200 renewals, want %d", i, n, want)
	}
}

// TestPartsOfADeadNodeReturn: a node that joins gets its share, and what a dead one had is given to others.
func TestPartsOfADeadNodeReturn(t *testing.T) {
	d := startDivision(t, 20, 2)
	for _, m := range d.nodes {
		m.needs = 20
	}
	d.renew(2)
	d.join()
	d.nodes[2].isAlive, d.nodes[2].needs = true, 20
	d.renew(2)
	checktest.Equal(t, fmt.Sprint(d.counts()), "[7 7 6]", "parts after two renewals of all")
	d.nodes[0].end()
	d.renew(2)
	checktest.Equal(t, fmt.Sprint(d.counts()), "[10 10]", "parts after the lease of a node has ended")
}

// TestRunningRequestsKeepTheirParts: a part is not given away while a request is using it.
func TestRunningRequestsKeepTheirParts(t *testing.T) {
	d := startDivision(t, 4, 2)
	a, b := d.nodes[0], d.nodes[1]
	a.needs = 4
	d.renew(2)
	a.used, a.needs, b.needs = 4, 0, 4
	for a.used > 0 {
		d.renew(2)
		checktest.Equal(t, b.has, 4-a.used, "parts of a node while the other one is still using %d of 4", a.used)
		a.used--
	}
	d.renew(2)
	checktest.Equal(t, b.has, 4, "parts at the end")
}

// TestPartsAtRandom: the nodes together never use more than there is, whatever they need, and in whatever order they read and
// write, join and die. If they are left alone, all parts are given out in two renewals, evenly among those that need them.
func TestPartsAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range sample.Count(60, 1000) {
		parts := 1 + random.IntN(30)
		d := startDivision(t, parts, 1+random.IntN(4))
		for range 400 {
			m := d.nodes[random.IntN(len(d.nodes))]
			switch n := random.IntN(100); {
			case n < 30:
				d.read(m)
			case n < 65:
				d.divide(m)
			case n < 75:
				m.needs = random.IntN(parts + 1)
			case n < 95 && m.isAlive && m.isValid != nil && m.isValid():
				m.used = random.IntN(max(m.used, m.has) + 1)
			case n < 98:
				m.end()
			case len(d.nodes) < 8:
				d.join()
			}
			d.check()
		}
		needs := random.IntN(2) * parts
		for _, m := range d.nodes {
			m.used, m.needs, m.isAlive = 0, needs, true
		}
		d.renew(3)
		sum, all := 0, d.counts()
		for _, n := range all {
			sum += n
		}
		if needs == 0 || parts >= len(all) { // otherwise they take turns
			checktest.MustEqual(t, sum, parts, "parts that are given out (%v)", all)
			checktest.MustTrue(t, slices.Max(all)-slices.Min(all) <= 1, "parts when all need %d of %d: %v", needs, parts, all)
		}
	}
}
