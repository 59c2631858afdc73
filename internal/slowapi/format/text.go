// Text: texts, numbers and amounts of money in the formats of Twilio's JSON, and SIDs.
package format

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AppendText appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendText[T string | []byte](dst []byte, s T) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			dst = utf8.AppendRune(dst, r)
			i += size
			continue
		}
		i++
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20 || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// DisplayNumber returns a phone number as Twilio shows it to people. North American numbers have groups, and all
// others are unchanged.
func DisplayNumber(number string) string {
	if len(number) != 12 || !strings.HasPrefix(number, "+1") || !IsDigits(number[1:]) {
		return number
	}
	return "(" + number[2:5] + ") " + number[5:8] + "-" + number[8:]
}

// IsDigits reports whether s consists of digits and is not empty.
func IsDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// Money writes an amount in hundred-thousandths of a dollar in the format of Twilio's prices, which are negative.
func Money(amount int64) string {
	s := strconv.FormatInt(amount, 10)
	for len(s) < 6 {
		s = "0" + s
	}
	return "-" + s[:len(s)-5] + "." + s[len(s)-5:]
}

// Decimal writes an amount in hundred-thousandths as a decimal number without zeros at the end.
func Decimal(amount int64) string {
	sign := ""
	if amount < 0 {
		sign, amount = "-", -amount
	}
	text := strings.TrimPrefix(Money(amount), "-")
	return sign + strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// ParseWhole parses a whole number. A number that is larger than an int32 becomes the largest int32.
func ParseWhole(s string) (int64, bool) {
	if !IsDigits(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt32 {
		return math.MaxInt32, true
	}
	return n, true
}

var hex32 = regexp.MustCompile(`^[0-9a-fA-F]{32}$`)

// IsSID reports whether s has the form of a SID with this prefix.
func IsSID(s, prefix string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	return ok && hex32.MatchString(rest)
}

// IsNumber reports whether s is a number in E.164.
func IsNumber(s string) bool {
	return len(s) >= 4 && len(s) <= 16 && s[0] == '+' && IsDigits(s[1:])
}
