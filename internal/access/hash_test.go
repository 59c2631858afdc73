// Hashes and countries: what stands for a value, and what can be asked for by it.

package access

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/kit/token"
	"understudy/request"
	"understudy/spec"
)

func TestCountryOfANumber(t *testing.T) {
	for text, want := range map[string]string{
		"+14155551234": "********US", "+1 (416) 555-0100": "********CA", "0044 20 7946 0018": "********GB",
		"whatsapp:+4930123456": "********DE", "sip:+14155551234@example.com": "********US",
		"+18005550100": "********", "4155551234": "********", "client:ada": "********", "": "********", "+1": "********",
	} {
		if got := string((&node{level: Country}).appendMasked(nil, nil, text)); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// notes are what a store keeps.
type notes map[string][]byte

func (n notes) Value(_ context.Context, name string) ([]byte, error) {
	if n[name] == nil {
		return nil, understudy.ErrNotFound
	}
	return n[name], nil
}

func (n notes) ReadValues(context.Context, string) (map[string][]byte, error) { return n, nil }

func (n notes) SetValue(_ context.Context, name string, value []byte) error {
	n[name] = value
	return nil
}

func (n notes) Change(_ context.Context, name string, change func([]byte) ([]byte, error)) (err error) {
	n[name], err = change(n[name])
	return err
}

// The key is made once, and a later start has the same.
func TestTheKeyOfHashesIsKept(t *testing.T) {
	kept, hashes := notes{}, []string{}
	for range 2 {
		h, err := NewHasher()
		if err == nil {
			err = h.Open(t.Context(), kept)
		}
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, string(h.append(nil, "+14155551234", true)))
	}
	other, err := NewHasher()
	if err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, hashes[0], hashes[1], "two starts give: hashes[0]")
	checktest.True(t, string(other.append(nil, "+14155551234", true)) != hashes[0],
		`two starts give: string(other.append(nil, "+14155551234", true)) == hashes[0]`)
	checktest.Equal(t, len(kept[kvKey]), token.KeySize, "two starts give: len(kept[kvKey])")
}

// hashGate is a gate with a key of its own and roles that see hashes.
func hashGate(t testing.TB, key string) *Gate {
	t.Helper()
	h := &Hasher{}
	if err := h.Open(t.Context(), notes{kvKey: []byte(strings.Repeat(key, token.KeySize))}); err != nil {
		t.Fatal(err)
	}
	g, err := NewWith(Options{Specs: map[string]*spec.Spec{"twilio": twilio(t)}, Hasher: h,
		Roles: Roles{
			"analyst": {"twilio": {"*": "see", "phone": "hash", "body": "hash"}},
			"other":   {"twilio": {"*": "hide", "calls": "hash", "messages.sid": "see", "messages.from": "hash"}},
			"support": {"twilio": {"*": "see", "phone": "last4"}},
			"half":    {"twilio": {"*": "see", "calls.from": "hash"}},
			"country": {"twilio": {"*": "see", "phone": "country"}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// shownAs is a field of a record as a role sees it.
func shownAs(t testing.TB, g *Gate, role, kind, field, value string) string {
	t.Helper()
	body := append(append([]byte(`{"sid":"X","`+field+`":`), jsonspan.Quote(nil, value)...), '}')
	v, err := g.MakeView(as(role), page("twilio", kind, false, 200, string(body)))
	if err != nil {
		t.Fatal(err)
	}
	return v.Rows()[0].Field(field).Text
}

func TestEqualValuesHaveEqualHashes(t *testing.T) {
	g := hashGate(t, "k")
	first := shownAs(t, g, "analyst", "calls", "from", "+14155551234")
	if !regexp.MustCompile(`^h:[a-z2-7]{28}$`).MatchString(first) {
		t.Errorf("the hash of a number is %q", first)
	}
	for what, same := range map[string]string{
		"another kind":     shownAs(t, g, "analyst", "messages", "to", "+14155551234"),
		"another role":     shownAs(t, g, "other", "calls", "from", "+14155551234"),
		"another spelling": shownAs(t, g, "analyst", "calls", "from", "+1 (415) 555-1234"),
		"a channel":        shownAs(t, g, "analyst", "messages", "from", "whatsapp:+14155551234"),
		"another start":    shownAs(t, hashGate(t, "k"), "analyst", "calls", "from", "+14155551234"),
	} {
		if same != first {
			t.Errorf("%s: %s and %s", what, same, first)
		}
	}
	for what, other := range map[string]string{
		"another number":       shownAs(t, g, "analyst", "calls", "from", "+14155551235"),
		"without a country":    shownAs(t, g, "analyst", "calls", "from", "14155551234"),
		"another installation": shownAs(t, hashGate(t, "j"), "analyst", "calls", "from", "+14155551234"),
		"a text":               shownAs(t, g, "analyst", "messages", "body", "+14155551234"),
	} {
		if other == first || !isHash(other) {
			t.Errorf("%s: %s and %s", what, other, first)
		}
	}
	long := shownAs(t, g, "analyst", "messages", "body", strings.Repeat("long ", 300))
	if a, b := shownAs(t, g, "analyst", "messages", "body", "hi"), long; len(a) != len(b) {
		t.Errorf("the hashes of texts have %d and %d letters", len(a), len(b))
	}
	if v := g.Level(as("analyst"), "twilio", "calls", "from_formatted"); v != Hide {
		t.Errorf("what is derived from a hash is %v", v)
	}
}

// A hash opens to its number in its own installation alone.
func TestNumbersComeBackFromTheirHashes(t *testing.T) {
	g, other := hashGate(t, "k"), hashGate(t, "j")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`\+?[0-9]{1,18}`).Draw(t, "number")
		of := string(g.hash.append(nil, text, true))
		p := understudy.ParsePhone(text)
		want := p.Digits
		if p.HasCountryCode {
			want = "+" + want
		}
		if got := g.hash.number(of); got != want {
			t.Fatalf("%s is %s, which opens to %q, want %q", text, of, got, want)
		}
		if got := other.hash.number(of); got != "" {
			t.Fatalf("another installation opens %s to %q", of, got)
		}
		if !isHash(of) {
			t.Fatalf("%s is not taken for a hash", of)
		}
		i := rapid.IntRange(len(hashPrefix), len(of)-2).Draw(t, "letter") // the last letter has bits that say nothing
		changed := []byte(of)
		if changed[i]++; changed[i] > 'z' || changed[i] == '8' {
			changed[i] = 'a'
		}
		if got := g.hash.number(string(changed)); got != "" && string(changed) != of {
			t.Fatalf("%s, altered, opens to %q", of, got)
		}
	})
}

func FuzzHash(f *testing.F) {
	g := hashGate(f, "k")
	f.Add("h:aaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	f.Add(string(g.hash.append(nil, "+14155551234", true)))
	f.Fuzz(func(t *testing.T, text string) {
		number := g.hash.number(text)
		if number != "" && !strings.HasPrefix(string(g.hash.append(nil, number, true)), text[:len(text)-1]) {
			t.Errorf("%q opens to %q, whose hash is another", text, number)
		}
		_, _ = g.Equal(as("analyst"), "twilio", "calls", "from", text)
	})
}

const root = "/2010-04-01/Accounts/AC00000000000000000000000000000001"

func TestFiltersTakeHashes(t *testing.T) {
	g := hashGate(t, "k")
	list := root + "/Calls.json"
	hashed := shownAs(t, g, "analyst", "calls", "from", "+14155551234")
	for _, test := range []struct{ role, query, says string }{
		{"analyst", "From=" + url.QueryEscape(hashed), ""},
		{"analyst", "To=" + url.QueryEscape(hashed), ""},
		{"analyst", "From=%2B14155551234", "only as a hash; write a hash"},
		{"analyst", "From=h:", "write a hash"},
		{"analyst", "From=h:0000000000000000", "write a hash"},
		{"analyst", "From=" + url.QueryEscape(hashed) + "0", "write a hash"},
		{"support", "From=" + url.QueryEscape(hashed), "can't see in full"},
		{"country", "From=" + url.QueryEscape(hashed), "can't see in full"},
	} {
		err := g.CheckRead(as(test.role), target(t, g.specs["twilio"], "twilio", list, test.query))
		refused := errors.Is(err, understudy.ErrForbidden) && strings.Contains(err.Error(), test.says)
		if test.says == "" && err != nil || test.says != "" && !refused {
			t.Errorf("%s, %s: %v", test.role, test.query, err)
		}
	}
}

// What is asked of the mirror for a hash: records alone, by the number in it.
func TestHashesAreAskedOfRecords(t *testing.T) {
	g := hashGate(t, "k")
	hashed := shownAs(t, g, "analyst", "calls", "from", "+14155551234")
	var asked request.Request
	ask := func(_ context.Context, a request.Request) (*request.Response, error) {
		asked = a
		return nil, understudy.ErrNotMirrored
	}
	read := func(role, q string) {
		t.Helper()
		asked = request.Request{}
		at := target(t, g.specs["twilio"], "twilio", root+"/Calls.json", q)
		if _, err := pageFor(t, g, as(role), request.Request{Target: at}, ask); !errors.Is(err, understudy.ErrNotMirrored) {
			t.Fatal(err)
		}
	}
	read("analyst", "From="+url.QueryEscape(hashed)+"&Status=busy")
	if asked.Local == nil || len(asked.Local.Conditions) != 1 {
		t.Fatalf("asked %+v", asked.Local)
	}
	e := asked.Local.Conditions["From"]
	checktest.MustTrue(t, e.Predicate != nil, "the index is asked for: e.Predicate is nil")
	checktest.Equal(t, e.Predicate.Number, "+14155551234", "the index is asked for: e.Predicate.Number")
	checktest.Equal(t, e.Predicate.Field, "from", "the index is asked for: e.Predicate.Field")
	holds := func(body string) bool {
		doc, err := jsonspan.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return e.Test.Match(query.Find([]byte(body), doc, query.Field{Name: "from"}))
	}
	for body, want := range map[string]bool{
		`{"from":"+14155551234"}`: true, `{"from":"+1 415 555 1234"}`: true, `{"from":"+14155551235"}`: false, `{"from":null}`: false,
		`{"from":14155551234}`: false, `{}`: false, `{"from":"` + hashed + `"}`: false,
	} {
		if holds(body) != want {
			t.Errorf("%s fulfils the filter: %v", body, !want)
		}
	}
	read("analyst", "Status=busy")
	if asked.Local != nil {
		t.Errorf("no hash, and records alone are asked: %+v", asked.Local)
	}
	read("all", "From="+url.QueryEscape(hashed)) // to upstream, as it is
	if asked.Local != nil {
		t.Errorf("role all: %+v", asked.Local)
	}
}

// A field that is seen has its number found by hash, and no other value.
func TestEqualByLevel(t *testing.T) {
	g := hashGate(t, "k")
	number := shownAs(t, g, "analyst", "calls", "from", "+14155551234")
	words := shownAs(t, g, "analyst", "messages", "body", "hello")
	for _, test := range []struct {
		role, kind, field, text string
		ok                      bool
	}{
		{"analyst", "calls", "from", number, true}, {"analyst", "calls", "from", "+14155551234", false},
		{"analyst", "messages", "body", words, true}, {"analyst", "calls", "status", words, false},
		{"all", "calls", "from", number, true}, {"all", "messages", "body", words, false},
		{"support", "calls", "from", number, false}, {"country", "calls", "from", number, false},
		{"analyst", "calls", "from_formatted", number, false}, {"analyst", "letters", "from", number, false},
		{"half", "calls", "from", number, true}, {"half", "calls", "to", number, false}, {"half", "messages", "from", number, false},
		{"other", "messages", "to", number, false}, {"", "calls", "from", number, false},
	} {
		if _, ok := g.Equal(as(test.role), "twilio", test.kind, test.field, test.text); ok != test.ok {
			t.Errorf("%s: %s.%s for %s: %v", test.role, test.kind, test.field, test.text, ok)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	g := hashGate(b, "k")
	var buf [64]byte
	b.ReportAllocs()
	for b.Loop() {
		g.hash.append(buf[:0], "+14155551234", true)
	}
}
