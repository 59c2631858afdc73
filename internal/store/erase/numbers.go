// This file finds everything in a text that may be a phone number.

package erase

import (
	"strings"

	"understudy"
)

// numbersIn yields the digits of everything in a text that may be a phone number.
func numbersIn(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := 0; i < len(text); {
			if !isDigit(text[i]) {
				i++
				continue
			}
			end, last := i, i
			for end < len(text) && (isDigit(text[end]) || strings.IndexByte(" ().-/", text[end]) >= 0) {
				if isDigit(text[end]) {
					last = end
				}
				end++
			}
			n := understudy.ParsePhone(text[i : last+1])
			if n.Digits != "" && !yield(n.Digits) {
				return
			}
			i = end
		}
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
