// This file binds conditions on fields of which the caller sees only a hash or the last digits, and lookups of
// complete phone numbers.

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

// bindHash binds a condition whose values are hashes or last digits. It returns nil if the values have another
// form, or if the caller may not use them in a kind of the scope.
func bindHash(n *Node, scope []*KindView) *predicate {
	fields := map[*KindView]string{}
	for _, s := range scope {
		switch f, several := s.Field(n.Name); {
		case len(several) > 0:
			return nil
		case f != nil:
			fields[s] = f.Name
		}
	}
	return hashPredicate(n, fields)
}

// hashPredicate does what bindHash does, for one resolved field of each kind.
func hashPredicate(n *Node, fields map[*KindView]string) *predicate {
	if len(fields) == 0 || n.Rel != RelIs && n.Rel != RelSame {
		return nil
	}
	tests, endings := map[*KindView]query.Any{}, true
	l := &predicate{Node: n, Fields: fields}
	for s, field := range fields {
		for _, v := range n.Values {
			text := v.Text
			// the caller sees only the last digits of the number
			if digits, four := lastFour(text); four && s.isMaskedEnding(field, query.LastFourMark+digits) {
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
	l.recordTest = func(c *Candidate) bool {
		return tests[c.View].Match(c.fieldValue(fields[c.View])) // fieldValue also returns an empty text, which has a hash too
	}
	if endings { // rows leave out empty texts, which cannot end in digits
		l.rowTest = func(s *KindView, of RowTests) func(int32) bool { return of.Test(fields[s], tests[s]) }
	}
	return l
}

// numberHash returns the condition that any phone number has one of the given hashes or last digits. It returns nil
// if the values have another form, or if the caller may not use them.
func numberHash(n *Node, scope []*KindView) *Cond {
	return numberHashIn(n, scope, (*KindView).canCompareHash)
}

// canCompareHash reports whether the caller may compare a field with a hash or last digits.
func (s *KindView) canCompareHash(field, text string) bool {
	if s.Equal == nil {
		return false
	}
	_, ok := s.Equal(field, text)
	return ok
}

// isMaskedEnding reports whether the caller may compare the last digits of a number and sees no other digits of it.
func (s *KindView) isMaskedEnding(field, ending string) bool {
	_, seen := s.Fields[field]
	return !seen && s.canCompareHash(field, ending)
}

// numberHashIn does what numberHash does, for the fields for which want returns true.
func numberHashIn(n *Node, scope []*KindView, want func(s *KindView, field, text string) bool) *Cond {
	byName := map[string]map[*KindView]string{}
	for _, s := range scope {
		for _, f := range s.Kind.Fields {
			if f.Class != spec.ClassPhone || len(n.Values) == 0 || !want(s, f.Name, n.Values[0].Text) {
				continue
			}
			if from := s.Kind.Field(f.DerivedFrom); from != nil && from.Class == f.Class && want(s, f.DerivedFrom, n.Values[0].Text) {
				continue // a derived field contains the same number
			}
			if byName[f.Name] == nil {
				byName[f.Name] = map[*KindView]string{}
			}
			byName[f.Name][s] = f.Name
		}
	}
	var either []*Cond
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		l := hashPredicate(n, byName[name])
		if l == nil {
			return nil
		}
		either = append(either, fieldCond(l))
	}
	if len(either) == 0 {
		return nil
	}
	return joinConds(OpOr, either)
}

// lastFour returns the digits of a text that consists of four digits, also if written …4176. ok is false for any
// other text.
func lastFour(text string) (digits string, ok bool) {
	digits = strings.TrimPrefix(text, query.LastFourMark)
	return digits, len(digits) == len("1234") && strings.Trim(digits, "0123456789") == ""
}

// lastDigits returns the condition that a masked phone number ends in the digits of a word. It returns nil if the
// word is not four digits, or if the searched kinds have no masked number.
func lastDigits(n *Node, scope []*KindView) *Cond {
	digits, ok := lastFour(n.text)
	if !ok || n.prefix {
		return nil
	}
	number := &Node{Op: OpField, Name: NumberName, at: n.at, end: n.end}
	number.Values = []Value{{Text: query.LastFourMark + digits, at: n.at, end: n.end}}
	if strings.HasPrefix(n.text, query.LastFourMark) {
		return numberHash(number, scope)
	}
	return numberHashIn(number, scope, (*KindView).isMaskedEnding)
}

// lastDigitsHint returns the part of a message that explains how to search a masked number, or "" if the searched
// kinds have no masked number.
func lastDigitsHint(scope []*KindView) string {
	if lastDigits(&Node{text: "0000"}, scope) == nil {
		return ""
	}
	return ", or ask for its last four digits: number:…1234"
}

// sameDigits tests for a phone number with exactly these digits, in any notation.
type sameDigits string

// Match compares the digits.
func (d sameDigits) Match(v query.Value) bool {
	return understudy.ParsePhone(v.Text()).Digits == string(d)
}

// BindLookup returns the query for the records with a complete number in any phone number field, also in fields
// hidden from the caller. It does not check the caller's permission. The error is ErrInvalid.
func BindLookup(number string, views []*KindView, now time.Time) (*BoundQuery, error) {
	p := understudy.ParsePhone(number)
	if !p.HasCountryCode {
		return nil, fmt.Errorf("search: %w: only whole numbers can be looked up; write it with + and the country code, like +15550100123",
			understudy.ErrInvalid)
	}
	l := &predicate{Node: &Node{Op: OpField, Name: NumberName}, Fields: map[*KindView]string{}, allKinds: true}
	l.Term = &query.Predicate{Number: "+" + p.Digits}
	l.recordTest = func(c *Candidate) bool {
		return slices.ContainsFunc(c.View.numberFields(), func(field string) bool { return sameDigits(p.Digits).Match(c.fieldValue(field)) })
	}
	q := &BoundQuery{Tree: &Node{Op: opAnd}, Cond: fieldCond(l), Now: now}
	for _, s := range views {
		if all := s.numberFields(); len(all) > 0 {
			l.Fields[s] = all[0]
			q.Views = append(q.Views, s)
		}
	}
	return q, nil
}
