// Package documents shows Understudy's documentation in the viewer, with a search.
package documents

import (
	"net/http"
	"path"
	"strings"
	"sync"

	"understudy"
	"understudy/docs"
	"understudy/internal/manual"
	"understudy/internal/viewer/page"
)

// Path is the address of the documentation's first page.
const Path = "/-/docs/"

// load renders the documentation when it is first requested.
var load = sync.OnceValues(func() (*manual.Manual, error) { return manual.New(docs.Files, Path) })

// Routes returns the route of the documentation. Every caller of the viewer may read it.
func Routes() []page.Route {
	return []page.Route{{Pattern: "GET " + Path + "{page...}", Handler: serve}}
}

// documentPage is the data of the template docs.html: a page of the documentation, or the results of a search.
type documentPage struct {
	Manual *manual.Manual
	Root   string // the address of the documentation's first page
	Page   *manual.Page
	Query  string
	Hits   []manual.Hit
	Search bool
}

// serve answers with a page or a picture of the documentation, or if the request has the parameter q, with the
// results of a search.
func serve(q *page.Exchange) error {
	m, err := load()
	if err != nil {
		return err
	}
	at := q.R.PathValue("page")
	if path.Ext(at) == ".svg" {
		return servePicture(q, m, at)
	}
	p := documentPage{Manual: m, Root: Path, Query: strings.TrimSpace(q.R.FormValue("q"))}
	title := "Documentation"
	switch {
	case p.Query != "":
		p.Search, p.Hits = true, m.Search(understudy.Clip(p.Query))
	default:
		if p.Page = m.Page(at); p.Page == nil {
			return page.NewNotFound("There is no page of the documentation at "+understudy.Clip(at), "The index lists all pages.", Path)
		}
		title = p.Page.Title
	}
	return q.Render(http.StatusOK, "docs", title, p)
}

func servePicture(q *page.Exchange, m *manual.Manual, at string) error {
	data, err := m.ReadPicture(at)
	if err != nil {
		return page.NewNotFound("There is no picture at "+understudy.Clip(at), "The index lists all pages.", Path)
	}
	h := q.Reply.W.Header()
	h.Set("Content-Type", "image/svg+xml")
	h.Set("Cache-Control", "private, max-age=3600")
	_, err = q.Reply.W.Write(data)
	return err
}
