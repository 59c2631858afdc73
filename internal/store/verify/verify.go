// Package verify reads all data of a store once and checks whether its parts agree. It also searches for texts in all
// of the data.
package verify

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"understudy/internal/store/catalog"
	"understudy/internal/store/db"
	"understudy/internal/store/index"
	"understudy/internal/store/pages"
	"understudy/internal/store/records"
)

// Report is the result of a verification.
type Report struct {
	Pages    int64    `json:"pages"` // the number of checked pages
	Blocks   int64    `json:"blocks"`
	Versions int64    `json:"versions"`
	Changes  int64    `json:"changes"`
	Records  int64    `json:"records"`  // the number of present records
	Gone     int64    `json:"gone"`     // the number of records that are deleted or erased, of which only the ids are stored
	Problems []string `json:"problems"` // the problems found, at most MaxProblems
}

// MaxProblems is the number of problems after which Verify stops.
const MaxProblems = 100

// Verifier checks a file and searches for texts in it. It is safe for concurrent use.
type Verifier struct {
	pool    *db.Pool
	catalog *catalog.Catalog
	records *records.Opener
	pages   *pages.Loader
	index   *index.Index

	// OnRow is called for each row that Verify has checked, if it is not nil. total is the number of rows that Verify
	// will check, or 0 if a damaged file could not be counted. Set OnRow before Verify is called.
	OnRow func(done, total int64)
}

// New returns a verifier for a file.
func New(pool *db.Pool, catalog *catalog.Catalog, records *records.Opener, pages *pages.Loader, index *index.Index) *Verifier {
	return &Verifier{pool: pool, catalog: catalog, records: records, pages: pages, index: index}
}

// verifying is one run of Verify.
type verifying struct {
	db      *Verifier
	c       db.Conn
	ctx     context.Context
	report  *Report
	built   index.Progress
	pending index.Pending
	done    int64 // the number of rows that were checked
	total   int64 // the number of rows to check; 0 if they were not counted
}

func (v *verifying) addProblem(what string, args ...any) {
	if len(v.report.Problems) < MaxProblems {
		v.report.Problems = append(v.report.Problems, fmt.Sprintf(what, args...))
	}
}

// isDone reports whether the check ends early: too many problems were found, or the context is done.
func (v *verifying) isDone() bool {
	return len(v.report.Problems) >= MaxProblems || v.ctx.Err() != nil
}

// Verify checks SQLite's own structures, unpacks every block and rebuilds every page. It compares records, names,
// versions, counts and change numbers with each other. It reads a snapshot of the whole store, about 50 MB of bodies
// per second. Meanwhile the log cannot be emptied. An error means that the check could not be completed. The report
// says what is wrong with the store.
func (d *Verifier) Verify(ctx context.Context) (Report, error) {
	var report Report
	err := d.pool.Read(ctx, func(c db.Conn) error {
		v := &verifying{db: d, c: c, ctx: ctx, report: &report}
		for _, step := range []func() error{v.checkFile, v.readIndexes, v.countRows, v.checkBlocks, v.checkHeld,
			v.checkPast, v.checkClocks, v.checkNames, v.checkPlaces, v.checkTerms, v.checkPages, v.checkCounts, v.checkChanges, v.checkWords} {
			if v.isDone() {
				break
			}
			if err := step(); err != nil && !errors.Is(err, errStop) {
				if db.ClassOf(err) != db.Damaged {
					return err
				}
				v.addProblem("%v", err)
			}
		}
		return ctx.Err()
	})
	if db.ClassOf(err) == db.Damaged {
		// In a damaged file even ending the transaction may fail.
		(&verifying{report: &report}).addProblem("%v", err)
		err = nil
	}
	return report, db.WrapError(false, err, "verify %s", d.pool.Engine.Name())
}

// readIndexes reads up to which record the indexes are filled in this snapshot, because they may be filled meanwhile.
func (v *verifying) readIndexes() (err error) {
	if v.pending, err = index.ReadPending(v.c); err != nil {
		v.addProblem("%v", err)
	}
	v.built, err = index.ReadProgress(v.c)
	return err
}

// checkFile runs the engine's own checks.
func (v *verifying) checkFile() error {
	return errors.Join(v.db.index.Words.Reload(v.c), v.db.pool.Engine.CheckFile(v.c, func(problem string) { v.addProblem("%s", problem) }))
}

// countVisited counts the rows that visitRows visits in a store without damage. A block counts as one row, and
// each of its versions as another. Each record has one position.
var countVisited = &db.Statement{Head: `SELECT (SELECT coalesce(sum(count + 1), 0) FROM block)
	+ (SELECT count(*) + 2 * count(*) FILTER (WHERE state & 12 = 0) FROM held)
	+ (SELECT count(*) FROM past WHERE tag IS NOT NULL OR version IS DISTINCT FROM 0) + (SELECT count(*) FROM clock WHERE old = 0)
	+ 2 * (SELECT count(*) FROM names) + (SELECT count(*) FROM page) + (SELECT count(*) FROM change)`}

// countRows counts the rows to check, if the caller wants to know about each row.
func (v *verifying) countRows() error {
	if v.db.OnRow == nil {
		return nil
	}
	_, err := db.QueryRow(v.c, countVisited, nil, func(r []driver.Value) { v.total = r[0].(int64) })
	switch {
	case db.ClassOf(err) == db.Damaged:
		return nil // another check reports the damage
	case err == nil:
		v.db.OnRow(0, v.total)
	}
	return err
}

// visitRows calls check with each row that a statement selects, and reports the row to OnRow. It stops after too many
// problems.
func (v *verifying) visitRows(st *db.Statement, check func(r []driver.Value) error) error {
	return v.c.Query(st, 0, nil, func(r []driver.Value) error {
		if err := check(r); err != nil {
			return err
		}
		if v.done++; v.db.OnRow != nil {
			if v.total > 0 {
				v.total = max(v.total, v.done) // the rows of a damaged index are visited twice
			}
			v.db.OnRow(v.done, v.total)
		}
		if v.isDone() {
			return errStop
		}
		return nil
	})
}

var (
	selectCounts = &db.Statement{Head: `SELECT k.name, k.records, coalesce(p.count, 0), k.changes,
		(SELECT coalesce(sum(count), 0) FROM change WHERE kind = k.number)
		FROM kind k LEFT JOIN (SELECT kind, count(*) AS count FROM names n WHERE EXISTS
		(SELECT 1 FROM held WHERE number BETWEEN n.record * 64 AND n.record * 64 + 63 AND state & 4 = 0) GROUP BY kind) p
		ON p.kind = k.number`}
	selectRuns = &db.Statement{Head: "SELECT c.n, c.count, s.name, s.change FROM change c " +
		"JOIN source s ON s.number = c.source ORDER BY c.source, c.n", Whole: true}
)

// checkCounts compares the stored counts of each kind with the rows.
func (v *verifying) checkCounts() error {
	return db.VisitRows(v.c, selectCounts, nil, func(r []driver.Value) {
		v.report.Records += r[2].(int64)
		v.report.Gone -= r[2].(int64)
		if r[1] != r[2] {
			v.addProblem("kind %s: the stored count is %d records, but there are %d", r[0], r[1], r[2])
		}
		if r[3] != r[4] {
			v.addProblem("kind %s: the stored count is %d changes, but there are %d", r[0], r[3], r[4])
		}
	})
}

// checkChanges checks that change numbers have no gap.
func (v *verifying) checkChanges() error {
	source, next, last := "", int64(1), int64(0)
	done := func() {
		if source != "" && next != last+1 {
			v.addProblem("source %s: its last change has the number %d, but its counter is %d", source, next-1, last)
		}
	}
	err := v.visitRows(selectRuns, func(r []driver.Value) error {
		if name := r[2].(string); name != source {
			done()
			source, next, last = name, 1, r[3].(int64)
		}
		if r[0].(int64) != next {
			v.addProblem("source %s: change %d follows change %d", source, r[0], next-1)
		}
		next = r[0].(int64) + r[1].(int64)
		v.report.Changes += r[1].(int64)
		return nil
	})
	done()
	return err
}
