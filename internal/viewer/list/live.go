// Live: what a list that is open asks for while records change.

package list

import (
	"slices"
	"strings"

	"understudy"
)

// live is how a list that is open follows its records.
type live struct {
	Feed   string // the feed of the kind's changes
	Rows   string // the list, up to the condition that names the records that changed; "": no row changes in place
	News   bool   // what came belongs on this page: the newest of all
	Script string
}

// live is nil for a moment of the past and for what is kept as pages. What a filter lets
// through a change does not say: there is no news on a filtered page, but its rows are
// asked for as they are filtered.
func (q listing) live() *live {
	if q.V.Feed == "" || !q.AsOf.At.IsZero() || !q.Kind.Remembered() {
		return nil
	}
	filtered := slices.ContainsFunc(q.ask.query, func(p understudy.Param) bool { return p.Name != q.ask.list.PagingStyle.Size })
	l := &live{
		Feed: q.V.Feed + "?" + understudy.Query{{Name: "source", Value: q.Source.Name}, {Name: "kind", Value: q.Kind.Name}}.String(),
		News: q.ask.target.First && !filtered && q.ask.list == q.Kind.PlannedLists[0] && len(q.ask.vars) == 0 && !q.ask.searched(),
		Rows: q.rows(), Script: q.V.Files.Address["live.js"],
	}
	if l.Rows == "" && !l.News {
		return nil
	}
	return l
}

// rows is the list without a position, up to the value of one more condition; "" where it
// cannot be searched, or its records are not named to the caller.
func (q listing) rows() string {
	if _, ok := q.conditions(); !ok || !q.Findable() || !q.Gate.Named(q.Caller, q.Source.Name, q.Kind.Kind) {
		return ""
	}
	whole := *q.ask
	whole.cursor = ""
	at := whole.address("", q.ask.filters(), nil)
	if strings.Contains(at, "?") {
		return at + "&" + ownNarrow + "="
	}
	return at + "?" + ownNarrow + "="
}
