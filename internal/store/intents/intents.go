// Package intents remembers the writes under way in a file beside the database.
package intents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"understudy/kit/wal"
	"understudy/request"
)

// Log remembers which records writes are about to change, until the store
// has been told what became of them. It is a write-ahead set: a file of lines,
// one before a write is passed on and one after. It works while the database is
// locked, and what a killed process leaves is there for the next. Lines overwrite
// empty ones that the file has from the start, so that it works on a full disk
// too (of a file system that overwrites in place). What Begin notes is on the disk
// when it returns; that a write has ended may be lost in a crash of the machine, and
// costs a look at the record. Methods may be called from many goroutines.
type Log struct {
	mu   sync.Mutex
	path string
	file *os.File
	size int64 // of the lines; empty ones follow
	due  int64 // the size at which the file is written anew
	last int64
	open map[int64]request.Invalidation
}

// intent is a line of the file.
type intent struct {
	N      int64  `json:"n,omitempty"`
	Source string `json:"source,omitempty"`
	Kind   string `json:"kind,omitempty"`
	ID     string `json:"id,omitempty"`
	Done   int64  `json:"done,omitempty"` // the number of one that is over
}

const (
	maxIntents = 256 << 10      // bytes of lines before the file is written anew
	reserved   = 2 * maxIntents // bytes of the file: it may not be possible to write it anew at once
)

// Open opens the file at path, readable by its owner alone, and makes it
// when it is not there. A line that a crash cut is left out. Error: the file
// cannot be read or written.
func Open(path string) (*Log, error) {
	in := &Log{path: path, open: map[int64]request.Invalidation{}}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("store: intents: %w", err)
	}
	in.read(text)
	if err := in.rewrite(); err != nil {
		return nil, fmt.Errorf("store: intents: %w", err)
	}
	return in, nil
}

// read takes in lines; what is no line of ours is left out.
func (in *Log) read(text []byte) {
	for text := range bytes.Lines(bytes.TrimRight(text, "\n")) {
		var one intent
		switch err := json.Unmarshal(text, &one); {
		case err != nil:
		case one.Done > 0:
			delete(in.open, one.Done)
		case one.N > 0 && one.Source != "" && one.Kind != "":
			in.open[one.N] = request.Invalidation{Source: one.Source, Kind: one.Kind, ID: one.ID}
		}
	}
	left := in.lines()
	clear(in.open)
	for _, one := range left { // numbered anew: the file is written anew
		in.last++
		in.open[in.last] = request.Invalidation{Source: one.Source, Kind: one.Kind, ID: one.ID}
	}
}

// Unended are the writes that have not ended, the oldest first, by number.
func (in *Log) Unended() (numbers []int64, touched []request.Invalidation) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, one := range in.lines() {
		numbers = append(numbers, one.N)
		touched = append(touched, in.open[one.N])
	}
	return numbers, touched
}

// Begin notes a write before it is passed on. The number ends it. An error
// means that the next process may not know of it.
func (in *Log) Begin(t request.Invalidation) (n int64, err error) {
	n, file, err := in.begin(t)
	if err == nil {
		// Beside others: one may have written the file anew meanwhile, and synchronized it.
		if err = file.Sync(); errors.Is(err, fs.ErrClosed) {
			err = nil
		}
	}
	if err != nil {
		return n, fmt.Errorf("store: intents: %w", err)
	}
	return n, nil
}

// begin notes a write in the file that it returns.
func (in *Log) begin(t request.Invalidation) (n int64, file *os.File, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.last++
	in.open[in.last] = t
	err = in.append(intent{N: in.last, Source: t.Source, Kind: t.Kind, ID: t.ID})
	return in.last, in.file, err
}

// End notes that the store was told of a write, or that nothing was written. A
// line that cannot be written costs the next process one look at the record.
func (in *Log) End(n int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, ok := in.open[n]; !ok {
		return
	}
	delete(in.open, n)
	_ = in.append(intent{Done: n})
}

// append adds a line. A file that has many is written anew with what is open;
// what cannot be, is tried again some lines later.
func (in *Log) append(one intent) error {
	if in.size > in.due && len(in.open) < maxIntents/1024 {
		if in.rewrite() == nil {
			return nil
		}
		in.due = in.size + maxIntents/16
	}
	text := line(one)
	_, err := in.file.WriteAt(text, in.size)
	if err == nil {
		in.size += int64(len(text))
	}
	return err
}

// rewrite writes the file anew and puts it in the old one's place.
func (in *Log) rewrite() error {
	var text []byte
	for _, one := range in.lines() {
		text = append(text, line(one)...)
	}
	size := int64(len(text))
	text = append(text, bytes.Repeat([]byte{'\n'}, max(0, reserved-len(text)))...)
	if err := write(in.path+".new", text); err != nil {
		_ = os.Remove(in.path + ".new")
		return err
	}
	if err := os.Rename(in.path+".new", in.path); err != nil {
		return err
	}
	file, err := os.OpenFile(in.path, os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if in.file != nil {
		_ = in.file.Close()
	}
	in.file, in.size, in.due = file, size, maxIntents
	return wal.SyncFolder(filepath.Dir(in.path))
}

// write writes a file, to the disk.
func write(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// lines are the open ones, the oldest first.
func (in *Log) lines() []intent {
	all := make([]intent, 0, len(in.open))
	for n, t := range in.open {
		all = append(all, intent{N: n, Source: t.Source, Kind: t.Kind, ID: t.ID})
	}
	slices.SortFunc(all, func(a, b intent) int { return cmp.Compare(a.N, b.N) })
	return all
}

func line(one intent) []byte {
	text, _ := json.Marshal(one) // texts and numbers always can be
	return append(append([]byte{'\n'}, text...), '\n')
}

// Close closes the file; what is open is there for the next.
func (in *Log) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.file.Close()
}
