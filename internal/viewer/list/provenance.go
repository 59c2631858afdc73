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
func (q listing) provenance() *provenance {
	how := q.How()
	if how == "" {
		return nil
	}
	c := &provenance{How: plan.UpperFirst(how)}
	if !q.AsOf.At.IsZero() || q.Found || !q.Counts(q.Kind) {
		return c
	}
	for _, l := range q.V.Snapshots.Of(q.Exchange, q.Source).Kinds[q.Kind.Name].Lists {
		if l.Path == q.ask.list.Path {
			q.fidelity(c, l)
		}
	}
	return c
}

// fidelity says what is asked first, and what comparing both has shown.
func (q listing) fidelity(c *provenance, l request.ListScore) {
	switch {
	case l.RecordsFirst() && l.Pinned():
		c.First = "Records are asked first, as the settings say."
	case l.RecordsFirst():
		c.First = "Records are asked first: they have proven to say what " + q.Source.Spec.Title + " says."
	case l.Pinned():
		c.First = q.Source.Spec.Title + " is asked first, as the settings say."
	default:
		c.First = q.Source.Spec.Title + " is asked first, until records have said the same " + page.Thousands(l.Enough) + " times in a row."
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
	if q.Level(q.Kind, l.Field) == access.See {
		c.Differed += " in " + l.Field
	}
	if when := q.Moment(l.DifferedAt); when != nil {
		c.Differed += ", " + when.Text
	}
	c.Differed += "."
}
