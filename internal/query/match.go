// This file tests conditions on the fields of a body in one pass.

package query

import "understudy/kit/jsonspan"

// Condition is a test on one or more fields.
type Condition struct {
	// Fields are the fields to test. At least one of them must match. If there are no fields, the condition matches
	// nothing.
	Fields []Field
	// First is true if the first field that contains a time decides: the clock of a record or, if the clock is
	// empty, its order field. Test must then be Times.
	First bool
	Test  Test
}

// Options are settings that differ between the packages that use conditions.
type Options struct {
	// Flat makes objects and arrays count as missing values. An index of terms has no entry for them, and testing
	// bodies must give the same result as the index.
	Flat bool
}

// Matcher is a compiled list of conditions, all of which must match. It is safe for concurrent use.
type Matcher struct {
	o      Options
	fields Fields
	all    []condition
}

type condition struct {
	fields []int
	first  Times
	test   Test
}

// Compile returns a matcher for the conditions.
func Compile(conditions []Condition, o Options) *Matcher {
	m := &Matcher{o: o}
	for _, c := range conditions {
		one := condition{test: c.Test}
		if c.First {
			one.first, _ = c.Test.(Times)
		}
		for _, f := range c.Fields {
			one.fields = append(one.fields, m.fields.Add(f))
		}
		m.all = append(m.all, one)
	}
	return m
}

// Match reports whether a body matches every condition. A body that is not a JSON object matches no condition.
func (m *Matcher) Match(body []byte) bool {
	if len(m.all) == 0 {
		return true
	}
	doc, err := jsonspan.Parse(body)
	return err == nil && doc.Kind == jsonspan.Object && m.MatchObject(body, doc)
}

// MatchObject does what Match does, for an object that is known to be well formed.
func (m *Matcher) MatchObject(body []byte, object jsonspan.Value) bool {
	var room [8]Value
	values := m.fields.Read(room[:0], body, object)
	for i := range m.all {
		if !m.matchCondition(&m.all[i], values) {
			return false
		}
	}
	return true
}

// matchCondition reports whether one of the condition's fields matches.
func (m *Matcher) matchCondition(c *condition, values []Value) bool {
	for _, i := range c.fields {
		v := values[i]
		if m.o.Flat && v.IsNested() {
			continue
		}
		if c.first != nil {
			if at := v.Unix(); at != 0 {
				return c.first.Has(at)
			}
			continue
		}
		if c.test.Match(v) {
			return true
		}
	}
	return false
}
