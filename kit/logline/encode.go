// This file encodes a record in each format.

package logline

import (
	"bytes"
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
	buf    []byte // all of it can be written to
	out    *output
	format Format
	color  bool
	groups []string // the names of the handler's open groups
	opened int      // how many of them the JSON line has opened
	path   []byte   // the names of all open groups, each followed by a dot
	quoted bool     // whether a name in path needs quotes

	head       []byte // the beginning of a line up to its level
	second     int64  // its Unix time
	millis     int    // the index of its milliseconds, or 0
	level      slog.Level
	headFormat Format
	message    string // a message that followed it
	text       []byte // the same as a field, or empty
}

// levelColors are the colours of the levels below Info, from Info, from Warn and from Error on.
var levelColors = [...]string{"\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[31m"}

// start prepares the encoder for the attributes of a handler.
func (e *encoder) start(h *Handler) {
	e.groups, e.opened, e.path, e.quoted = h.groups, h.opened, append(e.path[:0], h.path...), h.quoted
}

// putHead writes the beginning of a line up to the level, on a terminal up to the message. It encodes each second once.
func (e *encoder) putHead(at time.Time, level slog.Level) int {
	if s := at.Unix(); s != e.second || level != e.level || e.format != e.headFormat || len(e.head) == 0 || e.format == Terminal {
		e.second, e.level, e.headFormat = s, level, e.format
		e.head = e.appendHead(e.head[:0], at, level)
		e.text = e.text[:0]
		e.millis = bytes.LastIndexByte(e.head, '.') + 1
	}
	n := copy(e.buf, e.head)
	if m := e.millis; m > 0 {
		ms := uint(at.Nanosecond()) / 1e6
		e.buf[m], e.buf[m+1], e.buf[m+2] = byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10)
	}
	return n
}

// noLevel stands for the level of a line without one, which always has a time.
const noLevel slog.Level = math.MinInt

// appendHead appends the time in UTC unless it is zero, and the level.
func (e *encoder) appendHead(b []byte, at time.Time, level slog.Level) []byte {
	name, layout, before, after := level.String(), "time=2006-01-02T15:04:05.000Z ", "level=", ""
	switch e.format {
	case JSON:
		layout, before, after = `"time":"2006-01-02T15:04:05.000Z",`, `"level":"`, `"`
		b = append(b, '{')
	case Terminal:
		if !at.IsZero() {
			b = at.AppendFormat(b, "15:04:05.000 ")
		}
		if e.color {
			b = append(append(append(b, levelColors[max(0, min(3, level/4+1))]...), name...), "\x1b[0m"...)
		} else {
			b = append(b, name...)
		}
		return append(append(b, "     "[min(5, len(name)):]...), ' ')
	}
	if level == noLevel {
		return at.UTC().AppendFormat(b, layout[:len(layout)-1])
	}
	if !at.IsZero() {
		b = at.UTC().AppendFormat(b, layout)
	}
	return append(append(append(b, before...), name...), after...)
}

// appendMessage appends a message for a terminal, where it is quoted if a reader could misread it.
func appendMessage(b []byte, message string) []byte {
	if message == "" || strings.TrimSpace(message) != message || strings.Contains(message, "  ") || quoted.index(message) >= 0 {
		return appendQuoted(b, message, false)
	}
	return append(b, message...)
}

// appendEnd appends the end of the line.
func (e *encoder) appendEnd(b []byte) []byte {
	if e.format == JSON {
		for range e.opened + 1 {
			b = append(b, '}')
		}
	}
	return append(b, '\n')
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
		return appendEscaped(b, text, controls, true)
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

// style is a way to write texts. Special are quotation marks, backslashes, a mark, what is below a byte, and all but printable ASCII.
type style struct {
	below, mark uint64 // in each byte
	quotes      int    // the length of a quotation mark, or 0
}

// each multiplied by a byte is a word of that byte.
const each = 0x0101010101010101

var (
	bare     = &style{each * '!', each * '=', 0}
	quoted   = &style{each * ' ', each * '"', 1}
	controls = &style{each * ' ', each * '"', 0} // for texts that are JSON already, where '"' and '\\' are not special
	styles   = [formats]*style{Logfmt: bare, JSON: quoted, Terminal: bare}
)

// find returns 0 if no byte of a word is special. Each sum has the highest bit of a special byte set, and borrows from bytes
// after one only.
func (s *style) find(word uint64) uint64 {
	return (word | (word + each) | (word - s.below) | (word ^ s.mark - each) | (word ^ '"'*each - each) | (word ^ '\\'*each - each)) &
		(0x80 * each)
}

func load(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func load4(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

// index returns the index of the first special character that is no printable character beyond ASCII, or else -1.
func (s *style) index(text string) int {
	i := 0
	for i+8 <= len(text) && s.find(load(text[i:i+8])) == 0 {
		i += 8
	}
	for ; i < len(text); i++ {
		if c := text[i]; s.find(each*uint64(c)) == 0 || s == controls && (c == '"' || c == '\\') {
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if r < utf8.RuneSelf || r == utf8.RuneError && n == 1 || !strconv.IsPrint(r) {
			return i
		}
		i += n - 1
	}
	return -1
}

// isBare reports whether a text needs no quotes in logfmt.
func isBare(s string) bool { return s != "" && bare.index(s) < 0 }

func appendQuoted(dst []byte, s string, asJSON bool) []byte {
	return append(appendEscaped(append(dst, '"'), s, quoted, asJSON), '"')
}

// shortEscapes are the escapes that strconv.Unquote and JSON share.
var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// appendEscaped appends a text and escapes what is special, for strconv.Unquote or for a JSON parser, which has no escape for
// bytes that are no UTF-8. They become U+FFFD.
func appendEscaped(dst []byte, s string, special *style, asJSON bool) []byte {
	for {
		i := special.index(s)
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
