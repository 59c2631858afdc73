// SyntaxError: errors that point at the character.

package lang

import (
	"fmt"
	"unicode/utf8"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/suggest"
)

// syntaxError returns the error of a query that cannot be parsed.
func syntaxError(text string, at, end int, format string, args ...any) *query.SyntaxError {
	at = min(max(at, 0), len(text))
	end = min(max(end, at), len(text))
	return &query.SyntaxError{
		Text: text, At: at, End: end, Character: utf8.RuneCountInString(text[:at]), Why: fmt.Sprintf(format, args...),
		Kind: understudy.ErrInvalid,
	}
}

// refused is a query with a name in it that the caller may not use.
func refused(text string, at, end int, format string, args ...any) *query.SyntaxError {
	e := syntaxError(text, at, end, format, args...)
	e.Kind = understudy.ErrForbidden
	return e
}

// Hint names the nearest known name.
func Hint(name string, known []string) string { return suggest.Hint(understudy.Clip(name), known) }
