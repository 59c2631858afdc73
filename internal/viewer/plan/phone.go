// Phone numbers with their digits in groups, as people in each country write them.

package plan

import (
	"strconv"
	"strings"
)

// digitPlans are the sizes of the digit groups of national numbers, by the first digits after the plus sign. Longer
// prefixes come first. The sources are ITU-T E.123 and the numbering plans that countries register with ITU-T E.129.
// A number with another length stays in one group.
var digitPlans = []struct {
	begins string
	groups []int
}{
	{"4420", []int{2, 4, 4}}, {"447", []int{4, 6}}, {"441", []int{4, 6}}, {"4423", []int{2, 4, 4}}, {"4424", []int{2, 4, 4}},
	{"4428", []int{2, 4, 4}}, {"4429", []int{2, 4, 4}},
	{"9111", []int{2, 4, 4}}, {"9122", []int{2, 4, 4}}, {"9133", []int{2, 4, 4}}, {"9144", []int{2, 4, 4}},
	{"916", []int{5, 5}}, {"917", []int{5, 5}}, {"918", []int{5, 5}}, {"919", []int{5, 5}},
	{"614", []int{3, 3, 3}}, {"612", []int{1, 4, 4}}, {"613", []int{1, 4, 4}}, {"617", []int{1, 4, 4}}, {"618", []int{1, 4, 4}},
	{"1", []int{3, 3, 4}}, {"7", []int{3, 3, 2, 2}}, {"33", []int{1, 2, 2, 2, 2}}, {"34", []int{3, 3, 3}}, {"41", []int{2, 3, 2, 2}},
	{"45", []int{2, 2, 2, 2}},
	{"48", []int{3, 3, 3}}, {"65", []int{4, 4}}, {"861", []int{3, 4, 4}}, {"351", []int{3, 3, 3}}, {"420", []int{3, 3, 3}},
	{"852", []int{4, 4}},
}

// GroupPhone returns an E.164 number with spaces between the country code and the groups of digits. If it does not
// know the numbering plan of the country, the national number stays in one group, so that no group looks like an area
// code. It returns any other text unchanged.
func GroupPhone(text string) string {
	if len(text) < 8 || len(text) > 16 || text[0] != '+' || text[1] == '0' {
		return text
	}
	for i := 1; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			return text
		}
	}
	n := 1 + CountryDigits(text[1:])
	const gap = "\u00a0"
	var b strings.Builder
	b.WriteString(text[:n])
	rest := text[n:]
	for _, take := range planOf(text[1:], len(rest)) {
		b.WriteString(gap + rest[:take])
		rest = rest[take:]
	}
	if rest != "" {
		b.WriteString(gap + rest)
	}
	return b.String()
}

// planOf returns the sizes of the digit groups of a national number. It returns nil if it knows no numbering plan.
func planOf(digits string, national int) []int {
	for _, p := range digitPlans {
		sum := 0
		for _, n := range p.groups {
			sum += n
		}
		if strings.HasPrefix(digits, p.begins) && sum == national {
			return p.groups
		}
	}
	return nil
}

// CountryDigits returns the number of digits in the country code of a number (ITU-T E.164).
func CountryDigits(digits string) int {
	if digits[0] == '1' || digits[0] == '7' {
		return 1
	}
	two, _ := strconv.Atoi(digits[:2])
	for _, r := range [][2]int{{20, 20}, {27, 27}, {30, 34}, {36, 36}, {39, 41}, {43, 49}, {51, 58}, {60, 66}, {81, 82}, {84, 84}, {86, 86},
		{90, 95}, {98, 98}} {
		if two >= r[0] && two <= r[1] {
			return 2
		}
	}
	return 3
}

// IsNumber reports whether a text is a phone number as records write it.
func IsNumber(text string) bool {
	digits, least := text, 3
	if text != "" && text[0] == '+' {
		digits, least = text[1:], 7
	}
	if len(digits) < least || len(digits) > 15 || digits[0] == '0' {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}
