// This file sets a header field on errors that this server itself caused, as opposed to errors of the upstream.

package jsonhttp

import (
	"cmp"
	"net/http"
	"strings"
)

// ErrorHeader is the header field that marks an error of this server itself and gives the reason. An upstream response
// that is forwarded never has this field.
const ErrorHeader = "Understudy-Error"

// maxErrorHeader is the maximum length of the field's value in bytes.
const maxErrorHeader = 300

// SignError marks an error as this server's own and says why in the header. If why is "", the header has the
// text of the status. Line ends become spaces.
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

// SignErrors returns a writer that marks every error with SignError, unless the header already says where the
// response is from.
func SignErrors(w http.ResponseWriter) http.ResponseWriter { return signer{w} }

type signer struct{ http.ResponseWriter }

// Unwrap returns the wrapped writer. http.ResponseController needs it.
func (s signer) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader marks an error and sends the status.
func (s signer) WriteHeader(status int) {
	h := s.Header()
	if status >= http.StatusBadRequest && h[ErrorHeader] == nil && h["Cache-Status"] == nil {
		SignError(h, status, "")
	}
	s.ResponseWriter.WriteHeader(status)
}
