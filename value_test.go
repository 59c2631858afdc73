// Durations and phone numbers as people write them, and secrets, which leave by Reveal and by no other way.

package understudy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/kit/logline"
)

func TestParseDurationReadsDaysAndWeeks(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "720h": 720 * time.Hour, "30d": 30 * day, "4w": 28 * day, "1d12h": 36 * time.Hour,
		"1w2d3h": 9*day + 3*time.Hour, "1.5d": 36 * time.Hour,
		"1y": 365 * day, "0.5y1d": 183*day + 12*time.Hour, "0": 0, "0d": 0, "-5m": -5 * time.Minute,
	} {
		got, err := ParseDuration(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "d", "30", "30x", "1.2.3d", "-1d", "1h1d", "1d-2h", "110000d", "106750d2562047h", "1 d"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("1w2d3h")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseDuration(text)
		if plain, perr := time.ParseDuration(text); perr == nil && (err != nil || got != plain) {
			t.Errorf("%q: %v, %v; time.ParseDuration reads %v", text, got, err, plain)
		}
	})
}

func TestParseTimeTakesTheFirstLayoutThatFits(t *testing.T) {
	east := time.FixedZone("", 2*3600)
	for _, c := range []struct {
		text string
		zone *time.Location
		want string // "" = an error
	}{
		{"2026-06-01", time.UTC, "2026-06-01T00:00:00Z"},
		{"2026-06-01", east, "2026-05-31T22:00:00Z"},
		{"2026-06-01T12:00:00+05:00", east, "2026-06-01T07:00:00Z"},
		{"1 June", time.UTC, ""},
	} {
		got, err := ParseTime(c.text, c.zone, time.RFC3339, time.DateOnly)
		if (err != nil) != (c.want == "") {
			t.Errorf("%s: error %v", c.text, err)
		}
		if text := got.UTC().Format(time.RFC3339); err == nil && text != c.want {
			t.Errorf("%s: %s, want %s", c.text, text, c.want)
		}
	}
}

func TestSecretDoesNotLeak(t *testing.T) {
	const text = "p4ssw0rd"
	s := NewSecret(text)
	holder := struct {
		Name   string
		Secret Secret
		In     []Secret
		inside Secret
	}{"x", s, []Secret{s}, s}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%10s"} {
		fmt.Fprintf(&out, verb+" ", s)
		fmt.Fprintf(&out, verb+" ", &s)
		fmt.Fprintf(&out, verb+" ", holder)
		fmt.Fprintf(&out, verb+" ", &holder)
	}
	b, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "secret", s, "holder", holder)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "secret", s, "holder", holder)
	for _, format := range []logline.Format{logline.Logfmt, logline.JSON, logline.Terminal} {
		slog.New(logline.New(&out, logline.Options{Format: format})).With("secret", s, "holder", &holder).
			Info("m", "secret", s, "pointer", &s, "holder", holder, "list", []Secret{s}, "map", map[string]Secret{"k": s},
				slog.Group("g", "secret", s))
	}
	fmt.Fprint(&out, s, s.String(), s.GoString(), fmt.Errorf("with %v: %w", s, ErrInvalid))
	for _, leak := range []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text)} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%s is in %s", leak, &out)
		}
	}
	if strings.Count(out.String(), "[redacted]") < 40 {
		t.Errorf("little was redacted: %s", &out)
	}
	checktest.Equal(t, s.Reveal(), text, "reveal: s.Reveal()")
	checktest.True(t, !s.IsEmpty(), "reveal: s.IsEmpty() is true")
	checktest.True(t, (Secret{}).IsEmpty(), "reveal: (Secret{}).IsEmpty() is false")
}

func TestSecretIs(t *testing.T) {
	s := NewSecret("abc")
	checktest.True(t, s.Equal("abc"), `comparison: s.Equal("abc") is false`)
	checktest.True(t, !s.Equal("abd"), `comparison: s.Equal("abd") is true`)
	checktest.True(t, !s.Equal("ab"), `comparison: s.Equal("ab") is true`)
	checktest.True(t, !s.Equal(""), `comparison: s.Equal("") is true`)
	checktest.True(t, (Secret{}).Equal(""), `comparison: (Secret{}).Equal("") is false`)
	checktest.True(t, !(Secret{}).Equal("a"), `comparison: (Secret{}).Equal("a") is true`)
}

func TestSamePhone(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"+1 (415) 555-0100", "+14155550100", true},
		{"0014155550100", "+14155550100", true},
		{"tel:+1-415-555-0100", "+1 415.555.0100", true},
		{"sip:+14155550100@example.com;transport=tls", "14155550100", true},
		{"whatsapp:+14155550100", "+14155550100", true},
		{"(415) 555-0100", "+14155550100", true},
		{"0171 1234567", "+491711234567", true},
		{"0151 2345678", "+4915112345678", false},
		{"555-0100", "+14155550100", false}, // everybody's
		{"5550100", "555 0100", true},
		{"+14155550100", "+494155550100", false},
		{"+14155550100", "+14155550101", false},
		{"+4155550100", "+14155550100", false}, // both say their country
		{"client:anna", "client:anna", false},
		{"", "", false},
		{"+1", "+1", false},
		{"12345678901234567", "12345678901234567", false},
		{"+44 (0)20 5550 0100", "+442055500100", true},
		{"＋１（４１５）５５５−０１００", "+14155550100", true},
		{"+١٤١٥٥٥٥٠١٠٠", "+14155550100", true},
		{"+𝟏𝟒𝟏𝟓𝟓𝟓𝟓𝟎𝟏𝟎𝟎", "+14155550100", true},
		{"\u202a+1 415 555\u20110100\u202c", "+14155550100", true},
		{"2026-06-01T12:00:00Z", "20260601120000", false},
	} {
		if a, b := ParsePhone(c.a), ParsePhone(c.b); a.Match(b) != c.same || b.Match(a) != c.same {
			t.Errorf("%q (%v) and %q (%v): same is %v", c.a, a, c.b, b, !c.same)
		}
	}
}
