// The tests of values, compared with what encoding/json reads.

package query

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/spec"
)

// FuzzMatch compares a matcher with a search through the decoded body.
func FuzzMatch(f *testing.F) {
	for _, body := range []string{
		`{"a":"x"}`, `{"a":1,"a":null}`, `{"a":{"b":"x"},"c":["x"]}`, `{"\u0061":"\u0078"}`, `{"a":""}`, `[]`, `{`,
		`{"a":true,"c":"2026-01-02"}`, `{"a":{"b":0}}`, `{"a":"+1 415 555 0100"}`,
	} {
		f.Add([]byte(body), "x", "")
		f.Add([]byte(body), "1", "4")
		f.Add([]byte(body), "0", "0")
	}
	f.Fuzz(func(t *testing.T, body []byte, want, with string) {
		var decoded map[string]any
		whole := json.Unmarshal(body, &decoded) == nil
		if want == "" || !whole && json.Valid(body) && body[0] == '{' {
			return // a number out of range
		}
		value := func(dotted string) any {
			var at any = decoded
			for name := range strings.SplitSeq(dotted, ".") {
				object, ok := at.(map[string]any)
				if !ok {
					return nil
				}
				at = object[name]
			}
			return at
		}
		for _, name := range []string{"a", "a.b"} {
			one := []Field{{Name: name, Type: spec.TypeDate}}
			match := func(test Test) bool { return Compile([]Condition{{Fields: one, Test: test}}, Options{}).Match(body) }
			held := value(name)
			have, is := held.(string)
			if !is && held != nil || strings.Contains(have, "\ufffd") {
				continue // compared below by its own form, or not told apart by encoding/json
			}
			for _, c := range []struct {
				what      string
				got, want bool
			}{
				{"one of", match(OneOf{Texts: []string{want}}), is && have == want},
				{"begins", with != "" && match(OneOf{Prefixes: []string{with}}), with != "" && is && strings.HasPrefix(have, with)},
				{"contains", is && match(Contains(with)), is && strings.Contains(have, with)},
				{"present", is && match(Present{}), is && have != ""},
				{"number", is && match(NewPhoneNumber(want)), is && have != "" && sameNumber(have, want)},
				{"time", is && match(Times{{From: math.MinInt64, To: math.MaxInt64}}), is && spec.Unix(spec.TypeDate, []byte(have)) != 0},
			} {
				if c.got != c.want {
					t.Errorf("%s in %s, %q and %q: %s is %v", name, body, want, with, c.what, c.got)
				}
			}
		}
	})
}

func sameNumber(have, want string) bool {
	if p := understudy.ParsePhone(want); p.Digits != "" {
		return p.Match(understudy.ParsePhone(have))
	}
	return strings.EqualFold(have, want)
}

func TestMatch(t *testing.T) {
	a, b := Field{Name: "a", Type: spec.TypeISO}, Field{Name: "b", Type: spec.TypeEpoch}
	number := func(text string) *Decimal {
		d, ok := ParseDecimal(text)
		if !ok {
			t.Fatal(text)
		}
		return &d
	}
	at, values := Times{{From: 100, To: 200}}, OneOf{Texts: []string{"150", "[1]"}}
	for _, c := range []struct {
		name   string
		o      Options
		c      Condition
		bodies []string // that match; the others do not
	}{
		{"no fields", Options{}, Condition{Test: Contains("")}, nil},
		{"nothing is empty", Options{}, Condition{Fields: []Field{a}, Test: Contains("")}, all},
		{"a star is a digit", Options{}, Condition{Fields: []Field{b}, Test: Digits("1*0")}, all[1:3]},
		{"either", Options{}, Condition{Fields: []Field{a, b}, Test: values}, []string{all[1], all[2], all[4]}},
		{"flat", Options{Flat: true}, Condition{Fields: []Field{a, b}, Test: values}, all[1:3]},
		{"one time", Options{}, Condition{Fields: []Field{a, b}, Test: at}, all[1:3]},
		{"the first time", Options{}, Condition{Fields: []Field{a, b}, First: true, Test: at}, all[1:2]},
		{"a range", Options{}, Condition{Fields: []Field{b}, Test: Range{From: number("1.5e2"), To: number("150.0")}}, all[1:3]},
		{"inside a range", Options{}, Condition{Fields: []Field{b}, Test: Range{From: number("150"), Exclusive: true}}, nil},
		{"one of several tests", Options{}, Condition{Fields: []Field{b}, Test: Any{Contains("x"), Range{To: number("150")}}}, all[1:3]},
	} {
		m := Compile([]Condition{c.c}, c.o)
		for _, body := range all {
			if got := m.Match([]byte(body)); got != slices.Contains(c.bodies, body) {
				t.Errorf("%s: %s is %v", c.name, body, got)
			}
		}
	}
}

var all = []string{`{}`, `{"b":150}`, `{"a":"2026-01-02T03:04:05Z","b":150}`, `{"a":null,"b":null}`, `{"a":[1]}`}

func BenchmarkMatch(b *testing.B) {
	body := []byte(`{"sid":"CA01","to":"+14155550100","status":"completed","price":"-0.0075",` +
		`"start_time":"2026-01-02","meta":{"a":[1,2,3],"b":"x"}}`)
	m := Compile([]Condition{
		{Fields: []Field{{Name: "status"}}, Test: OneOf{Texts: []string{"failed", "completed"}}},
		{Fields: []Field{{Name: "to"}}, Test: OneOf{Prefixes: []string{"+1"}}},
		{Fields: []Field{{Name: "start_time", Type: spec.TypeDate}}, Test: Times{{From: 0, To: math.MaxInt64}}},
	}, Options{})
	b.ReportAllocs()
	for b.Loop() {
		if !m.Match(body) {
			b.Fatal("no match")
		}
	}
}

func TestDecimals(t *testing.T) {
	rising := []string{"-1000000000000000000000.5", "-12", "-0.5", "-0.0075", "0", "0.0075", "0.5", "1", "9", "9.99", "10", "12", "1e3",
		"1000000000000000000000.5"}
	var keys []string
	for i, a := range rising {
		x, ok := ParseDecimal(a)
		if !ok {
			t.Fatalf("%s is no number", a)
		}
		keys = append(keys, string(x.Key(64)))
		for j, b := range rising {
			y, _ := ParseDecimal(b)
			if got := x.Compare(y); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s and %s: %d", a, b, got)
			}
		}
	}
	if !slices.IsSorted(keys) {
		t.Errorf("keys are not in order: %q", keys)
	}
	for _, pair := range [][2]string{{"-0.00750", "-0.0075"}, {"0", "-0.0"}, {"060", "60"}, {"+5", "5"}, {".5", "0.50"}} {
		x, _ := ParseDecimal(pair[0])
		y, _ := ParseDecimal(pair[1])
		if x.Compare(y) != 0 || string(x.Key(64)) != string(y.Key(64)) {
			t.Errorf("%q differ", pair)
		}
	}
	for _, text := range []string{"", "-", ".", "a", "0x10", "1e999", "NaN", "Inf", "1_000", "--1", strings.Repeat("1", 61)} {
		if d, ok := ParseDecimal(text); ok {
			t.Errorf("%q: %+v", text, d)
		}
	}
}
