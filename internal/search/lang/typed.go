// This file binds conditions according to the type of their field.

package lang

import (
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// Sort is how the values of a field are compared.
type Sort uint8

const (
	sortText   Sort = iota // a text, compared by its words
	sortExact              // an id or a choice, compared by its exact value
	SortNumber             // a decimal number
	SortTime
	sortBool
	sortPhone // a phone number; other values are compared by their words
	sortMap   // an object, of which only the presence can be tested
)

// SortOf returns the sort of a field.
func SortOf(k *spec.Kind, f *spec.Field) Sort {
	if spec.IsTimeType(f.Type) {
		return SortTime
	}
	switch f.Type {
	case spec.TypeInt, spec.TypeDecimal, spec.TypeCode, spec.TypeLatitude, spec.TypeLongitude:
		return SortNumber
	case spec.TypeBool:
		return sortBool
	case spec.TypeSelect:
		return sortExact
	case spec.TypeMap:
		return sortMap
	}
	switch {
	case f.Class == spec.ClassPhone:
		return sortPhone
	case f.Link != "" || slices.Contains(k.ID, f.Name):
		return sortExact
	}
	return sortText
}

// bindTyped binds a condition on fields. It fails if the types of the fields are too different for one comparison.
func (b *Binder) bindTyped(n *Node, in map[*KindView]string, fields []*spec.Field) *Cond {
	var of Sort
	first := true
	for s, name := range in {
		f := s.Kind.Field(name)
		is := SortOf(s.Kind, f)
		if !first && is != of {
			// A choice in one kind may be any text in another kind, so the exact value is compared.
			if isTextual(is) && isTextual(of) {
				is = sortExact
			} else {
				return b.refuse(n.at, n.end, "%s has different types in different kinds; add kind: to search one", n.Name)
			}
		}
		of, first = is, false
	}
	if isTextual(of) || of == sortBool || of == sortMap {
		if n.Rel != RelIs && n.Rel != RelSame {
			return b.refuse(n.at, n.end, "%s has no order; write %s:VALUE, or several with commas", n.Name, n.Name)
		}
		for _, v := range n.Values {
			if v.Text == "" && !v.prefix {
				return b.refuse(v.at, v.end, "the value is empty")
			}
		}
	}
	l := &predicate{Node: n, Fields: in}
	if len(n.Values) == 1 && n.Values[0].Text == "" && n.Values[0].prefix { // the condition field:* only requires that the field has a value
		l.test = query.Present{}
		return fieldCond(l)
	}
	switch of {
	case SortNumber:
		b.bindDecimal(l, fields)
	case SortTime:
		if ranges, ok := b.timeRanges(l.Node); ok {
			l.test = newTimesTest(ranges)
			l.Term = storeTimeRange(ranges)
		}
	case sortBool:
		b.bindBool(l)
	case sortExact:
		b.bindExact(l)
	case sortMap:
		b.refuse(n.at, n.end, "%s contains other fields; write has:%s, no:%s, or name one of them", n.Name, n.Name, n.Name)
	case sortPhone:
		b.bindPhone(l)
	default:
		if n.Rel == RelSame {
			b.bindExact(l)
		} else {
			b.bindWords(l)
		}
	}
	return fieldCond(l)
}

func isTextual(s Sort) bool { return s == sortText || s == sortExact || s == sortPhone }

// bindExact binds a condition on the exact value or its beginning.
func (b *Binder) bindExact(l *predicate) {
	values := b.spellings(l)
	t := query.OneOf{}
	for _, v := range values {
		if v.prefix {
			t.Prefixes = append(t.Prefixes, v.Text)
		} else {
			t.Texts = append(t.Texts, v.Text)
		}
	}
	l.test, l.Term = t, exactTerm(values)
}

// exactTerm returns the store's condition that a field has one of some values. It returns nil if a value is only
// the beginning of a text.
func exactTerm(values []Value) *query.Predicate {
	t := &query.Predicate{}
	for _, v := range values {
		if v.prefix || v.Text == "" {
			return nil
		}
		t.Any = append(t.Any, v.Text)
	}
	return t
}

// anyWords is a test that a text contains the words of at least one of the patterns.
type anyWords []tokenizer.Pattern

// Match searches the words in the text of the value.
func (t anyWords) Match(v query.Value) bool {
	text := v.Text()
	return slices.ContainsFunc(t, func(p tokenizer.Pattern) bool { return p.MatchText(text) })
}

// bindWords binds a condition on words in the field.
func (b *Binder) bindWords(l *predicate) {
	var any anyWords
	for _, v := range l.Node.Values {
		p := tokenizer.Phrase(v.prefix, v.Text)
		if p.IsEmpty() {
			b.refuse(v.at, v.end, "there is no word in %q; to compare the whole value write %s=", understudy.Clip(v.Text), l.Node.Name)
			return
		}
		any = append(any, p)
	}
	indexed := true
	for s, name := range l.Fields {
		indexed = indexed && s.texts[name] != noText
	}
	if len(any) == 1 && indexed {
		l.Words = any[0]
		return
	}
	l.test = any
}

func (b *Binder) bindBool(l *predicate) {
	t := &query.Predicate{}
	for _, v := range l.Node.Values {
		switch strings.ToLower(v.Text) {
		case "true", "yes":
			t.Any = append(t.Any, "true")
		case "false", "no":
			t.Any = append(t.Any, "false")
		default:
			b.refuse(v.at, v.end, "%s is true or false", l.Node.Name)
			return
		}
	}
	l.test, l.Term = query.OneOf{Texts: t.Any}, t
}

// bindDecimal binds a comparison of numbers. It accepts the forms that pages show: 0:24 for 24 seconds, and $0.0248
// for a cost that the API writes as -0.0248. A value with a minus sign is compared with the API's number.
func (b *Binder) bindDecimal(l *predicate, fields []*spec.Field) {
	n, signed := l.Node, false
	show := func(how string) bool {
		return slices.ContainsFunc(fields, func(f *spec.Field) bool { return f.Show == how })
	}
	want := make([]*query.Decimal, len(n.Values))
	for i, v := range n.Values {
		if n.Rel == relRange && v.Text == "" {
			continue
		}
		text := v.Text
		if show(spec.ShowSeconds) {
			text = clockSeconds(text)
		} else if show(spec.ShowCost) {
			text = strings.TrimLeft(text, "$€£¥")
		}
		d, ok := query.ParseDecimal(text)
		if want[i] = &d; !ok || v.prefix {
			b.refuse(v.at, v.end, "%s is a number; write one, like %s", n.Name, example(n))
			return
		}
		signed = signed || strings.HasPrefix(text, "-")
	}
	if n.Rel == relRange && n.isClosed() && want[0].Compare(*want[1]) > 0 {
		b.refuseRange(n)
		return
	}
	if l.test = newDecimalTest(n.Rel, want, false); !signed && show(spec.ShowCost) {
		l.costTest = newDecimalTest(n.Rel, want, true)
	}
}

// clockSeconds returns the seconds of a text such as 0:24 or 1:02:03. It returns any other text unchanged.
func clockSeconds(text string) string {
	sum, parts := 0, strings.Split(text, ":")
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 20)
		if err != nil || len(parts) > 3 || i > 0 && (n > 59 || len(part) != 2) {
			return text
		}
		sum = sum*60 + int(n)
	}
	return strconv.Itoa(sum)
}

// newDecimalTest returns a test that compares a number with the wanted numbers. If negated is true, it changes the
// sign of the number first. A nil end of a range means that the range has no end.
func newDecimalTest(rel relation, want []*query.Decimal, negated bool) query.Test {
	switch one := (query.Range{From: want[0], To: want[len(want)-1], Negated: negated}); rel {
	case relLess, relAtMost:
		one.From, one.Exclusive = nil, rel == relLess
		return one
	case relMore, relAtLeast:
		one.To, one.Exclusive = nil, rel == relMore
		return one
	case relRange:
		return one
	}
	var any query.Any
	for _, d := range want {
		any = append(any, query.Range{From: d, To: d, Negated: negated})
	}
	return any
}

func example(n *Node) string {
	if n.Rel == relRange {
		return n.Name + ":10..60"
	}
	return n.Name + n.Rel.symbol() + "60"
}

func (n *Node) isClosed() bool { return n.Values[0].Text != "" && n.Values[1].Text != "" }

// refuseRange fails with an error about a range that cannot contain any value.
func (b *Binder) refuseRange(n *Node) {
	from, to := n.Values[0], n.Values[1]
	b.refuse(from.at, to.end, "the range ends before it begins; write %s:%s..%s",
		n.Name, understudy.Clip(to.Text), understudy.Clip(from.Text))
}

// bindPhone binds a condition on a phone number in any notation, or on words if the value is not a number.
func (b *Binder) bindPhone(l *predicate) {
	values := l.Node.Values
	dialled := 0
	for _, v := range values {
		if isNumber(v.Text) && !v.prefix {
			dialled++
		}
	}
	switch {
	case l.Node.Rel == RelSame:
		b.bindExact(l)
	case dialled == 0:
		b.bindWords(l)
	case dialled < len(values):
		b.refuse(values[0].at, l.Node.end, "some of these are phone numbers and some are not; write two conditions with OR between them")
	default:
		l.test = newPhoneTest(values)
		if b.addEndingHint(l.Node); len(values) == 1 {
			l.Term = &query.Predicate{Number: values[0].Text}
		}
	}
}

// minShortCodeDigits is the minimum length of a short code.
const minShortCodeDigits = 3

// isNumber reports whether a text is a phone number or a short code.
func isNumber(text string) bool {
	return understudy.ParsePhone(text).Digits != "" || len(text) >= minShortCodeDigits && len(text) < understudy.MinPhoneDigits &&
		strings.Trim(text, "0123456789") == ""
}

// addEndingHint sets a hint if four digits were searched as a complete number.
func (b *Binder) addEndingHint(n *Node) {
	if digits, ok := lastFour(n.Values[0].Text); ok {
		b.hint = "No number is only " + digits + ". For numbers that end with it write " + n.Name + ":" + query.LastFourMark + digits + "."
	}
}

func newPhoneTest(values []Value) (any query.Any) {
	for _, v := range values {
		any = append(any, query.NewPhoneNumber(v.Text))
	}
	return any
}
