// Figures: numbers and texts formatted for people, as the spec describes the field.

package plan

import (
	"cmp"
	"encoding/json"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"understudy/spec"
)

// maxDecimals is the maximum number of decimal places in an amount of at least 1. An amount with more is rounded to
// the smallest unit of its currency.
const maxDecimals = 4

// Figure returns the number in a field formatted for people: 1386 seconds as 23:06, a price as $0.0255. exact is the
// number as the API writes it, with its unit. ok is false if the spec does not describe the field as a number, or if
// the text is no number.
func Figure(f *spec.Field, number, unit string) (text, exact string, ok bool) {
	switch f.Show {
	case spec.ShowSeconds:
		text, ok = formatSeconds(number)
		return text, number + " s", ok
	case spec.ShowMillis:
		ms, err := strconv.ParseFloat(number, 64)
		if err != nil || ms < 0 {
			return "", "", false
		}
		text = strconv.FormatFloat(ms, 'f', -1, 64) + " ms"
		if ms >= 1000 {
			text = strconv.FormatFloat(ms/1000, 'f', 2, 64) + " s"
		}
		return text, number + " ms", true
	}
	unit = strings.ToUpper(unit)
	a, ok := readAmount(number)
	if !ok || f.Type != spec.TypeDecimal && f.Show != spec.ShowMinor || f.Class != spec.ClassPrice && symbols[unit] == "" {
		return "", "", false
	}
	if f.Show == spec.ShowMinor {
		a.movePoint(decimalPlaces(unit))
	}
	if a.whole != "" && len(a.fraction) > maxDecimals {
		a.reducePlaces(decimalPlaces(unit))
	}
	a.negative = a.negative != (f.Show == spec.ShowCost)
	return a.format(unit), strings.TrimSpace(number + " " + unit), true
}

// Symbol returns the symbol of a currency, such as $ for USD. If it knows none, it returns the unit itself.
func Symbol(unit string) string {
	unit = strings.ToUpper(unit)
	return cmp.Or(symbols[unit], unit)
}

// symbols are the symbols of currencies that readers everywhere know.
var symbols = map[string]string{"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩", "CAD": "CA$", "AUD": "A$"}

// Currencies (ISO 4217) whose smallest unit is not one hundredth, but one or one thousandth of the currency.
var (
	wholeCurrencies    = strings.Fields("BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF UGX VND VUV XAF XOF XPF")
	thousandCurrencies = strings.Fields("BHD JOD KWD OMR TND")
)

// decimalPlaces returns how many decimal places a currency has.
func decimalPlaces(unit string) int {
	switch {
	case slices.Contains(wholeCurrencies, unit):
		return 0
	case slices.Contains(thousandCurrencies, unit):
		return 3
	}
	return 2
}

// amount is a decimal number with all of its digits, so that nothing is rounded.
type amount struct {
	negative        bool
	whole, fraction string
}

// maxDigits is the maximum number of digits of an amount. A longer amount is shown as it is.
const maxDigits = 40

func readAmount(text string) (a amount, ok bool) {
	rest, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(rest, ".")
	digits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	if whole == "" || !digits(whole) || !digits(fraction) || len(rest) > maxDigits {
		return a, false
	}
	return amount{negative, strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")}, true
}

// movePoint divides the amount by ten to the power of places.
func (a *amount) movePoint(places int) {
	if short := places - len(a.whole); short > 0 {
		a.whole = strings.Repeat("0", short) + a.whole
	}
	at := len(a.whole) - places
	a.whole, a.fraction = strings.TrimLeft(a.whole[:at], "0"), strings.TrimRight(a.whole[at:]+a.fraction, "0")
}

// reducePlaces rounds the amount to a smaller number of decimal places.
func (a *amount) reducePlaces(places int) {
	n, _ := new(big.Int).SetString(a.whole+a.fraction[:places], 10)
	n.Add(n, big.NewInt(int64(a.fraction[places]-'0')/5))
	a.whole, a.fraction = n.String(), ""
	a.movePoint(places)
}

// format returns the amount with the symbol of its currency. If unit is empty, there is no symbol.
func (a *amount) format(unit string) string {
	fraction := a.fraction
	if least := decimalPlaces(unit); len(fraction) < least {
		fraction += strings.Repeat("0", least-len(fraction))
	}
	text := GroupDigits(max(a.whole, "0"))
	if fraction != "" {
		text += "." + fraction
	}
	if symbol := symbols[unit]; symbol != "" {
		text = symbol + text
	} else if unit != "" {
		text += "\u00a0" + unit
	}
	if a.negative && a.whole+a.fraction != "" {
		text = MinusSign + text
	}
	return text
}

// MinusSign is the character that negative numbers begin with.
const MinusSign = "\u2212"

// GroupDigits puts commas between groups of three digits.
func GroupDigits(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// formatSeconds returns a number of seconds in the form 23:06, or 1:02:03 from one hour on.
func formatSeconds(seconds string) (text string, ok bool) {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 {
		return "", false
	}
	two := func(n int64) string { return string([]byte{byte('0' + n/10), byte('0' + n%10)}) }
	if n < 3600 {
		return strconv.FormatInt(n/60, 10) + ":" + two(n%60), true
	}
	return strconv.FormatInt(n/3600, 10) + ":" + two(n/60%60) + ":" + two(n%60), true
}

// DecodeForm decodes form-encoded text and separates the values by apart. It returns any other text unchanged.
func DecodeForm(text, apart string) string {
	text, _ = DecodeFormWithPlaces(text, apart)
	return text
}

// DecodeFormWithPlaces is like DecodeForm, but also returns in places, for each byte of the text and for its end, the
// position in the result. places is nil if the text is not form-encoded.
func DecodeFormWithPlaces(text, apart string) (read string, places []int) {
	if !strings.Contains(text, "=") || strings.ContainsAny(text, " \t\n") {
		return text, nil
	}
	var b strings.Builder
	for pair := range strings.SplitSeq(text, "&") {
		name, _, ok := strings.Cut(pair, "=")
		if _, err := url.QueryUnescape(pair); err != nil || !ok || name == "" {
			return text, nil
		}
		if len(places) > 0 {
			places = append(places, b.Len())
			b.WriteString(apart)
		}
		for i := 0; i < len(pair); {
			next, shown := i+1, pair[i:i+1]
			switch {
			case i == len(name):
				shown = ": "
			case shown == "+":
				shown = " "
			case shown == "%":
				for next = i; next < len(pair) && pair[next] == '%'; { // one character may be several escaped bytes, which are decoded together
					next += 3
				}
				shown, _ = url.QueryUnescape(pair[i:next])
				r, n := utf8.DecodeRuneInString(shown)
				next, shown = i+3*n, string(r)
			}
			for ; i < next; i++ {
				places = append(places, b.Len())
			}
			b.WriteString(shown)
		}
	}
	return b.String(), append(places, b.Len())
}

// maxTags is the maximum number of values of an array that are shown as separate labels.
const maxTags = 50

// Tags parses a JSON array of strings and numbers. ok is false for any other text.
func Tags(text string) (tags []string, ok bool) {
	if !strings.HasPrefix(text, "[") {
		return nil, false
	}
	var all []any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&all) != nil || d.More() || len(all) > maxTags {
		return nil, false
	}
	for _, one := range all {
		switch one := one.(type) {
		case string:
			tags = append(tags, one)
		case json.Number:
			tags = append(tags, one.String())
		default:
			return nil, false
		}
	}
	return tags, true
}
