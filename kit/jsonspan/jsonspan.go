// Values, and the check that a document is whole.

// Package jsonspan reads JSON as byte ranges: it checks that a document is
// complete (RFC 8259) and finds the parts of it without building anything.
//
// Document checks; everything else trusts data that Document accepted and may
// panic or give nonsense on other data. Nothing allocates unless its result is
// a string. Values are offsets into the slice given; the slice is never
// changed. All functions are safe for concurrent use.
package jsonspan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Kind is the kind of a JSON value.
type Kind byte

// The kinds.
const (
	None Kind = iota // no value
	Object
	Array
	String
	Number
	Bool
	Null
)

// String is the kind's name in lower case.
func (k Kind) String() string {
	return [...]string{"none", "object", "array", "string", "number", "bool", "null"}[k]
}

// Value is one JSON value: data[Start:End], a string with its quotes.
type Value struct {
	Kind       Kind
	Start, End int
}

// Of is the value's bytes.
func (v Value) Of(data []byte) []byte { return data[v.Start:v.End] }

// MaxDepth is how deep arrays and objects may lie in each other.
const MaxDepth = 200

// Error says where and why a document is not one.
type Error struct {
	Offset int
	Why    string
}

// Error is "offset 12: want a value".
func (e *Error) Error() string { return fmt.Sprintf("offset %d: %s", e.Offset, e.Why) }

// Document checks that data is one complete, well-formed JSON document (RFC
// 8259) with nothing but white space around it, at most MaxDepth deep, and
// returns its outermost value. Like encoding/json's Valid it does not look at
// UTF-8; Faithful does. The error is an *Error.
func Document(data []byte) (Value, error) {
	start := space(data, 0)
	end, err := scan(data, start)
	if err != nil {
		return Value{}, err
	}
	if rest := space(data, end); rest < len(data) {
		return Value{}, &Error{rest, "something after the document"}
	}
	return Value{kinds[data[start]], start, end}, nil
}

// kinds tells a value's kind by its first byte; None for bytes that begin none.
var kinds = [256]Kind{
	'{': Object, '[': Array, '"': String, 't': Bool, 'f': Bool, 'n': Null, '-': Number,
	'0': Number, '1': Number, '2': Number, '3': Number, '4': Number,
	'5': Number, '6': Number, '7': Number, '8': Number, '9': Number,
}

// scan checks the value at data[i:] and returns its end. One loop instead of
// recursion: the stack holds what each open array or object is closed by.
func scan(data []byte, i int) (int, error) {
	var stack [MaxDepth]byte
	depth := 0
	for {
		i = space(data, i)
		if i >= len(data) {
			return 0, &Error{i, "the document is cut"}
		}
		var err error
		switch c := data[i]; kinds[c] {
		case String:
			i, err = checkString(data, i+1)
		case Object, Array:
			if depth == MaxDepth {
				return 0, &Error{i, "nested too deep"}
			}
			stack[depth] = c + 2 // '{'+2 is '}', '['+2 is ']'
			depth++
			i = space(data, i+1)
			if i < len(data) && data[i] == c+2 {
				break // empty: closed below
			}
			if c == '{' {
				i, err = checkName(data, i)
			}
			if err != nil {
				return 0, err
			}
			continue
		case Number:
			i, err = checkNumber(data, i)
		case Bool, Null:
			i, err = checkWord(data, i)
		default:
			err = &Error{i, "want a value"}
		}
		if err != nil {
			return 0, err
		}
		// After a value: close what ends here, then go on to the next one.
		for {
			if depth == 0 {
				return i, nil
			}
			i = space(data, i)
			if i >= len(data) {
				return 0, &Error{i, "the document is cut"}
			}
			if data[i] != stack[depth-1] {
				break
			}
			depth--
			i++
		}
		if data[i] != ',' {
			return 0, &Error{i, "want a comma or the end of the array or object"}
		}
		i++
		if stack[depth-1] == '}' {
			if i, err = checkName(data, space(data, i)); err != nil {
				return 0, err
			}
		}
	}
}

// space skips white space.
func space(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

// checkName checks `"name" :` and returns what comes after the colon.
func checkName(data []byte, i int) (int, error) {
	if i >= len(data) {
		return 0, &Error{i, "the document is cut"}
	}
	if data[i] != '"' {
		return 0, &Error{i, "want a name in quotes"}
	}
	i, err := checkString(data, i+1)
	if err != nil {
		return 0, err
	}
	i = space(data, i)
	if i >= len(data) || data[i] != ':' {
		return 0, &Error{i, "want a colon"}
	}
	return i + 1, nil
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks, in its lowest set bit, the first byte of a word that ends a
// run of plain string bytes: a quote, a backslash or a control character. Bits
// above the lowest may be wrong.
func special(x uint64) uint64 {
	quote := x ^ ones*'"'
	slash := x ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*' ')&^x) & highs
}

// checkString checks a string from after its opening quote to after its
// closing one.
func checkString(data []byte, i int) (int, error) {
	for {
		for i+8 <= len(data) {
			if m := special(binary.LittleEndian.Uint64(data[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		for i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\' {
			i++
		}
		if i >= len(data) {
			return 0, &Error{i, "a string is cut"}
		}
		switch data[i] {
		case '"':
			return i + 1, nil
		case '\\':
			n := escapeLen(data[i:])
			if n == 0 {
				return 0, &Error{i, "a broken escape"}
			}
			i += n
		default:
			return 0, &Error{i, "a control character in a string"}
		}
	}
}

// escapeLen is the length of the escape data begins with, 0 when it is broken.
func escapeLen(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(data) >= 6 && hex4(data[2:]) >= 0 {
			return 6
		}
	}
	return 0
}

func checkNumber(data []byte, i int) (int, error) {
	if data[i] == '-' {
		i++
	}
	first := i
	if i = digits(data, i); i == first || data[first] == '0' && i > first+1 {
		return 0, &Error{first, "a broken number"}
	}
	if i < len(data) && data[i] == '.' {
		first = i + 1
		if i = digits(data, first); i == first {
			return 0, &Error{first, "a broken number"}
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		first = i
		if i = digits(data, i); i == first {
			return 0, &Error{first, "a broken number"}
		}
	}
	return i, nil
}

func digits(data []byte, i int) int {
	for i < len(data) && '0' <= data[i] && data[i] <= '9' {
		i++
	}
	return i
}

func checkWord(data []byte, i int) (int, error) {
	word := "null"
	switch data[i] {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	}
	if len(data)-i < len(word) || string(data[i:i+len(word)]) != word {
		return 0, &Error{i, "want a value"}
	}
	return i + len(word), nil
}
