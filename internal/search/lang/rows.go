// This file compiles conditions that can be decided by the columns of a table.

package lang

import (
	"understudy/internal/query"
	"understudy/spec"
)

// RowTests compiles tests of fields to tests of rows. columns.Table implements it.
type RowTests interface {
	// Test returns a test of rows for a test of a field, or nil if the rows cannot decide it.
	Test(field string, test query.Test) func(row int32) bool
	// Times returns a function that reads the time of a row in a field; 0 means none. It returns nil if the rows do
	// not have the field.
	Times(field string) func(row int32) int64
}

// CompileRows compiles the condition to a test of rows. It returns nil if the rows cannot decide the condition,
// because it searches words or tests fields without a column.
func (c *Cond) CompileRows(s *KindView, of RowTests) func(row int32) bool {
	switch c.Op {
	case opAnd, OpOr:
		all := make([]func(int32) bool, len(c.Of))
		for i, o := range c.Of {
			if all[i] = o.CompileRows(s, of); all[i] == nil {
				return nil
			}
		}
		if c.Op == OpOr {
			return joinRowTests(all)
		}
		return func(row int32) bool {
			for _, test := range all {
				if !test(row) {
					return false
				}
			}
			return true
		}
	case OpNot:
		return negateRow(c.Of[0].CompileRows(s, of), false)
	}
	return c.Predicate.compileRows(s, of)
}

func (l *predicate) compileRows(s *KindView, of RowTests) func(row int32) bool {
	field := ""
	if l.Fields != nil {
		if field = l.Fields[s]; field == "" {
			return func(int32) bool { return false }
		}
	}
	switch {
	case l.rowTest != nil:
		return l.rowTest(s, of)
	case l.recordTest != nil || l.test == nil:
		return nil
	}
	return of.Test(field, l.testOf(s))
}

// negateRow returns the test if holds is true, else its opposite. A nil test stays nil.
func negateRow(test func(int32) bool, holds bool) func(int32) bool {
	if test == nil || holds {
		return test
	}
	return func(row int32) bool { return !test(row) }
}

// joinRowTests returns a test that is true if one of the tests is true. It returns nil if one of the tests is nil.
func joinRowTests(all []func(int32) bool) func(int32) bool {
	for _, test := range all {
		if test == nil {
			return nil
		}
	}
	return func(row int32) bool {
		for _, test := range all {
			if test(row) {
				return true
			}
		}
		return false
	}
}

// RowClock returns a function that reads the time of a row: the clock field, or the order field while the clock is
// empty. It returns nil if the rows do not have these fields.
func RowClock(k *spec.Kind, of RowTests) func(row int32) int64 {
	var all []func(int32) int64
	for _, f := range query.TimeFields(k) {
		at := of.Times(f.Name)
		if at == nil {
			return nil
		}
		all = append(all, at)
	}
	return func(row int32) int64 {
		for _, at := range all {
			if t := at(row); t != 0 {
				return t
			}
		}
		return 0
	}
}
