// The table of routes: which page each path shows.

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
	"understudy/internal/viewer/notifications"
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

// routes returns the routes of all pages outside /-/.
func routes() []page.Route {
	return slices.Concat([]page.Route{
		{Pattern: "GET /{$}", Handler: serveHome, Forms: []string{"GET /"}},
		{Pattern: "GET /index.json", Handler: serveHome, Forms: []string{"GET /index.json"}},
	}, list.SearchRoutes(), sums.Routes(), []page.Route{
		{Pattern: "GET /{source}/" + plan.NumberWord + "/{number}", Handler: serveNumber,
			Forms: pathsWithEndings("GET /{source}/number/{number}", "", ".json")},
		{Pattern: "GET /{source}/" + plan.NumberWord + "/{number}/{other}", Handler: serveConversation,
			Forms: pathsWithEndings("GET /{source}/number/{number}/{other}", "", ".json")},
	}, list.Routes(serveRecord), []page.Route{
		{Pattern: "GET /{source}/{kind}/{id}", Handler: serveRecord, Forms: pathsWithEndings("GET /{source}/{kind}/{id}", "", ".json")},
		{Pattern: "GET /" + plan.JobsWord, Handler: serveJobs, Forms: []string{"GET /jobs"}},
		{Pattern: "POST /" + plan.JobsWord + "/{number}/cancel", Handler: cancelJob, Forms: []string{"POST /jobs/{number}/cancel"}},
		{Pattern: "POST /" + plan.JobsWord + "/{number}/replay", Handler: replayJob, Forms: []string{"POST /jobs/{number}/replay"}},
	})
}

// pathsWithEndings returns one path for each of the ends, each with the address before it.
func pathsWithEndings(address string, ends ...string) []string {
	all := make([]string, len(ends))
	for i, end := range ends {
		all[i] = address + end
	}
	return all
}

// controlRoutes returns the handlers of the viewer's paths under /-/. The static files, the forms and the sign-in
// page are open to everyone, because they show no record. All other pages require a known caller.
func (v *Viewer) controlRoutes() map[string]http.Handler {
	all := map[string]http.Handler{
		"GET /-/static/{file}": http.HandlerFunc(v.Visitor.Files.Serve),
		"GET /-/media/{token}": serveMedia(v.Visitor),
		"GET /-/timezone":      v.pageHandler(page.ServeZone),
		"GET /-/keys":          v.pageHandler(page.ServeKeys),
		"POST /-/timezone":     v.formHandler(v.Visitor.SetZone),
		"POST /-/theme":        v.formHandler(v.Visitor.SetTheme),
		"POST /-/columns":      v.formHandler(list.SetColumns(v.Visitor)),
	}
	for _, r := range slices.Concat(people.Routes(), programs.Routes(), roles.Routes(), outlook.Routes(), documents.Routes(),
		actions.Routes(), administration.Routes(), trail.Routes(), list.LookupRoutes(splitConversation), watches.Routes(),
		notifications.Routes()) {
		all[r.Pattern] = v.pageHandler(r.Handler)
	}
	for _, r := range people.Open() {
		all[r.Pattern] = v.formHandler(func(w http.ResponseWriter, req *http.Request) { v.Visitor.Open(w, req, r.Handler) })
	}
	return all
}

// Routes returns the methods and paths that the viewer answers. HEAD is left out, because every path that answers GET
// also answers HEAD. Tests request each of them and look for it in docs/reference/viewer.md.
func (v *Viewer) Routes() []string {
	var all []string
	for _, r := range routes() {
		all = append(all, r.Forms...)
	}
	return append(append(all, "GET /opensearch.xml"), slices.Sorted(maps.Keys(v.controlRoutes()))...)
}

func (v *Viewer) pageHandler(run page.Handler) http.Handler {
	return v.formHandler(func(w http.ResponseWriter, r *http.Request) { v.Visitor.Exchange(w, r, run) })
}

// formHandler returns run as a handler that accepts only forms of our own pages, with at most page.MaxForm bytes.
func (v *Viewer) formHandler(run http.HandlerFunc) http.Handler {
	return v.Visitor.Forms.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, page.MaxForm)
		run(w, r)
	}))
}

func (v *Viewer) addRoutes() {
	v.mux, v.controlMux = http.NewServeMux(), http.NewServeMux()
	for _, r := range routes() {
		v.mux.Handle(r.Pattern, v.pageHandler(r.Handler))
	}
	v.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { v.Visitor.Exchange(w, r, v.serveNotFound) })
	v.mux.Handle("GET /opensearch.xml", list.OpenSearch(v.Visitor))
	for pattern, h := range v.controlRoutes() {
		v.controlMux.Handle(pattern, h)
	}
}

// serveNotFound answers a path that no route handles. It returns 405 if another method is allowed there, else 404.
func (v *Viewer) serveNotFound(q *page.Exchange) error {
	if q.R.Method != http.MethodGet && q.R.Method != http.MethodHead {
		probe := q.R.Clone(q.R.Context())
		probe.Method = http.MethodGet
		if _, pattern := v.mux.Handler(probe); pattern != "/" {
			q.Reply.W.Header().Set("Allow", "GET, HEAD")
			return understudy.ErrMethod
		}
	}
	if path := strings.TrimRight(q.R.URL.Path, "/"); path != q.R.URL.Path && path != "" {
		return page.NewNotFound("There is no page at "+understudy.Clip(q.R.URL.Path),
			"Try the same address without the slash at the end.", path)
	}
	return page.NewNotFound("There is no page at "+understudy.Clip(q.R.URL.Path), "Addresses look like /source/kind or /source/kind/id.", "/")
}
