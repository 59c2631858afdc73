// Erasing removes records from every file for good. Each is listed with its cause:
//
//	a cause (the upstream returned 404, a field was emptied, a request, age)
//	   |   in one transaction
//	rows of erasing: so that a crash cannot lose it
//	   |   EraseListed, in small transactions (job.go)
//	bodies, pages, files
//	   |   Pool.Sanitize
//	free pages, gaps and the log of the file
//	   |   in one transaction
//	the receipt: a row of erasure that is done

// Package erase removes records from the store at the request of people, because the upstream deleted or
// redacted them, or because of their age.
package erase

import (
	"context"
	"time"

	"understudy/internal/store/annotations"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/kv"
	"understudy/spec"
)

// Kind is a kind of records with its number in the store.
type Kind struct {
	Number int64
	Prefix func() string // the prefix of the kind's stored ids, in the transaction that uses it
	Name   string
	Spec   *spec.Kind // nil if the spec does not name it
}

// Store is the store whose records are erased.
type Store interface {
	// FindSource and Kind return the numbers of a source and of a kind that the store knows.
	FindSource(ctx context.Context, name string) (number int64, ok bool, err error)
	Kind(source, kind string) (k Kind, ok bool)
	// VisitBodies calls each for every stored body of a source.
	VisitBodies(ctx context.Context, source int64, each func(k Kind, e *codec.Entry)) error
	// VisitPages calls each for every page of a source.
	VisitPages(ctx context.Context, source int64, each func(page int64, sk *codec.Skeleton)) error
	// WatchPages calls saved with each page that is saved from now on and the versions that it shows, until the caller
	// calls end. The calls come from the writing goroutine. page is 0 if only the records are stored, not the page.
	WatchPages(ctx context.Context, saved func(page int64, versions []int64)) (end func(), err error)
	// DeletePages deletes pages in a transaction and returns how many existed.
	DeletePages(c db.Conn, pages []int64) (gone int64, err error)
	// Versions opens the versions of records for one transaction.
	Versions(c db.Conn) Versions
	// Mark deletes every record that an erasure lists and records a change for each. It also prevents that the record is
	// stored again.
	Mark(ctx context.Context, erasure int64) error
	// SanitizeIndex overwrites what deleted words have left in the index of words.
	SanitizeIndex(ctx context.Context) error
}

// Versions are the versions of records in one transaction.
type Versions interface {
	// ListVersions returns all versions of a record whose bodies are stored, and which of them are the newest
	// of a present record.
	ListVersions(record int64) (present map[int64]bool, all []int64, err error)
	// ReadEntry returns a version with its body.
	ReadEntry(version int64) (*codec.Entry, error)
	// Erase deletes the body of a version and the values by which its record is found. With sparePresent it
	// keeps the newest version of a present record.
	Erase(source, kind string, record, version int64, sparePresent bool) (taken bool, err error)
	// Forget deletes the history of a record.
	Forget(record int64) error
	// Write writes the changed blocks.
	Write() error
}

// Contents are the contents of records, stored in files.
type Contents interface {
	// Forget deletes the contents of a record and returns how many files there were.
	Forget(source, kind, id string) (files int, err error)
	// RetryRemovals deletes files that an earlier Forget could not delete, or returns an error.
	RetryRemovals() error
}

// Options are the settings of an Eraser.
type Options struct {
	Pool        *db.Pool
	Store       Store
	Annotations *annotations.Book
	Values      *kv.Table
	Now         func() time.Time
}

// Eraser erases records of one store. It is safe for concurrent use.
type Eraser struct {
	pool    *db.Pool
	store   Store
	written *annotations.Book // the notes that people wrote about records
	values  *kv.Table
	now     func() time.Time
	running chan struct{} // a channel of one element, which is full while a call erases records or overwrites the file
}

// New returns an Eraser.
func New(o Options) *Eraser {
	return &Eraser{pool: o.Pool, store: o.Store, written: o.Annotations, values: o.Values, now: o.Now, running: make(chan struct{}, 1)}
}
