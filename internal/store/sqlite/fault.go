// This file words SQLite's errors so that a person can act on them.

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"

	"understudy"
)

// Fault is a database error with a short reason. If it prevented a save, it is also understudy.ErrNotStored.
type Fault struct {
	Reason string
	Saving bool
	Err    error
}

// Error returns the reason with details, as in "disk full (…)". For a failed save it begins with "not stored: ".
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

// Unwrap returns the cause, and ErrNotStored or ErrDamaged where they apply.
func (f *Fault) Unwrap() []error {
	kinds := []error{f.Err}
	if f.Saving {
		kinds = append(kinds, understudy.ErrNotStored)
	}
	if f.Reason == understudy.ErrDamaged.Error() {
		kinds = append(kinds, understudy.ErrDamaged)
	}
	return kinds
}

// SQLite's primary result codes (https://www.sqlite.org/rescode.html).
const (
	CodeError    = 1
	codeBusy     = 5
	codeLocked   = 6
	codeNoMem    = 7
	codeReadOnly = 8
	codeIOErr    = 10
	CodeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	CodeNotADB   = 26
)

// ReasonOf returns the reason in words for an error of the driver, and its primary result code. For other
// errors it returns "" and 0.
func ReasonOf(err error) (reason string, code int) {
	var coded interface{ Code() int }
	if !errors.As(err, &coded) {
		return "", 0
	}
	code = coded.Code() & 0xff
	switch code {
	case codeFull:
		return "disk full", code
	case codeIOErr:
		return "disk I/O error", code
	case codeBusy, codeLocked:
		return fmt.Sprintf("database locked by another process for more than %v", busyWait), code
	case codeReadOnly:
		return "database is read-only", code
	case codeCantOpen:
		return "cannot open the database file", code
	case codeNoMem:
		return "out of memory", code
	case CodeCorrupt:
		return understudy.ErrDamaged.Error(), code
	case CodeNotADB:
		return "not a database", code
	}
	return "database error", code
}

// WrapError adds to err which operation failed, on which object, and why. Errors of the root package and of contexts
// get only the operation.
func WrapError(saving bool, err error, what string, args ...any) error {
	what = fmt.Sprintf(what, args...)
	var known *Fault
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &known),
		errors.Is(err, understudy.ErrNotFound), errors.Is(err, understudy.ErrOutdated),
		errors.Is(err, understudy.ErrNotStored), errors.Is(err, understudy.ErrClosed), errors.Is(err, understudy.ErrInvalid),
		errors.Is(err, understudy.ErrLeaseLost), errors.Is(err, understudy.ErrIndexing):
		return fmt.Errorf("store: %s: %w", what, err)
	}
	reason, _ := ReasonOf(err)
	if reason == "" {
		reason = "internal error"
	}
	return fmt.Errorf("store: %s: %w", what, &Fault{Reason: reason, Saving: saving, Err: err})
}

// damage is an error about stored bytes that differ from what was written.
type damage struct{ error }

// Unwrap returns the cause.
func (d damage) Unwrap() error { return d.error }

// Code returns SQLite's result code for a damaged file.
func (damage) Code() int { return CodeCorrupt }

// NewDamageError returns an error about stored bytes that differ from what was written.
func NewDamageError(what string, args ...any) error { return damage{fmt.Errorf(what, args...)} }

// Guard runs work that reads stored values. If a stored value has another type or form than was written, work may panic
// with a runtime error. Guard returns that panic as a damage error that names the place in the code.
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

// panicPlace returns the name of the function of this module in which a recovered panic began.
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

// IsDamaged reports whether err came from NewDamageError.
func IsDamaged(err error) bool {
	var d damage
	return errors.As(err, &d)
}
