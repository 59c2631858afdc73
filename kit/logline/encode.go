// This file encodes a record in each format.

package logline

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// encoder encodes one line.
type encoder struct {
	buf    []byte
	format Format
	color  bool
	groups []string // the names of the handler's open groups
	opened int      // how many of them the JSON line has opened
	path   []byte   // the names of all open groups, each followed by a dot
	quoted bool     // whether a name in path needs quotes
	second int64    // the Unix time that stamp shows
	stamp  []byte   // a time in UTC up to its seconds
}

// levelColors are the colours of the levels below Info, from Info, from Warn and from Error on.
var levelColors = [...]string{"\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[31m"}

// start prepares the encoder for the attributes of a handler.
func (e *encoder) start(h *Handler, f Format) {
	e.format, e.color, e.groups, e.opened = f, h.out.color && f == Terminal, h.groups, h.opened
	e.path, e.quoted = append(e.path[:0], h.path...), h.quoted
}

// appendHead appends the time unless it is zero, the level and the message.
func (e *encoder) appendHead(at time.Time, level slog.Level, message string) {
	name := level.String()
	switch e.format {
	case JSON:
		e.buf = append(e.buf, '{')
		if !at.IsZero() {
			e.appendTime(`"time":"`, at, `",`)
		}
		e.buf = append(append(append(e.buf, `"level":"`...), name...), `","msg":`...)
		e.buf = e.appendString(e.buf, message)
	case Terminal:
		if !at.IsZero() {
			e.buf = append(at.AppendFormat(e.buf, "15:04:05.000"), ' ')
		}
		if e.color {
			e.buf = append(append(append(e.buf, levelColors[max(0, min(3, level/4+1))]...), name...), "\x1b[0m"...)
		} else {
			e.buf = append(e.buf, name...)
		}
		e.buf = append(append(e.buf, "     "[min(5, len(name)):]...), ' ')
		if message == "" || strings.TrimSpace(message) != message || strings.Contains(message, "  ") || find(message, mark) >= 0 {
			e.buf = appendQuoted(e.buf, message, false)
		} else {
			e.buf = append(e.buf, message...)
		}
	default:
		if !at.IsZero() {
			e.appendTime("time=", at, " ")
		}
		e.buf = append(append(append(e.buf, "level="...), name...), " msg="...)
		e.buf = e.appendString(e.buf, message)
	}
}

// appendTime appends a time as RFC 3339 in UTC. It formats each second once.
func (e *encoder) appendTime(before string, t time.Time, after string) {
	if s := t.Unix(); s != e.second || len(e.stamp) == 0 {
		e.second, e.stamp = s, t.UTC().AppendFormat(e.stamp[:0], "2006-01-02T15:04:05.")
	}
	ms := t.Nanosecond() / 1e6
	e.buf = append(append(e.buf, before...), e.stamp...)
	e.buf = append(append(e.buf, byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z'), after...)
}

// appendEnd appends the end of the line.
func (e *encoder) appendEnd() {
	if e.format == JSON {
		for ; e.opened >= 0; e.opened-- {
			e.buf = append(e.buf, '}')
		}
	}
	e.buf = append(e.buf, '\n')
}

// appendAttr appends an attribute. Like every slog.Handler it leaves out an empty attribute and a group without attributes.
func (e *encoder) appendAttr(b []byte, a *slog.Attr) []byte {
	v, kind := a.Value, a.Value.Kind()
	if kind == slog.KindLogValuer {
		v = v.Resolve()
		kind = v.Kind()
	}
	if kind == slog.KindGroup {
		return e.appendGroup(b, a.Key, v.Group())
	}
	if kind == slog.KindAny && a.Key == "" && v.Any() == nil {
		return b
	}
	b = e.appendKey(b, a.Key)
	switch kind {
	case slog.KindString:
		return e.appendString(b, v.String())
	case slog.KindInt64:
		return strconv.AppendInt(b, v.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(b, v.Uint64(), 10)
	case slog.KindBool:
		return strconv.AppendBool(b, v.Bool())
	case slog.KindFloat64:
		if x := v.Float64(); e.format != JSON || !math.IsNaN(x) && !math.IsInf(x, 0) {
			return strconv.AppendFloat(b, x, 'g', -1, 64)
		}
		return appendQuoted(b, v.String(), true)
	case slog.KindDuration:
		if e.format != JSON {
			return append(b, v.Duration().String()...)
		}
		return strconv.AppendInt(b, int64(v.Duration()), 10) // nanoseconds, like slog.JSONHandler
	case slog.KindTime:
		if e.format != JSON {
			return v.Time().UTC().AppendFormat(b, time.RFC3339Nano)
		}
		return append(v.Time().UTC().AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
	}
	text, isJSON := formatValue(v.Any(), e.format == JSON)
	if isJSON {
		return appendEscaped(b, text, control, true)
	}
	return e.appendString(b, text)
}

// appendGroup appends the attributes of a group. Without a key they belong to the group around it.
func (e *encoder) appendGroup(b []byte, key string, attrs []slog.Attr) []byte {
	before, opened, path, quoted, asObject := len(b), e.opened, len(e.path), e.quoted, key != "" && e.format == JSON
	if asObject {
		b = append(e.appendKey(b, key), '{')
	} else if key != "" {
		e.path, e.quoted = appendName(e.path, e.quoted, key)
	}
	empty := len(b)
	for i := range attrs {
		b = e.appendAttr(b, &attrs[i])
	}
	e.path, e.quoted = e.path[:path], quoted
	if len(b) == empty {
		b, e.opened = b[:before], opened
	} else if asObject {
		b = append(b, '}')
	}
	return b
}

// appendName appends the name of a group and a dot. quoted is whether the path needs quotes.
func appendName(path []byte, quoted bool, name string) ([]byte, bool) {
	return append(append(path, name...), '.'), quoted || !isBare(name)
}

// appendKey appends a key. In JSON it first opens the handler's groups.
func (e *encoder) appendKey(b []byte, key string) []byte {
	switch {
	case e.format == JSON:
		for ; e.opened < len(e.groups); e.opened++ {
			b = append(appendMember(b, e.groups[e.opened]), '{')
		}
		return appendMember(b, key)
	case e.format == Terminal:
		b = append(b, "  "...) // two spaces end a message
	default:
		b = append(b, ' ')
	}
	if e.quoted || !isBare(key) {
		return append(appendQuoted(b, string(e.path)+key, false), '=')
	}
	if len(e.path) > 0 {
		b = append(b, e.path...)
	}
	return append(append(b, key...), '=')
}

// appendMember appends the name of a member of a JSON object, with the comma before it.
func appendMember(b []byte, name string) []byte {
	if n := len(b); n == 0 || b[n-1] != '{' {
		b = append(b, ',')
	}
	return append(appendQuoted(b, name, true), ':')
}

// formatValue returns the text of a value of any type, as fmt formats it. In JSON a value that is no error is encoded.
func formatValue(v any, wantJSON bool) (text string, isJSON bool) {
	defer func() {
		if p := recover(); p != nil { // fmt recovers from panics of the value's methods, encoding/json does not
			text, isJSON = fmt.Sprintf("!PANIC: %v", p), false
		}
	}()
	if _, isError := v.(error); wantJSON && !isError {
		if out, err := json.Marshal(v); err == nil {
			return string(out), true
		}
	}
	return fmt.Sprintf("%+v", v), false
}

// appendString appends a text, with quotes in JSON and where logfmt needs them.
func (e *encoder) appendString(b []byte, s string) []byte {
	if e.format != JSON && isBare(s) {
		return append(b, s...)
	}
	return appendQuoted(b, s, e.format == JSON)
}

// The properties of bytes in the table classes. The bytes of other than ASCII characters have all of them.
const (
	space   = 1 << iota // needs quotes in logfmt
	mark                // needs an escape within quotes
	control             // controls a terminal
)

// classes has the properties of each byte.
var classes = func() (all [256]uint8) {
	for c := range all {
		switch {
		case c < ' ' || c >= 0x7f:
			all[c] = space | mark | control
		case c == '"' || c == '\\':
			all[c] = space | mark
		case c == ' ' || c == '=':
			all[c] = space
		}
	}
	return all
}()

// find returns the index of the first character that has a property and is no printable character beyond ASCII, or else -1.
func find(s string, properties uint8) int {
	i := 0
	for i+4 <= len(s) && (classes[s[i]]|classes[s[i+1]]|classes[s[i+2]]|classes[s[i+3]])&properties == 0 {
		i += 4
	}
	for ; i < len(s); i++ {
		if classes[s[i]]&properties == 0 {
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r < utf8.RuneSelf || r == utf8.RuneError && n == 1 || !strconv.IsPrint(r) {
			return i
		}
		i += n - 1
	}
	return -1
}

// isBare reports whether a text needs no quotes in logfmt.
func isBare(s string) bool { return s != "" && find(s, space) < 0 }

func appendQuoted(dst []byte, s string, asJSON bool) []byte {
	return append(appendEscaped(append(dst, '"'), s, mark, asJSON), '"')
}

// shortEscapes are the escapes that strconv.Unquote and JSON share.
var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// appendEscaped appends a text and escapes what find finds, for strconv.Unquote or for a JSON parser, which has no escape for
// bytes that are no UTF-8. They become U+FFFD.
func appendEscaped(dst []byte, s string, properties uint8, asJSON bool) []byte {
	for {
		i := find(s, properties)
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		r, n := utf8.DecodeRuneInString(s[i:])
		high, low := utf16.EncodeRune(r)
		switch short := shortEscapes[r]; {
		case short != "":
			dst = append(dst, short...)
		case !asJSON && n == 1:
			dst = appendHex(dst, 'x', rune(s[i]), 2)
		case r <= 0xffff:
			dst = appendHex(dst, 'u', r, 4)
		case asJSON:
			dst = appendHex(appendHex(dst, 'u', high, 4), 'u', low, 4)
		default:
			dst = appendHex(dst, 'U', r, 8)
		}
		s = s[i+n:]
	}
}

// appendHex appends an escape with the last hexadecimal digits of a number.
func appendHex(dst []byte, letter byte, r rune, digits int) []byte {
	dst = append(dst, '\\', letter)
	for digits--; digits >= 0; digits-- {
		dst = append(dst, "0123456789abcdef"[r>>(4*digits)&15])
	}
	return dst
}
