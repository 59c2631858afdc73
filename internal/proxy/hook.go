// Hook: upstream calls back, and the records it names are looked at again.

package proxy

import (
	"crypto/hmac"
	"crypto/sha1" // of the scheme callbacks are signed with
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

// Bounds of a callback.
const (
	maxHookBody   = 64 << 10 // bytes of a form
	maxHookParams = 512      // name and value pairs in it
	maxHookIDs    = 16       // records one callback is taken to name
	maxHookID     = 128      // bytes of an id
	hookPath      = "/-/hook/"
)

// HookOptions are what the handler of callbacks is made of. All but PublicURL
// must be set.
type HookOptions struct {
	Sources []*spec.Source
	// PublicURL is the address upstream was told to call, without path and
	// trailing slash: the signature covers it.
	PublicURL string
	// Secret is the secret of a source now. It is asked for at each callback.
	Secret func(source string) understudy.Secret
	// Hint is called for each record that a callback names; it must not block.
	Hint func(source, kind, id string)
}

// NewHook makes the handler of status callbacks: POST /-/hook/{source} with a form that
// is signed as the source's spec says. A callback signed with the source's secret is a
// hint: the records its parameters name are fetched again. Nothing else of it is read,
// kept, logged or returned. A callback contains no time, so anyone with a copy can
// replay it. A replay is only another hint.
//
// It answers 204; 404 for a source without hook or secret; 405 to another method; 413
// to a form that is too large; 415 to another content type; 403 to a form that is not
// signed. No answer has a body. The handler is safe for concurrent use.
func NewHook(o HookOptions) (http.Handler, error) {
	if len(o.Sources) == 0 || o.Secret == nil || o.Hint == nil {
		return nil, errors.New("proxy: a hook needs sources, their secrets and somebody to tell")
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
	origins []string // the public URL, as it may have been signed
}

// ServeHTTP answers one callback.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(h.take(w, r))
}

// take takes a callback and is the status it is answered with.
func (h *hook) take(w http.ResponseWriter, r *http.Request) int {
	name, ok := strings.CutPrefix(r.URL.Path, hookPath)
	s := h.sources[name]
	if !ok || s == nil {
		return http.StatusNotFound
	}
	secret := h.options.Secret(name)
	if secret.IsEmpty() {
		return http.StatusNotFound // with no key anybody could sign
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return http.StatusUnsupportedMediaType
	}
	if len(r.Header.Values(s.Spec.Hook.Header)) != 1 {
		return http.StatusForbidden // not worth a body
	}
	if r.ContentLength > maxHookBody {
		return http.StatusRequestEntityTooLarge // before a 100 (Continue) invites it
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHookBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	form, ok := hookForm(string(body))
	if err != nil || !ok || !h.signed(r, s, form, secret) {
		return http.StatusForbidden
	}
	h.hint(s, form)
	return http.StatusNoContent
}

// hookForm reads a form; false when it is malformed or has too many parameters.
func hookForm(body string) (url.Values, bool) {
	if strings.Count(body, "&") >= maxHookParams {
		return nil, false
	}
	form, err := url.ParseQuery(body)
	return form, err == nil
}

// signed reports whether one of the request's signatures is right. There is one,
// as a rule; which address it was made over is tried out.
func (h *hook) signed(r *http.Request, s *spec.Source, form url.Values, secret understudy.Secret) bool {
	given := r.Header.Get(s.Spec.Hook.Header) // take has seen that there is one
	target := r.URL.EscapedPath()
	if strings.HasPrefix(r.RequestURI, "/") {
		target = r.RequestURI // as it was written, query included
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

// hookSignature is the signature of a text: HMAC-SHA1 in base64.
func hookSignature(text string, secret understudy.Secret) string {
	mac := hmac.New(sha1.New, []byte(secret.Reveal()))
	_, _ = io.WriteString(mac, text) // a hash takes everything
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signedText is what a signature of style url-form-hmac-sha1 covers: the URL as
// it was called, then each parameter's name and value, sorted by name, without
// anything between. A parameter that is there several times counts with each
// different value once, in order: so do the validators of the provider's Python,
// Node and Ruby SDKs (compute_signature in request_validator.py); the one in Go
// takes the first value alone.
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

// origins are the forms in which a public URL may stand in a signed address: unchanged,
// and with and without its port, for signers differ in that. (The provider's validators
// try the latter two: addPort and removePort in request_validator.go.)
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

// hint tells which records a form names: each id is of the kinds whose prefix it
// has.
func (h *hook) hint(s *spec.Source, form url.Values) {
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
