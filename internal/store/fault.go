// SQLite's errors in words a person can act on.

package store

import (
	"context"
	"errors"
	"fmt"

	"understudy"
)

// fault is an error of the database, with a short reason. When it kept
// something from being saved it is understudy.ErrNotStored as well.
type fault struct {
	reason string
	saving bool
	err    error
}

// Error is "not stored: disk full (…)" or "disk full (…)".
func (f *fault) Error() string {
	s := f.reason
	if f.saving {
		s = understudy.ErrNotStored.Error() + ": " + s
	}
	if f.err != nil {
		s += " (" + f.err.Error() + ")"
	}
	return s
}

// Short is the reason alone: "disk full", "disk I/O error", "locked".
func (f *fault) Short() string { return f.reason }

// Unwrap gives ErrNotStored, if that is what it is, and the cause.
func (f *fault) Unwrap() []error {
	if f.saving {
		return []error{understudy.ErrNotStored, f.err}
	}
	return []error{f.err}
}

// SQLite's primary result codes (https://www.sqlite.org/rescode.html).
const (
	sqliteBusy     = 5
	sqliteLocked   = 6
	sqliteNoMem    = 7
	sqliteReadOnly = 8
	sqliteIOErr    = 10
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteNotADB   = 26
)

// reasonOf is what a person calls an error of the driver, and its primary
// result code; 0 when it is none of the driver's.
func reasonOf(err error) (reason string, code int) {
	var coded interface{ Code() int }
	if !errors.As(err, &coded) {
		return "", 0
	}
	code = coded.Code() & 0xff
	switch code {
	case sqliteFull:
		return "disk full", code
	case sqliteIOErr:
		return "disk I/O error", code
	case sqliteBusy, sqliteLocked:
		return fmt.Sprintf("database locked by another process for more than %v", busy), code
	case sqliteReadOnly:
		return "database is read-only", code
	case sqliteCantOpen:
		return "cannot open the database file", code
	case sqliteNoMem:
		return "out of memory", code
	case sqliteCorrupt:
		return "database damaged; run `understudy store verify`", code
	case sqliteNotADB:
		return "not a database", code
	}
	return "database error", code
}

// failed words err as the room does: what was being done, to what, why.
// Errors of the root package and of contexts pass through as they are.
func failed(saving bool, err error, what string, args ...any) error {
	what = fmt.Sprintf(what, args...)
	var known *fault
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &known),
		errors.Is(err, understudy.ErrNotFound), errors.Is(err, understudy.ErrOutdated),
		errors.Is(err, understudy.ErrNotStored), errors.Is(err, understudy.ErrClosed), errors.Is(err, understudy.ErrInvalid),
		errors.Is(err, understudy.ErrLost), errors.Is(err, understudy.ErrIndexing):
		return fmt.Errorf("store: %s: %w", what, err)
	}
	reason, _ := reasonOf(err)
	if reason == "" {
		reason = "internal error"
	}
	return fmt.Errorf("store: %s: %w", what, &fault{reason: reason, saving: saving, err: err})
}

const damagedReason = "database damaged; run `understudy store verify`"

// damaged is the fault of stored bytes that are not what was stored.
func damaged(what string, args ...any) error {
	return &fault{reason: damagedReason, err: fmt.Errorf(what, args...)}
}

// isDamaged reports whether err is one of damaged.
func isDamaged(err error) bool {
	var f *fault
	return errors.As(err, &f) && f.reason == damagedReason
}
