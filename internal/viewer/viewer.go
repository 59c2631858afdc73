// The entry point of the viewer, and how a request gets to its page.

// Package viewer shows people the records they may see, as web pages that need no JavaScript.
//
// Every page is rendered on the server from a view of the gate, so a template never receives a value that the
// caller may not see. Stored data is sent at once. Parts of the page that wait for upstream are sent later and are
// moved to their places (page/parts.go).
//
// HTML and JSON are compressed if the browser accepts gzip. The BREACH attack is not possible: it needs a secret
// and reflected text in one body. No page contains a token, a cookie's value or a credential, and the forms are
// protected by the Sec-Fetch-Site and Origin headers, not by a token.
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
	Visitor    *page.Visitor
	mux        *http.ServeMux
	controlMux *http.ServeMux // the handlers of the viewer's own paths, which begin with /-/
}

//go:embed templates static
var embedded embed.FS

// assets returns the templates and static files, which are read once for all viewers of the process.
var assets = sync.OnceValues(func() (*page.Assets, error) { return page.ReadAssets(embedded) })

// New checks the options, plans the pages of every kind and reads the templates. It starts no goroutine.
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
	v.addRoutes()
	return v, nil
}

// ServeHTTP answers a request for a page, a file or a form.
func (v *Viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex") // search engines must index nothing, so every response has this header
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	w = jsonhttp.SignErrors(w)
	if strings.HasPrefix(r.URL.Path, page.ControlPrefix) || strings.HasPrefix(r.URL.Path, page.RPCPrefix) {
		if _, pattern := v.controlMux.Handler(r); pattern != "" {
			v.controlMux.ServeHTTP(w, r)
			return
		}
		if v.Visitor.Options.Control != nil {
			v.Visitor.Options.Control.ServeHTTP(w, r)
			return
		}
	}
	v.mux.ServeHTTP(w, r)
}

// ServeFramed shows a page of Options.Control inside the viewer's layout. The handler of Options.Control must have
// authorized the caller.
func (v *Viewer) ServeFramed(w http.ResponseWriter, r *http.Request, name, title string, main any) {
	v.Visitor.Exchange(w, r, func(q *page.Exchange) error { return q.Render(http.StatusOK, name, title, main) })
}

// contentSecurityPolicy allows pages to load only files of the viewer itself.
const contentSecurityPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; media-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
