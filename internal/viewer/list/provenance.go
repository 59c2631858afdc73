// The provenance of a list: where its answer came from, and how often lists composed from records are the same as upstream's.

package list

import (
	"fmt"
	"strings"

	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/request"
)

// provenance is the text about where the answer of a list came from.
type provenance struct {
	How      string // such as "Assembled from records, 12 s old"
	First    string // a sentence that says whether the list is first composed from records or requested from upstream, and why
	Score    string // how often a list composed from records was the same as upstream's list
	Differed string // the most recent difference between a list composed from records and upstream's list
}

// provenance returns the text about where the list came from. It returns nil if nothing is known about that.
func (lv listing) provenance() *provenance {
	how := lv.q.AnswerOrigin()
	if how == "" {
		return nil
	}
	c := &provenance{How: plan.UpperFirst(how)}
	if !lv.q.Clock.AsOf.At.IsZero() || lv.q.ShowsSearch || !lv.q.Rights.CanCount(lv.q.Kind) {
		return c
	}
	for _, l := range lv.q.V.Snapshots.Get(lv.q, lv.q.Source).Kinds[lv.q.Kind.Spec.Name].Lists {
		if l.Path == lv.ask.list.Spec.Path {
			lv.describeScore(c, l)
		}
	}
	return c
}

// describeScore sets whether records or upstream are used first, and how often both gave the same list.
func (lv listing) describeScore(c *provenance, l request.ListScore) {
	switch {
	case l.IsRecordsFirst() && l.IsPinned():
		c.First = "Lists are assembled from stored records, as the settings say."
	case l.IsRecordsFirst():
		c.First = "Lists are assembled from stored records, which have matched " + lv.q.Source.Spec.Title + "'s lists."
	case l.IsPinned():
		c.First = lv.q.Source.Spec.Title + "'s own lists are shown, as the settings say."
	default:
		c.First = lv.q.Source.Spec.Title + "'s own lists are shown until stored records match them " +
			page.Thousands(l.Enough) + " times in a row."
	}
	if l.Samples == 0 {
		c.Score = "No comparison yet."
		return
	}
	score := 100 * float64(l.Samples-l.Differing) / float64(l.Samples)
	text := strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", score), "0"), ".")
	c.Score = fmt.Sprintf("%s %% of %s comparisons matched, %s in a row so far.", text, page.Thousands(l.Samples),
		page.Thousands(l.Equal))
	if l.Samples == 1 {
		c.Score = "The one comparison so far matched."
		if l.Differing > 0 {
			c.Score = "The one comparison so far differed."
		}
	}
	if l.Field == "" {
		return
	}
	c.Differed = "The last difference was"
	if lv.q.Rights.Level(lv.q.Kind, l.Field) == access.See {
		c.Differed += " in " + l.Field
	}
	if when := lv.q.Clock.Moment(l.DifferedAt); when != nil {
		c.Differed += " on " + when.Text
	}
	c.Differed += "."
}
