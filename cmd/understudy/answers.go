// Answers: what lists are answered from first, in the settings and in figures.

package main

import (
	"understudy"
	"understudy/internal/diagnostics"
	"understudy/internal/viewer/page"
	"understudy/mirror"
)

// walked is the walker, which is made after the mirror.
type walked struct{ h *house }

// Covered says what is held of a list.
func (w walked) Covered(source, kind, parent string, from, to int64) (understudy.Coverage, bool) {
	return w.h.walker.Covered(source, kind, parent, from, to)
}

// Doubt has a stretch walked again.
func (w walked) Doubt(source, kind string, from, to int64) {
	w.h.walker.Doubt(source, kind, from, to)
}

// listFigures are the lists of a kind of which something is known, or that are
// not answered as usual.
func listFigures(all []mirror.Fidelity, kind string) (out []diagnostics.List) {
	for _, f := range all {
		if f.Kind != kind || f.All == 0 && f.First == mirror.AnswersUpstream && f.Set == mirror.AnswersAuto {
			continue
		}
		out = append(out, diagnostics.List{
			Path: f.Path, Answers: string(f.Set), First: string(f.First), Equal: f.Equal, Enough: mirror.Enough,
			Samples: f.All, Differing: f.Differing, Field: f.Field, Where: f.Where, DifferedAt: known(f.At),
		})
	}
	return out
}

// viewerLists are the same as people see them.
func viewerLists(all []mirror.Fidelity, kind string) (out []page.HeldList) {
	for _, f := range all {
		if f.Kind == kind && (f.All > 0 || f.First != mirror.AnswersUpstream || f.Set != mirror.AnswersAuto) {
			out = append(out, page.HeldList{
				Path: f.Path, Title: f.Title, Records: f.First == mirror.AnswersRecords, Pinned: f.Set != mirror.AnswersAuto,
				Equal: f.Equal, Enough: mirror.Enough, Samples: f.All, Differing: f.Differing, Field: f.Field, Where: f.Where, Differed: f.At,
			})
		}
	}
	return out
}
