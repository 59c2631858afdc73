// This file searches the log, beginning with the newest entries.

package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/kit/wal"
)

// Filter says which entries a search returns. Zero fields do not restrict the search.
type Filter struct {
	Caller       string
	Action       understudy.Action
	Source, Kind string
	ID           string // the id of a record
	Value        string // a number or a searched word, as people write it
	Since, Until time.Time
	All          bool   // whether to return also lines that are no actions: beginnings, checkpoints, cuts
	Before       string // the field Next of the previous result, to continue there
	Limit        int    // the maximum number of entries; 0 means 100
}

// Found is the result of a search.
type Found struct {
	Entries []Entry
	Next    string    // the Filter.Before for older entries, or "" if there are no older entries
	Looked  time.Time // if the time limit was reached: the time down to which all entries were searched
}

// Reader reads a log, also while processes write to it. It is safe for concurrent use.
type Reader struct {
	Dir string
	Key Key
}

// The limits of a search.
const (
	defaultLimit = 100
	// MaxFound is the maximum number of entries that a search returns.
	MaxFound      = 1000
	searchTimeout = 2 * time.Second // the time after which a search returns what it has found, and where to continue
)

// Search searches the log; see Reader.Search.
func (l *Log) Search(ctx context.Context, f Filter) (*Found, error) {
	return Reader{Dir: l.o.Dir, Key: l.o.Key}.Search(ctx, f)
}

// Search returns the newest entries that match a filter. It searches for two seconds or until ctx ends, and then
// returns what it has found without an error. Errors: ErrInvalid for an invalid Before, and errors of the disk.
func (r Reader) Search(ctx context.Context, f Filter) (*Found, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	if f.Limit = min(max(f.Limit, 0), MaxFound); f.Limit == 0 {
		f.Limit = defaultLimit
	}
	chains, err := r.openCursors(f.Before)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, c := range chains {
			c.stop()
		}
	}()
	wants := r.newLineFilter(f)
	for _, c := range chains {
		next, stop := iter.Pull2(r.readBackwards(ctx, c.id, c.before, f.Since, wants))
		c.next, c.stop = next, stop
		if err := c.step(); err != nil {
			return nil, err
		}
	}
	found := &Found{}
	for {
		var newest *cursor
		for _, c := range chains {
			if !c.done && (newest == nil || c.entry.At.After(newest.entry.At)) {
				newest = c
			}
		}
		if newest == nil {
			return found, nil
		}
		if newest.timedOut {
			found.Looked = newest.entry.At
		}
		if newest.timedOut || len(found.Entries) == f.Limit {
			var parts []string // a line number for each chain, where the next search continues
			for _, c := range chains {
				if n := c.entry.Number + 1; !c.done && n > 1 {
					parts = append(parts, c.id+":"+strconv.FormatUint(n, 10))
				}
			}
			found.Next = strings.Join(parts, ",")
			return found, nil
		}
		found.Entries = append(found.Entries, newest.entry)
		if err := newest.step(); err != nil {
			return nil, err
		}
	}
}

// cursor is the position of a search in one chain.
type cursor struct {
	id       string
	before   uint64 // the number of the line before which the search begins; 0 means at the end
	entry    Entry  // the newest matching entry that was not returned yet
	timedOut bool   // whether the time limit was reached; entry then says how far the search has come
	done     bool
	next     func() (foundEntry, error, bool)
	stop     func()
}

// foundEntry is a matching entry or, if the time limit was reached, the position of the search.
type foundEntry struct {
	entry    Entry
	timedOut bool
}

func (c *cursor) step() error {
	one, err, ok := c.next()
	c.entry, c.timedOut, c.done = one.entry, one.timedOut, !ok
	return err
}

// openCursors returns a cursor for each chain, at the position where the search begins.
func (r Reader) openCursors(before string) (all []*cursor, err error) {
	ids, err := ListChains(r.Dir)
	if err != nil {
		return nil, err
	}
	if before == "" {
		for _, id := range ids {
			all = append(all, &cursor{id: id, stop: func() {}})
		}
		return all, nil
	}
	for part := range strings.SplitSeq(before, ",") {
		id, text, _ := strings.Cut(part, ":")
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || len(all) == len(ids) {
			return nil, fmt.Errorf("audit: %w: %q is not a place in the log; begin with the newest entry", understudy.ErrInvalid,
				understudy.Clip(before))
		}
		if slices.Contains(ids, id) {
			all = append(all, &cursor{id: id, before: n, stop: func() {}})
		}
	}
	return all, nil
}

// readBackwards reads a chain from its newest entry to its oldest, one file at a time.
func (r Reader) readBackwards(ctx context.Context, id string, before uint64, since time.Time,
	wants func([]byte) (Entry, bool)) iter.Seq2[foundEntry, error] {
	return func(yield func(foundEntry, error) bool) {
		dir := filepath.Join(r.Dir, id)
		files, err := wal.ListFiles(dir)
		if errors.Is(err, wal.ErrDamaged) && len(files) == 0 {
			return // the chain is just being created, or it is damaged, which verify reports
		}
		if err != nil {
			yield(foundEntry{}, err)
			return
		}
		for i, first := range slices.Backward(files) {
			end := before
			if i+1 < len(files) && (end == 0 || end > files[i+1]) {
				end = files[i+1]
			}
			if end != 0 && first >= end {
				continue
			}
			all, oldest, err := readFile(dir, first, end, wants)
			if errors.Is(err, fs.ErrNotExist) {
				return // the file was removed because it is too old
			}
			if err != nil && (i+1 < len(files) || !errors.Is(err, wal.ErrDamaged)) { // damage in the newest file is reported by verify
				yield(foundEntry{}, err)
				return
			}
			for _, e := range slices.Backward(all) {
				if !yield(foundEntry{entry: e}, nil) {
					return
				}
			}
			if !since.IsZero() && oldest.At.Before(since) {
				return
			}
			if ctx.Err() != nil && i > 0 {
				oldest.Number = first - 1
				yield(foundEntry{entry: oldest, timedOut: true}, nil)
				return
			}
		}
	}
}

// readFile returns the matching entries of one file, and its first entry.
func readFile(dir string, first, end uint64, wants func([]byte) (Entry, bool)) (all []Entry, oldest Entry, err error) {
	for e, err := range wal.Read(dir, first) {
		if err != nil {
			return all, oldest, err
		}
		if end != 0 && e.Number >= end {
			break
		}
		if e.Number == first {
			_ = json.Unmarshal(e.Data, &oldest) // an invalid line is reported by verify
		}
		if one, ok := wants(e.Data); ok {
			all = append(all, one)
		}
	}
	return all, oldest, nil
}

// newLineFilter returns a function that tests and parses a line. It rejects most lines without parsing them,
// because they do not contain a text of the filter.
func (r Reader) newLineFilter(f Filter) func([]byte) (Entry, bool) {
	var needles [][]byte
	need := func(text string) {
		if text != "" {
			quoted, _ := json.Marshal(text) // cannot fail, because every string can be encoded
			needles = append(needles, quoted)
		}
	}
	if f.Caller != "" {
		f.Caller = r.Key.hashIfNumber(f.Caller)
	}
	if f.ID != "" {
		f.ID = r.Key.hashIfNumber(f.ID)
	}
	if f.Value != "" {
		f.Value = r.Key.Hash(f.Value)
	}
	for _, text := range []string{f.Caller, string(f.Action), f.Source, f.Kind, f.ID, f.Value} {
		need(text)
	}
	return func(line []byte) (e Entry, ok bool) {
		for _, n := range needles {
			if !bytes.Contains(line, n) {
				return e, false
			}
		}
		if json.Unmarshal(line, &e) != nil || e.Action == "" && !f.All {
			return e, false
		}
		is := func(want, got string) bool { return want == "" || want == got }
		has := func(want string, all []string) bool { return want == "" || slices.Contains(all, want) }
		return e, is(f.Caller, e.Caller) && is(string(f.Action), string(e.Action)) && is(f.Source, e.Source) && is(f.Kind, e.Kind) &&
			has(f.ID, e.IDs) && has(f.Value, e.Values) &&
			(f.Since.IsZero() || !e.At.Before(f.Since)) && (f.Until.IsZero() || e.At.Before(f.Until))
	}
}

// Lines yields the lines of a chain from a number on, the oldest first, as they were written. A line is valid until
// the next line is read.
func (r Reader) Lines(chain string, from uint64) iter.Seq2[wal.Entry, error] {
	return wal.Read(filepath.Join(r.Dir, chain), from)
}

// SumSizes returns the size of the files of some chains in bytes, as an estimate of the work to read them. A chain whose
// files cannot be listed counts as empty.
func (r Reader) SumSizes(chains []string) (total int64) {
	for _, id := range chains {
		size, _ := wal.SumSizes(filepath.Join(r.Dir, id)) // Lines returns the error
		total += size
	}
	return total
}

// ReadHeads returns the number of the last line of each chain.
func (r Reader) ReadHeads(ctx context.Context) (map[string]uint64, error) {
	chains, err := r.openCursors("")
	if err != nil {
		return nil, err
	}
	last := map[string]uint64{}
	for _, c := range chains {
		for one, err := range r.readBackwards(ctx, c.id, 0, time.Time{}, r.newLineFilter(Filter{All: true})) {
			if err != nil {
				return nil, err
			}
			last[c.id] = one.entry.Number
			break
		}
	}
	return last, nil
}
