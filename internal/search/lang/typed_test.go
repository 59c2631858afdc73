// Times and phone numbers as people type them.

package lang

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
)

func TestParseTimeRange(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 30, 0, 0, time.UTC)
	at := func(text string) int64 {
		v, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		return v.Unix()
	}
	for text, want := range map[string][2]string{
		"2026":                      {"2026-01-01 00:00:00", "2027-01-01 00:00:00"},
		"2024-02":                   {"2024-02-01 00:00:00", "2024-03-01 00:00:00"},
		"2026-12-31":                {"2026-12-31 00:00:00", "2027-01-01 00:00:00"},
		"2026-05-01T10":             {"2026-05-01 10:00:00", "2026-05-01 11:00:00"},
		"2026-05-01T10:30":          {"2026-05-01 10:30:00", "2026-05-01 10:31:00"},
		"2026-05-01 10:30:05":       {"2026-05-01 10:30:05", "2026-05-01 10:30:06"},
		"2026-05-01T10:30:05+02:00": {"2026-05-01 08:30:05", "2026-05-01 08:30:06"},
		"today":                     {"2026-06-01 00:00:00", "2026-06-02 00:00:00"},
		"yesterday":                 {"2026-05-31 00:00:00", "2026-06-01 00:00:00"},
		"-7d":                       {"2026-05-25 12:30:00", "2026-05-25 12:30:01"},
		"-1d12h":                    {"2026-05-31 00:30:00", "2026-05-31 00:30:01"},
		"-1.5d":                     {"2026-05-31 00:30:00", "2026-05-31 00:30:01"},
		"-90m":                      {"2026-06-01 11:00:00", "2026-06-01 11:00:01"},
	} {
		{
			s, ok := parseTimeRange(text, now)
			checktest.MustTrue(t, ok, "%s: ok is false", text)
			checktest.Equal(t, s.from, at(want[0]), "%s: s.from", text)
			checktest.Equal(t, s.to, at(want[1]), "%s: s.to", text)
		}
	}
	for _, text := range []string{"", "26", "2026-1", "2026-02-30", "7d", "-7", "-d", "-7x", "-1d12", "-1dd", "-999y999y", "-1é",
		"-99999999999y", "--7d", "-+7d", "0000",
		strings.Repeat("2", 100)} {
		if s, ok := parseTimeRange(text, now); ok {
			t.Errorf("%q: %v", text, s)
		}
	}
}

// sameNumber says whether a held text is the number that was typed.
func sameNumber(held, typed string) bool {
	body, _ := json.Marshal(held)
	doc, _ := jsonspan.Parse(body)
	return newPhoneTest([]Value{{Text: typed}}).Match(query.NewValue(body, doc, ""))
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		held, typed string
		same        bool
	}{
		{"+15550100123", "+1 (555) 010-0123", true}, {"+15550100123", "0015550100123", true}, {"+15550100123", "555 010 0123", true},
		{"+14155550100", "415.555.0100", true}, {"+4930901820123", "030 901820123", true}, {"whatsapp:+14155550100", "+14155550100", true},
		{"+14155550100", "+14155550101", false}, {"12345", "12345", true}, {"+1415512345", "12345", false},
		{"client:anna", "+14155550100", false}, {"", "+14155550100", false},
		{"+14155550100", "4155550100", true},
	} {
		if got := sameNumber(c.held, c.typed); got != c.same {
			t.Errorf("%q is %q: %v", c.held, c.typed, got)
		}
	}
}
