// Package inverted keeps an inverted index in plain tables. It maps a token to the postings of the records that have
// the token.
//
// Entries are sorted and packed in chunks. Chunks belong to runs, and runs to levels, as in a log-structured merge tree
// (O'Neil et al., 1996). A save writes one small run. When a level has enough runs (runsPerMerge), they are merged into one run
// of the next level. Each save does a part of the merging. Also during a merge an entry is in exactly one run, so a
// reader joins the entries of all runs. A removed entry is deleted from its chunk at once, so nothing of the entry
// stays in a table.
package inverted

import (
	"cmp"
	"database/sql/driver"
	"slices"

	"understudy/internal/store/db"
)

// Entry says that the record at a posting has a token.
type Entry struct {
	Token   int64 // the token, which is never negative
	Posting int64 // the posting, as package postings defines it
}

// Compare orders entries by token, then by posting.
func Compare(a, b Entry) int {
	if c := cmp.Compare(a.Token, b.Token); c != 0 {
		return c
	}
	return cmp.Compare(a.Posting, b.Posting)
}

var (
	selectChunks = &db.Statement{Head: "SELECT token, posting, body FROM term_chunk WHERE run = ? ORDER BY token, posting"}
	selectFloor  = &db.Statement{Head: "SELECT token, posting, body FROM term_chunk WHERE run = ? AND (token, posting) <= (?, ?) " +
		"ORDER BY token DESC, posting DESC LIMIT 1", Reads: db.Index}
	selectAll    = &db.Statement{Head: "SELECT token, posting, body FROM term_chunk", Whole: true}
	insertChunks = &db.Statement{Head: "INSERT INTO term_chunk (run, token, posting, body) VALUES ", Tuple: "(?, ?, ?, ?)"}
	deleteChunk  = &db.Statement{Head: "DELETE FROM term_chunk WHERE run = ? AND token = ? AND posting = ?"}
	deleteChunks = &db.Statement{Head: "DELETE FROM term_chunk WHERE run = ?"}
	clearRuns    = &db.Statement{Head: "DELETE FROM term_run"}
	clearChunks  = &db.Statement{Head: "DELETE FROM term_chunk"}
)

// Update removes and adds entries in a transaction. The index contains no entry twice, so the added entries must not be
// in it yet.
func Update(c db.Conn, p Pending) error {
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

// cancel removes the entries that are in both sorted lists from both lists. It reuses their memory.
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

// remove removes sorted entries from the runs. The entries of one record are mostly in one run, so the search begins in
// the run of the last match.
func (rs runs) remove(c db.Conn, entries []Entry) error {
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
			entries = entries[1:] // the first entry is in no run
		}
	}
	return nil
}

// removeFrom removes the first entry from a run, and the following entries that are in the same chunk. rest are the
// entries after these. found is false if the run does not have the first entry.
func removeFrom(c db.Conn, run int64, entries []Entry) (rest []Entry, found bool, err error) {
	chunk, ok, err := readFloor(c, run, entries[0])
	if err != nil || !ok {
		return nil, false, err
	}
	has, err := chunk.appendEntries(nil)
	if err != nil {
		return nil, false, err
	}
	if _, found = slices.BinarySearchFunc(has, entries[0], Compare); !found {
		return nil, false, nil
	}
	kept, rest := cancel(has, slices.Clone(entries))
	if err := c.Execute(deleteChunk, 0, run, chunk.first.Token, chunk.first.Posting); err != nil {
		return nil, false, err
	}
	return rest, true, writeChunks(c, run, kept)
}

// readFloor returns the only chunk of a run that can have the entry e. ok is false if there is no such chunk.
func readFloor(c db.Conn, run int64, e Entry) (found chunk, ok bool, err error) {
	ok, err = db.QueryRow(c, selectFloor, []driver.Value{run, e.Token, e.Posting}, func(r []driver.Value) { found = chunkOf(r) })
	return found, ok, err
}

// writeChunks packs sorted entries into chunks and adds the chunks to a run.
func writeChunks(c db.Conn, run int64, entries []Entry) error {
	var args []driver.Value
	for len(entries) > 0 {
		one, n := pack(entries)
		args = append(args, run, one.first.Token, one.first.Posting, one.body)
		entries = entries[n:]
	}
	return db.ExecuteMany(c, insertChunks, 4, args)
}

// Clear empties the index, in a transaction.
func Clear(c db.Conn) error {
	if err := c.Execute(clearRuns, 0); err != nil {
		return err
	}
	return c.Execute(clearChunks, 0)
}

// VisitEntries calls do with every entry, in no order.
func VisitEntries(c db.Conn, do func(Entry) error) error {
	var buf []Entry
	return c.Query(selectAll, 0, nil, func(r []driver.Value) error {
		one := chunkOf(r)
		var err error
		if buf, err = one.appendEntries(buf[:0]); err != nil {
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
