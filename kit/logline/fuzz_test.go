package logline

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// logged is an attribute as the formats should say it.
type logged struct {
	path       []string
	text, json string
}

// drawing draws attributes from bytes.
type drawing struct {
	choices []byte
	texts   []string
	want    []logged
}

func (d *drawing) choose(n int) int {
	if len(d.choices) == 0 {
		return 0
	}
	c := int(d.choices[0]) % n
	d.choices = d.choices[1:]
	return c
}

func (d *drawing) text() string { return d.texts[d.choose(len(d.texts))] }

// attrs draws some attributes below the groups of path, and notes in want how they should appear.
func (d *drawing) attrs(path []string) (all []slog.Attr) {
	for range d.choose(5) {
		key := d.text()
		if len(path) < 4 && d.choose(4) == 0 {
			below := path
			if key != "" {
				below = append(slices.Clip(path), key)
			}
			all = append(all, slog.Attr{Key: key, Value: slog.GroupValue(d.attrs(below)...)})
			continue
		}
		text, n := d.text(), int64(d.choose(256))<<d.choose(64)
		want := logged{path: append(slices.Clip(path), key), text: text, json: "string " + string([]rune(text))}
		var v any
		switch d.choose(11) {
		case 0:
			v = text
		case 1:
			v = errors.New(text)
		case 2:
			v, want.text, want.json = []byte(text), fmt.Sprint([]byte(text)), "string "+fromJSON(text)
		case 3:
			v = secret{&text}
			want.text, want.json = "[redacted]", "string [redacted]"
		case 4:
			v, want.text = n, strconv.FormatInt(n, 10)
			want.json = want.text
		case 5:
			v, want.text = uint64(n), strconv.FormatUint(uint64(n), 10)
			want.json = want.text
		case 6:
			x := math.Float64frombits(uint64(n))
			v, want.text = x, strconv.FormatFloat(x, 'g', -1, 64)
			if want.json = want.text; math.IsNaN(x) || math.IsInf(x, 0) {
				want.json = "string " + want.text
			}
		case 7:
			v, want.text, want.json = time.Duration(n), time.Duration(n).String(), strconv.FormatInt(n, 10)
		case 8:
			at := time.Unix(0, n)
			v, want.text = at, at.UTC().Format(time.RFC3339Nano)
			want.json = "string " + want.text
		case 9:
			v, want.text, want.json = n%2 == 0, strconv.FormatBool(n%2 == 0), strconv.FormatBool(n%2 == 0)
		case 10:
			v, want.text, want.json = nil, "<nil>", "<nil>"
		}
		all = append(all, slog.Any(key, v))
		if key != "" || v != nil {
			d.want = append(d.want, want)
		}
	}
	return all
}

// fromJSON returns bytes as encoding/json writes them.
func fromJSON(text string) string {
	out, _ := json.Marshal([]byte(text))
	return string(out[1 : len(out)-1])
}

// Whatever is logged is one line of printable characters, in which a parser finds the same keys and values.
func FuzzLines(f *testing.F) {
	f.Add("ready", "key", "value", []byte{1, 0, 3, 4, 1, 2, 3})
	f.Add("two  spaces=", "a b", "\x1b[31m\n\"\\", []byte("\x02\x01\x04\x02\x01\x03\x00\x02\x04\x03\x01\x02\x05\x06\x07\x08\x09"))
	f.Add(" \xff\u0085\u202e\U000e0001", "", "\xed\xa0\x80=", []byte("zyxwvutsrqponmlkjihgfedcba9876543210"))
	f.Add("", "g.h", "", []byte{3, 3, 0, 1, 2, 0, 4, 10, 0, 1, 0, 3, 0, 9, 9, 7, 3, 4, 1, 6, 200, 55, 6})
	f.Fuzz(func(t *testing.T, message, key, value string, choices []byte) {
		d := &drawing{choices: choices, texts: []string{key, value, "k", "", message, "a b", "\u00e9\xff"}}
		var path []string
		var derive []func(slog.Handler) slog.Handler
		for range d.choose(4) {
			if d.choose(2) == 0 {
				derive = append(derive, with(d.attrs(path)...))
			} else if name := d.text(); name != "" {
				derive, path = append(derive, group(name)), append(slices.Clip(path), name)
			}
		}
		r := record(message, d.attrs(path)...)
		for _, format := range []Format{Logfmt, JSON, Terminal} {
			line := written(t, format, r, derive...)
			at := map[Format]string{Logfmt: "2026-06-01T12:00:00.123Z", JSON: "2026-06-01T12:00:00.123Z", Terminal: "12:00:00.123"}[format]
			want := []logged{{[]string{"time"}, at, "string " + at}, {[]string{"level"}, "WARN", "string WARN"},
				{[]string{"msg"}, message, "string " + string([]rune(message))}}
			want = append(want, d.want...)
			got := parse(t, format, line)
			if len(got) != len(want) {
				t.Fatalf("%q has %d pairs, want %d: %q", line, len(got), len(want), want)
			}
			for i, w := range want {
				key, value := strings.Join(w.path, "."), w.text
				if format == JSON {
					key, value = string([]rune(key)), w.json
				}
				if have := strings.Join(got[i].path, "."); have != key {
					t.Errorf("%q has the key %q, want %q", line, have, key)
				}
				if got[i].value != value {
					t.Errorf("%q: %q is %q, want %q", line, key, got[i].value, value)
				}
			}
		}
	})
}
