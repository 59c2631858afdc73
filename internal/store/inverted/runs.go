// Runs: where new entries go, and how runs are merged.

package inverted

import (
	"database/sql/driver"
	"slices"

	"understudy/internal/store/sqlite"
)

const (
	// fan is how many runs of a level are merged into one of the next.
	fan = 4
	// openSize is up to how many bytes the newest run takes in further entries.
	openSize = 8 << 10
	// mergeChunks is how many chunks of each run one step of a merge reads. A step
	// moves four times what a new run brings, so merges end before they pile up.
	mergeChunks = 4
	// maxLevel is a level that no file is large enough to have.
	maxLevel = 40
)

// run is a row of term_run.
type run struct {
	number, level int64
	target        int64 // the run this one is being merged into; 0: none
}

// runs are those there are, by rising numbers: the oldest first.
type runs []run

var (
	selectRuns = &sqlite.Statement{Head: "SELECT number, level, target FROM term_run ORDER BY number"}
	insertRun  = &sqlite.Statement{Head: "INSERT INTO term_run (level, target) VALUES (?, 0) RETURNING number"}
	updateRun  = &sqlite.Statement{Head: "UPDATE term_run SET target = ? WHERE number = ?"}
	deleteRun  = &sqlite.Statement{Head: "DELETE FROM term_run WHERE number = ?"}
	selectNext = &sqlite.Statement{Head: "SELECT token, posting, body FROM term_chunk WHERE run = ? ORDER BY token, posting LIMIT ?"}
	deleteUpTo = &sqlite.Statement{Head: "DELETE FROM term_chunk WHERE run = ? AND (token, posting) <= (?, ?)"}
)

func readRuns(c *sqlite.Conn) (rs runs, err error) {
	err = c.Query(selectRuns, 0, nil, func(r []driver.Value) error {
		one := run{r[0].(int64), r[1].(int64), r[2].(int64)}
		if one.level < 0 || one.level > maxLevel {
			return sqlite.Damaged("run %d of terms is of level %d", one.number, one.level)
		}
		rs = append(rs, one)
		return nil
	})
	return rs, err
}

// make begins a run.
func (rs *runs) make(c *sqlite.Conn, level int64) (number int64, err error) {
	_, err = c.One(insertRun, []driver.Value{level}, func(r []driver.Value) { number = r[0].(int64) })
	*rs = append(*rs, run{number: number, level: level})
	return number, err
}

// add puts sorted entries in: into the newest run while that is small, else into a new one.
func (rs runs) add(c *sqlite.Conn, entries []Entry) error {
	if open := rs.open(); open != 0 {
		all, size, err := readRun(c, open)
		if err != nil {
			return err
		}
		if size < openSize {
			if err := c.Exec(deleteChunks, 0, open); err != nil {
				return err
			}
			return writeChunks(c, open, merged([][]Entry{all, entries}))
		}
	}
	const perRun = openSize / 8 // entries, of about eight bytes
	level, steps := int64(0), 1+len(entries)/perRun
	for size := len(entries) / fan; size > perRun; size /= fan {
		level++
	}
	number, err := rs.make(c, level)
	if err == nil {
		err = writeChunks(c, number, entries)
	}
	if err != nil {
		return err
	}
	return rs.compact(c, steps)
}

// open is the newest run of the lowest level that is not being merged; 0: none.
func (rs runs) open() int64 {
	for _, r := range slices.Backward(rs) {
		if r.level == 0 && r.target == 0 {
			return r.number
		}
	}
	return 0
}

// readRun are all entries of a small run, and their bytes.
func readRun(c *sqlite.Conn, number int64) (all []Entry, size int, err error) {
	err = c.Query(selectChunks, 0, []driver.Value{number}, func(r []driver.Value) (err error) {
		one := chunkOf(r)
		if size += len(one.body); size < openSize {
			all, err = one.entries(all)
		}
		return err
	})
	return all, size, err
}

// compact merges on every level that has too many runs, so many steps each.
func (rs runs) compact(c *sqlite.Conn, steps int) error {
	for level := int64(0); level <= rs.top(); level++ {
		for range steps {
			sources, target, err := rs.merge(c, level)
			if err != nil {
				return err
			}
			if target == 0 {
				break
			}
			done, err := mergeStep(c, sources, target)
			if err != nil {
				return err
			}
			if !done {
				continue
			}
			for _, number := range sources {
				if err := c.Exec(deleteRun, 0, number); err != nil {
					return err
				}
			}
			rs = slices.DeleteFunc(rs, func(r run) bool { return slices.Contains(sources, r.number) })
		}
	}
	return nil
}

// top is the highest level of a run.
func (rs runs) top() (level int64) {
	for _, r := range rs {
		level = max(level, r.level)
	}
	return level
}

// merge is the merge under way on a level, or the one that is to begin now;
// target is 0 when there is none. A run that is being filled waits.
func (rs *runs) merge(c *sqlite.Conn, level int64) (sources []int64, target int64, err error) {
	filling := func(number int64) bool {
		return slices.ContainsFunc(*rs, func(r run) bool { return r.target == number })
	}
	var idle []int
	for i, r := range *rs {
		switch {
		case r.level != level:
		case r.target != 0:
			sources, target = append(sources, r.number), r.target
		case !filling(r.number):
			idle = append(idle, i)
		}
	}
	if target != 0 || len(idle) <= fan {
		return sources, target, nil
	}
	if target, err = rs.make(c, level+1); err != nil {
		return nil, 0, err
	}
	for _, i := range idle[:fan] {
		r := &(*rs)[i]
		r.target = target
		sources = append(sources, r.number)
		if err := c.Exec(updateRun, 0, target, r.number); err != nil {
			return nil, 0, err
		}
	}
	return sources, target, nil
}

// mergeStep moves the next entries of some runs into one. done: there are no more.
func mergeStep(c *sqlite.Conn, sources []int64, target int64) (done bool, err error) {
	parts := make([]part, len(sources))
	var bound *Entry // entries from here on are not all read
	for i, number := range sources {
		if err := parts[i].read(c, number); err != nil {
			return false, err
		}
		if next := parts[i].next; next != nil && (bound == nil || Compare(*next, *bound) < 0) {
			bound = next
		}
	}
	lists := make([][]Entry, len(sources))
	for i, number := range sources {
		if lists[i], err = parts[i].take(c, number, bound); err != nil {
			return false, err
		}
	}
	return bound == nil, writeChunks(c, target, merged(lists))
}

// part is the first chunks of a run.
type part struct {
	entries []Entry
	starts  []int  // where each chunk begins in entries
	next    *Entry // the first entry that is not read; nil: there is none
}

func (p *part) read(c *sqlite.Conn, number int64) error {
	return c.Query(selectNext, 0, []driver.Value{number, int64(mergeChunks + 1)}, func(r []driver.Value) (err error) {
		one := chunkOf(r)
		if len(p.starts) == mergeChunks {
			p.next = &one.first
			return nil
		}
		p.starts = append(p.starts, len(p.entries))
		p.entries, err = one.entries(p.entries)
		return err
	})
}

// take takes the entries before bound (nil: all) out of the run.
func (p *part) take(c *sqlite.Conn, number int64, bound *Entry) ([]Entry, error) {
	end := len(p.entries)
	if bound != nil {
		end, _ = slices.BinarySearchFunc(p.entries, *bound, Compare)
	}
	if end == 0 {
		return nil, nil
	}
	last := p.entries[end-1]
	if err := c.Exec(deleteUpTo, 0, number, last.Token, last.Posting); err != nil {
		return nil, err
	}
	whole := len(p.entries) // where the first chunk that stays begins
	if i, _ := slices.BinarySearch(p.starts, end); i < len(p.starts) {
		whole = p.starts[i]
	}
	return p.entries[:end], writeChunks(c, number, p.entries[end:whole])
}

// merged is sorted lists as one. Of entries that are equal one is kept. It uses up lists.
func merged(lists [][]Entry) []Entry {
	lists = slices.DeleteFunc(lists, func(l []Entry) bool { return len(l) == 0 })
	n := 0
	for _, l := range lists {
		n += len(l)
	}
	all := make([]Entry, 0, n)
	for len(lists) > 0 {
		least := 0
		for i := 1; i < len(lists); i++ {
			if Compare(lists[i][0], lists[least][0]) < 0 {
				least = i
			}
		}
		one := lists[least][0]
		if lists[least] = lists[least][1:]; len(lists[least]) == 0 {
			lists = slices.Delete(lists, least, least+1)
		}
		if len(all) == 0 || all[len(all)-1] != one {
			all = append(all, one)
		}
	}
	return all
}
