// This file declares JSON values as byte ranges and checks that a document is well formed.

// Package jsonspan reads JSON as byte ranges. It checks that a document is complete (RFC 8259) and finds its
// parts without building objects.
//
// Parse checks a document. All other functions trust that Parse accepted the data; on other data they may panic
// or return nonsense. No function allocates unless its result is a string. Values are offsets into the given
// slice, which is never changed. All functions are safe for concurrent use.
package jsonspan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Kind is the kind of a JSON value.
type Kind byte

// The kinds of JSON values.
const (
	None Kind = iota // no value, as for a member that is not found
	Object
	Array
	String
	Number
	Bool
	Null
)

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	return [...]string{"none", "object", "array", "string", "number", "bool", "null"}[k]
}

// Value is a JSON value: the bytes data[Start:End]. A string includes its quotes.
type Value struct {
	Kind       Kind
	Start, End int
}

// Bytes returns the bytes of the value.
func (v Value) Bytes(data []byte) []byte { return data[v.Start:v.End] }

// MaxDepth is the maximum nesting depth of arrays and objects.
const MaxDepth = 200

// Error says where and why a document is invalid.
type Error struct {
	Offset int
	Why    string
}

// Error returns a text such as "offset 12: want a value".
func (e *Error) Error() string { return fmt.Sprintf("offset %d: %s", e.Offset, e.Why) }

// Parse checks that data is one complete, well-formed JSON document (RFC 8259), at most MaxDepth deep, with
// only white space around it. It returns the outermost value. Like Valid of encoding/json, Parse does not check
// UTF-8; CheckLossless does. The error is an *Error.
func Parse(data []byte) (Value, error) {
	start := skipSpace(data, 0)
	end, err := scan(data, start)
	if err != nil {
		return Value{}, err
	}
	if rest := skipSpace(data, end); rest < len(data) {
		return Value{}, &Error{rest, "something after the document"}
	}
	return Value{kinds[data[start]], start, end}, nil
}

// kinds maps the first byte of a value to its kind, and bytes that begin no value to None.
var kinds = [256]Kind{
	'{': Object, '[': Array, '"': String, 't': Bool, 'f': Bool, 'n': Null, '-': Number,
	'0': Number, '1': Number, '2': Number, '3': Number, '4': Number,
	'5': Number, '6': Number, '7': Number, '8': Number, '9': Number,
}

// scan checks the value at data[i:] and returns its end. It is a loop instead of a recursion; the stack holds
// the closing byte of each open array or object.
func scan(data []byte, i int) (int, error) {
	var stack [MaxDepth]byte
	depth := 0
	for {
		i = skipSpace(data, i)
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
			stack[depth] = c + 2 // the closing bracket of { and of [ is two characters after the opening one
			depth++
			i = skipSpace(data, i+1)
			if i < len(data) && data[i] == c+2 {
				break // the code below closes an empty array or object
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
		// After a value: close the arrays and objects that end here, then go on to the next value.
		for {
			if depth == 0 {
				return i, nil
			}
			i = skipSpace(data, i)
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
			if i, err = checkName(data, skipSpace(data, i)); err != nil {
				return 0, err
			}
		}
	}
}

// skipSpace returns the offset of the first byte at or after i that is not white space.
func skipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

// checkName checks `"name" :` and returns the offset after the colon.
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
	i = skipSpace(data, i)
	if i >= len(data) || data[i] != ':' {
		return 0, &Error{i, "want a colon"}
	}
	return i + 1, nil
}

// Constants to examine the 8 bytes of a word at once: the lowest and the highest bit of each byte.
const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// specialBytes marks the first byte of a word that ends a run of plain string bytes: a quote, a backslash or a
// control character. The mark is the lowest set bit of the result; bits above it may be wrong.
func specialBytes(x uint64) uint64 {
	quote := x ^ lowBits*'"'
	slash := x ^ lowBits*'\\'
	return ((quote-lowBits)&^quote | (slash-lowBits)&^slash | (x-lowBits*' ')&^x) & highBits
}

// checkString takes the offset after an opening quote and returns the offset after the closing quote.
func checkString(data []byte, i int) (int, error) {
	for {
		for i+8 <= len(data) {
			if m := specialBytes(binary.LittleEndian.Uint64(data[i:])); m != 0 {
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

// escapeLen returns the length of the escape at the beginning of data, or 0 if the escape is invalid.
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

// checkNumber checks a number (RFC 8259, section 6) and returns the offset after it.
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
