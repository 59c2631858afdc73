// Exports: the places of those under way, whichever settings they began under.

package main

import (
	"cmp"

	"understudy/kit/places"
)

// exports have places for each of the two faces that send them. They outlive
// the handlers, which go with every reading of the settings.
type exports struct {
	viewer, search *places.Places
}

// usualExports is how many go on at once, of either face, where the settings
// say nothing; one caller has half of them.
const usualExports = 4

func newExports(cfg *config) exports {
	e := exports{places.New(0, 0), places.New(0, 0)}
	e.limit(cfg)
	return e
}

// limit takes the limits of the settings over.
func (e *exports) limit(cfg *config) {
	set := func(p *places.Places, all, each int) {
		all = cmp.Or(all, usualExports)
		p.Limit(all, cmp.Or(each, (all+1)/2))
	}
	set(e.viewer, cfg.Viewer.Exports, cfg.Viewer.ExportsEach)
	set(e.search, cfg.Search.Exports, cfg.Search.ExportsEach)
}
