// This file receives status callbacks from upstream. The records that a callback names are fetched again.

package proxy

import (
	"crypto/hmac"
	"crypto/sha1" // required by the signature scheme of status callbacks
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/spec"
)

// The limits of a status callback.
const (
	maxHookBody   = 64 << 10 // the maximum size of a callback's form, in bytes
	maxHookParams = 512      // the maximum number of parameters in a callback's form
	maxHookIDs    = 16       // the maximum number of ids in one callback
	maxHookID     = 128      // the maximum length of an id, in bytes
	hookPath      = "/-/hook/"
)

// HookOptions are the settings of the handler for status callbacks. Only PublicURL may be empty.
type HookOptions struct {
	Sources []*spec.Source
	// PublicURL is the address that upstream calls, without path and trailing slash. The signature of a callback covers it.
	PublicURL string
	// Secret returns the current secret of a source. It is called for each callback.
	Secret func(source string) understudy.Secret
	// Hint is called for each record that a callback names; it must not block.
	Hint func(source, kind, id string)
}

// NewHook creates the handler of status callbacks: POST /-/hook/{source} with a form that is signed as the source's
// spec says. A callback signed with the source's secret is a hint: the records that its parameters name are fetched
// again. Nothing else in the callback is used, stored, logged or returned. A callback contains no time, so anyone
// with a copy can replay it. A replay is only another hint.
//
// The status of the response is 204; 404 for a source without hook or secret; 405 for another method; 413 for a
// form that is too large; 415 for another content type; 403 for a form without a valid signature. No response has a
// body. The handler is safe for concurrent use.
func NewHook(o HookOptions) (http.Handler, error) {
	if len(o.Sources) == 0 || o.Secret == nil || o.Hint == nil {
		return nil, errors.New("proxy: a hook needs sources, their secrets and a receiver")
	}
	h := &hook{options: o, sources: map[string]*spec.Source{}, origins: origins(o.PublicURL)}
	for _, s := range o.Sources {
		if s.Spec.Hook.Style != "" {
			h.sources[s.Name] = s
		}
	}
	return h, nil
}

type hook struct {
	options HookOptions
	sources map[string]*spec.Source
	origins []string // the forms of the public URL that a signature may cover
}

// ServeHTTP answers one status callback.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(h.receive(w, r))
}

// receive processes a callback and returns the status of its response.
func (h *hook) receive(w http.ResponseWriter, r *http.Request) int {
	name, ok := strings.CutPrefix(r.URL.Path, hookPath)
	s := h.sources[name]
	if !ok || s == nil {
		return http.StatusNotFound
	}
	secret := h.options.Secret(name)
	if secret.IsEmpty() {
		return http.StatusNotFound // without a key anybody could sign a callback
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return http.StatusUnsupportedMediaType
	}
	if len(r.Header.Values(s.Spec.Hook.Header)) != 1 {
		return http.StatusForbidden // a request without a signature is refused before its body is read
	}
	if r.ContentLength > maxHookBody {
		return http.StatusRequestEntityTooLarge // a long body is refused before a response 100 (Continue) asks for it
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHookBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	form, ok := hookForm(string(body))
	if err != nil || !ok || !h.isSigned(r, s, form, secret) {
		return http.StatusForbidden
	}
	h.sendHints(s, form)
	return http.StatusNoContent
}

// hookForm parses a form. It returns false if the form is malformed or has too many parameters.
func hookForm(body string) (url.Values, bool) {
	if strings.Count(body, "&") >= maxHookParams {
		return nil, false
	}
	form, err := url.ParseQuery(body)
	return form, err == nil
}

// isSigned reports whether the request's signature is valid for one of the forms of the public URL.
func (h *hook) isSigned(r *http.Request, s *spec.Source, form url.Values, secret understudy.Secret) bool {
	given := r.Header.Get(s.Spec.Hook.Header) // receive has checked that the field occurs exactly once
	target := r.URL.EscapedPath()
	if strings.HasPrefix(r.RequestURI, "/") {
		target = r.RequestURI // the signature covers the path and query as in the request line
	} else if r.URL.RawQuery != "" {
		target += "?" + r.URL.RawQuery
	}
	right := false
	for _, origin := range h.origins {
		want := hookSignature(signedText(origin+target, form), secret)
		if hmac.Equal([]byte(want), []byte(given)) {
			right = true
		}
	}
	return right
}

// hookSignature returns the HMAC-SHA1 of a text in base64.
func hookSignature(text string, secret understudy.Secret) string {
	mac := hmac.New(sha1.New, []byte(secret.Reveal()))
	_, _ = io.WriteString(mac, text) // writing to a hash never returns an error
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signedText returns the text that a signature of style url-form-hmac-sha1 covers. It is the called URL, then
// each parameter's name and value, sorted by name, without separators. A parameter with several values is
// included once for each different value, in order. The provider's SDKs for Python, Node and Ruby do the same
// (compute_signature in request_validator.py); the Go SDK uses only the first value.
func signedText(at string, form url.Values) string {
	var b strings.Builder
	b.WriteString(at)
	for _, name := range slices.Sorted(maps.Keys(form)) {
		values := slices.Clone(form[name])
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			b.WriteString(name)
			b.WriteString(value)
		}
	}
	return b.String()
}

// origins returns the forms of a public URL that a signed address may begin with: unchanged, and with and
// without its port, because signers differ in that. The provider's validators try the last two (addPort and
// removePort in request_validator.go).
func origins(public string) []string {
	public = strings.TrimSuffix(public, "/")
	out := []string{public}
	u, err := url.Parse(public)
	if err != nil || u.Host == "" {
		return out
	}
	port, bare := "80", u.Hostname()
	if u.Scheme == "https" {
		port = "443"
	}
	if strings.Contains(bare, ":") {
		bare = "[" + bare + "]"
	}
	with := net.JoinHostPort(u.Hostname(), port)
	if u.Port() != "" {
		with = u.Host
	}
	for _, host := range []string{with, bare} {
		if other := strings.Replace(public, u.Host, host, 1); !slices.Contains(out, other) {
			out = append(out, other)
		}
	}
	return out
}

// sendHints calls Hint for the records that a form names. An id is tried for each kind whose prefix it has.
func (h *hook) sendHints(s *spec.Source, form url.Values) {
	left := maxHookIDs
	for _, name := range s.Spec.Hook.IDs {
		for _, id := range form[name] {
			if left == 0 {
				return
			}
			left--
			if len(id) > maxHookID {
				continue
			}
			for _, k := range s.Spec.Kinds {
				if len(k.ID) == 1 && k.HasIDPrefix(id) {
					h.options.Hint(s.Name, k.Name, id)
				}
			}
		}
	}
}
