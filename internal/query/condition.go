// Condition: tests of one value.

package query

import (
	"math"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// Test is a condition on a value. It is safe for concurrent use. A missing value fulfils only Contains and Digits.
type Test interface {
	Holds(v Value) bool
}

// Equality is a condition on the value of one field: the test, and what a store can be asked for it.
type Equality struct {
	Test      Test
	Predicate *Predicate // of the field; nil: nothing
}

// Present wants a value that is not the empty text.
type Present struct{}

// Holds reports whether there is a value.
func (Present) Holds(v Value) bool { return !v.Null() && string(v.raw) != `""` }

// OneOf wants one of some texts, or a text that begins with one of the prefixes. No text and no prefix is empty.
type OneOf struct{ Texts, Prefixes []string }

// Holds compares the whole text.
func (t OneOf) Holds(v Value) bool {
	if v.Null() {
		return false
	}
	for _, want := range t.Texts {
		if v.Is(want) {
			return true
		}
	}
	for _, want := range t.Prefixes {
		if v.begins(want) {
			return true
		}
	}
	return false
}

// Contains wants a text that contains another. Null counts as the empty text, as in the providers' own filters.
type Contains string

// Holds looks for the text.
func (t Contains) Holds(v Value) bool { return strings.Contains(v.Text(), string(t)) }

// Digits is Contains where a star stands for any digit.
type Digits string

// Holds looks for the pattern.
func (t Digits) Holds(v Value) bool {
	text := v.Text()
	for at := 0; at+len(t) <= len(text); at++ {
		if t.at(text[at:]) {
			return true
		}
	}
	return false
}

func (t Digits) at(text string) bool {
	for i := range len(t) {
		if c := text[i]; t[i] != c && (t[i] != '*' || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Number wants a phone number in any form, with or without the code of a country. A
// text that is no number ("client:anna") is compared without case.
type Number struct {
	text  string
	phone understudy.Phone
}

// LastFourMark stands before the last four digits of a number.
const LastFourMark = "…"

// LastFour returns the digits of a text like …4176. ok is false for any other text.
func LastFour(text string) (digits string, ok bool) {
	digits, ok = strings.CutPrefix(text, LastFourMark)
	return digits, ok && len(digits) == len("1234") && allDigits(digits)
}

// AppendLast4 appends the last four digits of a number that has at least 8: digits with
// nothing but the marks people write between them. Of any other text it appends nothing.
func AppendLast4(dst []byte, text string) []byte {
	var last [4]byte
	digits := 0
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			copy(last[:], last[1:])
			last[3] = c
			digits++
		case c == '+' && i == 0, c == ' ', c == '-', c == '.', c == '(', c == ')', c == '/':
		default:
			return dst
		}
	}
	if digits < 8 {
		return dst
	}
	return append(dst, last[:]...)
}

// NewNumber is the test for a number in any form, or, of a text like …4176, for one that ends in these digits.
func NewNumber(text string) Number { return Number{text, understudy.ReadPhone(text)} }

// Holds compares the numbers.
func (t Number) Holds(v Value) bool {
	if !(Present{}).Holds(v) {
		return false
	}
	if digits, ok := LastFour(t.text); ok {
		var buf [len("1234")]byte
		return v.Quoted() && string(AppendLast4(buf[:0], v.Text())) == digits
	}
	if t.phone.Digits != "" {
		return t.phone.Same(understudy.ReadPhone(v.Text()))
	}
	return strings.EqualFold(v.Text(), t.text)
}

// Span is the time [From, To) in Unix seconds. math.MinInt64 and math.MaxInt64 are open ends.
type Span struct{ From, To int64 }

// Has reports whether a time is in the span. 0 is no time.
func (s Span) Has(at int64) bool {
	return at != 0 && at >= s.From && (s.To == math.MaxInt64 || at < s.To)
}

// Times wants a time in one of some spans. The field's type says how it is read.
type Times []Span

// Holds reads the time.
func (t Times) Holds(v Value) bool { return t.Has(v.Unix()) }

// Has reports whether a time is in one of the spans.
func (t Times) Has(at int64) bool {
	for _, s := range t {
		if s.Has(at) {
			return true
		}
	}
	return false
}

// Any wants one of some tests to hold.
type Any []Test

// Holds asks each test.
func (t Any) Holds(v Value) bool {
	for _, one := range t {
		if one.Holds(v) {
			return true
		}
	}
	return false
}

// Elements wants one of some texts, or all of them, among the elements of an array. Of elements that are objects, the
// member of the dotted name Inside counts; a value that is no array is its own element. No text is empty.
type Elements struct {
	Inside string
	Texts  []string
	All    bool
	Fold   bool // upper and lower case are the same
}

// Holds looks at every element.
func (t Elements) Holds(v Value) bool {
	found := 0
	for _, want := range t.Texts {
		if v.has(t.Inside, want, t.Fold) {
			found++
		}
	}
	return found > 0 && (!t.All || found == len(t.Texts))
}

// has reports whether the value, or an element of it, has a text at a dotted name.
func (v Value) has(inside, want string, fold bool) (found bool) {
	at := jsonspan.Value{Kind: v.kind, End: len(v.raw)}
	switch v.kind {
	case jsonspan.Array:
		jsonspan.VisitElements(v.raw, at, func(e jsonspan.Value) bool {
			found = Of(v.raw, e, v.typ).has(inside, want, fold)
			return !found
		})
	case jsonspan.Object:
		if in, ok := jsonspan.Find(v.raw, at, inside); ok && inside != "" {
			found = Of(v.raw, in, v.typ).has("", want, fold)
		}
	case jsonspan.None:
	default:
		found = inside == "" && (v.Is(want) || fold && strings.EqualFold(v.Text(), want))
	}
	return found
}

// Not wants what another test does not; a missing value, too.
type Not struct{ Test Test }

// Holds is the other's opposite.
func (t Not) Holds(v Value) bool { return !t.Test.Holds(v) }
