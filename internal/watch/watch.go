// Watches: their types and stored form, and the interfaces that they need.

// Package watch sends messages about records that begin to match saved searches.
//
//	store ---changes---> readChanges: does the record match now, and did it not before?
//	                       |
//	                     pending matches, in the value of the watch
//	                       |
//	                     Deliver (a job): one message ---> webhook, Slack or mail
//
// A watch is stored as one value: its position in the changes, its pending matches and its
// log. So a match and the position after it are saved in one write.
package watch

import (
	"context"
	"log/slog"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/spec"
)

// Limits of watches.
const (
	maxWatchesEach = 20   // the maximum number of watches of one owner
	maxWatches     = 500  // the maximum number of watches of all owners
	maxPending     = 1000 // how many matches may wait to be sent; then the watch tests no more changes
	changesPerRead = 500  // how many changes are read and tested together
	maxLogged      = 30   // the maximum number of deliveries in the log of a watch
)

// Records are the stored records and their changes. store.DB implements it.
type Records interface {
	// ReadChanges returns at most limit changes of a source above a number, in order.
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
	// ReadLastChange returns the number of a source's last change, or 0.
	ReadLastChange(ctx context.Context, source string) (int64, error)
	// Seek calls yield with the records of a query.
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
	// RecordAt returns a record as it was at a time, or ErrNotFound if it did not exist.
	RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error)
}

// Searcher runs saved searches with the rights of their owner. search.Searcher implements it.
type Searcher interface {
	// FindSaved returns the saved search of an owner, or ErrNotFound.
	FindSaved(ctx context.Context, owner, name string) (query.SavedSearch, error)
	// CompileTest returns a test of whether a record matches and the caller may find it.
	CompileTest(c understudy.Caller, a query.SearchRequest) (func(*understudy.Record) bool, error)
	// Show yields the records of the given ids that match, as the caller sees them.
	Show(ctx context.Context, c understudy.Caller, a query.SearchRequest, source, kind string, ids []string,
		yield func(query.SearchHit)) error
}

// Owners identifies owners of watches and returns their current rights. callers.Book implements it.
type Owners interface {
	Owner(c understudy.Caller) understudy.Owner
	Resolve(o understudy.Owner) (now understudy.Caller, ok bool)
}

// Policy is the current settings and their services. It is immutable; SetPolicy replaces it.
type Policy struct {
	Search Searcher
	Owners Owners
	Rules  Rules
	Mailer *Mailer // the sender of mail, or nil if no mail is sent
	URL    string  // the viewer's address for people; links begin with it
}

// Options are the parts of a Book.
type Options struct {
	Sources []*spec.Source
	Records Records
	KV      understudy.KV
	Key     []byte // the secret from which message ids are computed
	// Enqueue creates a job of Kind, or returns the live job of its key.
	Enqueue func(ctx context.Context, jobs ...understudy.Job) ([]int64, error)
	Audit   understudy.Auditor // records each message as an export by its owner; if nil, nothing is recorded
	Now     func() time.Time   // the clock; if nil, time.Now
	Logger  *slog.Logger       // the logger; if nil, nothing is logged
}

// Watch is a saved search that sends messages about new matches.
type Watch struct {
	ID     string           `json:"id"`
	Owner  understudy.Owner `json:"owner"`
	Search string           `json:"search"` // the name of a saved search of the owner
	To     Destination      `json:"to"`
	Made   time.Time        `json:"made"`
}

// State is the state of a watch.
type State struct {
	// Stopped is why the watch is stopped; "" means it is active.
	Stopped   string    `json:"stopped,omitempty"`
	Continues bool      `json:"goes,omitempty"`   // Resume continues where the watch stopped; otherwise it starts with new changes
	Failing   time.Time `json:"failing,omitzero"` // when the tries began to fail; zero after a success
	Told      int64     `json:"told,omitempty"`   // the number of all matches sent
	Sent      time.Time `json:"sent,omitzero"`    // when the last message was sent
}

// Paused is State.Stopped of a watch that a person has paused.
const Paused = "It was paused."

// Delivery is a message in the log of a watch.
type Delivery struct {
	At      time.Time `json:"at"` // when the message was last tried
	ID      string    `json:"id"`
	Test    bool      `json:"test,omitempty"`
	Matches int       `json:"matches,omitempty"`
	Outcome Outcome   `json:"outcome"`
	Said    string    `json:"said,omitempty"` // the receiver's answer, or the error
	Tries   int       `json:"tries"`
}

// Outcome is the result of a delivery.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered"
	Failed    Outcome = "failed"  // the delivery failed and is tried again
	Refused   Outcome = "refused" // the receiver refused the message, which is not sent again
)

// Status is a watch with its state and log, for people.
type Status struct {
	Watch   Watch
	State   State
	Pending int
	Log     []Delivery // the deliveries, newest first
}

// kept is the stored form of a watch.
type kept struct {
	Watch
	State
	At      map[string]int64 `json:"at"` // the last change that was tested, by source
	Pending []match          `json:"pending,omitempty"`
	// Batch is how many of Pending are in a message that was tried, so that a retry sends the same message with the
	// same id. 0 means that none was tried.
	Batch int        `json:"batch,omitempty"`
	Log   []Delivery `json:"log,omitempty"`
}

// match identifies a matching record by the change that made it match. The number reveals nothing if the record is
// erased meanwhile.
type match struct {
	Source string `json:"s"`
	N      int64  `json:"n"`
}
