// Masked: conditions on fields of which the caller sees the hash or the last digits, and on numbers
// that it looks up whole.

package lang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/spec"
)

// hashed is the condition that a field has one of some hashes or last digits; nil when the values
// are none, or when the caller may not ask for one of them in a kind of the scope.
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
	tests, endings := map[*KindView]query.Any{}, true
	l := &predicate{Node: n, In: fields}
	for s, field := range fields {
		for _, v := range n.Values {
			text := v.Text
			if digits, four := lastFour(text); four && s.masks(field, query.LastFourMark+digits) { // more of it is not seen
				text = query.LastFourMark + digits
			}
			if s.Equal == nil || v.prefix {
				return nil
			}
			e, ok := s.Equal(field, text)
			if !ok {
				return nil
			}
			_, four := query.LastFour(text)
			tests[s], endings = append(tests[s], e.Test), endings && four
			if e.Predicate != nil && len(n.Values) == 1 {
				l.Term = &query.Predicate{Number: e.Predicate.Number, Any: e.Predicate.Any}
			}
		}
	}
	l.whole = func(c *Candidate) bool {
		return tests[c.View].Match(c.find(fields[c.View])) // the empty text has a hash, too
	}
	if endings { // no empty text ends so
		l.rows = func(s *KindView, of RowTests) func(int32) bool { return of.Test(fields[s], tests[s]) }
	}
	return l
}

// hashedNumber is the condition that any phone number has one of some hashes or last digits; nil
// when the values are none, or when the caller may not ask for them.
func hashedNumber(n *Node, scope []*KindView) *Cond {
	return hashedNumberIn(n, scope, (*KindView).offers)
}

// offers reports whether the caller may ask whether a field has a hash or ends in digits.
func (s *KindView) offers(field, text string) bool {
	if s.Equal == nil {
		return false
	}
	_, ok := s.Equal(field, text)
	return ok
}

// masks reports whether the caller may ask whether a number ends in digits, and does not see more of it.
func (s *KindView) masks(field, ending string) bool {
	_, seen := s.Fields[field]
	return !seen && s.offers(field, ending)
}

// hashedNumberIn is hashedNumber for the fields that are wanted.
func hashedNumberIn(n *Node, scope []*KindView, want func(s *KindView, field, text string) bool) *Cond {
	byName := map[string]map[*KindView]string{}
	for _, s := range scope {
		for _, f := range s.Kind.Fields {
			if f.Class != spec.ClassPhone || len(n.Values) == 0 || !want(s, f.Name, n.Values[0].Text) {
				continue
			}
			if from := s.Kind.Field(f.DerivedFrom); from != nil && from.Class == f.Class && want(s, f.DerivedFrom, n.Values[0].Text) {
				continue // what is derived from a number is that number
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

// lastFour returns the digits of a text that is four digits, or …4176. ok is false for any other.
func lastFour(text string) (digits string, ok bool) {
	digits = strings.TrimPrefix(text, query.LastFourMark)
	return digits, len(digits) == len("1234") && strings.Trim(digits, "0123456789") == ""
}

// ending is the condition that a phone number, of which the caller sees the last four digits alone, ends in the
// digits that a word is; nil when the word is no such digits, or no such number is looked in.
func ending(n *Node, scope []*KindView) *Cond {
	digits, ok := lastFour(n.text)
	if !ok || n.prefix {
		return nil
	}
	number := &Node{Op: OpField, Name: NumberName, at: n.at, end: n.end}
	number.Values = []Value{{Text: query.LastFourMark + digits, at: n.at, end: n.end}}
	if strings.HasPrefix(n.text, query.LastFourMark) {
		return hashedNumber(number, scope)
	}
	return hashedNumberIn(number, scope, (*KindView).masks)
}

// masked says how a number of which the caller sees the last four digits alone is asked for; "" when
// no such number is looked in.
func masked(scope []*KindView) string {
	if ending(&Node{text: "0000"}, scope) == nil {
		return ""
	}
	return ", or ask for its last four digits: number:…1234"
}

// dialled is the test for a number by all its digits, however it is written.
type dialled string

// Holds compares the digits.
func (d dialled) Match(v query.Value) bool {
	return understudy.ParsePhone(v.Text()).Digits == string(d)
}

// Lookup is the query for the records with a whole number in any field of class phone, whatever the caller sees of
// these fields. The caller of Lookup has asked whether it may. The error is ErrInvalid.
func Lookup(number string, views []*KindView, now time.Time) (*BoundQuery, error) {
	p := understudy.ParsePhone(number)
	if !p.HasCountryCode {
		return nil, fmt.Errorf("search: %w: a number is looked up whole; write it with + and the country's code, like +15550100123",
			understudy.ErrInvalid)
	}
	l := &predicate{Node: &Node{Op: OpField, Name: NumberName}, In: map[*KindView]string{}, every: true}
	l.Term = &query.Predicate{Number: "+" + p.Digits}
	l.whole = func(c *Candidate) bool {
		return slices.ContainsFunc(c.View.numbers(), func(field string) bool { return dialled(p.Digits).Match(c.find(field)) })
	}
	q := &BoundQuery{Tree: &Node{Op: opAnd}, Cond: &Cond{Op: OpField, Predicate: l}, Now: now}
	for _, s := range views {
		if all := s.numbers(); len(all) > 0 {
			l.In[s] = all[0]
			q.Views = append(q.Views, s)
		}
	}
	return q, nil
}
