// This file makes errors that point at a position of the search text.

package lang

import (
	"fmt"
	"unicode/utf8"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/suggest"
)

func syntaxError(text string, at, end int, format string, args ...any) *query.SyntaxError {
	at = min(max(at, 0), len(text))
	end = min(max(end, at), len(text))
	return &query.SyntaxError{
		Text: text, At: at, End: end, Character: utf8.RuneCountInString(text[:at]), Why: fmt.Sprintf(format, args...),
		Kind: understudy.ErrInvalid,
	}
}

func forbiddenError(text string, at, end int, format string, args ...any) *query.SyntaxError {
	e := syntaxError(text, at, end, format, args...)
	e.Kind = understudy.ErrForbidden
	return e
}

// Hint returns a sentence that suggests the most similar known name, or "".
func Hint(name string, known []string) string { return suggest.Hint(understudy.Clip(name), known) }
