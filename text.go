// Text: what of a record people read, in which words are looked for.

package understudy

import (
	"slices"
	"time"
)

// Worded reports whether a field of the kind is text: what people read. Neither
// are ids, links, secrets, prices with their currencies and what is derived from
// another field, nor times, numbers and what is true or false: those are asked
// for by their field. What lies in a field that is text is text, too. The index
// of words and who looks for words in a body go by it both, so that the one
// finds no less than the other.
func (k *Kind) Worded(f *Field) bool {
	switch {
	case f.From != "", f.Link != "", f.Absolute, f.Name == k.Parent, slices.Contains(k.ID, f.Name), f.Class == ClassSecret, f.Class == ClassPrice:
		return false
	}
	switch f.Type {
	case "", TypeText, TypeSelect, TypeCode, TypeMap:
		return true
	}
	return false
}

// TellsTime reports whether a text is a date or a time as programs write them,
// which in a field without a class is no text.
func TellsTime(text string) bool {
	if len(text) < 10 || len(text) > 40 {
		return false
	}
	if text[4] == '-' && text[7] == '-' {
		_, err := time.Parse(time.DateOnly, text[:10])
		return err == nil && (len(text) == 10 || text[10] == 'T' || text[10] == ' ')
	}
	if text[3] == ',' {
		_, err := time.Parse(time.RFC1123Z, text)
		return err == nil
	}
	return false
}
