// This file contains conditions on a single value.

package query

import (
	"math"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// Test is a condition on a value. It is safe for concurrent use. A missing value can match only Contains, Digits and Not.
type Test interface {
	Match(v Value) bool
}

// Equality is a condition on the value of one field. It has a test, and a predicate that a store can use.
type Equality struct {
	Test      Test
	Predicate *Predicate // the predicate for the store; nil if a store cannot use one
}

// Present matches every value except null and the empty text.
type Present struct{}

// Match reports whether the value is present.
func (Present) Match(v Value) bool { return !v.IsNull() && string(v.raw) != `""` }

// OneOf matches a value that is one of the texts, or begins with one of the prefixes. No text or prefix may be empty.
type OneOf struct{ Texts, Prefixes []string }

// Match compares the whole value with the texts, and its beginning with the prefixes.
func (t OneOf) Match(v Value) bool {
	if v.IsNull() {
		return false
	}
	for _, want := range t.Texts {
		if v.Is(want) {
			return true
		}
	}
	for _, want := range t.Prefixes {
		if v.hasPrefix(want) {
			return true
		}
	}
	return false
}

// Contains matches a value that contains this text. Null counts as the empty text, as in the providers' own filters.
type Contains string

// Match searches for the text in the value.
func (t Contains) Match(v Value) bool { return strings.Contains(v.Text(), string(t)) }

// Digits is like Contains, but a star in it matches any digit.
type Digits string

// Match searches for the pattern in the value.
func (t Digits) Match(v Value) bool {
	text := v.Text()
	for at := 0; at+len(t) <= len(text); at++ {
		if t.matchAt(text[at:]) {
			return true
		}
	}
	return false
}

func (t Digits) matchAt(text string) bool {
	for i := range len(t) {
		if c := text[i]; t[i] != c && (t[i] != '*' || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// PhoneNumber matches a phone number in any spelling, with or without a country code. A text that is not a
// number ("client:anna") is compared ignoring case.
type PhoneNumber struct {
	text  string
	phone understudy.Phone
}

// LastFourMark precedes the last four digits of a number.
const LastFourMark = "…"

// LastFour returns the digits of a text such as …4176. ok is false for any other text.
func LastFour(text string) (digits string, ok bool) {
	digits, ok = strings.CutPrefix(text, LastFourMark)
	return digits, ok && len(digits) == len("1234") && isAllDigits(digits)
}

// AppendLast4 appends the last four digits of a number with at least 8 digits. Only the usual separators may stand
// between the digits. For any other text it appends nothing.
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

// NewPhoneNumber returns the test for a number in any spelling. A text such as …4176 matches the numbers that
// end in these digits.
func NewPhoneNumber(text string) PhoneNumber { return PhoneNumber{text, understudy.ParsePhone(text)} }

// Match compares the phone number in the value with the wanted number.
func (t PhoneNumber) Match(v Value) bool {
	if !(Present{}).Match(v) {
		return false
	}
	if digits, ok := LastFour(t.text); ok {
		var buf [len("1234")]byte
		return v.IsString() && string(AppendLast4(buf[:0], v.Text())) == digits
	}
	if t.phone.Digits != "" {
		return t.phone.Match(understudy.ParsePhone(v.Text()))
	}
	return strings.EqualFold(v.Text(), t.text)
}

// Span is the time range [From, To) in Unix seconds. math.MinInt64 as From, or math.MaxInt64 as To, means no limit.
type Span struct{ From, To int64 }

// Has reports whether a time is in the span. The time 0 means "no time" and is never in a span.
func (s Span) Has(at int64) bool {
	return at != 0 && at >= s.From && (s.To == math.MaxInt64 || at < s.To)
}

// Times matches a time that is in one of the spans. The field's type says how to parse the time.
type Times []Span

// Match parses the time in the value and compares it with the spans.
func (t Times) Match(v Value) bool { return t.Has(v.Unix()) }

// Has reports whether a time is in one of the spans.
func (t Times) Has(at int64) bool {
	for _, s := range t {
		if s.Has(at) {
			return true
		}
	}
	return false
}

// Any matches if at least one of its tests matches.
type Any []Test

// Match tries each test.
func (t Any) Match(v Value) bool {
	for _, one := range t {
		if one.Match(v) {
			return true
		}
	}
	return false
}

// Elements matches an array that contains one of the texts, or all of them. If an element is an object, its member with the
// dotted name Member is compared. A value that is not an array counts as an array with one element. No text may be empty.
type Elements struct {
	Member   string
	Texts    []string
	All      bool
	FoldCase bool // whether letter case is ignored
}

// Match compares every element.
func (t Elements) Match(v Value) bool {
	found := 0
	for _, want := range t.Texts {
		if v.has(t.Member, want, t.FoldCase) {
			found++
		}
	}
	return found > 0 && (!t.All || found == len(t.Texts))
}

// has reports whether the value, or an element of it, has a text at the dotted name member.
func (v Value) has(inside, want string, fold bool) (found bool) {
	at := jsonspan.Value{Kind: v.kind, End: len(v.raw)}
	switch v.kind {
	case jsonspan.Array:
		jsonspan.VisitElements(v.raw, at, func(e jsonspan.Value) bool {
			found = NewValue(v.raw, e, v.typ).has(inside, want, fold)
			return !found
		})
	case jsonspan.Object:
		if in, ok := jsonspan.Find(v.raw, at, inside); ok && inside != "" {
			found = NewValue(v.raw, in, v.typ).has("", want, fold)
		}
	case jsonspan.None:
	default:
		found = inside == "" && (v.Is(want) || fold && strings.EqualFold(v.Text(), want))
	}
	return found
}

// Not matches if its test does not match. So it can also match a missing value.
type Not struct{ Test Test }

// Match returns the opposite of the test's result.
func (t Not) Match(v Value) bool { return !t.Test.Match(v) }
