// Provenance: how a list's answer came about, and how well records tell what upstream
// says of it.

package list

import (
	"fmt"
	"strings"

	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/request"
)

// provenance is what a list says of its own answer.
type provenance struct {
	How      string // "Made from held records, 12 s old"
	First    string // what is asked first, and why
	Score    string // how often both were the same
	Differed string // what differed last
}

// provenance is nil when there is nothing to tell.
func (lv listing) provenance() *provenance {
	how := lv.q.How()
	if how == "" {
		return nil
	}
	c := &provenance{How: plan.UpperFirst(how)}
	if !lv.q.Clock.AsOf.At.IsZero() || lv.q.Found || !lv.q.Rights.Counts(lv.q.Kind) {
		return c
	}
	for _, l := range lv.q.V.Snapshots.Of(lv.q, lv.q.Source).Kinds[lv.q.Kind.Spec.Name].Lists {
		if l.Path == lv.ask.list.Spec.Path {
			lv.fidelity(c, l)
		}
	}
	return c
}

// fidelity says what is asked first, and what comparing both has shown.
func (lv listing) fidelity(c *provenance, l request.ListScore) {
	switch {
	case l.RecordsFirst() && l.Pinned():
		c.First = "Records are asked first, as the settings say."
	case l.RecordsFirst():
		c.First = "Records are asked first: they have proven to say what " + lv.q.Source.Spec.Title + " says."
	case l.Pinned():
		c.First = lv.q.Source.Spec.Title + " is asked first, as the settings say."
	default:
		c.First = lv.q.Source.Spec.Title + " is asked first, until records have said the same " + page.Thousands(l.Enough) + " times in a row."
	}
	if l.Samples == 0 {
		c.Score = "They have not been compared yet."
		return
	}
	score := 100 * float64(l.Samples-l.Differing) / float64(l.Samples)
	text := strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", score), "0"), ".")
	c.Score = fmt.Sprintf("Both said the same in %s %% of %s comparisons, %s in a row by now.", text, page.Thousands(l.Samples),
		page.Thousands(l.Equal))
	if l.Samples == 1 {
		c.Score = "Both have been compared once, and said the same."
		if l.Differing > 0 {
			c.Score = "Both have been compared once, and differed."
		}
	}
	if l.Field == "" {
		return
	}
	c.Differed = "They last differed"
	if lv.q.Rights.Level(lv.q.Kind, l.Field) == access.See {
		c.Differed += " in " + l.Field
	}
	if when := lv.q.Clock.Moment(l.DifferedAt); when != nil {
		c.Differed += ", " + when.Text
	}
	c.Differed += "."
}
