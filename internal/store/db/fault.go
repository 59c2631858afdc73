// This file words the errors of a database so that a person can act on them.

package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"understudy"
)

// Fault is a database error with a short reason. If it prevented a save, it is also understudy.ErrNotStored.
type Fault struct {
	Reason string
	Saving bool
	Err    error
}

// Error returns "not stored: disk full (…)" or "disk full (…)".
func (f *Fault) Error() string {
	s := f.Reason
	if f.Saving {
		s = understudy.ErrNotStored.Error() + ": " + s
	}
	if f.Err != nil {
		s += " (" + f.Err.Error() + ")"
	}
	return s
}

// ShortString returns only the reason, such as "disk full", "disk I/O error" or "locked".
func (f *Fault) ShortString() string { return f.Reason }

// Unwrap returns the cause, and the kinds of the root package that apply.
func (f *Fault) Unwrap() []error {
	kinds := slices.DeleteFunc([]error{f.Err}, func(err error) bool { return err == nil })
	if f.Saving {
		kinds = append(kinds, understudy.ErrNotStored)
	}
	if f.Reason == understudy.ErrDamaged.Error() {
		kinds = append(kinds, understudy.ErrDamaged)
	}
	switch ClassOf(f.Err) {
	case Conflict:
		kinds = append(kinds, understudy.ErrConflict)
	case Away, Locked, Aborted, Full:
		kinds = append(kinds, understudy.ErrStoreUnavailable)
	}
	return kinds
}

// Class is what sort of failure an error of an engine is.
type Class uint8

// The classes of failures.
const (
	NoClass   Class = iota // not an error of a database
	Failed                 // any other error of a database
	Damaged                // stored bytes are not what was written
	Foreign                // the file or the database is of another make
	Schema                 // a table or a column is missing
	Locked                 // another process holds a lock for too long
	Aborted                // another transaction was in the way, and nothing was done; it may succeed when it is run again
	Full                   // no space is left
	Away                   // the database does not answer
	Conflict               // the change contradicts a constraint of the schema
	Postponed              // a part of the schema is kept for older processes; the database can be used
)

// Error is an error of an engine with its class and its reason in words. Its text is that of the engine.
type Error struct {
	Class      Class
	Reason     string
	Constraint string // the name of the constraint that the change contradicts, if the engine names it
	Err        error
}

// Error returns the engine's text.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error of the engine's driver.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of an error, or NoClass if no database caused it.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return NoClass
}

// ReasonOf returns the reason in words for an error of a database, or "" for any other error.
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// WrapError adds to err what operation failed, on what and why. Errors of the root package and of contexts get
// only the operation.
func WrapError(saving bool, err error, what string, args ...any) error {
	what = fmt.Sprintf(what, args...)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, new(*Fault)),
		errors.Is(err, understudy.ErrNotFound), errors.Is(err, understudy.ErrOutdated),
		errors.Is(err, understudy.ErrNotStored), errors.Is(err, understudy.ErrClosed), errors.Is(err, understudy.ErrInvalid),
		errors.Is(err, understudy.ErrLeaseLost), errors.Is(err, understudy.ErrIndexing):
		return fmt.Errorf("store: %s: %w", what, err)
	}
	reason := cmp.Or(ReasonOf(err), "internal error")
	return fmt.Errorf("store: %s: %w", what, &Fault{Reason: reason, Saving: saving, Err: err})
}

// damage is an error about stored bytes that are not what was written.
type damage struct{ cause *Error }

// Error returns what is wrong with the bytes.
func (d damage) Error() string { return d.cause.Error() }

// Unwrap returns the error that has the class Damaged.
func (d damage) Unwrap() error { return d.cause }

// NewDamageError returns an error about stored bytes that are not what was written.
func NewDamageError(what string, args ...any) error {
	return damage{&Error{Class: Damaged, Reason: understudy.ErrDamaged.Error(), Err: fmt.Errorf(what, args...)}}
}

// IsDamaged reports whether err came from NewDamageError.
func IsDamaged(err error) bool { return errors.As(err, new(damage)) }

// Guard runs work that reads stored values. A column of another type, or bytes of another form than were
// written, may end work in a runtime error. Guard returns it as a damage error that names the place in the
// code.
func Guard(work func() error) (err error) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case runtime.Error:
			err = NewDamageError("a stored value is of another type or form than was written%s", panicPlace())
		default:
			panic(why)
		}
	}()
	return work()
}

// panicPlace returns the function of this module in which a recovered panic began.
func panicPlace() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "understudy/") {
			return fmt.Sprintf(", in %s:%d", path.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}
