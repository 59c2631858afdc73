// Names of fields and kinds in words.

package plan

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"understudy/spec"
)

// TitleOf returns the title of a field for people. For a field inside an object, it uses only the last part of the
// name. Abbreviations are written in capitals.
func TitleOf(f *spec.Field) string {
	return cmp.Or(f.Title, Spell(f.Name[strings.LastIndexByte(f.Name, '.')+1:]))
}

// initialisms are abbreviations that are written in capitals.
var initialisms = []string{"api", "id", "ip", "json", "mms", "sid", "sip", "sms", "uri", "url", "uuid"}

// Spell returns a name in words: "api_version" becomes "API version".
func Spell(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '.' || r == ' ' })
	for i, w := range words {
		if slices.Contains(initialisms, strings.ToLower(w)) {
			words[i] = strings.ToUpper(w)
		}
	}
	return strings.Join(words, " ")
}

// UpperFirst returns s with its first letter in upper case. The titles in specs are in lower case, as within a sentence.
func UpperFirst(s string) string {
	if s == "" {
		return ""
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// LowerFirst returns s with its first letter in lower case, unless s begins with an abbreviation.
func LowerFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if next, _ := utf8.DecodeRuneInString(s[n:]); s == "" || unicode.IsUpper(next) {
		return s
	}
	return string(unicode.ToLower(r)) + s[n:]
}

// Article returns a word with "a" or "an" before it.
func Article(word string) string {
	if word != "" && strings.ContainsRune("aeioAEIO", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// slug returns a title in a form that can be part of an address: "Toll-free" becomes "toll-free".
func slug(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
	}), "-")
}
