// The viewer: its start, and the way of a request to its page.

// Package viewer shows people the records they may see, as web pages that need
// no JavaScript.
//
// Every page is rendered on the server from a view of the gate: nothing that a
// caller may not see reaches a template. What is held is sent at once and whole;
// a part of the page that has to be waited for comes behind it, to its place
// (page/parts.go).
//
// HTML and the JSON beside it are compressed when the browser takes gzip. That
// is safe here (BREACH needs a secret and reflected text in one body): no page
// holds a token, a cookie's value or a credential, and the forms are guarded by
// the Sec-Fetch-Site and Origin headers, not by a token.
package viewer

import (
	"embed"
	"net/http"
	"strings"
	"sync"

	"understudy/internal/viewer/page"
	"understudy/kit/jsonhttp"
)

// Viewer is the web frontend, an http.Handler. It is safe for concurrent use.
type Viewer struct {
	Visitor *page.Visitor
	mux     *http.ServeMux
	own     *http.ServeMux // the viewer's part of /-/
}

//go:embed templates static
var embedded embed.FS

// assets are read once for all viewers of the process.
var assets = sync.OnceValues(func() (*page.Assets, error) { return page.ReadAssets(embedded) })

// New checks the options, plans the pages of every kind and reads the
// templates. Close stops what it starts later.
func New(o page.Options) (*Viewer, error) {
	read, err := assets()
	if err != nil {
		return nil, err
	}
	shared, err := page.NewVisitor(o, read)
	if err != nil {
		return nil, err
	}
	v := &Viewer{Visitor: shared}
	v.route()
	return v, nil
}

// ServeHTTP answers a browser.
func (v *Viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	w = jsonhttp.SignErrors(w)
	if strings.HasPrefix(r.URL.Path, page.ControlPrefix) {
		if _, pattern := v.own.Handler(r); pattern != "" {
			v.own.ServeHTTP(w, r)
			return
		}
		if v.Visitor.Options.Control != nil {
			v.Visitor.Options.Control.ServeHTTP(w, r)
			return
		}
	}
	v.mux.ServeHTTP(w, r)
}

// ServeFramed shows a page of Options.Control in the frame of all others. Its caller was admitted
// there.
func (v *Viewer) ServeFramed(w http.ResponseWriter, r *http.Request, name, title string, main any) {
	v.Visitor.Exchange(w, r, func(q *page.Exchange) error { return q.Render(http.StatusOK, name, title, main) })
}

// policy lets a page load its own files and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; media-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// secure sets the headers every answer carries.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex") // also on a page that says later that its record is not there
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
