// This file contains the types of watches, their stored form, and the interfaces that watches need.

// Package watch sends messages about records that begin to match saved searches.
//
//	store ---changes---> readChanges: does the record match now, and did it not before?
//	                       |
//	                     pending matches, in the value of the watch
//	                       |
//	                     Deliver (a job): one message ---> webhook, Slack, mail, or the owner's browsers and devices
//
// A watch is stored as one value: its position in the changes, its pending matches and its
// log. So a match and the position after it are saved in one write.
package watch

import (
	"context"
	"log/slog"
	"time"

	"understudy"
	"understudy/internal/push"
	"understudy/internal/query"
	"understudy/spec"
)

// Limits of watches.
const (
	maxWatchesEach = 20   // the maximum number of watches of one owner
	maxWatches     = 500  // the maximum number of watches of all owners
	maxPending     = 1000 // the maximum number of matches that wait to be sent; a watch with so many tests no more changes
	changesPerRead = 500  // the number of changes that are read and tested together
	maxLogged      = 30   // the maximum number of deliveries in the log of a watch
)

// Records are the stored records and their changes. store.DB implements it.
type Records interface {
	// ReadChanges returns at most limit changes of a source above a number, in order.
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
	// ReadLastChange returns the number of a source's last change, or 0 if there is none.
	ReadLastChange(ctx context.Context, source string) (int64, error)
	// Seek calls yield with the records that a query finds.
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
	// RecordAt returns a record as it was at a time, or ErrNotFound if it did not exist.
	RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error)
}

// Searcher runs saved searches with the rights of their owner. search.Searcher implements it.
type Searcher interface {
	// FindSaved returns the saved search of an owner, or ErrNotFound.
	FindSaved(ctx context.Context, owner, name string) (query.SavedSearch, error)
	// CompileTest returns a test of records: the record matches, and the caller may find it.
	CompileTest(c understudy.Caller, a query.SearchRequest) (func(*understudy.Record) bool, error)
	// Show calls yield with those of the given records that match, as the caller sees them.
	Show(ctx context.Context, c understudy.Caller, a query.SearchRequest, source, kind string, ids []string,
		yield func(query.SearchHit)) error
}

// Owners finds the owners of watches and returns their current rights. callers.Book implements it.
type Owners interface {
	Owner(c understudy.Caller) understudy.Owner
	Resolve(o understudy.Owner) (now understudy.Caller, ok bool)
}

// Policy contains the current settings and the services made from them. It is immutable; SetPolicy replaces it.
type Policy struct {
	Search Searcher
	Owners Owners
	Rules  Rules
	Mailer *Mailer    // sends mail; nil if no mail server is set
	Push   *push.Book // notifies the browsers and devices of people; nil if nothing does
	URL    string     // the viewer's address for people, with which links begin
}

// Options are the dependencies and settings of a Book.
type Options struct {
	Sources []*spec.Source
	Records Records
	KV      understudy.SharedKV
	Key     []byte // the secret from which the ids of messages are computed
	// Enqueue creates a job of Kind. If a job with the same key is waiting or running, it returns that job.
	Enqueue func(ctx context.Context, jobs ...understudy.Job) ([]int64, error)
	// IsLeader reports whether this process finds the matches for all processes on the database. nil means always.
	IsLeader func() bool
	Audit    understudy.Auditor // records each message as an export by the watch's owner; nil if nothing is recorded
	Now      func() time.Time   // the clock; nil means time.Now
	Logger   *slog.Logger       // receives log messages; nil means no log
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
	// Stopped says why the watch is stopped; "" means that it is active.
	Stopped   string    `json:"stopped,omitempty"`
	Continues bool      `json:"goes,omitempty"`   // whether Resume continues where the watch stopped; otherwise it starts with new changes
	Failing   time.Time `json:"failing,omitzero"` // when sending began to fail; zero after a success
	Told      int64     `json:"told,omitempty"`   // the number of matches sent so far
	Sent      time.Time `json:"sent,omitzero"`    // when the last message was sent
}

// Paused is the value of State.Stopped for a watch that a person has paused.
const Paused = "It was paused."

// Delivery is an entry for a message in the log of a watch.
type Delivery struct {
	At      time.Time `json:"at"` // when the message was last sent
	ID      string    `json:"id"`
	Test    bool      `json:"test,omitempty"`
	Matches int       `json:"matches,omitempty"`
	Outcome Outcome   `json:"outcome"`
	Said    string    `json:"said,omitempty"` // the receiver's answer, or the error
	Tries   int       `json:"tries"`
}

// Outcome is the result of a delivery.
type Outcome string

// The possible outcomes of a delivery.
const (
	Delivered Outcome = "delivered"
	Failed    Outcome = "failed"  // the delivery failed and will be tried again
	Refused   Outcome = "refused" // the receiver refused the message, which is not sent again
)

// Status is a watch with its state and log, for people.
type Status struct {
	Watch   Watch
	State   State
	Pending int
	Log     []Delivery // the deliveries, newest first
}

// kept is the stored form of a watch with its state and log.
type kept struct {
	Watch
	State
	At      map[string]int64 `json:"at"` // the number of the last change that was tested, by source
	Pending []match          `json:"pending,omitempty"`
	// Batch is the number of matches of Pending in a message that was sent without success, so that a retry sends
	// the same message with the same id. It is 0 if there is no such message.
	Batch int        `json:"batch,omitempty"`
	Log   []Delivery `json:"log,omitempty"`
}

// match identifies a matching record by the number of the change that made it match. The number reveals nothing
// about the record if the record is erased later.
type match struct {
	Source string `json:"s"`
	N      int64  `json:"n"`
}
