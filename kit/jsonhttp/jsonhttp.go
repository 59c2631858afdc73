// JSON over HTTP: JSON in, JSON out, and access for requests from this machine.

// Package jsonhttp is what handlers that speak JSON have around their work: reading one
// body, writing one answer, and admitting requests with a token from the machine that
// the server runs on. It decides nothing else: methods are the mux's, statuses the
// handler's.
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

// Write answers with a value, which is known to marshal, and a line end. Letters
// are written as they are: browsers are told not to take it for anything else.
// It is not stored anywhere, unless a Cache-Control is set already.
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
	_, _ = w.Write(body.Bytes()) // the client may have left
}

// Error answers {"error": why} and signs it.
func Error(w http.ResponseWriter, status int, why string) {
	SignError(w.Header(), status, why)
	Write(w, status, struct {
		Error string `json:"error"`
	}{why})
}

// Read reads a request's body, one JSON value of at most so many bytes, into a
// pointer. A name the value does not have is an error, and so is anything behind
// it. A body that is longer is a *http.MaxBytesError and ends the connection; one that says so
// before is not read.
func Read(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	if r.ContentLength > most {
		return fmt.Errorf("jsonhttp: body: %w", &http.MaxBytesError{Limit: most})
	}
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return fmt.Errorf("jsonhttp: body: %w", Explain(err))
	}
	switch _, err := in.Token(); {
	case err == nil:
		return errors.New("jsonhttp: body: there is more behind it")
	case err != io.EOF:
		return fmt.Errorf("jsonhttp: body: %w", Explain(err))
	}
	return nil
}

// Explain returns an error of encoding/json in words for whoever wrote the JSON: without the
// types of Go. An error of the reader below stays as it is.
func Explain(err error) error {
	var typed *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &typed):
		return fmt.Errorf("%s: want %s, not %s", cmp.Or(typed.Field, "the value"), jsonType(typed.Type), typed.Value)
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

// jsonType is what JSON calls the values of a Go type.
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

// Challenge says on a 401 that a credential is asked for, by HTTP Basic. A script of a
// page gets a scheme that browsers do not know: for Basic they would ask their reader
// (Fetch Metadata Request Headers, 2.2).
func Challenge(w http.ResponseWriter, r *http.Request, realm string) {
	scheme := "Basic"
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" && mode != "navigate" {
		scheme = "Session"
	}
	w.Header().Set("WWW-Authenticate", fmt.Sprintf(`%s realm=%q, charset="UTF-8"`, scheme, realm))
}

// Forms returns what refuses changes that pages of other sites ask for. Pages of the origin public,
// "": none, are not of another site.
func Forms(public string) (*http.CrossOriginProtection, error) {
	forms := http.NewCrossOriginProtection()
	if public == "" {
		return forms, nil
	}
	return forms, forms.AddTrustedOrigin(strings.TrimSuffix(public, "/"))
}

// Local reports whether a request came from the machine it came to: from a
// loopback address, or from the very address it was sent to, by the server's
// http.LocalAddrContextKey.
func Local(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	if err != nil || ip == nil {
		return false
	}
	own, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ip.IsLoopback() || ok && own.IP.Equal(ip)
}

// Bears reports whether a request bears a token (RFC 6750), in a time that tells
// nothing but its length. No request has the token "".
func Bears(r *http.Request, token string) bool {
	got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && token != "" && subtle.ConstantTimeCompare([]byte(got), []byte(token)) == 1
}
