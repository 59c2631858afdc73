// Match: conditions on the fields of a body, all looked at in one walk.

package query

import "understudy/kit/jsonspan"

// Condition is a test on fields.
type Condition struct {
	// Fields are those looked at; one of them must fulfil the test. None: nothing fulfils it.
	Fields []Field
	// First leaves the decision to the first of the fields that tells a time: the
	// clock of a record or, while it has none, its order. The test is a Times.
	First bool
	Test  Test
}

// Options say what differs between the users of conditions.
type Options struct {
	// Flat treats objects and arrays as no value. An index of terms has no entry for them,
	// and must agree with the bodies.
	Flat bool
}

// Matcher is a compiled predicate: all its conditions must hold. It is safe for concurrent use.
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

// Compile makes a matcher of conditions.
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

// Match reports whether a body fulfils every condition. A body that is no JSON object fulfils no condition.
func (m *Matcher) Match(body []byte) bool {
	if len(m.all) == 0 {
		return true
	}
	doc, err := jsonspan.Parse(body)
	return err == nil && doc.Kind == jsonspan.Object && m.MatchObject(body, doc)
}

// MatchObject is Match for an object that is known to be well formed.
func (m *Matcher) MatchObject(body []byte, object jsonspan.Value) bool {
	var room [8]Value
	values := m.fields.Read(room[:0], body, object)
	for i := range m.all {
		if !m.holds(&m.all[i], values) {
			return false
		}
	}
	return true
}

func (m *Matcher) holds(c *condition, values []Value) bool {
	for _, i := range c.fields {
		v := values[i]
		if m.o.Flat && v.Nested() {
			continue
		}
		if c.first != nil {
			if at := v.Unix(); at != 0 {
				return c.first.Has(at)
			}
			continue
		}
		if c.test.Holds(v) {
			return true
		}
	}
	return false
}
