// This file decides which run receives new entries, and merges runs.

package inverted

import (
	"database/sql/driver"
	"slices"

	"understudy/internal/store/db"
)

const (
	// runsPerMerge is the number of runs of one level that are merged into one run of the next level.
	runsPerMerge = 4
	// maxOpenRunSize is the size in bytes up to which the newest run receives more entries.
	maxOpenRunSize = 8 << 10
	// mergeChunks is the number of chunks that one step of a merge reads from each run. A step moves four times as many
	// chunks as a new run adds, so merges end before too many runs accumulate.
	mergeChunks = 4
	// maxLevel is a level that no run reaches, even in the largest file.
	maxLevel = 40
)

// run is a row of table term_run.
type run struct {
	number, level int64
	target        int64 // the run into which this run is being merged, or 0
}

// runs are all runs in ascending order of their numbers. The oldest run is the first.
type runs []run

var (
	selectRuns = &db.Statement{Head: "SELECT number, level, target FROM term_run ORDER BY number"}
	insertRun  = &db.Statement{Head: "INSERT INTO term_run (level, target) VALUES (?, 0) RETURNING number"}
	updateRun  = &db.Statement{Head: "UPDATE term_run SET target = ? WHERE number = ?"}
	deleteRun  = &db.Statement{Head: "DELETE FROM term_run WHERE number = ?"}
	selectNext = &db.Statement{Head: "SELECT token, posting, body FROM term_chunk WHERE run = ? ORDER BY token, posting LIMIT ?"}
	deleteUpTo = &db.Statement{Head: "DELETE FROM term_chunk WHERE run = ? AND (token, posting) <= (?, ?)"}
)

func readRuns(c db.Conn) (rs runs, err error) {
	err = c.Query(selectRuns, 0, nil, func(r []driver.Value) error {
		one := run{r[0].(int64), r[1].(int64), r[2].(int64)}
		if one.level < 0 || one.level > maxLevel {
			return db.NewDamageError("run %d of the index of terms has the wrong level %d", one.number, one.level)
		}
		rs = append(rs, one)
		return nil
	})
	return rs, err
}

// makeRun creates a run.
func (rs *runs) makeRun(c db.Conn, level int64) (number int64, err error) {
	_, err = db.QueryRow(c, insertRun, []driver.Value{level}, func(r []driver.Value) { number = r[0].(int64) })
	*rs = append(*rs, run{number: number, level: level})
	return number, err
}

// add adds sorted entries to the newest run if that is small, otherwise to a new run.
func (rs runs) add(c db.Conn, entries []Entry) error {
	if open := rs.openRun(); open != 0 {
		all, size, err := readRun(c, open)
		if err != nil {
			return err
		}
		if size < maxOpenRunSize {
			if err := c.Execute(deleteChunks, 0, open); err != nil {
				return err
			}
			return writeChunks(c, open, mergeLists([][]Entry{all, entries}))
		}
	}
	const perRun = maxOpenRunSize / 8 // an entry takes about eight bytes
	level, steps := int64(0), 1+len(entries)/perRun
	for size := len(entries) / runsPerMerge; size > perRun; size /= runsPerMerge {
		level++
	}
	number, err := rs.makeRun(c, level)
	if err == nil {
		err = writeChunks(c, number, entries)
	}
	if err != nil {
		return err
	}
	return rs.compact(c, steps)
}

// openRun returns the newest run of the lowest level that is not being merged, or 0 if there is none.
func (rs runs) openRun() int64 {
	for _, r := range slices.Backward(rs) {
		if r.level == 0 && r.target == 0 {
			return r.number
		}
	}
	return 0
}

// readRun returns all entries of a small run and its size in bytes.
func readRun(c db.Conn, number int64) (all []Entry, size int, err error) {
	err = c.Query(selectChunks, 0, []driver.Value{number}, func(r []driver.Value) (err error) {
		one := chunkOf(r)
		if size += len(one.body); size < maxOpenRunSize {
			all, err = one.appendEntries(all)
		}
		return err
	})
	return all, size, err
}

// compact does up to the given number of merge steps on every level that has too many runs.
func (rs runs) compact(c db.Conn, steps int) error {
	for level := int64(0); level <= rs.topLevel(); level++ {
		for range steps {
			sources, target, err := rs.beginMerge(c, level)
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
				if err := c.Execute(deleteRun, 0, number); err != nil {
					return err
				}
			}
			rs = slices.DeleteFunc(rs, func(r run) bool { return slices.Contains(sources, r.number) })
		}
	}
	return nil
}

// topLevel returns the highest level that has a run.
func (rs runs) topLevel() (level int64) {
	for _, r := range rs {
		level = max(level, r.level)
	}
	return level
}

// beginMerge returns the current merge of a level. If there is none and the level has too many runs, it begins a merge.
// target is 0 if no merge is running. A run that a merge is still filling is not merged yet.
func (rs *runs) beginMerge(c db.Conn, level int64) (sources []int64, target int64, err error) {
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
	if target != 0 || len(idle) <= runsPerMerge {
		return sources, target, nil
	}
	if target, err = rs.makeRun(c, level+1); err != nil {
		return nil, 0, err
	}
	for _, i := range idle[:runsPerMerge] {
		r := &(*rs)[i]
		r.target = target
		sources = append(sources, r.number)
		if err := c.Execute(updateRun, 0, target, r.number); err != nil {
			return nil, 0, err
		}
	}
	return sources, target, nil
}

// mergeStep moves the next entries of the runs in sources to the run target. done reports that the sources have no more
// entries.
func mergeStep(c db.Conn, sources []int64, target int64) (done bool, err error) {
	parts := make([]part, len(sources))
	var bound *Entry // some entries from this entry on were not read yet
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
	return bound == nil, writeChunks(c, target, mergeLists(lists))
}

// part is the first chunks of a run, unpacked.
type part struct {
	entries []Entry
	starts  []int  // for each chunk, the index in entries at which it begins
	next    *Entry // the first entry that was not read, or nil if all were read
}

func (p *part) read(c db.Conn, number int64) error {
	return c.Query(selectNext, 0, []driver.Value{number, int64(mergeChunks + 1)}, func(r []driver.Value) (err error) {
		one := chunkOf(r)
		if len(p.starts) == mergeChunks {
			p.next = &one.first
			return nil
		}
		p.starts = append(p.starts, len(p.entries))
		p.entries, err = one.appendEntries(p.entries)
		return err
	})
}

// take deletes the entries that are less than bound from the run and returns them. A nil bound means all entries that
// were read.
func (p *part) take(c db.Conn, number int64, bound *Entry) ([]Entry, error) {
	end := len(p.entries)
	if bound != nil {
		end, _ = slices.BinarySearchFunc(p.entries, *bound, Compare)
	}
	if end == 0 {
		return nil, nil
	}
	last := p.entries[end-1]
	if err := c.Execute(deleteUpTo, 0, number, last.Token, last.Posting); err != nil {
		return nil, err
	}
	whole := len(p.entries) // the index in entries at which the first chunk begins that is kept
	if i, _ := slices.BinarySearch(p.starts, end); i < len(p.starts) {
		whole = p.starts[i]
	}
	return p.entries[:end], writeChunks(c, number, p.entries[end:whole])
}

// mergeLists merges sorted lists into one list without duplicates. It reuses the memory of lists.
func mergeLists(lists [][]Entry) []Entry {
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
