// This file parses values as people write them (durations, times and phone numbers), and declares Secret.

package understudy

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// longUnit matches one part of a duration that time.ParseDuration does not know: days, weeks or years.
var longUnit = regexp.MustCompile(`^(\d+(?:\.\d+)?)([dwy])`)

// longHours maps each unit of longUnit to its length in hours.
var longHours = map[string]float64{"d": 24, "w": 7 * 24, "y": 365 * 24}

// ParseDuration parses a duration as time.ParseDuration does. Before such a duration it also accepts days (d, 24
// hours), weeks (w) and years (y, 365 days): 30d, 2w, 1y, 1d12h, 1.5d, 90s. The error quotes the text and shows the
// accepted forms.
func ParseDuration(text string) (time.Duration, error) {
	hours, rest := "", text
	for part := longUnit.FindStringSubmatch(rest); part != nil; part = longUnit.FindStringSubmatch(rest) {
		n, _ := strconv.ParseFloat(part[1], 64) // after an overflow, time.ParseDuration below returns an error
		hours += strconv.FormatFloat(n*longHours[part[2]], 'f', -1, 64) + "h"
		rest = rest[len(part[0]):]
	}
	d, err := time.ParseDuration(hours + rest)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration; write 30s, 5m, 24h, 30d or 2w", Clip(text))
	}
	return d, nil
}

// ParseTime parses a time by the first layout that fits. A text without a zone is taken to be in the given
// zone.
func ParseTime(text string, zone *time.Location, layouts ...string) (t time.Time, err error) {
	for _, layout := range layouts {
		if t, err = time.ParseInLocation(layout, text, zone); err == nil {
			break
		}
	}
	return t, err
}

// Secret is a text that is formatted, logged and marshalled as "[redacted]". Only Reveal returns the text. The
// zero value is empty.
//
// The text is behind a pointer because package fmt bypasses methods that it cannot call: those of unexported
// fields, and for verbs such as %p.
type Secret struct{ text *string }

// NewSecret returns a Secret with that text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text. Use it only to send the secret.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsEmpty reports whether the secret has no text.
func (s Secret) IsEmpty() bool { return s.Reveal() == "" }

// Equal reports whether the secret equals other. It compares in constant time, also if the lengths differ.
func (s Secret) Equal(other string) bool {
	a, b := sha256.Sum256([]byte(s.Reveal())), sha256.Sum256([]byte(other))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

const redacted = "[redacted]"

// String returns "[redacted]".
func (s Secret) String() string { return redacted }

// GoString returns "[redacted]".
func (s Secret) GoString() string { return redacted }

// Format writes "[redacted]" for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText returns "[redacted]".
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns "[redacted]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MinPhoneDigits and MaxPhoneDigits are the limits of a phone number's length. E.164 allows 15 digits. Shorter
// numbers are short codes, which belong to no person.
const (
	MinPhoneDigits = 7
	MaxPhoneDigits = 15
)

// Phone is a phone number: its digits, and whether they begin with a country code. The zero value is no number.
type Phone struct {
	Digits         string
	HasCountryCode bool
}

// ParsePhone parses a number in any of these forms: +1 (415) 555-0100, 0014155550100, 415.555.0100,
// tel:+14155550100, whatsapp:+14155550100, sip:+14155550100@example.com, +44 (0)20 5550 0100. Digits of other
// scripts are accepted. Any other text gives the zero Phone.
func ParsePhone(text string) Phone {
	text = strings.TrimSpace(NormalizeNumber(text))
	if i := strings.IndexByte(text, ':'); i >= 0 && !strings.ContainsAny(text[:i], "0123456789+") {
		text = text[i+1:]
	}
	text, _, _ = strings.Cut(text, "@")
	text, _, _ = strings.Cut(text, ";")
	if strings.HasPrefix(text, "+") || strings.HasPrefix(text, "00") {
		text = strings.Replace(text, "(0)", "", 1) // this zero is dialled only within the country
	}
	var p Phone
	digits := make([]byte, 0, MaxPhoneDigits+3)
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			if digits = append(digits, c); len(digits) > MaxPhoneDigits+2 {
				return Phone{}
			}
		case c == '+' && len(digits) == 0:
			p.HasCountryCode = true
		case strings.IndexByte(" ().-/", c) < 0:
			return Phone{}
		}
	}
	p.Digits = string(digits)
	if rest, ok := strings.CutPrefix(p.Digits, "00"); ok && !p.HasCountryCode {
		p.Digits, p.HasCountryCode = rest, true
	}
	if p.HasCountryCode && strings.HasPrefix(p.Digits, "0") {
		return Phone{} // a country code never begins with 0
	}
	if len(p.Digits) < MinPhoneDigits || len(p.Digits) > MaxPhoneDigits {
		return Phone{}
	}
	return p
}

// NormalizeNumber converts the digits, plus signs, dashes and spaces of any script to ASCII. It removes
// invisible characters, such as direction marks pasted with a number. Other characters stay.
func NormalizeNumber(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r <= unicode.MaxASCII:
			return r
		case unicode.Is(unicode.Cf, r):
			return -1
		case unicode.Is(unicode.Nd, r):
			return asciiDigit(r)
		case unicode.Is(unicode.Pd, r) || r == '\u2212':
			return '-'
		case unicode.Is(unicode.Zs, r):
			return ' '
		}
		if i := strings.IndexRune("\uff0b\u207a\ufe62\uff08\uff09\uff0e\uff0f", r); i >= 0 {
			return rune("+++()./"[i/3])
		}
		return r
	}, text)
}

// asciiDigit returns the ASCII form of a digit of another script. In each script the digits zero to nine have
// consecutive code points.
func asciiDigit(r rune) rune {
	zero := r
	for zero > 0 && unicode.Is(unicode.Nd, zero-1) {
		zero--
	}
	return '0' + (r-zero)%10
}

// MinNationalDigits is how many digits a number without a country code needs to match a number that has one.
const MinNationalDigits = 9

// Match reports whether two numbers are the same. If only one has a country code, a code of up to three digits
// and one leading zero are ignored.
func (p Phone) Match(o Phone) bool {
	switch {
	case p.Digits == "" || o.Digits == "":
		return false
	case p.Digits == o.Digits:
		return true
	case p.HasCountryCode == o.HasCountryCode:
		return false
	case o.HasCountryCode:
		return o.Match(p)
	}
	national := strings.TrimPrefix(o.Digits, "0")
	code := len(p.Digits) - len(national)
	return len(national) >= MinNationalDigits && code >= 1 && code <= 3 && strings.HasSuffix(p.Digits, national)
}
