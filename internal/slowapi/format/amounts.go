// Numbers and amounts as Twilio writes them, and the names of records.
package format

import (
	"math"
	"strconv"
	"strings"
)

// Formatted is a number as Twilio shows it to people: grouped in North America,
// as it is elsewhere.
func Formatted(number string) string {
	if len(number) != 12 || !strings.HasPrefix(number, "+1") || !Digits(number[1:]) {
		return number
	}
	return "(" + number[2:5] + ") " + number[5:8] + "-" + number[8:]
}

// Digits tells whether s is nothing but digits, and at least one.
func Digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// Money writes hundred-thousandths of a dollar with a minus, as prices are.
func Money(amount int64) string {
	s := strconv.FormatInt(amount, 10)
	for len(s) < 6 {
		s = "0" + s
	}
	return "-" + s[:len(s)-5] + "." + s[len(s)-5:]
}

// Decimal writes hundred-thousandths as a number without needless zeros.
func Decimal(amount int64) string {
	sign := ""
	if amount < 0 {
		sign, amount = "-", -amount
	}
	text := strings.TrimPrefix(Money(amount), "-")
	return sign + strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Whole reads a number of at most nine digits.
func Whole(s string) (int64, bool) {
	if !Digits(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt32 {
		return math.MaxInt32, true
	}
	return n, true
}

// IsSID tells whether s has the form of a SID with this prefix.
func IsSID(s, prefix string) bool {
	if len(s) != 34 || !strings.HasPrefix(s, prefix) {
		return false
	}
	for _, c := range []byte(s[2:]) {
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if !hex {
			return false
		}
	}
	return true
}

// IsNumber tells whether s is a number in E.164.
func IsNumber(s string) bool {
	return len(s) >= 4 && len(s) <= 16 && s[0] == '+' && Digits(s[1:])
}
