// This file classifies PostgreSQL's errors.

package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"understudy"
	"understudy/internal/store/db"
)

// wrapError returns an error of the driver with its class and a reason in words. It returns any other error unchanged. The
// codes are those of https://www.postgresql.org/docs/current/errcodes-appendix.html.
func wrapError(err error) error {
	if err == nil || db.ClassOf(err) != db.NoClass {
		return err
	}
	var answer *pgconn.PgError
	switch {
	case errors.As(err, &answer):
	case errors.As(err, new(*pgconn.ConnectError)):
		// The text of the error names the host, the user and the database, never the password.
		return &db.Error{Class: db.Away, Reason: "the database is not reachable", Err: err}
	case pgconn.SafeToRetry(err), errors.As(err, new(interface{ Timeout() bool })), errors.Is(err, errLost):
		return &db.Error{Class: db.Away, Reason: "the connection to the database was lost", Err: err}
	default:
		return err
	}
	class, reason := db.Failed, "database error"
	switch answer.Code {
	case "40001", "40P01": // serialization_failure, deadlock_detected
		class, reason = db.Aborted, "another transaction was in the way; try again"
	case "55P03": // lock_not_available
		class, reason = db.Locked, "another transaction holds a lock for too long"
	case "53100":
		class, reason = db.Full, "disk full"
	case "53200":
		reason = "the database is out of memory"
	case "53300":
		class, reason = db.Away, "the database accepts no more connections"
	case "25006", "55000": // read_only_sql_transaction, object_not_in_prerequisite_state
		class, reason = db.Away, "the database is read-only (a standby?)"
	case "42501":
		reason = "the database does not permit it"
	case "3D000":
		reason = "there is no such database"
	case "26000": // invalid_sql_statement_name
		reason = "PgBouncer keeps no prepared statements; add default_query_exec_mode=exec to store.dsn"
	case "25P03": // idle_in_transaction_session_timeout
		class, reason = db.Away, "the database ended a transaction in which nothing happened for 3 s"
	case "57014": // query_canceled
		class, reason = db.Locked, "the database ended the statement"
	case "XX000": // internal_error
	default:
		switch answer.Code[:2] {
		case "23":
			class, reason = db.Conflict, "it contradicts what is stored"
		case "28":
			reason = "the database refused the user or the password"
		case "42":
			class = db.Schema
		case "08", "57":
			// All errors of PgBouncer have the code 08P01, a violation of the protocol, and end the connection.
			if answer.Code != "08P01" || answer.Severity == "FATAL" {
				class, reason = db.Away, "the database is not reachable"
			}
		case "XX":
			class, reason = db.Damaged, understudy.ErrDamaged.Error()
		}
	}
	return &db.Error{Class: class, Reason: reason, Constraint: answer.ConstraintName, Err: err}
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
