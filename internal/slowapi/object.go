// JSON as Twilio writes it, field by field.
package slowapi

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// object appends the fields of one JSON object, in the order they are given.
type object struct {
	b    []byte
	more bool
}

func (o *object) open() { o.b = append(o.b, '{'); o.more = false }

func (o *object) close() { o.b = append(o.b, '}'); o.more = true }

// name begins a field.
func (o *object) name(name string) {
	if o.more {
		o.b = append(o.b, ',')
	}
	o.more = true
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

// text writes a string.
func (o *object) text(name, value string) {
	o.name(name)
	o.b = appendText(o.b, value)
}

// textOrNull writes a string, or null when it is empty.
func (o *object) textOrNull(name, value string) {
	if value == "" {
		o.null(name)
		return
	}
	o.text(name, value)
}

func (o *object) null(name string) {
	o.name(name)
	o.b = append(o.b, "null"...)
}

func (o *object) number(name string, value int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, value, 10)
}

func (o *object) truth(name string, value bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, value)
}

// date writes seconds since 1970 in RFC 2822, or null for 0.
func (o *object) date(name string, unix int64) {
	if unix == 0 {
		o.null(name)
		return
	}
	o.name(name)
	o.b = append(o.b, '"')
	o.b = time.Unix(unix, 0).UTC().AppendFormat(o.b, "Mon, 02 Jan 2006 15:04:05 +0000")
	o.b = append(o.b, '"')
}

// stamp writes seconds since 1970 in ISO 8601, as the Monitor API has dates.
func (o *object) stamp(name string, unix int64) {
	o.text(name, time.Unix(unix, 0).UTC().Format(time.RFC3339))
}

// degrees writes a latitude or longitude, or null for none.
func (o *object) degrees(name string, value float64) {
	if value == 0 {
		o.null(name)
		return
	}
	o.name(name)
	o.b = strconv.AppendFloat(o.b, value, 'f', -1, 64)
}

// array writes a list whose members, with commas between, are written already.
func (o *object) array(name string, members []byte) {
	o.name(name)
	o.b = append(o.b, '[')
	o.b = append(o.b, members...)
	o.b = append(o.b, ']')
}

// appendText appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD.
func appendText[T string | []byte](dst []byte, s T) []byte {
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
