// This file declares what callers of the store use: options, statistics, limits.

// Package store keeps everything that the mirror has learned, in one SQLite file. Only this package and those
// below it use SQL.
package store

import (
	"log/slog"
	"time"

	"understudy/internal/store/db"
	"understudy/spec"
)

// Options are the settings of a store. Only Path is required.
type Options struct {
	// Path is the database file, or the DSN of a PostgreSQL database (IsPostgreSQL). Open creates the folder of a file
	// with mode 0700 if it is missing.
	Path string
	// Specs are the compiled specs by source name. They give the common prefix of a kind's ids. A source
	// without a spec is also stored, but takes more space.
	Specs map[string]*spec.Spec
	// Limit is how many bytes the database file and its log may take together; 0 means no limit. Near the limit
	// the least recently read data is deleted (package evict). If nothing more can be deleted, Save fails with
	// ErrNotStored, but reading still works. A file that is already larger does not grow further.
	Limit int64
	// Retention says how long records are kept, by source and kind. Records with an older clock are not stored,
	// and Expire lists those that have become too old.
	Retention map[string]map[string]time.Duration
	// ToErase is called after a save that listed something for erasing. It must return at once and may be nil.
	ToErase func()
	// SaveTime is how long one page may delay other writers; only its own statements count. 0 means 2 s.
	SaveTime time.Duration
	// Readers is the number of connections for reading; 0 means 4.
	Readers int
	Now     func() time.Time // returns the current time; nil means time.Now
	Logger  *slog.Logger     // receives warnings and errors; nil means that nothing is logged

	unfinished bool // opens a copy that Move has not finished
}

// maxLog is the size in bytes from which the log is copied into the database file.
const maxLog = 32 << 20

// logShare returns how many bytes of the limit the log may take.
func (o *Options) logShare() int64 {
	if o.Limit <= 0 {
		return maxLog
	}
	return min(maxLog, max(o.Limit/8, minLog))
}

// minLog is the log size in bytes that one or two saves need.
const minLog = 64 << 10

// KindState is what is known of one kind without counting rows.
type KindState struct {
	Kind       string `json:"kind"`
	Records    int64  `json:"records"` // the number of records of the kind that are present now
	Changes    int64  `json:"changes"` // changes of this kind since the store was created
	Generation int64  `json:"-"`       // grows with every write to the kind
	// Unclocked is the number of records whose clock has no time, or of all records if the kind has no clock. Counting
	// stops at 1,000.
	Unclocked int64 `json:"-"`
}

// Stats is what `store stats` prints. All counts are of the whole store.
type Stats struct {
	Space     Space       `json:"space"`
	Records   int64       `json:"records"`  // the number of records of all kinds that are present now
	Versions  int64       `json:"versions"` // the number of distinct bodies of records
	Pages     int64       `json:"pages"`
	Changes   int64       `json:"changes"`
	Blocks    int64       `json:"blocks"`   // the number of blocks, which are packed groups of versions
	Packed    int64       `json:"packed"`   // bytes of all bodies as compressed in the file
	Unpacked  int64       `json:"unpacked"` // bytes of all bodies before compression, with their metadata
	PerRecord float64     `json:"bytes_per_record"`
	Kinds     []KindStats `json:"kinds"`
	Tables    []TableSize `json:"tables"` // the largest one first
}

// TableSize is the bytes of a table with its indexes.
type TableSize struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Space is the disk space of a store, and what it evicted. It is cheap to measure.
type Space struct {
	File    int64 `json:"file"`  // bytes of the database file, in use or free
	WAL     int64 `json:"log"`   // bytes of the write-ahead log beside it
	Free    int64 `json:"free"`  // bytes inside File that can be used again
	Limit   int64 `json:"limit"` // limit in bytes of file and log together, or 0
	Damaged bool  `json:"-"`     // part of the file could not be read since the store was opened

	EvictedPages    int64     `json:"evicted_pages"` // the number of pages evicted to stay under the limit, since the store was created
	EvictedVersions int64     `json:"evicted_versions"`
	EvictedAt       time.Time `json:"evicted_at,omitzero"` // the time of the last eviction, or zero

	// Trouble says why nothing can be saved or some data can't be read, or is "". The caller sets it, not the store.
	Trouble string `json:"trouble,omitempty"`
	Read    Reads  `json:"read"`
	// Writing is the write that has had the writing connection for longer than a second, or nil.
	Writing *db.Writing `json:"writing,omitempty"`
	// LongIDs is how many bytes shorter ids would save. Shrink sets it if it could not store them, because other processes use the database.
	LongIDs int64 `json:"-"`
}

// Reads counts what readers have read since the store was opened.
type Reads struct {
	Rows   int64 `json:"rows"`   // bytes read from rows of tables
	Index  int64 `json:"index"`  // bytes read from the chunks and postings of indexes
	Blocks int64 `json:"blocks"` // bytes read from blocks, the groups in which bodies are compressed
}

// KindStats is one kind's line in Stats.
type KindStats struct {
	Source   string    `json:"source"`
	State    KindState `json:"state"`
	Versions int64     `json:"versions"`
	Packed   int64     `json:"packed"`
	Unpacked int64     `json:"unpacked"`
}

// MaxChanges is the maximum number of changes that one call of ReadChanges returns.
const MaxChanges = 10_000

const (
	// minSeenInterval is the age from which an unchanged observation updates Seen of a record in a final state.
	minSeenInterval = time.Hour
	// maxLateness is how much older than the stored observation a late observation can be. If an observation is older
	// than that, the clock was set back, and the observation counts.
	maxLateness = 5 * time.Minute
)
