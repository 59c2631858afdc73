// Typed: what a condition means for the type of its field.

package lang

import (
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// Sort of a field, as far as comparing goes.
type Sort uint8

const (
	sortText   Sort = iota // words
	sortExact              // an id, a choice: the value itself
	SortNumber             // digits, perhaps with a point
	SortTime
	sortBool
	sortPhone // a number, or words
	sortMap   // nothing but being there
)

// SortOf is the sort of a kind's field.
func SortOf(k *spec.Kind, f *spec.Field) Sort {
	if spec.IsTime(f.Type) {
		return SortTime
	}
	switch f.Type {
	case spec.TypeInt, spec.TypeDecimal, spec.TypeCode:
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

// typed binds a condition on fields that are there; they are of one sort, or
// the condition is none they share.
func (b *Binder) typed(n *Node, in map[*KindView]string, fields []*spec.Field) *predicate {
	var of Sort
	first := true
	for s, name := range in {
		f := s.Kind.Field(name)
		is := SortOf(s.Kind, f)
		if !first && is != of {
			// A choice in one kind may be any text in another: what is typed has to
			// be the value.
			if textual(is) && textual(of) {
				is = sortExact
			} else {
				b.fail(syntaxError(b.Text, n.at, n.end, "%s is not the same sort of field in every kind; look in one with kind:", n.Name))
				return nil
			}
		}
		of, first = is, false
	}
	if textual(of) || of == sortBool || of == sortMap {
		if n.Rel != RelIs && n.Rel != RelSame {
			b.fail(syntaxError(b.Text, n.at, n.end, "%s is not ordered; write %s:VALUE, or several with commas", n.Name, n.Name))
			return nil
		}
		for _, v := range n.Values {
			if v.Text == "" && !v.prefix {
				b.fail(syntaxError(b.Text, v.at, v.end, "the value is empty"))
				return nil
			}
		}
	}
	l := &predicate{Node: n, In: in}
	if len(n.Values) == 1 && n.Values[0].Text == "" && n.Values[0].prefix { // field:*
		l.test = query.Present{}
		return l
	}
	switch of {
	case SortNumber:
		b.numeric(l)
	case SortTime:
		b.timed(l)
	case sortBool:
		b.boolean(l)
	case sortExact:
		b.same(l)
	case sortMap:
		b.fail(syntaxError(b.Text, n.at, n.end, "%s holds other fields; write has:%s, no:%s, or name one of them", n.Name, n.Name, n.Name))
	case sortPhone:
		b.phone(l)
	default:
		if n.Rel == RelSame {
			b.same(l)
		} else {
			b.textual(l)
		}
	}
	return l
}

func textual(s Sort) bool { return s == sortText || s == sortExact || s == sortPhone }

// same wants the value itself, or its beginning.
func (b *Binder) same(l *predicate) {
	values := b.folded(l)
	t := query.OneOf{}
	for _, v := range values {
		if v.prefix {
			t.Prefixes = append(t.Prefixes, v.Text)
		} else {
			t.Texts = append(t.Texts, v.Text)
		}
	}
	l.test, l.Term = t, exactly(values)
}

// exactly is the term for one of some values; nil when one of them is a
// beginning only.
func exactly(values []Value) *query.Predicate {
	t := &query.Predicate{}
	for _, v := range values {
		if v.prefix || v.Text == "" {
			return nil
		}
		t.Any = append(t.Any, v.Text)
	}
	return t
}

// anyWords wants the words of one of some patterns.
type anyWords []tokenizer.Pattern

// Holds looks for the words in the value's text.
func (t anyWords) Holds(v query.Value) bool {
	text := v.Text()
	return slices.ContainsFunc(t, func(p tokenizer.Pattern) bool { return p.In(text) })
}

// textual wants words in the field.
func (b *Binder) textual(l *predicate) {
	var any anyWords
	for _, v := range l.Node.Values {
		p := tokenizer.Phrase(v.prefix, v.Text)
		if p.Empty() {
			b.fail(syntaxError(b.Text, v.at, v.end, "there is no word in %q; to compare the whole value write %s=",
				understudy.Clip(v.Text), l.Node.Name))
			return
		}
		any = append(any, p)
	}
	indexed := true
	for s, name := range l.In {
		indexed = indexed && s.texts[name] != noText
	}
	if len(any) == 1 && indexed {
		l.Words = any[0]
		return
	}
	l.test = any
}

func (b *Binder) boolean(l *predicate) {
	t := &query.Predicate{}
	for _, v := range l.Node.Values {
		switch strings.ToLower(v.Text) {
		case "true", "yes":
			t.Any = append(t.Any, "true")
		case "false", "no":
			t.Any = append(t.Any, "false")
		default:
			b.fail(syntaxError(b.Text, v.at, v.end, "%s is true or false", l.Node.Name))
			return
		}
	}
	l.test, l.Term = query.OneOf{Texts: t.Any}, t
}

func (b *Binder) numeric(l *predicate) {
	n := l.Node
	want := make([]*query.Decimal, len(n.Values))
	for i, v := range n.Values {
		if n.Rel == relRange && v.Text == "" {
			continue
		}
		d, ok := query.ParseDecimal(v.Text)
		if want[i] = &d; !ok || v.prefix {
			b.fail(syntaxError(b.Text, v.at, v.end, "%s is a number; write one, like %s", n.Name, example(n)))
			return
		}
	}
	if n.Rel == relRange && n.closed() && want[0].Compare(*want[1]) > 0 {
		b.backwards(n)
		return
	}
	l.test = decimals(n.Rel, want)
}

// decimals is the test for numbers that stand in a relation to others. An end of a
// range that is nil is open.
func decimals(rel relation, want []*query.Decimal) query.Test {
	switch rel {
	case relLess:
		return query.Range{To: want[0], Inside: true}
	case relAtMost:
		return query.Range{To: want[0]}
	case relMore:
		return query.Range{From: want[0], Inside: true}
	case relAtLeast:
		return query.Range{From: want[0]}
	case relRange:
		return query.Range{From: want[0], To: want[1]}
	}
	var any query.Any
	for _, d := range want {
		any = append(any, query.Range{From: d, To: d})
	}
	return any
}

func example(n *Node) string {
	if n.Rel == relRange {
		return n.Name + ":10..60"
	}
	return n.Name + n.Rel.sign() + "60"
}

// closed says whether a range has both its ends.
func (n *Node) closed() bool { return n.Values[0].Text != "" && n.Values[1].Text != "" }

// backwards refuses a range that nothing can lie in.
func (b *Binder) backwards(n *Node) {
	from, to := n.Values[0], n.Values[1]
	b.fail(syntaxError(b.Text, from.at, to.end, "the range ends before it begins; write %s:%s..%s",
		n.Name, understudy.Clip(to.Text), understudy.Clip(from.Text)))
}

// phone wants a number in any form, or, when what is typed is none, words.
func (b *Binder) phone(l *predicate) {
	values := l.Node.Values
	dialled := 0
	for _, v := range values {
		if isNumber(v.Text) && !v.prefix {
			dialled++
		}
	}
	switch {
	case l.Node.Rel == RelSame:
		b.same(l)
	case dialled == 0:
		b.textual(l)
	case dialled < len(values):
		b.fail(syntaxError(b.Text, values[0].at, l.Node.end,
			"some of these are phone numbers and some are not; write two conditions with OR between them"))
	default:
		l.test = numbers(values)
		if len(values) == 1 {
			l.Term = &query.Predicate{Number: values[0].Text}
		}
	}
}

// leastShort is how many digits a short code has.
const leastShort = 3

// isNumber says whether a text is a phone number or a short code.
func isNumber(text string) bool {
	return understudy.ReadPhone(text).Digits != "" || len(text) >= leastShort && len(text) < understudy.LeastPhone &&
		strings.Trim(text, "0123456789") == ""
}

// numbers is the test for one of some phone numbers in any form.
func numbers(values []Value) (any query.Any) {
	for _, v := range values {
		any = append(any, query.NewNumber(v.Text))
	}
	return any
}
