// Hashes: conditions on fields of which the caller sees hashes, or of which it has one.

package lang

import (
	"maps"
	"slices"

	"understudy/internal/query"
	"understudy/spec"
)

// hashed is the condition that a field has one of some hashes; nil when the values are no
// hashes, or when the caller may not ask for one of them in a kind of the scope.
func hashed(n *Node, scope []*KindView) *predicate {
	fields := map[*KindView]string{}
	for _, s := range scope {
		switch f, several := s.Field(n.Name); {
		case len(several) > 0:
			return nil
		case f != nil:
			fields[s] = f.Name
		}
	}
	return hashedIn(n, fields)
}

// hashedIn is hashed for one field of each kind.
func hashedIn(n *Node, fields map[*KindView]string) *predicate {
	if len(fields) == 0 || n.Rel != RelIs && n.Rel != RelSame {
		return nil
	}
	tests := map[*KindView]query.Any{}
	l := &predicate{Node: n, In: fields}
	for s, field := range fields {
		for _, v := range n.Values {
			if s.Equal == nil || v.prefix {
				return nil
			}
			e, ok := s.Equal(field, v.Text)
			if !ok {
				return nil
			}
			tests[s] = append(tests[s], e.Test)
			if e.Predicate != nil && len(n.Values) == 1 {
				l.Term = &query.Predicate{Number: e.Predicate.Number, Any: e.Predicate.Any}
			}
		}
	}
	l.whole = func(c *Candidate) bool {
		return tests[c.View].Holds(c.find(fields[c.View])) // the empty text has a hash, too
	}
	return l
}

// hashedNumber is the condition that any phone number has one of some hashes; nil when the
// values are no hashes, or when the caller may not ask for them.
func hashedNumber(n *Node, scope []*KindView) *Cond {
	byName := map[string]map[*KindView]string{}
	for _, s := range scope {
		for _, f := range s.Kind.Fields {
			if f.Class != spec.ClassPhone || s.Equal == nil || len(n.Values) == 0 {
				continue
			}
			if _, ok := s.Equal(f.Name, n.Values[0].Text); !ok {
				continue
			}
			if byName[f.Name] == nil {
				byName[f.Name] = map[*KindView]string{}
			}
			byName[f.Name][s] = f.Name
		}
	}
	c := &Cond{Op: OpOr}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		l := hashedIn(n, byName[name])
		if l == nil {
			return nil
		}
		c.Of = append(c.Of, &Cond{Op: OpField, Predicate: l})
	}
	switch len(c.Of) {
	case 0:
		return nil
	case 1:
		return c.Of[0]
	}
	return c
}
