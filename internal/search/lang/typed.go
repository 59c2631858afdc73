// Typed: what a condition means for the type of its field.

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
	if spec.IsTimeType(f.Type) {
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

// typed binds a condition on fields that are there; they are of one sort, or the condition is none they share.
func (b *Binder) typed(n *Node, in map[*KindView]string, fields []*spec.Field) *predicate {
	var of Sort
	first := true
	for s, name := range in {
		f := s.Kind.Field(name)
		is := SortOf(s.Kind, f)
		if !first && is != of {
			// A choice in one kind may be any text in another: what is typed has to be the value.
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
		b.numeric(l, fields)
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

// exactly is the term for one of some values; nil when one of them is a beginning only.
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
func (t anyWords) Match(v query.Value) bool {
	text := v.Text()
	return slices.ContainsFunc(t, func(p tokenizer.Pattern) bool { return p.MatchText(text) })
}

// textual wants words in the field.
func (b *Binder) textual(l *predicate) {
	var any anyWords
	for _, v := range l.Node.Values {
		p := tokenizer.Phrase(v.prefix, v.Text)
		if p.IsEmpty() {
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

// numeric compares numbers, also as pages show them: 0:24 for 24 seconds, $0.0248 for a cost that the API writes as
// -0.0248. A condition with a minus compares what the API wrote.
func (b *Binder) numeric(l *predicate, fields []*spec.Field) {
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
			b.fail(syntaxError(b.Text, v.at, v.end, "%s is a number; write one, like %s", n.Name, example(n)))
			return
		}
		signed = signed || strings.HasPrefix(text, "-")
	}
	if n.Rel == relRange && n.closed() && want[0].Compare(*want[1]) > 0 {
		b.backwards(n)
		return
	}
	if l.test = decimals(n.Rel, want, false); !signed && show(spec.ShowCost) {
		l.cost = decimals(n.Rel, want, true)
	}
}

// clockSeconds returns the seconds of 0:24 or 1:02:03, and any other text as it is.
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

// decimals is the test for numbers that stand in a relation to others, or with negated for those of the other sign. An
// end of a range that is nil is open.
func decimals(rel relation, want []*query.Decimal, negated bool) query.Test {
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
		if b.hintEnding(l.Node); len(values) == 1 {
			l.Term = &query.Predicate{Number: values[0].Text}
		}
	}
}

// leastShort is how many digits a short code has.
const leastShort = 3

// isNumber says whether a text is a phone number or a short code.
func isNumber(text string) bool {
	return understudy.ParsePhone(text).Digits != "" || len(text) >= leastShort && len(text) < understudy.MinPhoneDigits &&
		strings.Trim(text, "0123456789") == ""
}

// hintEnding keeps what to write where a whole number of four digits is asked for, and is not there.
func (b *Binder) hintEnding(n *Node) {
	if digits, ok := lastFour(n.Values[0].Text); ok {
		b.hint = "No number is " + digits + " alone. For those that end so write " + n.Name + ":" + query.LastFourMark + digits + "."
	}
}

// numbers is the test for one of some phone numbers in any form.
func numbers(values []Value) (any query.Any) {
	for _, v := range values {
		any = append(any, query.NewPhoneNumber(v.Text))
	}
	return any
}
