// This file turns statements and values into PostgreSQL's form and back.

package postgres

import (
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"understudy/internal/store/db"
)

// textOf returns the text of a statement with n tuples, with $1, $2 and so on for its parameters.
func textOf(st *db.Statement, n int) string {
	head, tail := cmp.Or(st.Standard, st.Head), st.Tail
	if before, after, found := strings.Cut(head, "{}"); found {
		head, tail = before, after
	}
	if n > 0 {
		head += strings.Repeat(st.Tuple+", ", n-1) + st.Tuple
	}
	return numberParameters(head + tail)
}

// numberParameters replaces ? by $1, $2 and so on, and ?2 by $2. As in SQLite, a ? has the number after the highest number
// before it. Quoted texts stay unchanged.
func numberParameters(text string) string {
	highest := 0
	return parameter.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] != '?' {
			return found
		}
		number := highest + 1
		if len(found) > 1 {
			number, _ = strconv.Atoi(found[1:])
		}
		highest = max(highest, number)
		return "$" + strconv.Itoa(number)
	})
}

// parameter matches a parameter or a quoted text.
var parameter = regexp.MustCompile(`\?\d*|'[^']*'`)

// The formats of values on the wire.
const (
	textFormat   = 0
	binaryFormat = 1
)

// appendParameters encodes values as parameters. Integers and texts are sent as text, so that PostgreSQL converts them to
// the type that the statement needs.
func appendParameters(values [][]byte, formats []int16, args []driver.Value) ([][]byte, []int16, error) {
	for _, arg := range args {
		value, format := []byte(nil), int16(textFormat)
		switch arg := arg.(type) {
		case nil:
		case int64:
			value = strconv.AppendInt(nil, arg, 10)
		case string:
			value = escape(arg)
		case []byte:
			// The caller may reuse the memory before the statement is sent.
			value, format = append([]byte{}, arg...), binaryFormat
		default:
			return nil, nil, fmt.Errorf("postgres: a parameter of type %T", arg)
		}
		values, formats = append(values, value), append(formats, format)
	}
	return values, formats, nil
}

// readRow decodes a row in binary format. The values do not share memory with raw.
func readRow(fields []pgconn.FieldDescription, raw [][]byte) ([]driver.Value, error) {
	row := make([]driver.Value, len(raw))
	for i, b := range raw {
		if b == nil {
			continue
		}
		switch oid := fields[i].DataTypeOID; {
		case oid == pgtype.Int8OID && len(b) == 8:
			row[i] = int64(binary.BigEndian.Uint64(b))
		case oid == pgtype.Int4OID && len(b) == 4:
			row[i] = int64(int32(binary.BigEndian.Uint32(b)))
		case oid == pgtype.Int2OID && len(b) == 2:
			row[i] = int64(int16(binary.BigEndian.Uint16(b)))
		case oid == pgtype.BoolOID && len(b) == 1:
			row[i] = int64(b[0])
		case oid == pgtype.TextOID, oid == pgtype.NameOID:
			row[i] = unescape(b)
		case oid == pgtype.NumericOID:
			var n int64
			if err := numbers.Scan(oid, binaryFormat, b, &n); err != nil {
				return nil, fmt.Errorf("postgres: column %s: %w", fields[i].Name, err)
			}
			row[i] = n
		default: // a type from a table that does not belong to the store
			row[i] = slices.Clone(b)
		}
	}
	return row, nil
}

// numbers decodes sums, which PostgreSQL gives as decimal numbers. Only reading uses it, so it is safe for concurrent
// use.
var numbers = pgtype.NewMap()

// mark begins an escape sequence in a text. No character has this number (Unicode, 23.7).
const mark = "\U0010fffe"

// escape returns a text in a form that PostgreSQL can store: valid UTF-8 without a zero byte. Each invalid byte, and each
// byte of mark itself, becomes mark and two hexadecimal digits.
func escape(text string) []byte {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 && !strings.Contains(text, mark) {
		return []byte(text)
	}
	out := make([]byte, 0, 2*len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == 0 || r == utf8.RuneError && n == 1 || strings.HasPrefix(text, mark) {
			for _, b := range []byte(text[:n]) {
				out = hex.AppendEncode(append(out, mark...), []byte{b})
			}
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

// unescape returns the text that escape was given.
func unescape(b []byte) string {
	text := string(b)
	if !strings.Contains(text, mark) {
		return text
	}
	parts := strings.Split(text, mark)
	for i, part := range parts[1:] {
		if one, err := hex.DecodeString(part[:min(2, len(part))]); err == nil && len(one) == 1 {
			parts[i+1] = string(one) + part[2:]
		} else { // another program wrote the text
			parts[i+1] = mark + part
		}
	}
	return strings.Join(parts, "")
}
