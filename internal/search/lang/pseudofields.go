// This file binds conditions whose names are not fields: kind, has, no, number, id, country and idle.

package lang

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/e164"
	"understudy/spec"
)

// bindKind binds kind: and in:.
func (b *Binder) bindKind(n *Node) *Cond {
	if n.Rel != RelIs && n.Rel != RelSame {
		return b.refuse(n.at, n.end, "a kind has no order; write kind:calls, or several with commas")
	}
	l := &predicate{Node: n, Fields: map[*KindView]string{}, recordTest: func(*Candidate) bool { return true }}
	l.rowTest = func(*KindView, RowTests) func(int32) bool { return func(int32) bool { return true } }
	for _, v := range n.Values {
		found := false
		for _, s := range b.Views {
			if isKindName(s.Kind, v.Text) && !v.prefix {
				l.Fields[s], found = s.Kind.Name, true
			}
		}
		if !found {
			return b.fail(b.unknownKind(v))
		}
	}
	return fieldCond(l)
}

// unknownKind returns the error for a kind that does not exist, is hidden, or is not searched.
func (b *Binder) unknownKind(v Value) *query.SyntaxError {
	for k, seen := range b.AllKinds {
		switch {
		case isKindName(k, v.Text) && seen:
			return syntaxError(b.Text, v.at, v.end, "%s is not among the chosen kinds; remove one of the two",
				understudy.Clip(v.Text))
		case isKindName(k, v.Text):
			return forbiddenError(b.Text, v.at, v.end, "your role can't see %s; remove it", understudy.Clip(v.Text))
		}
	}
	var known []string
	for _, s := range b.Views {
		known = append(known, s.Kind.Name)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return syntaxError(b.Text, v.at, v.end, "there is no kind %s%s There is %s", understudy.Clip(v.Text), EndSentence(Hint(v.Text, known)),
		strings.Join(known, ", "))
}

// bindPresence binds has: and no:.
func (b *Binder) bindPresence(n *Node, scope []*KindView) *Cond {
	if n.Rel != RelIs {
		return b.refuse(n.at, n.end, "write %s:FIELD", n.Name)
	}
	l := &predicate{Node: n, Fields: map[*KindView]string{}}
	var each []map[*KindView]string
	for _, v := range n.Values {
		if v.prefix {
			return b.refuse(v.at, v.end, "a field's name takes no star; write it in full")
		}
		in, _ := b.Fields(v.Text, v.at, v.end, scope)
		if b.Err != nil {
			return nil
		}
		each = append(each, in)
		maps.Copy(l.Fields, in)
	}
	want := n.Name == hasName
	l.rowTest = func(s *KindView, of RowTests) func(int32) bool {
		var any []func(int32) bool
		for _, in := range each {
			if field := in[s]; field != "" {
				any = append(any, negateRow(of.Test(field, query.Present{}), want))
			}
		}
		return joinRowTests(any)
	}
	l.recordTest = func(c *Candidate) bool {
		for _, in := range each {
			if field := in[c.View]; field != "" {
				if _, ok := c.visibleValue(field); ok == want {
					return true
				}
			}
		}
		return false
	}
	return fieldCond(l)
}

// bindNumber binds number:, which searches a phone number in any field of class phone. In a kind with hidden phone
// fields it makes one condition for each visible field.
func (b *Binder) bindNumber(n *Node, scope []*KindView) *Cond {
	if n.Rel != RelIs && n.Rel != RelSame {
		return b.refuse(n.at, n.end, "a phone number has no order; write number:+15550100123")
	}
	if c := numberHash(n, scope); c != nil {
		return c
	}
	for _, v := range n.Values {
		if v.prefix {
			return b.refuse(v.at, v.end, "number: needs a whole number; write the beginning of one alone, +1415*, or after "+
				"a field, from:+1415*")
		}
		if !isNumber(v.Text) {
			return b.refuse(v.at, v.end, "%s is not a phone number; write + and all digits, with the country code",
				understudy.Clip(v.Text))
		}
	}
	b.addEndingHint(n)
	fields, kinds := map[string]*predicate{}, false
	for _, s := range scope {
		kinds = kinds || s.phones != nil || len(s.masked) > 0
		for _, name := range s.phones {
			by := name
			if len(s.masked) == 0 {
				by = ""
			}
			if fields[by] == nil {
				fields[by] = numberPredicate(n, len(s.masked) == 0)
			}
			fields[by].Fields[s] = name
		}
	}
	var either []*Cond
	for _, by := range slices.Sorted(maps.Keys(fields)) {
		either = append(either, fieldCond(fields[by]))
	}
	switch {
	case len(either) > 0:
		return joinConds(OpOr, either)
	case kinds:
		return b.forbid(n.at, n.end, "your role can't search by phone number; remove number: from the search%s", lastDigitsHint(scope))
	}
	return b.refuse(n.at, n.end, "these records have no phone numbers")
}

// numberPredicate returns the predicate for a number. If every is true, the number may be in any visible phone
// number field, else in one field that is set later.
func numberPredicate(n *Node, every bool) *predicate {
	l := &predicate{Node: n, Fields: map[*KindView]string{}, allKinds: every, test: newPhoneTest(n.Values)}
	if every {
		l.recordTest = func(c *Candidate) bool {
			return slices.ContainsFunc(c.View.phones, func(field string) bool {
				v, ok := c.visibleValue(field)
				return ok && l.test.Match(v)
			})
		}
		l.rowTest = func(s *KindView, of RowTests) func(int32) bool {
			var any []func(int32) bool
			for _, field := range s.phones {
				any = append(any, of.Test(field, l.test))
			}
			return joinRowTests(any)
		}
	}
	if len(n.Values) == 1 {
		l.Term = &query.Predicate{Number: n.Values[0].Text}
	}
	return l
}

// bindID binds id:, which searches a record of any kind in scope by its id.
func (b *Binder) bindID(n *Node, scope []*KindView) *Cond {
	if n.Rel != RelIs && n.Rel != RelSame {
		return b.refuse(n.at, n.end, "an id has no order; write id:VALUE")
	}
	values := b.spellings(&predicate{Node: n})
	whole := func(c *Candidate) bool {
		return slices.ContainsFunc(values, func(v Value) bool {
			return c.Record.ID == v.Text || v.prefix && strings.HasPrefix(c.Record.ID, v.Text)
		})
	}
	l := &predicate{Node: n, Fields: map[*KindView]string{}, recordTest: whole}
	if term := exactTerm(values); term != nil {
		l.ids = term.Any
	}
	for _, s := range scope {
		if s.CanSeeID() {
			l.Fields[s] = s.Kind.ID[0]
		}
	}
	if len(l.Fields) == 0 {
		return b.forbid(n.at, n.end, "your role can't see ids; remove it")
	}
	return fieldCond(l)
}

// CanSeeID reports whether the caller fully sees all fields of the id.
func (s *KindView) CanSeeID() bool {
	return len(s.Kind.ID) > 0 && !slices.ContainsFunc(s.Kind.ID, func(name string) bool { return !s.CanSee(name) })
}

// CountryOf is the suffix for the country of a phone number field, as in from.country.
const CountryOf = ".country"

// countries tests whether the country of a phone number has one of these ISO 3166-1 codes.
type countries []string

// Match parses the number and compares its country.
func (c countries) Match(v query.Value) bool {
	p := understudy.ParsePhone(v.Text())
	return p.HasCountryCode && slices.Contains(c, e164.Country(p.Digits))
}

// bindCountry binds the country of a phone number.
func (b *Binder) bindCountry(n *Node, scope []*KindView) *Cond {
	if n.Rel != RelIs && n.Rel != RelSame {
		return b.refuse(n.at, n.end, "a country has no order; write %s:US", n.Name)
	}
	in, fields := b.Fields(strings.TrimSuffix(n.Name, CountryOf), n.at, n.at+len(n.Name), scope)
	if b.Err != nil {
		return nil
	}
	var test countries
	for _, v := range n.Values {
		if len(v.Text) != 2 || v.prefix {
			return b.refuse(v.at, v.end, "%s is not a country; write two letters, like US", understudy.Clip(v.Text))
		}
		test = append(test, strings.ToUpper(v.Text))
	}
	for _, f := range fields {
		if f.Class != spec.ClassPhone {
			return b.refuse(n.at, n.at+len(n.Name), "%s is not a phone number, and has no country", f.Name)
		}
	}
	return fieldCond(&predicate{Node: n, Fields: in, test: test})
}

// bindIdle binds idle:, which finds our own phone numbers that no record has named for a given time.
func (b *Binder) bindIdle(n *Node, scope []*KindView) *Cond {
	length, ok := int64(0), false
	if n.Rel == RelIs && len(n.Values) == 1 && !n.Values[0].prefix {
		length, ok = parseDuration(n.Values[0].Text)
	}
	if !ok {
		return b.refuse(n.at, n.end, "write %s:30d; %s", idleName, durationHelp)
	}
	b.relative = true
	since := b.Now.Unix() - length
	l := &predicate{Node: n, Fields: map[*KindView]string{}}
	for _, s := range scope {
		if s.uses == nil {
			continue
		}
		field := s.Kind.OwnNumber
		if _, sees := s.Fields[field]; !sees || s.uses.hidden != "" {
			return b.forbid(n.at, n.end, "your role can't see %s; remove %s", cmp.Or(s.uses.hidden, field+" of "+s.Kind.Name), idleName)
		}
		l.Fields[s] = field
	}
	if len(l.Fields) == 0 {
		return b.refuse(n.at, n.end, "these records have none of our own numbers")
	}
	l.recordTest = func(c *Candidate) bool {
		number, ok := c.TextOf(l.Fields[c.View])
		return ok && !c.View.uses.isUsedSince(number, since)
	}
	return fieldCond(l)
}
