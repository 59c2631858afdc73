// Package inverted keeps an inverted index in plain tables: from a token to the postings of the records that have it.
//
// Entries are sorted and packed in chunks. Chunks lie in runs, and runs on levels, as in a log-structured merge tree
// (O'Neil et al., 1996): a save writes one small run, and Fan runs of a level are merged into one of the next, a part
// with each save. An entry is in one run at any time, also while its run is merged, so a reader joins what all runs
// have. What is removed is taken out of its chunk at once: nothing of it stays in a table.
package inverted

import (
	"cmp"
	"database/sql/driver"
	"slices"

	"understudy/internal/store/sqlite"
)

// Entry says that a record has a token.
type Entry struct {
	Token   int64 // not negative
	Posting int64 // package postings
}

// Compare is the order of entries.
func Compare(a, b Entry) int {
	if c := cmp.Compare(a.Token, b.Token); c != 0 {
		return c
	}
	return cmp.Compare(a.Posting, b.Posting)
}

var (
	selectChunks = &sqlite.Statement{Head: "SELECT token, posting, body FROM term_chunk WHERE run = ? ORDER BY token, posting"}
	selectFloor  = &sqlite.Statement{Head: "SELECT token, posting, body FROM term_chunk WHERE run = ? AND (token, posting) <= (?, ?) " +
		"ORDER BY token DESC, posting DESC LIMIT 1", Reads: sqlite.Index}
	selectAll    = &sqlite.Statement{Head: "SELECT token, posting, body FROM term_chunk"}
	insertChunks = &sqlite.Statement{Head: "INSERT INTO term_chunk (run, token, posting, body) VALUES ", Tuple: "(?, ?, ?, ?)"}
	deleteChunk  = &sqlite.Statement{Head: "DELETE FROM term_chunk WHERE run = ? AND token = ? AND posting = ?"}
	deleteChunks = &sqlite.Statement{Head: "DELETE FROM term_chunk WHERE run = ?"}
	clearRuns    = &sqlite.Statement{Head: "DELETE FROM term_run"}
	clearChunks  = &sqlite.Statement{Head: "DELETE FROM term_chunk"}
)

// Update takes entries out and puts others in, in a transaction. The index has no
// entry twice: those put in are not in it.
func Update(c *sqlite.Conn, p Pending) error {
	if len(p.out)+len(p.in) == 0 {
		return nil
	}
	runs, err := readRuns(c)
	if err == nil {
		err = runs.remove(c, p.out)
	}
	if err == nil && len(p.in) > 0 {
		err = runs.add(c, p.in)
	}
	return err
}

// cancel takes out of both lists, in place, what each has of the other, one by one.
func cancel(a, b []Entry) (restA, restB []Entry) {
	restA, restB = a[:0], b[:0]
	for len(a) > 0 && len(b) > 0 {
		switch order := Compare(a[0], b[0]); {
		case order < 0:
			restA, a = append(restA, a[0]), a[1:]
		case order > 0:
			restB, b = append(restB, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return append(restA, a...), append(restB, b...)
}

// remove takes sorted entries out. Those of one record are mostly in one run, so
// each entry is looked for first where the last was found.
func (rs runs) remove(c *sqlite.Conn, entries []Entry) error {
	last := len(rs) - 1
	for len(entries) > 0 {
		found := false
		for i := 0; i < len(rs) && !found; i++ {
			at := (last + len(rs) - i) % len(rs)
			rest, ok, err := removeFrom(c, rs[at].number, entries)
			if err != nil {
				return err
			}
			if ok {
				entries, last, found = rest, at, true
			}
		}
		if !found {
			entries = entries[1:] // the index has not got it
		}
	}
	return nil
}

// removeFrom takes the first entry out of a run, and the others that are in the same chunk; rest are those that are
// not. found is false when the run has not got the first.
func removeFrom(c *sqlite.Conn, run int64, entries []Entry) (rest []Entry, found bool, err error) {
	chunk, ok, err := floor(c, run, entries[0])
	if err != nil || !ok {
		return nil, false, err
	}
	has, err := chunk.entries(nil)
	if err != nil {
		return nil, false, err
	}
	if _, found = slices.BinarySearchFunc(has, entries[0], Compare); !found {
		return nil, false, nil
	}
	kept, rest := cancel(has, slices.Clone(entries))
	if err := c.Exec(deleteChunk, 0, run, chunk.first.Token, chunk.first.Posting); err != nil {
		return nil, false, err
	}
	return rest, true, writeChunks(c, run, kept)
}

// floor is the chunk of a run in which an entry is if the run has it; ok is false when there is none.
func floor(c *sqlite.Conn, run int64, e Entry) (found chunk, ok bool, err error) {
	ok, err = c.One(selectFloor, []driver.Value{run, e.Token, e.Posting}, func(r []driver.Value) { found = chunkOf(r) })
	return found, ok, err
}

// writeChunks packs sorted entries into a run.
func writeChunks(c *sqlite.Conn, run int64, entries []Entry) error {
	var args []driver.Value
	for len(entries) > 0 {
		one, n := pack(entries)
		args = append(args, run, one.first.Token, one.first.Posting, one.body)
		entries = entries[n:]
	}
	return c.ExecMany(insertChunks, 4, args)
}

// Clear empties the index, in a transaction.
func Clear(c *sqlite.Conn) error {
	if err := c.Exec(clearRuns, 0); err != nil {
		return err
	}
	return c.Exec(clearChunks, 0)
}

// Each calls do with every entry, in no order.
func Each(c *sqlite.Conn, do func(Entry) error) error {
	var buf []Entry
	return c.Query(selectAll, 0, nil, func(r []driver.Value) error {
		one := chunkOf(r)
		var err error
		if buf, err = one.entries(buf[:0]); err != nil {
			return err
		}
		for _, e := range buf {
			if err := do(e); err != nil {
				return err
			}
		}
		return nil
	})
}
