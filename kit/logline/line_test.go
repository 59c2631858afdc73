package logline

import (
	"bytes"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// field is a field as Line has a method for it, and the same as an attribute.
type field struct {
	add  func(Line) Line
	attr slog.Attr
}

// fieldsOf returns a field of each type.
func fieldsOf(key, text string, number int64) []field {
	k, short := NewKey(key), float64(number%1e9)/1e3
	return []field{
		{func(l Line) Line { return l.String(k, text) }, slog.String(key, text)},
		{func(l Line) Line { return l.Int64(k, number) }, slog.Int64(key, number)},
		{func(l Line) Line { return l.Bool(k, number%2 == 0) }, slog.Bool(key, number%2 == 0)},
		{func(l Line) Line { return l.Duration(k, time.Duration(number)) }, slog.Duration(key, time.Duration(number))},
		{func(l Line) Line { return l.Float64(k, short) }, slog.Float64(key, short)},
		{func(l Line) Line { return l.Float64(k, math.Float64frombits(uint64(number))) },
			slog.Float64(key, math.Float64frombits(uint64(number)))},
	}
}

// compareFields writes fields by their methods and as attributes, in each format, at the beginning of a line and after filler, with
// and without a group.
func compareFields(t *testing.T, fields []field, filler string) {
	t.Helper()
	var out, want bytes.Buffer
	for _, f := range []Format{Logfmt, JSON, Terminal} {
		h, attrs := New(&out, Options{Format: f}), slog.Handler(New(&want, Options{Format: f}))
		for _, h := range []*Handler{h, h.WithGroup("g").(*Handler)} {
			out.Reset()
			want.Reset()
			l, r := h.Begin(start, slog.LevelWarn, filler), record(filler)
			for _, field := range fields {
				l = field.add(l)
				r.AddAttrs(field.attr)
			}
			if err := l.Write(); err != nil {
				t.Fatal(err)
			}
			if len(h.groups) > 0 {
				attrs = attrs.WithGroup("g")
			}
			if err := attrs.Handle(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if out.String() != want.String() {
				t.Fatalf("format %d:\n%s and as attributes\n%s", f, out.String(), want.String())
			}
		}
	}
}

// A field that Line encodes itself appears as the same attribute does.
func FuzzFields(f *testing.F) {
	f.Add("status", "GET", int64(200), uint16(0))
	f.Add("a key that is long and needs quotes", "text = \"quoted\"", int64(-1), uint16(900))
	f.Add("", "", int64(math.MinInt64), uint16(1010))
	f.Add("k\n", "\u00b5\xff!", int64(99_999_999), uint16(20_000))
	f.Fuzz(func(t *testing.T, key, text string, number int64, filler uint16) {
		compareFields(t, fieldsOf(key, text, number), strings.Repeat("x", int(filler)))
	})
}

// Numbers of every length, also next to powers of ten, and texts of every length with a byte that may need quotes at each place.
func TestFieldsAppearAsAttributes(t *testing.T) {
	var numbers []int64
	for power := int64(1); power < 1e18; power *= 10 {
		for _, n := range []int64{power - 1, power, power + 1, 5 * power, rand.Int64N(9*power) + power} {
			numbers = append(numbers, n, -n)
		}
	}
	for i, n := range numbers {
		compareFields(t, fieldsOf("n", strings.Repeat("x", i), n), "m")
	}
	for size := range 18 {
		var fields []field
		for at := range size {
			for c := range 256 {
				if size != 1 && size != 9 && !strings.ContainsRune(" !\"=\\\x1f\x7f\u0080\u00ff", rune(c)) {
					continue
				}
				text := strings.Repeat("x", at) + string([]byte{byte(c)}) + strings.Repeat("~", size-at-1)
				fields = append(fields, fieldsOf("k", text, 0)[0])
			}
		}
		compareFields(t, fields, "m")
	}
}

// Lines that end near the end of the buffer, which then grows, are whole.
func TestLinesGrow(t *testing.T) {
	for n := 1<<10 - 200; n < 1<<10; n++ {
		fields := fieldsOf("key", "text", int64(n))
		compareFields(t, append(fields, fields...), strings.Repeat("x", n))
	}
}

// A line shows its own time, level and message, whatever lines were encoded before it.
func TestLinesDoNotMix(t *testing.T) {
	messages := []string{"", "a b", "a", "a\n", strings.Repeat("long ", 40)}
	var out bytes.Buffer
	h := New(&out, Options{})
	for range 2000 {
		f, message, level := Format(rand.IntN(2)), messages[rand.IntN(len(messages))], slog.Level(4*rand.IntN(3))
		at := start.Add(time.Duration(rand.IntN(2000)) * time.Millisecond)
		h.SetFormat(f)
		out.Reset()
		if err := h.Begin(at, level, message).Write(); err != nil {
			t.Fatal(err)
		}
		stamp, prefix := at.Format("2006-01-02T15:04:05.000Z"), map[Format]string{JSON: "string "}[f]
		want := []string{stamp, level.String(), message}
		for i, p := range parse(t, f, out.String()) {
			if p.value != prefix+want[i] {
				t.Fatalf("%q: %s is %q, want %q", out.String(), p.path, p.value, want[i])
			}
		}
		line := string(NewLine(f, at).Int64(NewKey("n"), 1).AppendTo(nil))
		if want := map[Format]string{Logfmt: "time=" + stamp + " n=1\n", JSON: `{"time":"` + stamp + `","n":1}` + "\n"}[f]; line != want {
			t.Fatalf("got %q, want %q", line, want)
		}
	}
}

func TestLineBelowTheLevelIsNotWritten(t *testing.T) {
	var out bytes.Buffer
	l := New(&out, Options{}).Begin(start, slog.LevelDebug, "m")
	for _, f := range fieldsOf("k", "text", 1) {
		l = f.add(l)
	}
	if err := l.Write(); err != nil || out.Len() > 0 {
		t.Errorf("%v, wrote %q", err, out.String())
	}
}

func TestEncodedValues(t *testing.T) {
	for _, name := range []string{"k", "a key that is longer than others"} {
		line := string(NewLine(JSON, start).EncodedValue(NewKey(name), []byte("1.50")).String(NewKey("text"), "x").AppendTo([]byte("before ")))
		want := `before {"time":"2026-06-01T12:00:00.123Z","` + name + `":1.50,"text":"x"}` + "\n"
		if line != want {
			t.Errorf("wrote %q, want %q", line, want)
		}
	}
}
