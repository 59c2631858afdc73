// Routes: which path is which page.

package viewer

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/viewer/actions"
	"understudy/internal/viewer/administration"
	"understudy/internal/viewer/documents"
	"understudy/internal/viewer/list"
	"understudy/internal/viewer/outlook"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/people"
	"understudy/internal/viewer/plan"
	"understudy/internal/viewer/programs"
	"understudy/internal/viewer/roles"
	"understudy/internal/viewer/sums"
	"understudy/internal/viewer/trail"
	"understudy/internal/viewer/watches"
)

// routes is the table of contents.
func routes() []page.Route {
	return slices.Concat([]page.Route{
		{Pattern: "GET /{$}", Handler: serveHome, Forms: []string{"GET /"}},
		{Pattern: "GET /index.json", Handler: serveHome, Forms: []string{"GET /index.json"}},
	}, list.SearchRoutes(), sums.Routes(), []page.Route{
		{Pattern: "GET /{source}/" + plan.NumberWord + "/{number}", Handler: serveNumber,
			Forms: forms("GET /{source}/number/{number}", "", ".json")},
		{Pattern: "GET /{source}/" + plan.NumberWord + "/{number}/{other}", Handler: serveConversation,
			Forms: forms("GET /{source}/number/{number}/{other}", "", ".json")},
	}, list.Routes(serveRecord), []page.Route{
		{Pattern: "GET /{source}/{kind}/{id}", Handler: serveRecord, Forms: forms("GET /{source}/{kind}/{id}", "", ".json")},
		{Pattern: "GET /" + plan.JobsWord, Handler: serveJobs, Forms: []string{"GET /jobs"}},
		{Pattern: "POST /" + plan.JobsWord + "/{number}/cancel", Handler: cancelJob, Forms: []string{"POST /jobs/{number}/cancel"}},
		{Pattern: "POST /" + plan.JobsWord + "/{number}/replay", Handler: replayJob, Forms: []string{"POST /jobs/{number}/replay"}},
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

// ownRoutes are the viewer's paths under /-/. The files, the forms and the page of
// sign-in say nothing of any record and are open to everyone; media and the other pages
// name their caller.
func (v *Viewer) ownRoutes() map[string]http.Handler {
	all := map[string]http.Handler{
		"GET /-/static/{file}": http.HandlerFunc(v.Visitor.Files.Serve),
		"GET /-/media/{token}": serveMedia(v.Visitor),
		"GET /-/timezone":      v.page(page.ServeZone),
		"GET /-/keys":          v.page(page.ServeKeys),
		"POST /-/timezone":     v.form(v.Visitor.SetZone),
		"POST /-/theme":        v.form(v.Visitor.SetTheme),
		"POST /-/columns":      v.form(list.SetColumns(v.Visitor)),
	}
	for _, r := range slices.Concat(people.Routes(), programs.Routes(), roles.Routes(), outlook.Routes(), documents.Routes(),
		actions.Routes(), administration.Routes(), trail.Routes(), list.LookupRoutes(talkOf), watches.Routes()) {
		all[r.Pattern] = v.page(r.Handler)
	}
	for _, r := range people.Open() {
		all[r.Pattern] = v.form(func(w http.ResponseWriter, req *http.Request) { v.Visitor.Open(w, req, r.Handler) })
	}
	return all
}

// Routes are the methods and path forms the viewer answers, HEAD beside every
// GET left out; tests ask each of them and look for it in docs/reference/viewer.md.
func (v *Viewer) Routes() []string {
	var all []string
	for _, r := range routes() {
		all = append(all, r.Forms...)
	}
	return append(append(all, "GET /opensearch.xml"), slices.Sorted(maps.Keys(v.ownRoutes()))...)
}

// page answers a path with what a handler shows.
func (v *Viewer) page(run page.Handler) http.Handler {
	return v.form(func(w http.ResponseWriter, r *http.Request) { v.Visitor.Exchange(w, r, run) })
}

// form lets a handler take forms from pages of ours alone, of at most page.MaxForm bytes.
func (v *Viewer) form(run http.HandlerFunc) http.Handler {
	return v.Visitor.Forms.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, page.MaxForm)
		run(w, r)
	}))
}

func (v *Viewer) route() {
	v.mux, v.own = http.NewServeMux(), http.NewServeMux()
	for _, r := range routes() {
		v.mux.Handle(r.Pattern, v.page(r.Handler))
	}
	v.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { v.Visitor.Exchange(w, r, v.nowhere) })
	v.mux.Handle("GET /opensearch.xml", list.OpenSearch(v.Visitor))
	for pattern, h := range v.ownRoutes() {
		v.own.Handle(pattern, h)
	}
}

// nowhere answers what no other route does: 405 when only the method is
// wrong, else 404.
func (v *Viewer) nowhere(q *page.Exchange) error {
	if q.R.Method != http.MethodGet && q.R.Method != http.MethodHead {
		probe := q.R.Clone(q.R.Context())
		probe.Method = http.MethodGet
		if _, pattern := v.mux.Handler(probe); pattern != "/" {
			q.Reply.W.Header().Set("Allow", "GET, HEAD")
			return understudy.ErrMethod
		}
	}
	if path := strings.TrimRight(q.R.URL.Path, "/"); path != q.R.URL.Path && path != "" {
		return page.NotFound("There is no page at "+understudy.Clip(q.R.URL.Path),
			"The same address without the slash at its end may be what you look for.", path)
	}
	return page.NotFound("There is no page at "+understudy.Clip(q.R.URL.Path), "Addresses look like /source/kind or /source/kind/id.", "/")
}
