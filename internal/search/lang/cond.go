// Conditions: what a bound query asks of a record, and whether one holds.

package lang

import (
	"slices"
	"time"

	"understudy/internal/query"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// Names that are no fields. A field of a spec by the same name goes before those from
// DateName on; before idName and NumberName in its own kind alone.
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

// Cond is a condition with its names resolved. It is not changed once made.
type Cond struct {
	Op        op
	Of        []*Cond
	Predicate *predicate // opWords and opField
}

// predicate is a condition that is not made of others.
type predicate struct {
	Node *Node
	// words, when it is not empty, is looked for in every text, or in the field of in.
	Words tokenizer.Pattern
	// in are the fields meant, by kind; a kind that is not there has none, and
	// nothing of it fulfils the condition. nil: no field is meant.
	In   map[*KindView]string
	test query.Test // of a value of that field; nil: words decide
	cost query.Test // test for fields that are shown without their minus (spec.ShowCost); nil: test
	// whole, when there is one, looks at more of the record than one field.
	whole func(c *Candidate) bool
	// rows is whole for rows of columns; nil: they do not decide it.
	rows func(s *KindView, of RowTests) func(row int32) bool
	// What a store can be asked for it; the zero values: nothing.
	ids   []string // of one of these ids
	Term  *query.Predicate
	every bool // the term is of a field each kind has; else Field is put in when all call it the same
}

// BoundQuery is a tree bound to what a caller sees.
type BoundQuery struct {
	text     string
	Tree     *Node
	Cond     *Cond
	Views    []*KindView // the kinds something can be found of
	Now      time.Time
	Relative bool // what it means depends on now
	// Annotations says that it asks for what people wrote on records.
	Annotations bool
	ID          string      // the whole text, when it may be an id: one word as ids are folded, or the digits of a number
	Hint        string      // what to write instead, where nothing is found; "": nothing
	Asked       []*KindView // the kinds that a record with that id may be of
}

// MaxMatches returns how many records can match, where the ids that the query lists bound that; 0: nothing does.
func (q *BoundQuery) MaxMatches() int {
	if len(q.Views) != 1 { // kinds may share an id
		return 0
	}
	return q.Cond.maxMatches()
}

func (c *Cond) maxMatches() (n int) {
	switch c.Op {
	case OpField:
		return len(c.Predicate.ids)
	case opAnd:
		for _, of := range c.Of {
			if most := of.maxMatches(); most > 0 && (n == 0 || most < n) {
				n = most
			}
		}
	case OpOr:
		for _, of := range c.Of {
			most := of.maxMatches()
			if most == 0 {
				return 0
			}
			n += most
		}
	}
	return n
}

// Stopped ends a sentence after a hint, or without one.
func Stopped(hint string) string {
	if hint == "" {
		return "."
	}
	return hint
}

// Possible says whether something of a kind can fulfil a condition.
func (c *Cond) Possible(s *KindView) bool {
	switch c.Op {
	case opAnd:
		return !slices.ContainsFunc(c.Of, func(o *Cond) bool { return !o.Possible(s) })
	case OpOr:
		return slices.ContainsFunc(c.Of, func(o *Cond) bool { return o.Possible(s) })
	case OpNot:
		l := c.Of[0].Predicate
		return l == nil || !IsKind(l.Node.Name) || l.In[s] == ""
	}
	if c.Predicate.In == nil {
		return true
	}
	return c.Predicate.In[s] != ""
}

// Holds says whether a record fulfils a condition.
func (c *Cond) Holds(r *Candidate) bool {
	switch c.Op {
	case opAnd:
		for _, o := range c.Of {
			if !o.Holds(r) {
				return false
			}
		}
		return true
	case OpOr:
		for _, o := range c.Of {
			if o.Holds(r) {
				return true
			}
		}
		return false
	case OpNot:
		return !c.Of[0].Holds(r)
	}
	return c.Predicate.holds(r)
}

// testOf is the test for the field of a kind.
func (l *predicate) testOf(s *KindView) query.Test {
	if l.cost != nil && s.Kind.Field(l.In[s]).Show == spec.ShowCost {
		return l.cost
	}
	return l.test
}

func (l *predicate) holds(r *Candidate) bool {
	field := ""
	if l.In != nil {
		if field = l.In[r.View]; field == "" {
			return false
		}
	}
	switch {
	case l.whole != nil:
		return l.whole(r)
	case l.test != nil:
		v, ok := r.value(field)
		return ok && l.testOf(r.View).Match(v)
	}
	for _, t := range r.Text() {
		if (field == "" || t.Name == field) && l.Words.MatchText(t.Text) {
			return true
		}
	}
	return false
}

// Wanted are the words of a condition that speak for a record.
func (c *Cond) Wanted(into []*predicate) []*predicate {
	switch c.Op {
	case OpNot:
		return into
	case opAnd, OpOr:
		for _, o := range c.Of {
			into = o.Wanted(into)
		}
		return into
	}
	if c.Predicate.Words.IsEmpty() {
		return into
	}
	return append(into, c.Predicate)
}
