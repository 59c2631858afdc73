// JSON as Twilio writes it, field by field.
package format

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// Object appends the fields of one JSON object, in the order they are given.
type Object struct {
	B    []byte
	More bool
}

// Open begins an object.
func (o *Object) Open() { o.B = append(o.B, '{'); o.More = false }

// Close ends an object.
func (o *Object) Close() { o.B = append(o.B, '}'); o.More = true }

// Name begins a field.
func (o *Object) Name(Name string) {
	if o.More {
		o.B = append(o.B, ',')
	}
	o.More = true
	o.B = append(o.B, '"')
	o.B = append(o.B, Name...)
	o.B = append(o.B, '"', ':')
}

// Text writes a string.
func (o *Object) Text(name, value string) {
	o.Name(name)
	o.B = AppendText(o.B, value)
}

// TextOrNull writes a string, or null when it is empty.
func (o *Object) TextOrNull(name, value string) {
	if value == "" {
		o.Null(name)
		return
	}
	o.Text(name, value)
}

// Null writes null.
func (o *Object) Null(name string) {
	o.Name(name)
	o.B = append(o.B, "null"...)
}

// Number writes an integer.
func (o *Object) Number(name string, value int64) {
	o.Name(name)
	o.B = strconv.AppendInt(o.B, value, 10)
}

// Truth writes true or false.
func (o *Object) Truth(name string, value bool) {
	o.Name(name)
	o.B = strconv.AppendBool(o.B, value)
}

// Date writes seconds since 1970 in RFC 2822, or null for 0.
func (o *Object) Date(name string, unix int64) {
	if unix == 0 {
		o.Null(name)
		return
	}
	o.Name(name)
	o.B = append(o.B, '"')
	o.B = time.Unix(unix, 0).UTC().AppendFormat(o.B, "Mon, 02 Jan 2006 15:04:05 +0000")
	o.B = append(o.B, '"')
}

// Stamp writes seconds since 1970 in ISO 8601, as the Monitor API has dates.
func (o *Object) Stamp(name string, unix int64) {
	o.Text(name, time.Unix(unix, 0).UTC().Format(time.RFC3339))
}

// Degrees writes a latitude or longitude, or null for none.
func (o *Object) Degrees(name string, value float64) {
	if value == 0 {
		o.Null(name)
		return
	}
	o.Name(name)
	o.B = strconv.AppendFloat(o.B, value, 'f', -1, 64)
}

// Array writes a list whose members, with commas between, are written already.
func (o *Object) Array(name string, members []byte) {
	o.Name(name)
	o.B = append(o.B, '[')
	o.B = append(o.B, members...)
	o.B = append(o.B, ']')
}

// AppendText appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD.
func AppendText[T string | []byte](dst []byte, s T) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			dst = utf8.AppendRune(dst, r)
			i += size
			continue
		}
		i++
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20 || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
