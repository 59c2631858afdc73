// The journal: a file of everything that happened, so that a restart forgets nothing.
package world

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"understudy/internal/slowapi/format"
)

// Journal appends entries to a file, one JSON object a line, each on the disk
// before it becomes true. The zero journal keeps nothing.
type Journal struct {
	mu     sync.Mutex
	File   *os.File
	size   int64
	broken error // why nothing can be appended any more
}

// heading is the first line: which world the journal belongs to.
type heading struct {
	Journal string    `json:"journal"`
	Seed    uint64    `json:"seed"`
	Records int64     `json:"records"`
	Epoch   time.Time `json:"epoch"`
	Wall    time.Time `json:"wall"`
}

const journalName = "understudy slowapi 1"

// OpenJournal opens the file, or makes it, and lets the world go through what
// stands in it. A last line without its end is what a crash leaves: it is cut
// off and logged. Anything else that cannot be read is an error.
func OpenJournal(path string, w *World, log *slog.Logger) (*Journal, error) {
	if path == "" {
		return &Journal{}, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("slowapi: open journal: %w", err)
	}
	j := &Journal{File: file}
	if err := j.load(w, log); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("slowapi: journal %s: %w", path, err)
	}
	return j, nil
}

// load reads the file from its beginning and leaves it ready for appending.
func (j *Journal) load(w *World, log *slog.Logger) error {
	in := bufio.NewReader(j.File)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				log.Warn("slowapi: the journal's last line was cut short by a crash and is dropped", "line", number, "bytes", len(line))
			}
			break
		}
		if err := j.replay(w, number, line); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		j.size += int64(len(line))
	}
	if err := j.File.Truncate(j.size); err != nil {
		return err
	}
	if j.size > 0 {
		return nil
	}
	return j.begin(w)
}

// begin writes the heading of a new journal and makes the file's name last.
func (j *Journal) begin(w *World) error {
	if err := j.write(heading{journalName, w.Seed, w.Records, w.Epoch, w.wall}); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(j.File.Name()))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// replay makes one line true.
func (j *Journal) replay(w *World, number int, line []byte) error {
	if number == 1 {
		return sameWorld(w, line)
	}
	var e Entry
	if err := format.DecodeStrict(line, &e); err != nil {
		return err
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	_, err := w.Apply(e)
	return err
}

// sameWorld refuses the journal of another world.
func sameWorld(w *World, line []byte) error {
	var h heading
	if err := format.DecodeStrict(line, &h); err != nil || h.Journal != journalName {
		return errors.New("this is no journal of slowapi; choose another file")
	}
	if h.Seed != w.Seed || h.Records != w.Records || !h.Epoch.Equal(w.Epoch) {
		return fmt.Errorf("it belongs to the world of seed %d, records %d, epoch %s, and this one has seed %d, records %d, epoch %s; start "+
			"with those, or choose another file",
			h.Seed, h.Records, h.Epoch.Format(time.RFC3339), w.Seed, w.Records, w.Epoch.Format(time.RFC3339))
	}
	w.wall = h.Wall
	return nil
}

// Append keeps an entry: when it returns without error, the entry is on the disk.
func (j *Journal) Append(e Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.File == nil {
		return nil
	}
	if j.broken != nil {
		return fmt.Errorf("%w: %w", ErrUnkept, j.broken)
	}
	if err := j.write(e); err != nil {
		return fmt.Errorf("%w: %w", ErrUnkept, err)
	}
	return nil
}

// write appends one line and syncs. Half a line is taken back; when even that
// fails, nothing may follow it.
func (j *Journal) write(what any) error {
	var line bytes.Buffer
	out := json.NewEncoder(&line)
	out.SetEscapeHTML(false)
	if err := out.Encode(what); err != nil {
		return err
	}
	_, err := j.File.WriteAt(line.Bytes(), j.size)
	if err == nil {
		err = j.File.Sync()
	}
	if err != nil {
		j.broken = errors.Join(j.File.Truncate(j.size))
		return err
	}
	j.size += int64(line.Len())
	return nil
}

// Close ends the journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.File == nil {
		return nil
	}
	err := errors.Join(j.File.Sync(), j.File.Close())
	j.broken = os.ErrClosed
	if err != nil {
		return fmt.Errorf("slowapi: close journal: %w", err)
	}
	return nil
}

// ErrUnkept means that the journal could not be written.
var ErrUnkept = errors.New("slowapi: the journal could not be written")
