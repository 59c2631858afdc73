package logline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/slogtest"
	"time"
	"unicode"
	"unicode/utf8"
)

var start = time.Date(2026, 6, 1, 12, 0, 0, 123e6, time.UTC)

// record returns a record with a fixed time.
func record(message string, attrs ...slog.Attr) slog.Record {
	r := slog.NewRecord(start, slog.LevelWarn, message, 0)
	r.AddAttrs(attrs...)
	return r
}

// written returns what a handler writes for a record. derive makes the handler from the first one.
func written(t testing.TB, f Format, r slog.Record, derive ...func(slog.Handler) slog.Handler) string {
	t.Helper()
	var out bytes.Buffer
	h := slog.Handler(New(&out, Options{Format: f}))
	for _, d := range derive {
		h = d(h)
	}
	if err := h.Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// secret is a secret as programs declare it.
type secret struct{ text *string }

func (secret) String() string                 { return "[redacted]" }
func (s secret) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, s.String()) }
func (s secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
func (s secret) LogValue() slog.Value         { return slog.StringValue(s.String()) }

// broken is an error without a text.
type broken struct{}

func (broken) Error() string { panic("no text") }

// refusing is a value without JSON.
type refusing struct{}

func (refusing) MarshalJSON() ([]byte, error) { panic("no text") }

func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		record                 slog.Record
		derive                 []func(slog.Handler) slog.Handler
		logfmt, json, terminal string
	}{
		"a constant message": {record("ready"), nil, `msg=ready`, `"msg":"ready"`, `ready`},
		"a message with spaces": {record("server is ready"), nil, `msg="server is ready"`,
			`"msg":"server is ready"`, `server is ready`},
		"a message that a terminal's reader would misread": {record("a  b=c"), nil, `msg="a  b=c"`, `"msg":"a  b=c"`, `"a  b=c"`},
		"no message": {record(""), nil, `msg=""`, `"msg":""`, `""`},
		"values": {record("m", slog.Int("n", -3), slog.Uint64("u", 1<<63), slog.Bool("b", true), slog.Float64("f", 1.5),
			slog.Duration("d", 1500*time.Millisecond), slog.Time("t", start), slog.Any("nil", nil), slog.String("e", "")), nil,
			`msg=m n=-3 u=9223372036854775808 b=true f=1.5 d=1.5s t=2026-06-01T12:00:00.123Z nil=<nil> e=""`,
			`"msg":"m","n":-3,"u":9223372036854775808,"b":true,"f":1.5,"d":1500000000,"t":"2026-06-01T12:00:00.123Z","nil":null,"e":""`,
			`m  n=-3  u=9223372036854775808  b=true  f=1.5  d=1.5s  t=2026-06-01T12:00:00.123Z  nil=<nil>  e=""`},
		"no numbers of JSON": {record("m", slog.Float64("x", math.NaN()), slog.Float64("y", math.Inf(-1))), nil,
			`msg=m x=NaN y=-Inf`, `"msg":"m","x":"NaN","y":"-Inf"`, `m  x=NaN  y=-Inf`},
		"other types": {record("m", slog.Any("err", errors.New("no route")), slog.Any("ip", netip.MustParseAddr("10.0.0.1")),
			slog.Any("list", []int{1, 2}), slog.Any("bytes", []byte("a b")), slog.Any("struct", struct{ A, b string }{"x", "y"})), nil,
			`msg=m err="no route" ip=10.0.0.1 list="[1 2]" bytes="[97 32 98]" struct="{A:x b:y}"`,
			`"msg":"m","err":"no route","ip":"10.0.0.1","list":[1,2],"bytes":"YSBi","struct":{"A":"x"}`,
			`m  err="no route"  ip=10.0.0.1  list="[1 2]"  bytes="[97 32 98]"  struct="{A:x b:y}"`},
		"values without a text": {record("m", slog.Any("a", broken{}), slog.Any("b", (*netip.Addr)(nil)), slog.Any("c", refusing{})),
			nil,
			`msg=m a="%!v(PANIC=Error method: no text)" b=<nil> c={}`,
			`"msg":"m","a":"%!v(PANIC=Error method: no text)","b":null,"c":"!PANIC: no text"`,
			`m  a="%!v(PANIC=Error method: no text)"  b=<nil>  c={}`},
		"what could forge a line": {record("a\nb", slog.String("k", "\x1b[31m\"\\\r\t\x00\x7f"), slog.String("c1", "\u009b31m"),
			slog.String("bidi", "\u202ex"),
			slog.String("bad", "a\xffb"), slog.String("tag", "\U000e0001"), slog.String("a b", "=")), nil,
			`msg="a\nb" k="\x1b[31m\"\\\r\t\x00\x7f" c1="\u009b31m" bidi="\u202ex" bad="a\xffb" tag="\U000e0001" "a b"="="`,
			`"msg":"a\nb","k":"\u001b[31m\"\\\r\t\u0000\u007f","c1":"\u009b31m","bidi":"\u202ex","bad":"a\ufffdb","tag":"\udb40\udc01","a b":"="`,
			`"a\nb"  k="\x1b[31m\"\\\r\t\x00\x7f"  c1="\u009b31m"  bidi="\u202ex"  bad="a\xffb"  tag="\U000e0001"  "a b"="="`},
		"printable characters": {record("m", slog.String("name", "Ana-Maria_Łuków/日本:'`")), nil, "msg=m name=Ana-Maria_Łuków/日本:'`",
			"\"msg\":\"m\",\"name\":\"Ana-Maria_Łuków/日本:'`\"", "m  name=Ana-Maria_Łuków/日本:'`"},
		"groups": {record("m", slog.Group("g", slog.Int("a", 1), slog.Group("", slog.Int("b", 2)), slog.Group("h h", slog.Int("c", 3)),
			slog.Group("none")), slog.Int("d", 4)), nil,
			`msg=m g.a=1 g.b=2 "g.h h.c"=3 d=4`, `"msg":"m","g":{"a":1,"b":2,"h h":{"c":3}},"d":4`,
			`m  g.a=1  g.b=2  "g.h h.c"=3  d=4`},
		"derived handlers": {record("m", slog.Int("x", 1)), []func(slog.Handler) slog.Handler{with(slog.Int("a", 0)), group("g"),
			with(slog.Int("b", 1)),
			group("h"), group("i")}, `msg=m a=0 g.b=1 g.h.i.x=1`, `"msg":"m","a":0,"g":{"b":1,"h":{"i":{"x":1}}}`,
			`m  a=0  g.b=1  g.h.i.x=1`},
		"groups without attributes": {record("m", slog.Group("e", slog.Group("f"))), []func(slog.Handler) slog.Handler{group("g"),
			with(), group("h")},
			`msg=m`, `"msg":"m"`, `m`},
		"secrets": {record("m", slog.Any("s", secret{new("hidden")}), slog.Any("p", &secret{new("hidden")}), slog.Any("l",
			[]secret{{new("hidden")}}),
			slog.Any("o", struct{ In secret }{secret{new("hidden")}})), []func(slog.Handler) slog.Handler{with(slog.Any("w",
			secret{new("hidden")}))},
			`msg=m w=[redacted] s=[redacted] p=[redacted] l=[[redacted]] o={In:[redacted]}`,
			`"msg":"m","w":"[redacted]","s":"[redacted]","p":"[redacted]","l":["[redacted]"],"o":{"In":"[redacted]"}`,
			`m  w=[redacted]  s=[redacted]  p=[redacted]  l=[[redacted]]  o={In:[redacted]}`},
	} {
		for f, want := range []string{`time=2026-06-01T12:00:00.123Z level=WARN ` + c.logfmt,
			`{"time":"2026-06-01T12:00:00.123Z","level":"WARN",` + c.json + "}",
			`12:00:00.123 WARN  ` + c.terminal} {
			if got := written(t, Format(f), c.record, c.derive...); got != want+"\n" {
				t.Errorf("%s\ngot  %swant %s", name, got, want)
			}
		}
	}
}

func with(attrs ...slog.Attr) func(slog.Handler) slog.Handler {
	return func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) }
}

func group(name string) func(slog.Handler) slog.Handler {
	return func(h slog.Handler) slog.Handler { return h.WithGroup(name) }
}

func TestUnusualLevelsAndTimes(t *testing.T) {
	r := slog.NewRecord(time.Time{}, slog.LevelError+2, "m", 0)
	for f, want := range []string{"level=ERROR+2 msg=m\n", `{"level":"ERROR+2","msg":"m"}` + "\n", "ERROR+2 m\n"} {
		if got := written(t, Format(f), r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	r.Time = time.Date(12026, 1, 2, 3, 4, 5, 0, time.UTC)
	if got := written(t, Logfmt, r); got != "time=12026-01-02T03:04:05.000Z level=ERROR+2 msg=m\n" {
		t.Errorf("got %q", got)
	}
}

// The rules that every slog.Handler has to follow.
func TestHandlerFollowsTheRulesOfSlog(t *testing.T) {
	for name, f := range map[string]Format{"logfmt": Logfmt, "JSON": JSON, "terminal": Terminal} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			slogtest.Run(t, func(*testing.T) slog.Handler {
				out.Reset()
				return New(&out, Options{Format: f})
			}, func(t *testing.T) map[string]any {
				all := map[string]any{}
				for _, p := range parse(t, f, out.String()) {
					at := all
					for _, g := range p.path[:len(p.path)-1] {
						if at[g] == nil {
							at[g] = map[string]any{}
						}
						at = at[g].(map[string]any)
					}
					at[p.path[len(p.path)-1]] = strings.TrimPrefix(p.value, "string ")
				}
				return all
			})
		})
	}
}

// pair is a key with the names of its groups, and a value. In JSON a value begins with its type.
type pair struct {
	path  []string
	value string
}

// parse returns what a line says, in its order.
func parse(t testing.TB, f Format, line string) (pairs []pair) {
	t.Helper()
	text, ok := strings.CutSuffix(line, "\n")
	if !ok || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Fatalf("%q is not a line of printable characters", line)
	}
	if f == JSON {
		return parseJSON(t, text)
	}
	space := " "
	if f == Terminal {
		at, rest, _ := strings.Cut(text, " ")
		if _, err := time.Parse("15:04:05.000", at); err != nil {
			at, rest = "", text
		}
		level, rest, _ := strings.Cut(rest, " ")
		rest = strings.TrimLeft(rest, " ")
		message, rest, _ := strings.Cut(rest, "  ")
		if strings.HasPrefix(message, `"`) {
			_, rest, _ = strings.Cut(text, level)
			message, rest = parseText(t, strings.TrimLeft(rest, " "))
			rest = strings.TrimPrefix(rest, "  ")
		}
		space = "  "
		if at != "" {
			pairs = append(pairs, pair{[]string{slog.TimeKey}, at})
		}
		pairs = append(pairs, pair{[]string{slog.LevelKey}, level}, pair{[]string{slog.MessageKey}, message})
		text = rest
	}
	for text != "" {
		var key, value string
		key, text = parseText(t, text)
		if text, ok = strings.CutPrefix(text, "="); !ok {
			t.Fatalf("%q has a key %q without a value", line, key)
		}
		value, text = parseText(t, text)
		if text != "" {
			if text, ok = strings.CutPrefix(text, space); !ok || text == "" {
				t.Fatalf("%q goes on after a value with %q", line, text)
			}
		}
		pairs = append(pairs, pair{strings.Split(key, "."), value})
	}
	return pairs
}

// parseText returns a bare or quoted text of logfmt, and what follows.
func parseText(t testing.TB, text string) (s, rest string) {
	t.Helper()
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, " =")
		if end < 0 {
			end = len(text)
		}
		if end == 0 || strings.ContainsAny(text[:end], `"\`) {
			t.Fatalf("%q begins with no text", text)
		}
		return text[:end], text[end:]
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		t.Fatalf("%q begins with no quoted text", text)
	}
	s, err = strconv.Unquote(quoted)
	if err != nil {
		t.Fatal(err)
	}
	return s, text[len(quoted):]
}

// parseJSON returns the members of an object, and those of the objects in it.
func parseJSON(t testing.TB, text string) (pairs []pair) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	next := func() json.Token {
		token, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return token
	}
	var object func(path []string)
	object = func(path []string) {
		for d.More() {
			path := append(slices.Clip(path), next().(string))
			value := ""
			switch v := next().(type) {
			case json.Delim:
				object(path)
				continue
			case string:
				value = "string " + v
			default:
				value = fmt.Sprint(v)
			}
			pairs = append(pairs, pair{path, value})
		}
		next()
	}
	next()
	object(nil)
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("%s is more than an object", text)
	}
	return pairs
}
