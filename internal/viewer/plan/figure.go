// Figure: numbers and texts as people read them, by what the spec says of a field.

package plan

import (
	"encoding/json"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"understudy/spec"
)

// mostDecimals is how many decimal places an amount of at least 1 has; one of more is rounded to what is paid.
const mostDecimals = 4

// Figure returns a field's number as people read it: 1386 seconds as 23:06, a price as $0.0255.
// exact is the number as the API writes it, with its unit. ok is false for a field of which the
// spec says nothing, and for a text that is no such number.
func Figure(f *spec.Field, number, unit string) (text, exact string, ok bool) {
	switch f.Show {
	case spec.ShowSeconds:
		text, ok = clockLength(number)
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
		a.shift(places(unit))
	}
	if a.whole != "" && len(a.fraction) > mostDecimals {
		a.round(places(unit))
	}
	a.negative = a.negative != (f.Show == spec.ShowCost)
	return a.in(unit), strings.TrimSpace(number + " " + unit), true
}

// Symbol is how people write a currency beside an amount: $ for USD, else the unit itself.
func Symbol(unit string) string {
	unit = strings.ToUpper(unit)
	if s := symbols[unit]; s != "" {
		return s
	}
	return unit
}

// symbols are those that mean one currency to most people.
var symbols = map[string]string{"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩", "CAD": "CA$", "AUD": "A$"}

// The currencies (ISO 4217) that are not counted in hundredths.
var (
	wholeCurrencies    = strings.Fields("BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF UGX VND VUV XAF XOF XPF")
	thousandCurrencies = strings.Fields("BHD JOD KWD OMR TND")
)

// places is the number of decimal places of a currency's smallest unit.
func places(unit string) int {
	switch {
	case slices.Contains(wholeCurrencies, unit):
		return 0
	case slices.Contains(thousandCurrencies, unit):
		return 3
	}
	return 2
}

// amount is a decimal number by its digits.
type amount struct {
	negative        bool
	whole, fraction string
}

// maxDigits bounds the digits of an amount that is written anew.
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

// shift divides by a power of ten.
func (a *amount) shift(places int) {
	if short := places - len(a.whole); short > 0 {
		a.whole = strings.Repeat("0", short) + a.whole
	}
	at := len(a.whole) - places
	a.whole, a.fraction = strings.TrimLeft(a.whole[:at], "0"), strings.TrimRight(a.whole[at:]+a.fraction, "0")
}

// round keeps fewer decimal places than the amount has.
func (a *amount) round(places int) {
	n, _ := new(big.Int).SetString(a.whole+a.fraction[:places], 10)
	n.Add(n, big.NewInt(int64(a.fraction[places]-'0')/5))
	a.whole, a.fraction = n.String(), ""
	a.shift(places)
}

// in writes the amount in a currency; "" is no currency.
func (a *amount) in(unit string) string {
	fraction := a.fraction
	if least := places(unit); len(fraction) < least {
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
		text = Minus + text
	}
	return text
}

// Minus is the sign of numbers below zero.
const Minus = "\u2212"

// GroupDigits puts a comma between the thousands of digits.
func GroupDigits(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// clockLength writes seconds as a clock does: 23:06, from one hour on 1:02:03.
func clockLength(seconds string) (text string, ok bool) {
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

// ReadForm writes form-encoded text with a line or, apart by a dot, a part for each value. A text that is
// no form stays as it is.
func ReadForm(text, apart string) string {
	text, _ = ReadFormPlaces(text, apart)
	return text
}

// ReadFormPlaces is ReadForm, and returns for each byte of the text, and for its end, its place in what is read.
// places is nil for a text that is no form.
func ReadFormPlaces(text, apart string) (read string, places []int) {
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
				for next = i; next < len(pair) && pair[next] == '%'; { // the bytes of a character come one by one
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

// maxTags bounds the values of an array that are shown one by one.
const maxTags = 50

// Tags reads a JSON array of texts and numbers; ok is false for every other text.
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
