// What the store is asked for: settings, answers about itself, limits.

// Package store keeps everything the mirror has learned, in one SQLite file; it is
// with the packages below it the only one that speaks SQL.
package store

import (
	"log/slog"
	"time"

	"understudy"
	"understudy/spec"
)

// Options are the settings of a store. The zero value of everything but Path
// is good.
type Options struct {
	// Path is the database file; its folder is made (0700) when it is missing.
	Path string
	// Specs are the compiled specs by source name. They say what a kind's ids
	// begin with. A source without one is kept all the same, less densely.
	Specs map[string]*spec.Spec
	// Limit is how many bytes the database file and its log may take together;
	// 0: as much as the disk has. Near it what was not read for longest goes
	// (package evict); when nothing more may go, Save fails with ErrNotStored and
	// what is held stays readable. A file that is larger already does not grow
	// further.
	Limit int64
	// Retention says how long records are kept, by source and kind: those whose
	// clock is older are not stored, and Expire lists those that got older.
	Retention map[string]map[string]time.Duration
	// ToErase is told that a save has listed something for erasing; it must
	// return at once. May be nil.
	ToErase func()
	// SaveTime is the longest one page may hold up other writers, its own
	// statements counted alone; 0 is 2 s.
	SaveTime time.Duration
	// Readers is how many connections read at once; 0 is 4.
	Readers int
	Now     func() time.Time // nil: time.Now
	Logger  *slog.Logger     // nil: nothing is logged
}

func (o Options) withDefaults() Options {
	understudy.SetDefaults(&o.Logger, &o.Now)
	if o.SaveTime <= 0 {
		o.SaveTime = 2 * time.Second
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	return o
}

// maxLog is how long the log may get before it is written back into the file.
const maxLog = 32 << 20

// logShare is the part of the limit that the log may take.
func (o *Options) logShare() int64 {
	if o.Limit <= 0 {
		return maxLog
	}
	return min(maxLog, max(o.Limit/8, minLog))
}

// minLog is what a save or two need.
const minLog = 64 << 10

// KindState is what is known of one kind without counting anything.
type KindState struct {
	Kind       string
	Records    int64 // held now: came and not gone
	Changes    int64 // of this kind, ever
	Generation int64 // rises with every write that touches the kind
	Unclocked  int64 // records without a time in the clock of the spec, or all of a kind without a clock; counted up to 1,000
}

// Stats is what `store stats` prints. All counts are of the whole store.
type Stats struct {
	Space     Space
	Records   int64 // held now
	Versions  int64 // distinct bodies
	Pages     int64
	Changes   int64
	Blocks    int64 // packed groups of versions
	Packed    int64 // bytes of all bodies as they lie in the file
	Unpacked  int64 // bytes of all bodies as upstream sent them, and their bookkeeping
	PerRecord float64
	Kinds     []KindStats
}

// Space is what a store takes and what had to go for it; finding out is cheap.
type Space struct {
	File    int64 `json:"file"`  // bytes of the database file, in use or free
	WAL     int64 `json:"log"`   // bytes of the write-ahead log beside it
	Free    int64 `json:"free"`  // bytes inside File that are free to be used again
	Limit   int64 `json:"limit"` // of both together; 0: none
	Damaged bool  `json:"-"`     // part of the file could not be read since the store was opened

	EvictedPages    int64     `json:"evicted_pages"` // to stay under the limit, since the store was made
	EvictedVersions int64     `json:"evicted_versions"`
	EvictedAt       time.Time `json:"evicted_at,omitzero"` // the last time; zero: never

	Trouble string `json:"trouble,omitempty"` // why nothing can be saved, or not all be read; for a caller that knows
	Read    Reads  `json:"read"`
}

// Reads counts what readers have read since the store was opened.
type Reads struct {
	Rows   int64 `json:"rows"`   // of tables
	Index  int64 `json:"index"`  // chunks and postings
	Blocks int64 `json:"blocks"` // of bodies
}

// KindStats is one kind's line in Stats.
type KindStats struct {
	Source           string
	State            KindState
	Versions         int64
	Packed, Unpacked int64
}

// MaxChanges is the most changes one call of Changes returns.
const MaxChanges = 10_000

const (
	// seenEvery is how old Seen of a record in a final state may get before an
	// unchanged observation of it is worth a write.
	seenEvery = time.Hour
	// reorder is how much older than the held observation an observation may be and
	// still be taken for one that lost a race. Anything older means that the
	// clock was set back, and is believed.
	reorder = 5 * time.Minute
)
