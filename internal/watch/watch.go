// Watches: what they are, what keeps them, and what they need.

// Package watch tells people of records that begin to match their saved searches.
//
//	store ---changes---> look: does the record match now, and did it not before?
//	                       |
//	                     pending, in the value of the watch
//	                       |
//	                     tell (a job): one message ---> webhook, Slack or mail
//
// Everything of a watch is one value: where it stands in the changes, what it has still to
// tell, and its log. So a match and the place behind it are kept in one write.
package watch

import (
	"context"
	"log/slog"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/spec"
)

// Bounds of watches.
const (
	mostEach    = 20   // of one owner
	mostWatches = 500  // of all
	mostPending = 1000 // matches that wait to be told; then the watch looks no further
	pageSize    = 500  // changes that are looked at together
	mostLog     = 30   // deliveries in the log
)

// Records are what is held, and what changed; store.DB fills it.
type Records interface {
	// Changes are a source's changes above a number, in order.
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
	// LastChange is the number of a source's last change, or 0.
	ReadLastChange(ctx context.Context, source string) (int64, error)
	// Seek calls yield with the records of a query.
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
	// RecordAt is a record as it was at a time; ErrNotFound when it was not there.
	RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error)
}

// Searcher reads saved searches as their owner; search.Searcher fills it.
type Searcher interface {
	// Own is the saved search of an owner; ErrNotFound when there is none.
	FindSaved(ctx context.Context, owner, name string) (query.SavedSearch, error)
	// Test reports whether a record matches and the caller may find it.
	CompileTest(c understudy.Caller, a query.SearchRequest) (func(*understudy.Record) bool, error)
	// Show yields those of some records that match, as the caller sees them.
	Show(ctx context.Context, c understudy.Caller, a query.SearchRequest, source, kind string, ids []string,
		yield func(query.SearchHit)) error
}

// Owners know what the owner of a watch may do now; callers.Book fills it.
type Owners interface {
	Owner(c understudy.Caller) understudy.Owner
	Resolve(o understudy.Owner) (now understudy.Caller, ok bool)
}

// Policy is what is in force. It is replaced whole.
type Policy struct {
	Search Searcher
	Owners Owners
	Rules  Rules
	Mailer *Mailer // nil: no mail is sent
	URL    string  // of the viewer, as people reach it; links begin with it
}

// Options are what a Book is made of.
type Options struct {
	Sources []*spec.Source
	Records Records
	KV      understudy.KV
	Key     []byte // makes the ids of messages
	// Enqueue makes a job of Kind, or finds the live one of its key.
	Enqueue func(ctx context.Context, jobs ...understudy.Job) ([]int64, error)
	Audit   understudy.Auditor // lists each message as an export of its owner; nil: nothing is listed
	Now     func() time.Time   // nil: time.Now
	Logger  *slog.Logger       // nil: discard
}

// Watch is a saved search that tells of new matches.
type Watch struct {
	ID     string           `json:"id"`
	Owner  understudy.Owner `json:"owner"`
	Search string           `json:"search"` // the name of a saved search of the owner
	To     Destination      `json:"to"`
	Made   time.Time        `json:"made"`
}

// State is how a watch does.
type State struct {
	// Stopped is why it tells nothing; "": it watches.
	Stopped string    `json:"stopped,omitempty"`
	Goes    bool      `json:"goes,omitempty"`   // when it is resumed it goes on where it stopped, not with what comes then
	Failing time.Time `json:"failing,omitzero"` // since when every try has failed
	Told    int64     `json:"told,omitempty"`   // matches, ever
	Sent    time.Time `json:"sent,omitzero"`    // the last message
}

// Paused is why a watch is stopped that a person has paused.
const Paused = "It was paused."

// Delivery is a message in the log of a watch.
type Delivery struct {
	At      time.Time `json:"at"` // of the last try
	ID      string    `json:"id"`
	Test    bool      `json:"test,omitempty"`
	Matches int       `json:"matches,omitempty"`
	Outcome Outcome   `json:"outcome"`
	Said    string    `json:"said,omitempty"` // what the receiver said, or what was wrong
	Tries   int       `json:"tries"`
}

// Outcome is what became of a delivery.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered"
	Failed    Outcome = "failed"  // it is tried again
	Refused   Outcome = "refused" // it is not
)

// Status is a watch with its state and log, for people.
type Status struct {
	Watch   Watch
	State   State
	Pending int
	Log     []Delivery // newest first
}

// kept is a watch as its value has it.
type kept struct {
	Watch
	State
	At      map[string]int64 `json:"at"` // the last change looked at, by source
	Pending []match          `json:"pending,omitempty"`
	// Batch is how many of Pending are in a message that was tried, so that the next try
	// sends the same under the same id; 0: none.
	Batch int        `json:"batch,omitempty"`
	Log   []Delivery `json:"log,omitempty"`
}

// match is a record that is to be told, by the change that made it match: a number names
// nothing of a record that is erased meanwhile.
type match struct {
	Source string `json:"s"`
	N      int64  `json:"n"`
}
