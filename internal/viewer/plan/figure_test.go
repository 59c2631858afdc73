package plan

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"understudy/internal/checktest"
	"understudy/spec"
)

func TestFigureIsReadable(t *testing.T) {
	seconds := spec.Field{Type: spec.TypeInt, Show: spec.ShowSeconds}
	millis := spec.Field{Type: spec.TypeInt, Show: spec.ShowMillis}
	price := spec.Field{Type: spec.TypeDecimal, Class: spec.ClassPrice}
	cost, minor := price, spec.Field{Type: spec.TypeInt, Class: spec.ClassPrice, Show: spec.ShowMinor}
	cost.Show = spec.ShowCost
	for _, c := range []struct {
		field              spec.Field
		number, unit, want string
	}{
		{seconds, "1386", "", "23:06"}, {seconds, "0", "", "0:00"}, {seconds, "3723", "", "1:02:03"}, {seconds, "-1", "", ""},
		{seconds, "soon", "", ""}, {millis, "140", "", "140 ms"}, {millis, "1858", "", "1.86 s"},
		{price, "108.04000", "USD", "$108.04"}, {price, "1234567.5", "EUR", "€1,234,567.50"}, {price, "12", "chf", "12.00\u00a0CHF"},
		{price, "-0.5", "", "−0.50"}, {price, "1e3", "USD", ""}, {price, "", "USD", ""}, {price, "500", "JPY", "¥500"},
		{cost, "-0.02550", "USD", "$0.0255"}, {cost, "0.5", "USD", "−$0.50"}, {cost, "-0.000", "USD", "$0.00"}, {cost, "0", "USD", "$0.00"},
		{price, "107.30619", "USD", "$107.31"}, {price, "999.99951", "USD", "$1,000.00"}, {price, "107.3061", "USD", "$107.3061"},
		{price, "0.00075", "USD", "$0.00075"}, {cost, "-1.000049", "JPY", "¥1"}, {price, "2.123451", "kwd", "2.123\u00a0KWD"},
		{spec.Field{Type: spec.TypeDecimal}, "230.412", "usd", "$230.412"}, {spec.Field{Type: spec.TypeDecimal}, "12", "minutes", ""},
		{minor, "1099", "usd", "$10.99"}, {minor, "7", "usd", "$0.07"}, {minor, "1099", "jpy", "¥1,099"},
		{minor, "-1099", "bhd", "−1.099\u00a0BHD"},
		{spec.Field{Type: spec.TypeDecimal}, "12", "", ""}, {spec.Field{Type: spec.TypeInt, Class: spec.ClassPrice}, "1099", "usd", ""},
	} {
		if text, _, ok := Figure(&c.field, c.number, c.unit); text != c.want || ok != (c.want != "") {
			t.Errorf("%q %s (%s) is %q, %t; want %q", c.number, c.unit, c.field.Show, text, ok, c.want)
		}
	}
	if _, exact, _ := Figure(&cost, "-0.02550", "USD"); exact != "-0.02550 USD" {
		t.Errorf("the number itself is %q", exact)
	}
}

func TestFormIsDecoded(t *testing.T) {
	for text, want := range map[string]string{
		"Msg=Got+HTTP+502&url=https%3A%2F%2Fa.example": "Msg: Got HTTP 502 · url: https://a.example",
		"a sentence with = in it":                      "a sentence with = in it",
		"x=%zz":                                        "x=%zz",
		"no pair":                                      "no pair",
		"a=1&b":                                        "a=1&b",
	} {
		if got := DecodeForm(text, " · "); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestFormPlacesAreThoseOfItsText(t *testing.T) {
	const form = "a=one+two&b=%C3%BCber%2Fx%FF"
	text, places := DecodeFormWithPlaces(form, " · ")
	checktest.MustEqual(t, text, "a: one two · b: über/x\ufffd", "text")
	checktest.MustEqual(t, len(places), len(form)+1, "len(places); text %q", text)
	checktest.MustEqual(t, places[len(form)], len(text), "places[len(form)]")
	for raw, want := range map[string]string{"two": "two", "b=": "b: ", "%C3%BC": "ü", "ber%2Fx": "ber/x"} {
		from := strings.Index(form, raw)
		if got := text[places[from]:places[from+len(raw)]]; got != want {
			t.Errorf("%s is %q, want %q", raw, got, want)
		}
	}
}

// What is read of a form is what net/url reads, and its places go up with the bytes of the form.
func FuzzForm(f *testing.F) {
	for _, text := range []string{"a=1", "a=one+two&b=%C3%BCber%2Fx%FF", "Msg=%E4%B8&=x", "a=%C3+%BC", "a", "%41=%3D&b=\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, places := DecodeFormWithPlaces(text, " · ")
		if places == nil {
			if read != text {
				t.Fatalf("%q is no form, and read as %q", text, read)
			}
			return
		}
		checktest.MustEqual(t, len(places), len(text)+1, "len(places)")
		checktest.MustEqual(t, places[len(text)], len(read), "places[len(text)]")
		checktest.MustTrue(t, slices.IsSorted(places), "slices.IsSorted(places) is false; text %q", text)
		var want []string
		for pair := range strings.SplitSeq(text, "&") {
			name, value, _ := strings.Cut(pair, "=")
			name, _ = url.QueryUnescape(name)
			value, _ = url.QueryUnescape(value)
			want = append(want, name+": "+value)
		}
		if runes := []rune(strings.Join(want, " · ")); read != string(runes) && utf8.ValidString(text) {
			t.Fatalf("%q is read as %q, want %q", text, read, string(runes))
		}
	})
}

func TestArraysAreTags(t *testing.T) {
	for text, want := range map[string][]string{`["a","b c"]`: {"a", "b c"}, `[1,2.50]`: {"1", "2.50"}, `[]`: nil} {
		if tags, ok := Tags(text); !ok || !slices.Equal(tags, want) {
			t.Errorf("%s is %q, %t", text, tags, ok)
		}
	}
	for _, text := range []string{`[{"a":1}]`, `[null]`, `["a"`, `a`, `["a"] b`} {
		if tags, ok := Tags(text); ok {
			t.Errorf("%s is %q", text, tags)
		}
	}
}
