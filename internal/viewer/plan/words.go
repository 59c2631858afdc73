// Words: names as people read them.

package plan

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"understudy/spec"
)

// TitleOf is a field's title for people: of a field inside an object its own
// name alone, initialisms in capitals.
func TitleOf(f *spec.Field) string {
	if f.Title != "" {
		return f.Title
	}
	return Spell(f.Name[strings.LastIndexByte(f.Name, '.')+1:])
}

// initialisms are words that are not spelt like words.
var initialisms = []string{"api", "id", "ip", "json", "mms", "sid", "sip", "sms", "uri", "url", "uuid"}

// Spell is a name in words: "api_version" is "API version".
func Spell(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '.' || r == ' ' })
	for i, w := range words {
		if slices.Contains(initialisms, strings.ToLower(w)) {
			words[i] = strings.ToUpper(w)
		}
	}
	return strings.Join(words, " ")
}

// UpperFirst is s with its first letter upper-case: titles are written as they
// stand in a sentence.
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

// Article is a word with "a" or "an" before it.
func Article(word string) string {
	if word != "" && strings.ContainsRune("aeioAEIO", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// slug is a title as part of an address: "Toll-free" is "toll-free".
func slug(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
	}), "-")
}

// Words parts a variable's name: CountryCode is country_code.
func Words(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
