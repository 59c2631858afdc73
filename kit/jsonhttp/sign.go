// Sign: the header field of an error that is this server's own, whatever its body looks like.

package jsonhttp

import (
	"cmp"
	"net/http"
	"strings"
)

// ErrorHeader is the header field of an error that is this server's own: it says why. An
// answer of upstream that is passed on never has it.
const ErrorHeader = "Understudy-Error"

// maxErrorHeader bounds what the field says, in bytes.
const maxErrorHeader = 300

// SignError says in a header that an error is this server's own, and why; "": its status alone.
// Line ends become blanks.
func SignError(h http.Header, status int, why string) {
	why = strings.Join(strings.Fields(why), " ")
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '“' || r == '”':
			return '"'
		case r < ' ' || r > '~':
			return '?'
		}
		return r
	}, cmp.Or(why, strings.ToLower(http.StatusText(status))))
	h[ErrorHeader] = []string{text[:min(len(text), maxErrorHeader)]}
}

// Signed returns a writer that signs every error whose header does not say yet where it is from.
func Signed(w http.ResponseWriter) http.ResponseWriter { return signer{w} }

type signer struct{ http.ResponseWriter }

// Unwrap lets http.ResponseController reach the writer below.
func (s signer) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader signs an error.
func (s signer) WriteHeader(status int) {
	h := s.Header()
	if status >= http.StatusBadRequest && h[ErrorHeader] == nil && h["Cache-Status"] == nil {
		SignError(h, status, "")
	}
	s.ResponseWriter.WriteHeader(status)
}
