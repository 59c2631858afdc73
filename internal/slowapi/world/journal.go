// The journal: a file with all changes of the simulated world, from which they are applied again after a restart.
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

// Journal appends entries to a file, each as a line of JSON. The line is written to disk before the change is
// applied. The zero Journal stores nothing.
type Journal struct {
	mu     sync.Mutex
	File   *os.File // the file; nil if the journal stores nothing
	size   int64    // the size in bytes of all complete lines
	broken error    // the error because of which nothing can be appended any more; nil if there is none
}

// journalHeader is the first line of a journal. It identifies the simulated world.
type journalHeader struct {
	Journal string    `json:"journal"`
	Seed    uint64    `json:"seed"`
	Records int64     `json:"records"`
	Epoch   time.Time `json:"epoch"`
	Wall    time.Time `json:"wall"`
}

const journalName = "understudy slowapi 1"

// OpenJournal opens or creates a journal, and applies its entries. A crash may leave an incomplete last line, which
// is removed and logged. Any other line that cannot be parsed is an error.
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

// load applies all entries in the file, and prepares the file for more.
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

// begin writes the header of a new journal. It syncs the folder, so that the file exists after a crash.
func (j *Journal) begin(w *World) error {
	if err := j.write(journalHeader{journalName, w.Seed, w.Records, w.Epoch, w.wall}); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(j.File.Name()))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// replay applies one line of the file. The first line is the header.
func (j *Journal) replay(w *World, number int, line []byte) error {
	if number == 1 {
		return checkHeader(w, line)
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

// checkHeader returns an error if the header is invalid or belongs to another world.
func checkHeader(w *World, line []byte) error {
	var h journalHeader
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

// Append writes an entry to the journal and waits until it is on disk. Its error wraps ErrJournal.
func (j *Journal) Append(e Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.File == nil {
		return nil
	}
	if j.broken != nil {
		return fmt.Errorf("%w: %w", ErrJournal, j.broken)
	}
	if err := j.write(e); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return nil
}

// write appends a line and syncs the file. If that fails, it truncates the file, so that no incomplete line is left.
// If that fails too, nothing can be appended any more.
func (j *Journal) write(value any) error {
	var line bytes.Buffer
	out := json.NewEncoder(&line)
	out.SetEscapeHTML(false)
	if err := out.Encode(value); err != nil {
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

// Close syncs and closes the journal.
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

// ErrJournal is the error that a change could not be written to the journal.
var ErrJournal = errors.New("slowapi: the journal could not be written")
