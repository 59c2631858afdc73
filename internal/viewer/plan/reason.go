// Reason: what upstream's error codes mean, by the spec.

package plan

import (
	"net/url"
	"strings"
)

// Reason is what an error code of upstream's means, for people.
type Reason struct {
	Code    string
	Meaning string // in few words, by the spec; "": the spec does not say
	Docs    string // upstream's page about it; "": there is none
}

// Reason is what the spec says of an error code.
func (s *Source) Reason(code string) *Reason {
	return &Reason{Code: code, Meaning: s.Spec.Errors.Meanings[code], Docs: s.CodeDocs(code)}
}

// String is the code with its meaning: "error 20404, Not found".
func (r *Reason) String() string {
	if r.Meaning == "" {
		return "error " + r.Code
	}
	return "error " + r.Code + ", " + r.Meaning
}

// CodeDocs is upstream's page about an error code, "" when the text is no code or
// the spec has no such page.
func (s *Source) CodeDocs(text string) string {
	_, word := s.Spec.Errors.Meanings[text]
	number := text != "" && len(text) <= 12 && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if !number && !word || !strings.HasPrefix(s.ErrorDocs, "https://") {
		return ""
	}
	return strings.ReplaceAll(s.ErrorDocs, "{code}", url.PathEscape(text))
}
