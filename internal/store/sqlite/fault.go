// This file classifies SQLite's errors.

package sqlite

import (
	"errors"
	"fmt"

	"understudy"
	"understudy/internal/store/db"
)

// SQLite's primary result codes (https://www.sqlite.org/rescode.html).
const (
	codeError    = 1
	codeBusy     = 5
	codeLocked   = 6
	codeNoMem    = 7
	codeReadOnly = 8
	codeIOErr    = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeNotADB   = 26
)

// wrapError returns an error of the driver with its class and its reason in words. It returns any other error as
// it is.
func wrapError(err error) error {
	var coded interface{ Code() int }
	if err == nil || !errors.As(err, &coded) || db.ClassOf(err) != db.NoClass {
		return err
	}
	class, reason := db.Failed, "database error"
	switch coded.Code() & 0xff {
	case codeFull:
		class, reason = db.Full, "disk full"
	case codeIOErr:
		reason = "disk I/O error"
	case codeBusy, codeLocked:
		class, reason = db.Locked, fmt.Sprintf("database locked by another process for more than %v", busyWait)
	case codeReadOnly:
		reason = "database is read-only"
	case codeCantOpen:
		reason = "cannot open the database file"
	case codeNoMem:
		reason = "out of memory"
	case codeCorrupt:
		class, reason = db.Damaged, understudy.ErrDamaged.Error()
	case codeNotADB:
		class, reason = db.Foreign, "not a database"
	case codeError:
		class = db.Schema
	}
	return &db.Error{Class: class, Reason: reason, Err: err}
}
