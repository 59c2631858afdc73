// Routes: which path is which page.

package viewer

import (
	"net/http"
	"slices"
	"strings"
	"understudy/internal/viewer/plan"

	"understudy"
)

// routes is the table of contents.
func (v *Viewer) routes() []route {
	return slices.Concat([]route{
		{"GET /{$}", serveHome, []string{"GET /"}},
		{"GET /index.json", serveHome, []string{"GET /index.json"}},
	}, searchRoutes(), []route{
		{"GET /{source}/" + plan.NumberWord + "/{number}", serveNumber, forms("GET /{source}/number/{number}", "", ".json")},
		{"GET /{source}/" + plan.NumberWord + "/{number}/{other}", serveConversation, forms("GET /{source}/number/{number}/{other}", "", ".json")},
	}, listRoutes(serveRecord), []route{
		{"GET /{source}/{kind}/{id}", serveRecord, forms("GET /{source}/{kind}/{id}", "", ".json")},
		{"GET /" + plan.JobsWord, serveJobs, []string{"GET /jobs"}},
		{"POST /" + plan.JobsWord + "/{number}/cancel", cancelJob, []string{"POST /jobs/{number}/cancel"}},
		{"POST /" + plan.JobsWord + "/{number}/replay", replayJob, []string{"POST /jobs/{number}/replay"}},
		{"/", v.nowhere, nil},
	})
}

// forms are an address with each of some ends.
func forms(address string, ends ...string) []string {
	all := make([]string, len(ends))
	for i, end := range ends {
		all[i] = address + end
	}
	return all
}

// ownRoutes are the viewer's paths under /-/. The files and the forms say nothing
// of any record and are open to everyone; media and the pages name their caller.
func (v *Viewer) ownRoutes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /-/static/{file}": http.HandlerFunc(v.files.serve),
		"GET /-/media/{token}": serveMedia(v.Visitor),
		"GET /-/timezone":      v.page(serveZone),
		"GET /-/keys":          v.page(serveKeys),
		"POST /-/timezone":     v.forms.Handler(http.HandlerFunc(v.setZone)),
		"POST /-/columns":      v.forms.Handler(setColumns(v.Visitor)),
	}
}

// Routes are the methods and path forms the viewer answers, HEAD beside every
// GET left out; tests ask each of them and look for it in docs/viewer.md.
func (v *Viewer) Routes() []string {
	var all []string
	for _, r := range v.routes() {
		all = append(all, r.forms...)
	}
	return append(all, "GET /opensearch.xml", "GET /-/static/{file}", "GET /-/media/{token}", "GET /-/timezone", "GET /-/keys", "POST /-/timezone", "POST /-/columns")
}

// page answers a path with what a handler shows.
func (v *Viewer) page(run handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { v.exchange(w, r, run) })
}

func (v *Viewer) route() {
	v.mux, v.own = http.NewServeMux(), http.NewServeMux()
	for _, r := range v.routes() {
		h := v.page(r.handler)
		if strings.HasPrefix(r.pattern, http.MethodPost) {
			h = v.forms.Handler(h)
		}
		v.mux.Handle(r.pattern, h)
	}
	v.mux.Handle("GET /opensearch.xml", openSearch(v.Visitor))
	for pattern, h := range v.ownRoutes() {
		v.own.Handle(pattern, h)
	}
}

// nowhere answers what no other route does: 405 when only the method is
// wrong, else 404.
func (v *Viewer) nowhere(q *exchange) error {
	if q.r.Method != http.MethodGet && q.r.Method != http.MethodHead {
		probe := q.r.Clone(q.r.Context())
		probe.Method = http.MethodGet
		if _, pattern := v.mux.Handler(probe); pattern != "/" {
			q.w.Header().Set("Allow", "GET, HEAD")
			return understudy.ErrMethod
		}
	}
	if path := strings.TrimRight(q.r.URL.Path, "/"); path != q.r.URL.Path && path != "" {
		return notFound("There is no page at "+clip(q.r.URL.Path), "The same address without the slash at its end may be what you look for.", path)
	}
	return notFound("There is no page at "+clip(q.r.URL.Path), "Addresses look like /source/kind or /source/kind/id.", "/")
}
