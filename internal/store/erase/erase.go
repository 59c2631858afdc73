// Erasing takes records out of every file for good, each listed with its cause:
//
//	a cause (upstream said 404, a field was emptied, a number, age)
//	   |   in one transaction
//	rows of erasing: so that a crash cannot lose it
//	   |   EraseListed, in small transactions (job.go)
//	bodies, pages, files
//	   |   Pool.Sanitize
//	free places, gaps and the log of the file
//	   |   in one transaction
//	the receipt: a row of erasure that is done

// Package erase takes out of the store what people, upstream or age want gone.
package erase

import (
	"context"
	"time"

	"understudy/internal/store/annotations"
	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
	"understudy/spec"
)

// Kind is a kind of records as the store numbers it.
type Kind struct {
	Number int64
	Prefix string // what most of its ids begin with
	Name   string
	Spec   *spec.Kind // nil when the spec does not name it
}

// Catalog is the sources and kinds that the store knows.
type Catalog interface {
	Source(name string) (number int64, ok bool)
	Kind(source, kind string) (k Kind, ok bool)
}

// Rows is what the store holds, read and taken out.
type Rows interface {
	// VisitBodies calls each for every body of a source that is held.
	VisitBodies(ctx context.Context, source int64, each func(k Kind, e *codec.Entry)) error
	// VisitPages calls each for every page of a source.
	VisitPages(ctx context.Context, source int64, each func(page int64, sk *codec.Skeleton)) error
	// WatchPages calls saved with each page saved from now on and the versions it
	// shows, with the writing connection held, until end is called. page is 0 when
	// the records are kept and the page is not.
	WatchPages(ctx context.Context, saved func(page int64, versions []int64)) (end func(), err error)
	// DeletePages deletes pages in a transaction and returns how many there were.
	DeletePages(c *sqlite.Conn, pages []int64) (gone int64, err error)
	// Versions opens the versions of records for one transaction.
	Versions(c *sqlite.Conn) Versions
}

// Versions are the versions of records in one transaction.
type Versions interface {
	// Of are all versions of a record whose bodies are held, and which of them
	// are the newest of a record that is present.
	ListVersions(record int64) (present map[int64]bool, all []int64, err error)
	// Entry is a version with its body.
	ReadEntry(version int64) (*codec.Entry, error)
	// Erase takes the body of a version out, and what its record is found by.
	// sparePresent leaves one that is the newest of a record that is present.
	Erase(source, kind string, record, version int64, sparePresent bool) (taken bool, err error)
	// Forget deletes what is known of the past of a record.
	Forget(record int64) error
	// Write writes what was changed.
	Write() error
}

// Index is what else the store does for an erasure.
type Index interface {
	// Mark makes every record that an erasure lists go, as a change, and refuses
	// to store it again.
	Mark(ctx context.Context, erasure int64) error
	// SanitizeIndex replaces what words that are gone have left in the index of words.
	SanitizeIndex(ctx context.Context) error
}

// Store is the store that records are erased from.
type Store interface {
	Catalog
	Rows
	Index
}

// Contents are the contents of records, in files.
type Contents interface {
	// Forget deletes the contents of a record and returns how many there were.
	Forget(source, kind, id string) (files int, err error)
	// Left is the error of a file that could not be deleted.
	Left() error
}

// Options are the settings of an Eraser.
type Options struct {
	Pool        *sqlite.Pool
	Store       Store
	Annotations *annotations.Book
	Now         func() time.Time
}

// Eraser erases records of one store. Many goroutines may use it at once.
type Eraser struct {
	pool    *sqlite.Pool
	store   Store
	written *annotations.Book // by people
	now     func() time.Time
	running chan struct{} // held by the call under way that overwrites the file
}

// New makes an Eraser.
func New(o Options) *Eraser {
	return &Eraser{pool: o.Pool, store: o.Store, written: o.Annotations, now: o.Now, running: make(chan struct{}, 1)}
}
