// Record: one object of the API, identified by kind and id.

package understudy

import "time"

// Record is the newest stored version of one object in one shape.
type Record struct {
	Source, Kind, Shape, ID string

	Number      int64     // the store's number of the record, the same for all its shapes
	Version     int64     // the store's number of this body
	Body        []byte    // the JSON object as the upstream sent it, byte for byte; never changed
	Since       time.Time // when this body was first seen
	Seen        time.Time // when the upstream last returned the record
	Final       bool      // the record is in a final state of the spec
	Invalidated bool      // a write touched the record since; only a fetch may answer, except during an outage
}

// Annotation is what people wrote on a record: notes, and the mark that it is handled. It exists only in
// Understudy's store, not upstream. It must not be changed.
type Annotation struct {
	Source, Kind, ID string
	Notes            []Note // oldest first
	Handled          *Mark  // who handled the record, and when; nil if it is not handled
}

// Note is one text that a person wrote on a record.
type Note struct {
	Number int64     `json:"number"` // unique among all notes
	Text   string    `json:"text"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

// Mark says who marked a record as handled, and when.
type Mark struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Limits of notes.
const (
	MaxNote  = 4000 // size of one note in bytes
	MaxNotes = 100  // notes per record
)
