// The meanings of upstream's error codes, from the spec.

package plan

import (
	"net/url"
	"strings"
)

// Reason is an error code of upstream with its meaning.
type Reason struct {
	Code    string
	Meaning string // what the code means, in a few words of the spec; empty if the spec does not say it
	Docs    string // the address of upstream's documentation of the code; empty if there is none
}

// Reason returns what the spec says about an error code.
func (s *Source) Reason(code string) *Reason {
	return &Reason{Code: code, Meaning: s.Spec.Errors.Meanings[code], Docs: s.CodeDocs(code)}
}

// String returns the code with its meaning, such as "error 20404, Not found".
func (r *Reason) String() string {
	if r.Meaning == "" {
		return "error " + r.Code
	}
	return "error " + r.Code + ", " + r.Meaning
}

// CodeDocs returns the address of upstream's documentation of an error code. It returns "" if the text is no error
// code, or if the spec has no address.
func (s *Source) CodeDocs(text string) string {
	_, word := s.Spec.Errors.Meanings[text]
	number := text != "" && len(text) <= 12 && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if !number && !word || !strings.HasPrefix(s.ErrorDocs, "https://") {
		return ""
	}
	return strings.ReplaceAll(s.ErrorDocs, "{code}", url.PathEscape(text))
}
