// This file defines what a bound query requires of a record.

package lang

import (
	"cmp"
	"slices"
	"time"

	"understudy/internal/query"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// Names of conditions that are not fields. A spec may have a field with such a name. The field replaces a condition
// from DateName on. A field named like idName or NumberName replaces the condition only in its own kind.
const (
	KindName = "kind"
	inName   = "in"
	hasName  = "has"
	noName   = "no"
	DateName = "date"
	ageName  = "age"
	idName   = "id"
	idleName = "idle"

	noteName    = "note"
	notedName   = "noted"
	handledName = "handled"
)

// Cond is a condition with its names resolved. It is immutable.
type Cond struct {
	Op        op
	Of        []*Cond
	Predicate *predicate // set for opWords and OpField
}

// predicate is a condition that contains no other conditions.
type predicate struct {
	Node *Node
	// Words are searched in every text, or in the field that Fields names. They may be empty.
	Words tokenizer.Pattern
	// Fields are the fields to test, by kind. Records of a kind without an entry do not match. If Fields is nil,
	// the condition is not on a field.
	Fields   map[*KindView]string
	test     query.Test // tests the value of the field; nil if words are searched
	costTest query.Test // replaces test for fields that are shown without their minus sign (spec.ShowCost)
	// recordTest, if set, tests more of the record than one field.
	recordTest func(c *Candidate) bool
	// rowTest compiles recordTest to a test of column rows. If it is nil, rows cannot decide the condition.
	rowTest  func(s *KindView, of RowTests) func(row int32) bool
	near     *Area    // set for a condition on the distance from a point
	ids      []string // the record must have one of these ids; used in the query to the store
	Term     *query.Predicate
	allKinds bool // whether Term applies to all kinds; otherwise its Field is set if every kind has the same field
}

// BoundQuery is a query bound to what a caller sees.
type BoundQuery struct {
	Tree     *Node
	Cond     *Cond
	Views    []*KindView // the kinds of which a record can match
	Now      time.Time
	Relative bool // whether the meaning of the query depends on Now
	// Annotations is true if the query has a condition on annotations.
	Annotations bool
	ID          string      // the whole search text if it may be an id: one word in the letter case of ids, or the digits of a number
	Hint        string      // a sentence with a better query, shown if nothing matches
	IDViews     []*KindView // the kinds in which ID is searched
}

// MaxMatches returns the maximum number of matches if the query lists ids, else 0.
func (q *BoundQuery) MaxMatches() int {
	if len(q.Views) != 1 { // records of several kinds may have the same id, so the number of ids is no maximum
		return 0
	}
	return q.Cond.maxMatches()
}

// maxMatches returns the number of ids that the condition lists, or 0 if records with other ids can match.
func (c *Cond) maxMatches() (n int) {
	switch c.Op {
	case OpField:
		return len(c.Predicate.ids)
	case opAnd:
		for _, of := range c.Of {
			if limit := of.maxMatches(); limit > 0 && (n == 0 || limit < n) {
				n = limit
			}
		}
	case OpOr:
		for _, of := range c.Of {
			limit := of.maxMatches()
			if limit == 0 {
				return 0
			}
			n += limit
		}
	}
	return n
}

// EndSentence returns the hint, or a full stop if the hint is empty.
func EndSentence(hint string) string {
	return cmp.Or(hint, ".")
}

// CanMatch reports whether a record of a kind can match.
func (c *Cond) CanMatch(s *KindView) bool {
	switch c.Op {
	case opAnd:
		return !slices.ContainsFunc(c.Of, func(o *Cond) bool { return !o.CanMatch(s) })
	case OpOr:
		return slices.ContainsFunc(c.Of, func(o *Cond) bool { return o.CanMatch(s) })
	case OpNot:
		l := c.Of[0].Predicate
		return l == nil || !IsKind(l.Node.Name) || l.Fields[s] == ""
	}
	if c.Predicate.Fields == nil {
		return true
	}
	return c.Predicate.Fields[s] != ""
}

// Match reports whether a record matches.
func (c *Cond) Match(r *Candidate) bool {
	switch c.Op {
	case opAnd:
		return !slices.ContainsFunc(c.Of, func(o *Cond) bool { return !o.Match(r) })
	case OpOr:
		return slices.ContainsFunc(c.Of, func(o *Cond) bool { return o.Match(r) })
	case OpNot:
		return !c.Of[0].Match(r)
	}
	return c.Predicate.match(r)
}

func (l *predicate) testOf(s *KindView) query.Test {
	if l.costTest != nil && s.Kind.Field(l.Fields[s]).Show == spec.ShowCost {
		return l.costTest
	}
	return l.test
}

// match reports whether a record matches the predicate.
func (l *predicate) match(r *Candidate) bool {
	field := ""
	if l.Fields != nil {
		if field = l.Fields[r.View]; field == "" {
			return false
		}
	}
	switch {
	case l.recordTest != nil:
		return l.recordTest(r)
	case l.test != nil:
		v, ok := r.visibleValue(field)
		return ok && l.testOf(r.View).Match(v)
	}
	for _, t := range r.Texts() {
		if (field == "" || t.Name == field) && l.Words.MatchText(t.Text) {
			return true
		}
	}
	return false
}

// WordPredicates appends the predicates that search words, except those below a NOT.
func (c *Cond) WordPredicates(into []*predicate) []*predicate {
	switch c.Op {
	case OpNot:
		return into
	case opAnd, OpOr:
		for _, o := range c.Of {
			into = o.WordPredicates(into)
		}
		return into
	}
	if c.Predicate.Words.IsEmpty() {
		return into
	}
	return append(into, c.Predicate)
}
