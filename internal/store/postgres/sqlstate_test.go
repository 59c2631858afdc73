package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/db"
)

func TestErrorsHaveTheirClass(t *testing.T) {
	for code, want := range map[string]struct {
		class  db.Class
		reason string
	}{
		"40001": {db.Aborted, "another transaction was in the way; try again"},
		"40P01": {db.Aborted, "another transaction was in the way; try again"},
		"23505": {db.Conflict, "it contradicts what is stored"},
		"53100": {db.Full, "disk full"},
		"53300": {db.Away, "the database accepts no more connections"},
		"57P01": {db.Away, "the database is not reachable"},
		"25006": {db.Away, "the database is read-only (a standby?)"},
		"42P01": {db.Schema, "database error"},
		"28P01": {db.Failed, "the database refused the user or the password"},
		"XX001": {db.Damaged, understudy.ErrDamaged.Error()},
		"08P01": {db.Failed, "database error"},
		"22003": {db.Failed, "database error"},
	} {
		err := wrapError(&pgconn.PgError{Code: code, Message: "as the server says", ConstraintName: "kind_source_fkey"})
		checktest.Equal(t, db.ClassOf(err), want.class, "class of %s", code)
		checktest.Equal(t, db.ReasonOf(err), want.reason, "reason of %s", code)
		var e *db.Error
		checktest.MustTrue(t, errors.As(err, &e), "%s is %T, not a db.Error", code, err)
		checktest.Equal(t, e.Constraint, "kind_source_fkey", "constraint of %s", code)
	}
	checktest.Equal(t, wrapError(context.Canceled), context.Canceled, "the error of a context")
	checktest.Equal(t, db.ClassOf(newLostError(errors.New("reset"))), db.Away, "class of a lost connection")
}

func TestNoPasswordIsNamed(t *testing.T) {
	e, err := NewEngine("postgres://robin:geheim@db.invalid:1/understudy?connect_timeout=1")
	checktest.MustNoError(t, err, "NewEngine")
	checktest.Equal(t, e.Name(), "PostgreSQL database understudy at db.invalid", "name")
	_, err = e.Dial(t.Context(), true)
	checktest.MustTrue(t, err != nil, "a database that is not there can be dialled")
	checktest.Equal(t, db.ClassOf(err), db.Away, "class of %v", err)
	_, bad := NewEngine("postgres://robin:geheim@db.invalid:port/understudy")
	for _, err := range []error{err, bad} {
		checktest.True(t, !strings.Contains(err.Error(), "geheim"), "the password is in %q", err)
	}
}
