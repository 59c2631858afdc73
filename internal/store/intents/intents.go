// Package intents records which writes to the upstream are running, in a file beside the database.
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

	"understudy/kit/lockwatch"
	"understudy/kit/wal"
	"understudy/request"
)

// Log records which records running writes may change, until the store knows the result of the writes. It is a file
// with one line before a write is sent to the upstream and one line after it. Log works while the database is locked,
// and after a crash the next process finds the unfinished writes. Lines overwrite empty lines that the file has from
// the start, so Log also works on a full disk if the file system overwrites in place. A line of Begin is on the disk
// when Begin returns. A crash of the machine may lose a line of End. Then the next process requests the record once
// more. Log is safe for concurrent use.
type Log struct {
	mu        lockwatch.Mutex
	path      string
	file      *os.File
	size      int64 // bytes of the lines in use; empty lines follow them
	rewriteAt int64 // the value of size at which the file is rewritten
	last      int64
	open      map[int64]request.Invalidation
}

// intent is a line of the file, for the begin or the end of a write.
type intent struct {
	N      int64  `json:"n,omitempty"`
	Source string `json:"source,omitempty"`
	Kind   string `json:"kind,omitempty"`
	ID     string `json:"id,omitempty"`
	Done   int64  `json:"done,omitempty"` // the number of the write that has ended, or 0
}

const (
	maxIntents = 256 << 10      // maximum bytes of lines before the file is rewritten
	reserved   = 2 * maxIntents // size of the file in bytes; it is larger than maxIntents, because rewriting may fail for a while
)

// Open opens the file at path, which only its owner may read. It creates the file if it is missing. It ignores
// a line that a crash cut short. It returns an error if the file cannot be read or written.
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

// read reads lines and ignores those of another form.
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
	for _, one := range left { // writes get new numbers, from 1, because the file is rewritten
		in.last++
		in.open[in.last] = request.Invalidation{Source: one.Source, Kind: one.Kind, ID: one.ID}
	}
}

// UnendedWrites returns the writes that have not ended, oldest first, with their numbers.
func (in *Log) UnendedWrites() (numbers []int64, touched []request.Invalidation) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, one := range in.lines() {
		numbers = append(numbers, one.N)
		touched = append(touched, in.open[one.N])
	}
	return numbers, touched
}

// Begin records a write before it is sent to the upstream. The caller passes the returned number to End. After an error
// the next process may not know of the write.
func (in *Log) Begin(t request.Invalidation) (n int64, err error) {
	n, file, err := in.begin(t)
	if err == nil {
		// Other goroutines run this at the same time, and may have rewritten, synced and closed this file already.
		if err = file.Sync(); errors.Is(err, fs.ErrClosed) {
			err = nil
		}
	}
	if err != nil {
		return n, fmt.Errorf("store: intents: %w", err)
	}
	return n, nil
}

// begin records a write and returns the file to synchronize.
func (in *Log) begin(t request.Invalidation) (n int64, file *os.File, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.last++
	in.open[in.last] = t
	err = in.append(intent{N: in.last, Source: t.Source, Kind: t.Kind, ID: t.ID})
	return in.last, in.file, err
}

// End records that the store knows the result of a write, or that nothing was written. If the line cannot be written,
// the next process requests the record once more.
func (in *Log) End(n int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, ok := in.open[n]; !ok {
		return
	}
	delete(in.open, n)
	_ = in.append(intent{Done: n})
}

// append adds a line to the file. If the file has many lines, append rewrites it with the open writes only. If
// rewriting fails, append tries again some lines later.
func (in *Log) append(one intent) error {
	if in.size > in.rewriteAt && len(in.open) < maxIntents/1024 {
		if in.rewrite() == nil {
			return nil
		}
		in.rewriteAt = in.size + maxIntents/16
	}
	text := line(one)
	_, err := in.file.WriteAt(text, in.size)
	if err == nil {
		in.size += int64(len(text))
	}
	return err
}

// rewrite writes a new file with the open writes and renames it to the name of the old file.
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
	in.file, in.size, in.rewriteAt = file, size, maxIntents
	return wal.SyncFolder(filepath.Dir(in.path))
}

// write writes text to a file and syncs the file.
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

// lines returns the lines of the open writes, oldest first.
func (in *Log) lines() []intent {
	all := make([]intent, 0, len(in.open))
	for n, t := range in.open {
		all = append(all, intent{N: n, Source: t.Source, Kind: t.Kind, ID: t.ID})
	}
	slices.SortFunc(all, func(a, b intent) int { return cmp.Compare(a.N, b.N) })
	return all
}

func line(one intent) []byte {
	text, _ := json.Marshal(one) // cannot fail for texts and numbers
	return append(append([]byte{'\n'}, text...), '\n')
}

// Close closes the file. The next process that opens the file finds the open writes in it.
func (in *Log) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.file.Close()
}
