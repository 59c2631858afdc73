// Read: what the log holds, the newest first.

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

// Filter says which entries are wanted. Zero fields do not count.
type Filter struct {
	Caller       string
	Action       understudy.Action
	Source, Kind string
	ID           string // of a record
	Value        string // a number or a searched word, as people write it
	Since, Until time.Time
	All          bool   // lines that are no entries, too: beginnings, checkpoints, cuts
	Before       string // go on behind what a search before this one has found: its Next
	Limit        int    // 0: 100
}

// Found is what was found.
type Found struct {
	Entries []Entry
	Next    string    // Filter.Before of what is older; "": there is nothing more
	Looked  time.Time // when Next is set and nothing more was found: everything since then was looked at
}

// Reader reads a log, also while others write it. It is safe for concurrent use.
type Reader struct {
	Dir string
	Key Key
}

// the bounds of a search.
const (
	usualLimit = 100
	// MostFound is how many entries one search gives at most.
	MostFound = 1000
	lookTime  = 2 * time.Second // then what was found is returned, and where to go on
)

// Search is Reader.Search of the folder of a log.
func (l *Log) Search(ctx context.Context, f Filter) (*Found, error) {
	return Reader{Dir: l.o.Dir, Key: l.o.Key}.Search(ctx, f)
}

// Search finds the newest entries that a filter lets through. It looks for two seconds,
// or until ctx ends: what it found by then is no error. Errors: ErrInvalid for a Before
// that is none, those of the disk.
func (r Reader) Search(ctx context.Context, f Filter) (*Found, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if f.Limit = min(max(f.Limit, 0), MostFound); f.Limit == 0 {
		f.Limit = usualLimit
	}
	chains, err := r.cursors(f.Before)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, c := range chains {
			c.stop()
		}
	}()
	wants := r.wants(f)
	for _, c := range chains {
		next, stop := iter.Pull2(r.backwards(ctx, c.id, c.before, f.Since, wants))
		c.next, c.stop = next, stop
		if err := c.step(); err != nil {
			return nil, err
		}
	}
	found := &Found{}
	for {
		newest := newestOf(chains)
		if newest == nil {
			return found, nil
		}
		if newest.over {
			found.Looked = newest.at.At
		}
		if newest.over || len(found.Entries) == f.Limit {
			found.Next = nextOf(chains)
			return found, nil
		}
		found.Entries = append(found.Entries, newest.at)
		if err := newest.step(); err != nil {
			return nil, err
		}
	}
}

// cursor is how far a search has come in one chain.
type cursor struct {
	id     string
	before uint64 // 0: not begun
	at     Entry  // the newest that is not taken
	over   bool   // at is none: time is up, and everything since was looked at
	done   bool
	next   func() (found, error, bool)
	stop   func()
}

// found is an entry that was found, or how far the search has come when time is up.
type found struct {
	entry Entry
	over  bool
}

func (c *cursor) step() error {
	one, err, ok := c.next()
	c.at, c.over, c.done = one.entry, one.over, !ok
	return err
}

func newestOf(chains []*cursor) (newest *cursor) {
	for _, c := range chains {
		if !c.done && (newest == nil || c.at.At.After(newest.at.At)) {
			newest = c
		}
	}
	return newest
}

// nextOf is where the next search goes on: behind these numbers of these chains.
func nextOf(chains []*cursor) string {
	var parts []string
	for _, c := range chains {
		if n := c.at.Number + 1; !c.done && n > 1 {
			parts = append(parts, c.id+":"+strconv.FormatUint(n, 10))
		}
	}
	return strings.Join(parts, ",")
}

// cursors are where a search begins in each chain.
func (r Reader) cursors(before string) (all []*cursor, err error) {
	ids, err := Chains(r.Dir)
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
			return nil, fmt.Errorf("audit: %w: %q is no place in the log; begin with the newest entry", understudy.ErrInvalid,
				understudy.Clip(before))
		}
		if slices.Contains(ids, id) {
			all = append(all, &cursor{id: id, before: n, stop: func() {}})
		}
	}
	return all, nil
}

// backwards reads a chain from its newest entry on, file by file.
func (r Reader) backwards(ctx context.Context, id string, before uint64, since time.Time,
	wants func([]byte) (Entry, bool)) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		dir := filepath.Join(r.Dir, id)
		files, err := wal.ListFiles(dir)
		if errors.Is(err, wal.ErrDamaged) && len(files) == 0 {
			return // it is being begun, or verify says what is wrong
		}
		if err != nil {
			yield(found{}, err)
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
				return // it was too old, and went
			}
			if err != nil && (i+1 < len(files) || !errors.Is(err, wal.ErrDamaged)) { // of the newest file, verify tells
				yield(found{}, err)
				return
			}
			for _, e := range slices.Backward(all) {
				if !yield(found{entry: e}, nil) {
					return
				}
			}
			if !since.IsZero() && oldest.At.Before(since) {
				return
			}
			if ctx.Err() != nil && i > 0 {
				oldest.Number = first - 1
				yield(found{entry: oldest, over: true}, nil)
				return
			}
		}
	}
}

// readFile reads what is wanted of one file, and its first entry.
func readFile(dir string, first, end uint64, wants func([]byte) (Entry, bool)) (all []Entry, oldest Entry, err error) {
	for e, err := range wal.Read(dir, first) {
		if err != nil {
			return all, oldest, err
		}
		if end != 0 && e.Number >= end {
			break
		}
		if e.Number == first {
			_ = json.Unmarshal(e.Data, &oldest) // verify tells of a line that is none
		}
		if one, ok := wants(e.Data); ok {
			all = append(all, one)
		}
	}
	return all, oldest, nil
}

// wants makes a filter a function of lines. Most lines are told by a text they lack.
func (r Reader) wants(f Filter) func([]byte) (Entry, bool) {
	var needles [][]byte
	need := func(text string) {
		if text != "" {
			quoted, _ := json.Marshal(text) // a string
			needles = append(needles, quoted)
		}
	}
	if f.Caller != "" {
		f.Caller = r.Key.plain(f.Caller)
	}
	if f.ID != "" {
		f.ID = r.Key.plain(f.ID)
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

// Lines reads the lines of a chain from a number on, the oldest first, as they stand. A
// line is valid until the next one is read.
func (r Reader) Lines(chain string, from uint64) iter.Seq2[wal.Entry, error] {
	return wal.Read(filepath.Join(r.Dir, chain), from)
}

// Heads are the numbers of the last lines of all chains, by chain.
func (r Reader) Heads(ctx context.Context) (map[string]uint64, error) {
	chains, err := r.cursors("")
	if err != nil {
		return nil, err
	}
	last := map[string]uint64{}
	for _, c := range chains {
		for one, err := range r.backwards(ctx, c.id, 0, time.Time{}, r.wants(Filter{All: true})) {
			if err != nil {
				return nil, err
			}
			last[c.id] = one.entry.Number
			break
		}
	}
	return last, nil
}
