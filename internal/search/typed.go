// Typed: what a condition means for the type of its field.

package search

import (
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// sort of a field, as far as comparing goes.
type sort uint8

const (
	sortText   sort = iota // words
	sortExact              // an id, a choice: the value itself
	sortNumber             // digits, perhaps with a point
	sortTime
	sortBool
	sortPhone // a number, or words
	sortMap   // nothing but being there
)

// sortOf is the sort of a kind's field.
func sortOf(k *spec.Kind, f *spec.Field) sort {
	switch f.Type {
	case spec.TypeInt, spec.TypeDecimal, spec.TypeCode:
		return sortNumber
	case spec.TypeRFC2822, spec.TypeISO, spec.TypeEpoch, spec.TypeDate:
		return sortTime
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
func (b *binder) typed(n *node, in map[*kindView]string, fields []*spec.Field) *predicate {
	var of sort
	first := true
	for s, name := range in {
		f := s.kind.Field(name)
		is := sortOf(s.kind, f)
		if !first && is != of {
			// A choice in one kind may be any text in another: what is typed has to
			// be the value.
			if textual(is) && textual(of) {
				is = sortExact
			} else {
				b.fail(syntaxError(b.text, n.at, n.end, "%s is not the same sort of field in every kind; look in one with kind:", n.name))
				return nil
			}
		}
		of, first = is, false
	}
	if textual(of) || of == sortBool || of == sortMap {
		if n.rel != relIs && n.rel != relSame {
			b.fail(syntaxError(b.text, n.at, n.end, "%s is not ordered; write %s:VALUE, or several with commas", n.name, n.name))
			return nil
		}
		for _, v := range n.values {
			if v.text == "" && !v.prefix {
				b.fail(syntaxError(b.text, v.at, v.end, "the value is empty"))
				return nil
			}
		}
	}
	l := &predicate{node: n, in: in}
	if len(n.values) == 1 && n.values[0].text == "" && n.values[0].prefix { // field:*
		l.test = query.Present{}
		return l
	}
	switch of {
	case sortNumber:
		b.numeric(l)
	case sortTime:
		b.timed(l)
	case sortBool:
		b.boolean(l)
	case sortExact:
		b.same(l)
	case sortMap:
		b.fail(syntaxError(b.text, n.at, n.end, "%s holds other fields; write has:%s, no:%s, or name one of them", n.name, n.name, n.name))
	case sortPhone:
		b.phone(l)
	default:
		if n.rel == relSame {
			b.same(l)
		} else {
			b.textual(l)
		}
	}
	return l
}

func textual(s sort) bool { return s == sortText || s == sortExact || s == sortPhone }

// same wants the value itself, or its beginning.
func (b *binder) same(l *predicate) {
	values := b.folded(l)
	t := query.OneOf{}
	for _, v := range values {
		if v.prefix {
			t.Prefixes = append(t.Prefixes, v.text)
		} else {
			t.Texts = append(t.Texts, v.text)
		}
	}
	l.test, l.term = t, exactly(values)
}

// exactly is the term for one of some values; nil when one of them is a
// beginning only.
func exactly(values []value) *query.Predicate {
	t := &query.Predicate{}
	for _, v := range values {
		if v.prefix || v.text == "" {
			return nil
		}
		t.Any = append(t.Any, v.text)
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
func (b *binder) textual(l *predicate) {
	var any anyWords
	for _, v := range l.node.values {
		p := tokenizer.Phrase(v.prefix, v.text)
		if p.Empty() {
			b.fail(syntaxError(b.text, v.at, v.end, "there is no word in %q; to compare the whole value write %s=", clip(v.text), l.node.name))
			return
		}
		any = append(any, p)
	}
	indexed := true
	for s, name := range l.in {
		indexed = indexed && s.texts[name] != noText
	}
	if len(any) == 1 && indexed {
		l.words = any[0]
		return
	}
	l.test = any
}

func (b *binder) boolean(l *predicate) {
	t := &query.Predicate{}
	for _, v := range l.node.values {
		switch strings.ToLower(v.text) {
		case "true", "yes":
			t.Any = append(t.Any, "true")
		case "false", "no":
			t.Any = append(t.Any, "false")
		default:
			b.fail(syntaxError(b.text, v.at, v.end, "%s is true or false", l.node.name))
			return
		}
	}
	l.test, l.term = query.OneOf{Texts: t.Any}, t
}

func (b *binder) numeric(l *predicate) {
	n := l.node
	want := make([]*query.Decimal, len(n.values))
	for i, v := range n.values {
		if n.rel == relRange && v.text == "" {
			continue
		}
		d, ok := query.ParseDecimal(v.text)
		if want[i] = &d; !ok || v.prefix {
			b.fail(syntaxError(b.text, v.at, v.end, "%s is a number; write one, like %s", n.name, example(n)))
			return
		}
	}
	if n.rel == relRange && n.closed() && want[0].Compare(*want[1]) > 0 {
		b.backwards(n)
		return
	}
	l.test = decimals(n.rel, want)
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

func example(n *node) string {
	if n.rel == relRange {
		return n.name + ":10..60"
	}
	return n.name + n.rel.sign() + "60"
}

// closed says whether a range has both its ends.
func (n *node) closed() bool { return n.values[0].text != "" && n.values[1].text != "" }

// backwards refuses a range that nothing can lie in.
func (b *binder) backwards(n *node) {
	from, to := n.values[0], n.values[1]
	b.fail(syntaxError(b.text, from.at, to.end, "the range ends before it begins; write %s:%s..%s", n.name, clip(to.text), clip(from.text)))
}

// phone wants a number in any form, or, when what is typed is none, words.
func (b *binder) phone(l *predicate) {
	values := l.node.values
	dialled := 0
	for _, v := range values {
		if isNumber(v.text) && !v.prefix {
			dialled++
		}
	}
	switch {
	case l.node.rel == relSame:
		b.same(l)
	case dialled == 0:
		b.textual(l)
	case dialled < len(values):
		b.fail(syntaxError(b.text, values[0].at, l.node.end, "some of these are phone numbers and some are not; write two conditions with OR between them"))
	default:
		l.test = numbers(values)
		if len(values) == 1 {
			l.term = &query.Predicate{Number: values[0].text}
		}
	}
}

// leastShort is how many digits a short code has.
const leastShort = 3

// isNumber says whether a text is a phone number or a short code.
func isNumber(text string) bool {
	return understudy.ReadPhone(text).Digits != "" || len(text) >= leastShort && len(text) < understudy.LeastPhone && strings.Trim(text, "0123456789") == ""
}

// numbers is the test for one of some phone numbers in any form.
func numbers(values []value) (any query.Any) {
	for _, v := range values {
		any = append(any, query.NewNumber(v.text))
	}
	return any
}
