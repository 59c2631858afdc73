// Documents: what is one and what is not, against encoding/json.

package jsonspan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

func TestDocument(t *testing.T) {
	for _, c := range []struct {
		text string
		kind Kind
		why  string // part of the error, "" = none
		at   int
	}{
		{text: `{}`, kind: Object},
		{text: " \t\r\n[ ] \n", kind: Array},
		{text: `{"a":{"b":[1,-0.5e+3,true,false,null,"x"]},"":""}`, kind: Object},
		{text: `"\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t"`, kind: String},
		{text: `-0`, kind: Number},
		{text: `0.0E-0`, kind: Number},
		{text: `null`, kind: Null},
		{text: `true`, kind: Bool},
		{text: ``, why: "cut"},
		{text: `{`, why: "cut", at: 1},
		{text: `{"a"`, why: "colon", at: 4},
		{text: `{"a":`, why: "cut", at: 5},
		{text: `{"a":1`, why: "cut", at: 6},
		{text: `{"a":1,`, why: "cut", at: 7},
		{text: `{"a":1,}`, why: "name", at: 7},
		{text: `[1,]`, why: "want a value", at: 3},
		{text: `[1}`, why: "comma", at: 2},
		{text: `[1 2]`, why: "comma", at: 3},
		{text: `{"a":1]`, why: "comma", at: 6},
		{text: `[]]`, why: "after", at: 2},
		{text: `{} x`, why: "after", at: 3},
		{text: `01`, why: "number"},
		{text: `-`, why: "number", at: 1},
		{text: `1.`, why: "number", at: 2},
		{text: `1e`, why: "number", at: 2},
		{text: `+1`, why: "want a value"},
		{text: `nul`, why: "want a value"},
		{text: `nullx`, why: "after", at: 4},
		{text: `"a`, why: "cut", at: 2},
		{text: "\"a\nb\"", why: "control", at: 2},
		{text: `"\x"`, why: "escape", at: 1},
		{text: `"\u12G4"`, why: "escape", at: 1},
		{text: `"\u123"`, why: "escape", at: 1},
		{text: "\xef\xbb\xbf{}", why: "want a value"},
		{text: `<html>`, why: "want a value"},
		{text: strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), kind: Array},
		{text: strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), why: "deep", at: MaxDepth},
	} {
		v, err := Parse([]byte(c.text))
		if c.why == "" {
			if err != nil || v.Kind != c.kind {
				t.Errorf("%q: %v %v, want %v", c.text, v.Kind, err, c.kind)
			} else if got := string(v.Bytes([]byte(c.text))); got != strings.TrimSpace(c.text) {
				t.Errorf("%q: range holds %q", c.text, got)
			}
			continue
		}
		var e *Error
		checktest.MustTrue(t, errors.As(err, &e), "%q: errors.As(err, &e) is false", c.text)
		checktest.Contains(t, e.Why, c.why, "%q: e.Why; %v", c.text, err)
		checktest.Equal(t, e.Offset, c.at, "%q: e.Offset; %v", c.text, err)
	}
}

// Every prefix of a document is incomplete, and strings of every length around
// the word size end where they should.
func TestCutsAndStringLengths(t *testing.T) {
	doc := []byte(`{"calls":[{"sid":"CA1","n":[1.5e3,true,null],"t":"a\u00e9\\b"},{}],"x":"y"}`)
	for i := range doc {
		if _, err := Parse(doc[:i]); err == nil {
			t.Errorf("cut at %d is taken for whole: %s", i, doc[:i])
		}
	}
	for n := range 40 {
		for _, special := range []string{"", `\n`, `\"`, `\\`, `\u0041`} {
			text := `["` + strings.Repeat("é", n/2) + strings.Repeat("x", n%2) + special + `",1]`
			if _, err := Parse([]byte(text)); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func page(rows int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"end":49,"first_page_uri":"/2010-04-01/Accounts/AC1/Calls.json?PageSize=50&Page=0","calls":[`)
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, `{"sid": "CA%032x", "date_created": "Fri, 18 Oct 2019 17:00:00 +0000", "from": "+1305%07d", "price": "-0.200", `+
			`"queue_time": "%d", "answered_by": null, "subresource_uris": {`, i, i, i)
		for j := range 9 {
			if j > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, `"resource_number_%d": `+
				`"/2010-04-01/Accounts/AC00000000000000000000000000000001/Calls/CA%032x/UserDefinedMessages%d.json"`, j, i, j)
		}
		b.WriteString(`}, "caller_name": "Ren\u00e9e \ud83d\ude00", "padding": "`)
		b.WriteString(strings.Repeat("abcdefgh ", 40))
		b.WriteString(`"}`)
	}
	b.WriteString(`],"next_page_uri":null}`)
	return b.Bytes()
}

func TestNoAllocations(t *testing.T) {
	data := page(50)
	doc, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if got := testing.AllocsPerRun(10, func() {
		_, _ = Parse(data)
		_ = CheckLossless(data)
		calls, _ := Find(data, doc, "calls")
		VisitElements(data, calls, func(v Value) bool {
			VisitMembers(data, v, func([]byte, Value) bool { n++; return true })
			return true
		})
	}); got > 1 { // the escaping closure variable
		t.Errorf("%v allocations", got)
	}
	if n == 0 {
		t.Error("no members seen")
	}
}

func BenchmarkDocument(b *testing.B) {
	data := page(50)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFaithful(b *testing.B) {
	data := page(50)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := CheckLossless(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSkip(b *testing.B) {
	data := page(50)
	doc, _ := Parse(data)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		c := NewCursor(data, doc)
		if c.Skip().End != doc.End {
			b.Fatal("lost")
		}
	}
}

func BenchmarkEncodingJSONValid(b *testing.B) {
	data := page(50)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		json.Valid(data)
	}
}

var seeds = []string{
	`{}`, `[]`, `""`, `0`, ` {"a" : [ 1 , {"b":null} ] } `, `{"a":1,"a":2}`, `[1,2`, `"\ud800"`, `"\ud83d\ude00"`,
	"\"\xff\"", `"\u0000"`, `-0.1e-9`, `[[[[]]]]`, `{"":{"":""}}`, `{"a":"b` + "\x7f" + `"}`, `tru`, `[01]`, "\ufeff{}",
	`{"meta":{"next_page_url":"https:\/\/x"},"fr\u006fm":"abcdefghijklmnop\\"}`,
}

func FuzzDocument(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Parse(data)
		if valid := json.Valid(data); valid != (err == nil) {
			var e *Error
			if valid && errors.As(err, &e) && e.Why == "nested too deep" {
				return
			}
			t.Fatalf("encoding/json says %v, we say %v", valid, err)
		}
		if err != nil {
			return
		}
		c := NewCursor(data, doc)
		if v := c.Skip(); v != doc {
			t.Fatalf("skip finds %v, Document %v", v, doc)
		}
		if CheckLossless(data) == nil {
			compare(t, data, doc)
		}
	})
}

// compare walks a document beside encoding/json's reading of it.
func compare(t *testing.T, data []byte, v Value) {
	raw := v.Bytes(data)
	switch v.Kind {
	case Object:
		var want map[string]json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]Value{}
		VisitMembers(data, v, func(name []byte, m Value) bool {
			if !MatchName(name, Name(name)) {
				t.Fatalf("name %q is not itself", name)
			}
			got[Name(name)] = m
			return true
		})
		if len(got) != len(want) {
			t.Fatalf("%d members, want %d", len(got), len(want))
		}
		for name, m := range got {
			if string(m.Bytes(data)) != string(want[name]) {
				t.Fatalf("member %q is %s, want %s", name, m.Bytes(data), want[name])
			}
			if f, ok := Find(data, v, name); ok && name != "" && !strings.Contains(name, ".") && f != m {
				t.Fatalf("Find(%q) is %v, want %v", name, f, m)
			}
			compare(t, data, m)
		}
	case Array:
		var want []json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		i := 0
		VisitElements(data, v, func(e Value) bool {
			if string(e.Bytes(data)) != string(want[i]) {
				t.Fatalf("element %d is %s, want %s", i, e.Bytes(data), want[i])
			}
			compare(t, data, e)
			i++
			return true
		})
		if i != len(want) {
			t.Fatalf("%d elements, want %d", i, len(want))
		}
	case String:
		var want string
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if got := Text(data, v); got != want {
			t.Fatalf("text %q, want %q", got, want)
		}
	}
}
