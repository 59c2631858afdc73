// Queries: order, bare names and encodings, against net/url.

package understudy

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseQuery(t *testing.T) {
	for raw, want := range map[string]Query{
		"":                  nil,
		"&&":                {},
		"a=1&b=2":           {{Name: "a", Value: "1"}, {Name: "b", Value: "2"}},
		"b=2&a=1&b=3":       {{Name: "b", Value: "2"}, {Name: "a", Value: "1"}, {Name: "b", Value: "3"}},
		"baz&baz=":          {{Name: "baz", Bare: true}, {Name: "baz"}},
		"=x":                {{Value: "x"}},
		"=":                 {{}},
		"StartTime>=2024":   {{Name: "StartTime>", Value: "2024"}},
		"StartTime%3E=2024": {{Name: "StartTime>", Value: "2024"}},
		"a==b":              {{Name: "a", Value: "=b"}},
		"a+b=c+d%2B":        {{Name: "a b", Value: "c d+"}},
		"%C3%a9=%00%ff":     {{Name: "é", Value: "\x00\xff"}},
		"é=x;y":             {{Name: "é", Value: "x;y"}},
	} {
		got, err := ParseQuery(raw)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %#v %v, want %#v", raw, got, err, want)
		}
	}
	for _, raw := range []string{"%", "a=%", "a=%4", "a=%4g", "%zz=1", strings.Repeat("a&", MaxParams+1)} {
		if _, err := ParseQuery(raw); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", Clip(raw), err)
		}
	}
	if q, err := ParseQuery(strings.Repeat("a&", MaxParams)); err != nil || len(q) != MaxParams {
		t.Errorf("%d parameters: %v", len(q), err)
	}
}

// Bare, empty and absent survive being written and read.
func TestBareEmptyAbsent(t *testing.T) {
	for raw, want := range map[string]string{"foo=42&baz": "foo=42&baz", "foo=42&baz=": "foo=42&baz=", "foo=42": "foo=42",
		"a=%7e%2f": "a=~%2F"} {
		q, err := ParseQuery(raw)
		if err != nil || q.String() != want {
			t.Errorf("%q: %q %v, want %q", raw, q.String(), err, want)
		}
	}
}

func TestQueryGetAndWithout(t *testing.T) {
	q := Query{{Name: "a", Value: "1"}, {Name: "b", Bare: true}, {Name: "a", Value: "2"}}
	if v, ok := q.Get("a"); v != "1" || !ok {
		t.Errorf("a is %q %v", v, ok)
	}
	if v, ok := q.Get("b"); v != "" || !ok {
		t.Errorf("b is %q %v", v, ok)
	}
	if _, ok := q.Get("c"); ok {
		t.Error("c is there")
	}
	if got := q.Remove(func(p Param) bool { return p.Name == "a" }); got.String() != "b" || q.String() != "a=1&b&a=2" {
		t.Errorf("without a: %s; q is now %s", got, q)
	}
}

func drawQuery(t *rapid.T, bare bool) Query {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Param {
		p := Param{Name: rapid.String().Draw(t, "name"), Value: string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "value"))}
		if bare && p.Name != "" && rapid.Bool().Draw(t, "bare") {
			p.Bare, p.Value = true, ""
		}
		return p
	}), 0, 12).Draw(t, "query")
}

// Without bare names the encoding is that of url.Values, byte for byte.
func TestQueryEncodesLikeURLValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t, false)
		values := url.Values{}
		for _, p := range q {
			values.Add(p.Name, p.Value)
		}
		slices.SortStableFunc(q, func(a, b Param) int { return strings.Compare(a.Name, b.Name) })
		if got, want := q.String(), values.Encode(); got != want {
			t.Fatalf("%q, url.Values: %q", got, want)
		}
	})
}

func TestQueryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t, true)
		raw := q.String()
		if string(q.AppendTo([]byte("x?"))) != "x?"+raw {
			t.Fatalf("AppendTo and String differ: %q", raw)
		}
		got, err := ParseQuery(raw)
		if err != nil || !slices.Equal(got, q) && len(q) > 0 {
			t.Fatalf("%#v comes back as %#v: %v", q, got, err)
		}
	})
}

func someQuery(n int) Query {
	var q Query
	for i := range n {
		q = append(q, Param{Name: fmt.Sprintf("StartTime>%d", i), Value: "2024-01-01T00:00:00+02:00 é"})
	}
	return q
}

func TestQueryAllocations(t *testing.T) {
	for _, n := range []int{1, 10, 100} {
		q := someQuery(n)
		buf := make([]byte, 0, 1<<16)
		if got := testing.AllocsPerRun(100, func() { _ = q.String() }); got != 1 {
			t.Errorf("%d parameters: String allocates %v times, want 1", n, got)
		}
		if got := testing.AllocsPerRun(100, func() { buf = q.AppendTo(buf[:0]) }); got != 0 {
			t.Errorf("%d parameters: AppendTo allocates %v times, want 0", n, got)
		}
	}
}

func FuzzParseQuery(f *testing.F) {
	for _, raw := range []string{"", "a=1&b&c=", "StartTime%3E=2024-01-01&To=%2B1+2", "%", "a=%zz", "&&=&", "é=%ff;x"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := ParseQuery(raw)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%v is not ErrInvalid", err)
			}
			return
		}
		text := q.String()
		again, err := ParseQuery(text)
		if err != nil || !slices.Equal(again, q) && len(q) > 0 {
			t.Fatalf("%q, written %q, comes back as %#v: %v", raw, text, again, err)
		}
		// net/url reads the same, where it reads at all.
		if values, err := url.ParseQuery(raw); err == nil {
			got := url.Values{}
			for _, p := range q {
				got.Add(p.Name, p.Value)
			}
			if got.Encode() != values.Encode() {
				t.Fatalf("%q: %q, net/url: %q", raw, got.Encode(), values.Encode())
			}
		}
	})
}

func BenchmarkQueryString(b *testing.B) {
	q := someQuery(10)
	b.ReportAllocs()
	for b.Loop() {
		_ = q.String()
	}
}

func BenchmarkURLValuesEncode(b *testing.B) {
	values := url.Values{}
	for _, p := range someQuery(10) {
		values.Add(p.Name, p.Value)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = values.Encode()
	}
}

func TestClipCutsWholeCharacters(t *testing.T) {
	long := strings.Repeat("ж", 61)
	for _, c := range []struct{ text, want string }{
		{"", ""}, {long[2:], long[2:]}, {long, long[2:] + "…"}, {strings.Repeat("x", 1<<20), strings.Repeat("x", 60) + "…"},
	} {
		if got := Clip(c.text); got != c.want {
			t.Errorf("%d bytes: %q, want %q", len(c.text), got, c.want)
		}
	}
}
