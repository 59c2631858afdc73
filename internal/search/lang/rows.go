// Rows: conditions decided by a few fields of every record, kept in columns.

package lang

import (
	"understudy/internal/query"
	"understudy/spec"
)

// RowTests decides conditions on fields row by row. columns.Table does.
type RowTests interface {
	// Test is a test of a field as a test of rows; nil when the rows do not decide it.
	Test(field string, test query.Test) func(row int32) bool
	// Times is the time a row has in a field, 0 for none; nil when the rows do not tell it.
	Times(field string) func(row int32) int64
}

// Rows is the condition for the rows of a kind; nil when they do not decide it: it looks at
// words, or at fields that are not among the rows.
func (c *Cond) Rows(s *KindView, of RowTests) func(row int32) bool {
	switch c.Op {
	case opAnd, OpOr:
		all := make([]func(int32) bool, len(c.Of))
		for i, o := range c.Of {
			if all[i] = o.Rows(s, of); all[i] == nil {
				return nil
			}
		}
		if c.Op == OpOr {
			return anyRow(all)
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
		return is(c.Of[0].Rows(s, of), false)
	}
	return c.Predicate.inRows(s, of)
}

func (l *predicate) inRows(s *KindView, of RowTests) func(row int32) bool {
	field := ""
	if l.In != nil {
		if field = l.In[s]; field == "" {
			return func(int32) bool { return false }
		}
	}
	switch {
	case l.rows != nil:
		return l.rows(s, of)
	case l.whole != nil || l.test == nil:
		return nil
	}
	return of.Test(field, l.testOf(s))
}

// is is a test, or with false its opposite; nil stays nil.
func is(test func(int32) bool, holds bool) func(int32) bool {
	if test == nil || holds {
		return test
	}
	return func(row int32) bool { return !test(row) }
}

// anyRow is a test that one of others holds; nil when one of them is nil.
func anyRow(all []func(int32) bool) func(int32) bool {
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

// Clock is the time of a row of a kind: that of its clock or, while it has none, of its
// order. It is nil when the rows do not tell it.
func Clock(k *spec.Kind, of RowTests) func(row int32) int64 {
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
