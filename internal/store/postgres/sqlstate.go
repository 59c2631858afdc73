// This file classifies PostgreSQL's errors.

package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"understudy"
	"understudy/internal/store/db"
)

// PostgreSQL's error codes and their classes, the first two characters of a code
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const (
	classConnection = "08"
	classConstraint = "23"
	classSignIn     = "28"
	classSchema     = "42"
	classIntervened = "57"
	classDamage     = "XX"
	codeProtocol    = "08P01"
	codeSerialize   = "40001"
	codeDeadlock    = "40P01"
	codeDiskFull    = "53100"
	codeNoMemory    = "53200"
	codeConnections = "53300"
	codeLockTimeout = "55P03"
	codeCancelled   = "57014"
	codeReadOnly    = "25006"
	codePermission  = "42501"
	codeNoDatabase  = "3D000"
)

// wrapError returns an error of the driver with its class and a reason in words. It returns any other error unchanged.
func wrapError(err error) error {
	if err == nil || db.ClassOf(err) != db.NoClass {
		return err
	}
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return wrapConnectionError(err)
	}
	class, reason := db.Failed, "database error"
	switch code := answer.Code; {
	case code == codeSerialize, code == codeDeadlock, code == codeLockTimeout:
		class, reason = db.Locked, "another transaction was in the way; try again"
	case code == codeDiskFull:
		class, reason = db.Full, "disk full"
	case code == codeNoMemory:
		reason = "the database is out of memory"
	case code == codeConnections:
		class, reason = db.Away, "the database accepts no more connections"
	case code == codeReadOnly:
		class, reason = db.Away, "the database is read-only (a standby?)"
	case code == codePermission:
		reason = "the database does not permit it"
	case code == codeNoDatabase:
		reason = "there is no such database"
	case code == codeCancelled:
		class, reason = db.Locked, "the database ended the statement"
	case code[:2] == classConstraint:
		class, reason = db.Conflict, "it contradicts what is stored"
	case code[:2] == classSignIn:
		reason = "the database refused the user or the password"
	case code[:2] == classSchema:
		class = db.Schema
	case code[:2] == classConnection && code != codeProtocol, code[:2] == classIntervened:
		class, reason = db.Away, "the database is not reachable"
	case code[:2] == classDamage && code != "XX000":
		class, reason = db.Damaged, understudy.ErrDamaged.Error()
	}
	return &db.Error{Class: class, Reason: reason, Constraint: answer.ConstraintName, Err: err}
}

// wrapConnectionError returns the error of a failed connection with its class.
func wrapConnectionError(err error) error {
	var connect *pgconn.ConnectError
	var lost interface{ Timeout() bool }
	switch {
	case errors.As(err, &connect):
		// The text of the error names the host, the user and the database, never the password.
		return &db.Error{Class: db.Away, Reason: "the database is not reachable", Err: err}
	case pgconn.SafeToRetry(err), errors.As(err, &lost), errors.Is(err, errLost):
		return &db.Error{Class: db.Away, Reason: "the connection to the database was lost", Err: err}
	}
	return err
}

// errLost is the cause of errors of a connection that is closed.
var errLost = errors.New("the connection is closed")

// newLostError returns the error of a connection that was closed because of err.
func newLostError(err error) error {
	if db.ClassOf(err) != db.NoClass {
		return err
	}
	return wrapError(fmt.Errorf("%w: %w", errLost, err))
}
