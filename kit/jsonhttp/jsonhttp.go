// This file reads and writes JSON over HTTP, and recognizes requests from this machine.

// Package jsonhttp has helpers for handlers that speak JSON: reading a request body, writing a response, and
// recognizing tokens and local requests. Methods are checked by the mux, and statuses are chosen by the
// handler.
package jsonhttp

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"
)

// Write writes v as a JSON response with a line end. The value must be one that encoding/json can marshal. HTML
// characters are not escaped, because the headers forbid browsers to read the response as HTML. The response
// has Cache-Control no-store unless a Cache-Control is already set.
func Write(w http.ResponseWriter, status int, v any) {
	var body bytes.Buffer
	out := json.NewEncoder(&body)
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	head := w.Header()
	head.Set("Content-Type", "application/json")
	head.Set("Content-Length", strconv.Itoa(body.Len()))
	head.Set("X-Content-Type-Options", "nosniff")
	if head.Get("Cache-Control") == "" {
		head.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // an error only means that the client is gone
}

// Error writes the response {"error": why} and marks it with SignError.
func Error(w http.ResponseWriter, status int, why string) {
	SignError(w.Header(), status, why)
	Write(w, status, struct {
		Error string `json:"error"`
	}{why})
}

// Read reads a request body, a single JSON value of at most maxBytes bytes, into a pointer. Unknown names and
// data after the value are errors. For a longer body Read returns a *http.MaxBytesError and the connection
// ends. If Content-Length already exceeds the limit, the body is not read.
func Read(w http.ResponseWriter, r *http.Request, maxBytes int64, into any) error {
	if r.ContentLength > maxBytes {
		return fmt.Errorf("jsonhttp: body: %w", &http.MaxBytesError{Limit: maxBytes})
	}
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBytes))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return fmt.Errorf("jsonhttp: body: %w", Explain(err))
	}
	switch _, err := in.Token(); {
	case err == nil:
		return errors.New("jsonhttp: body: other data follows the JSON value")
	case err != io.EOF:
		return fmt.Errorf("jsonhttp: body: %w", Explain(err))
	}
	return nil
}

// Explain returns an error of encoding/json in words for the author of the JSON, without Go types. Any other
// error is returned unchanged.
func Explain(err error) error {
	var typed *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &typed):
		return fmt.Errorf("%s must be %s, not %s", cmp.Or(typed.Field, "the value"), jsonType(typed.Type), typed.Value)
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON at byte %d: %w", syntax.Offset, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends too soon")
	}
	if text, ok := strings.CutPrefix(err.Error(), "json: "); ok {
		return errors.New(text)
	}
	return err
}

// jsonType returns what JSON calls the values of a Go type, such as "an object".
func jsonType(t reflect.Type) string {
	switch kind := t.Kind(); {
	case kind == reflect.Map, kind == reflect.Struct:
		return "an object"
	case kind == reflect.Slice, kind == reflect.Array:
		return "an array"
	case kind == reflect.Bool, kind == reflect.String:
		return "a " + kind.String()
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return "a whole number"
	case kind == reflect.Float32, kind == reflect.Float64:
		return "a number"
	}
	return "another value"
}

// RequestCredential sets the WWW-Authenticate header of a 401 response, which asks for a credential by HTTP
// Basic. For a request made by a script of a page it names a scheme that browsers do not know. With Basic,
// browsers would show a login dialog (Fetch Metadata Request Headers, 2.2).
func RequestCredential(w http.ResponseWriter, r *http.Request, realm string) {
	scheme := "Basic"
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" && mode != "navigate" {
		scheme = "Session"
	}
	w.Header().Set("WWW-Authenticate", fmt.Sprintf(`%s realm=%q, charset="UTF-8"`, scheme, realm))
}

// NewFormProtection returns a check that refuses changing requests from pages of other sites. Pages of the
// origin public are allowed; public may be "".
func NewFormProtection(public string) (*http.CrossOriginProtection, error) {
	forms := http.NewCrossOriginProtection()
	if public == "" {
		return forms, nil
	}
	return forms, forms.AddTrustedOrigin(strings.TrimSuffix(public, "/"))
}

// IsLocal reports whether a request was sent from this machine. The sender is a loopback address, or the same
// address that the request was sent to (http.LocalAddrContextKey).
func IsLocal(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	if err != nil || ip == nil {
		return false
	}
	own, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ip.IsLoopback() || ok && own.IP.Equal(ip)
}

// HasToken reports whether a request carries the given bearer token (RFC 6750). The comparison takes constant
// time for tokens of the same length. An empty token never matches.
func HasToken(r *http.Request, token string) bool {
	got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && token != "" && subtle.ConstantTimeCompare([]byte(got), []byte(token)) == 1
}
