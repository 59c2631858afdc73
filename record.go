// Record: one thing of the API, named by kind and id.

package understudy

import "time"

// Record is the newest held version of one thing in one shape.
type Record struct {
	Source, Kind, Shape, ID string

	Number  int64     // the store's number of the record, the same for every shape
	Version int64     // the store's number of this body
	Body    []byte    // the JSON object, byte for byte as upstream sent it; never changed
	Since   time.Time // when this body was first seen
	Seen    time.Time // when upstream last showed it
	Final   bool      // it is in one of the spec's final states
	Invalid bool      // a write touched it since: only a fetch may answer, or the outage rules
}

// Annotation is what people wrote on a record: notes, and the mark that it is handled. It
// is kept here alone, upstream knows nothing of it. It must not be changed.
type Annotation struct {
	Source, Kind, ID string
	Notes            []Note // oldest first
	Handled          *Mark  // nil: it is not handled
}

// Note is one text that somebody wrote.
type Note struct {
	Number int64     `json:"number"` // among all notes
	Text   string    `json:"text"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

// Mark is who marked a record as handled.
type Mark struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Bounds of notes.
const (
	MaxNote  = 4000 // bytes of a note
	MaxNotes = 100  // of one record
)
