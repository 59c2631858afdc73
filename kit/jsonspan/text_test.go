// Strings: there and back again, and what is not faithful.

package jsonspan

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFaithful(t *testing.T) {
	for text, why := range map[string]string{
		`{"a":"é😀\u00e9\ud83d\ude00"}`: "",
		`"\\ud800"`:                    "",
		`"\ufffd"`:                     "",
		"\"\ufffd\"":                   "",
		`"\ud800"`:                     `offset 1: lone surrogate \ud800`,
		`"ab\udc00\ud800"`:             `offset 3: lone surrogate \udc00`,
		`"\ud800\u0041"`:               `offset 1: lone surrogate \ud800`,
		`"\\\\\uDfff"`:                 `offset 5: lone surrogate \uDfff`,
		"\"a\xff\"":                    "offset 2: invalid UTF-8",
		"\"\xed\xa0\x80\"":             "offset 1: invalid UTF-8",
		"\"\xc0\x80\"":                 "offset 1: invalid UTF-8",
	} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%q is no document: %v", text, err)
		}
		got := ""
		if err := CheckLossless([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != why {
			t.Errorf("%q: %q, want %q", text, got, why)
		}
	}
}

func TestText(t *testing.T) {
	for raw, want := range map[string]string{
		`"a\/b"`:           "a/b",
		`"\ud83d\ude00!"`:  "😀!",
		`"\ud83dx"`:        "\ufffdx",
		`"\ud83d\ud83dx"`:  "\ufffd\ufffdx",
		`"\"\\\b\f\n\r\t"`: "\"\\\b\f\n\r\t",
		`12.50`:            "12.50",
		`null`:             "null",
	} {
		doc, err := Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := Text([]byte(raw), doc); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

func TestNameIs(t *testing.T) {
	for _, c := range []struct {
		raw, want string
		is        bool
	}{
		{"from", "from", true},
		{`fr\u006fm`, "from", true},
		{`\u0066\u0072\u006f\u006d`, "from", true},
		{"fro", "from", false},
		{"form", "from", false},
		{`a\nb`, `a\nb`, false},
		{`a\\nb`, `a\nb`, true},
		{strings.Repeat(`\u0061`, 100), strings.Repeat("a", 100), true},
	} {
		if MatchName([]byte(c.raw), c.want) != c.is {
			t.Errorf("NameIs(%q, %q) is not %v", c.raw, c.want, c.is)
		}
	}
}

func TestFind(t *testing.T) {
	data := []byte(`{"a":{"b":[1,2],"c":"x","c":"y"},"":{"d":1},"n":null}`)
	doc, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for dotted, want := range map[string]string{
		"a.b": "[1,2]", "a.c": `"y"`, "n": "null", "a.z": "", "n.x": "", "a.b.c": "", "": string(data),
	} {
		v, ok := Find(data, doc, dotted)
		if ok != (want != "") || ok && string(v.Bytes(data)) != want {
			t.Errorf("%q: %v %s, want %s", dotted, ok, v.Bytes(data), want)
		}
	}
	for text, want := range map[string]string{
		`{"x":{"y":{"z":1}},"x.y":{"z":2},"x.y.z":3}`: "3",
		`{"x":{"y":{"z":1}},"x.y":{"z":2}}`:           "1", // a head is one member's name
		`{"x":{"y":{"z":1},"y.z":2}}`:                 "2",
		`{"x.y.z":null,"x":{"y":{"z":1}}}`:            "null",
		`{"x\u002ey.z":4}`:                            "4",
		`{"x.y":5}`:                                   "",
	} {
		doc, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := Find([]byte(text), doc, "x.y.z"); string(v.Bytes([]byte(text))) != want {
			t.Errorf("%s: %s, want %s", text, v.Bytes([]byte(text)), want)
		}
	}
	VisitMembers(data, Value{Kind: Array}, func([]byte, Value) bool { t.Error("an array has no members"); return true })
	VisitElements(data, doc, func(Value) bool { t.Error("an object has no elements"); return true })
	n := 0
	VisitMembers(data, doc, func([]byte, Value) bool { n++; return false })
	if n != 1 {
		t.Errorf("went on after false: %d", n)
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a/b<>&", "\x00\x1f\"\\\n\r\t", "é😀\u2028", "\xff\xfe", "\ufffd", strings.Repeat("long ", 20)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		raw := Quote([]byte("x"), s)[1:]
		if !utf8.Valid(raw) || CheckLossless(raw) != nil {
			t.Fatalf("%q is quoted as %q", s, raw)
		}
		if _, err := Parse(raw); err != nil {
			t.Fatalf("%q is quoted as %s: %v", s, raw, err)
		}
		want := strings.ToValidUTF8(s, "\ufffd")
		if utf8.ValidString(s) {
			if got := string(appendDecoded(nil, raw[1:len(raw)-1])); got != s {
				t.Fatalf("%q comes back as %q", s, got)
			}
		} else if got := string(appendDecoded(nil, raw[1:len(raw)-1])); withoutReplaced(got) != withoutReplaced(want) {
			t.Fatalf("%q comes back as %q", s, got)
		}
		var std string
		if err := json.Unmarshal(raw, &std); err != nil || std != string(appendDecoded(nil, raw[1:len(raw)-1])) {
			t.Fatalf("encoding/json reads %q: %v", std, err)
		}
	})
}

// withoutReplaced is a text without the characters that stand for what is none.
func withoutReplaced(s string) string { return strings.ReplaceAll(s, "\ufffd", "") }
