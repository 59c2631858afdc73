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
func (lv listing) live() *live {
	if lv.q.V.Options.Feed == "" || !lv.q.Clock.AsOf.At.IsZero() || !lv.q.Kind.Remembered() {
		return nil
	}
	filtered := slices.ContainsFunc(lv.ask.query, func(p understudy.Param) bool { return p.Name != lv.ask.list.PagingStyle.Size })
	l := &live{
		Feed: lv.q.V.Options.Feed + "?" + understudy.Query{{Name: "source", Value: lv.q.Source.Name},
			{Name: "kind", Value: lv.q.Kind.Spec.Name}}.String(),
		News: lv.ask.target.First && !filtered && lv.ask.list == lv.q.Kind.PlannedLists[0] && len(lv.ask.vars) == 0 && !lv.ask.layout.searched(),
		Rows: lv.rows(), Script: lv.q.V.Files.Address["live.js"],
	}
	if l.Rows == "" && !l.News {
		return nil
	}
	return l
}

// rows is the list without a position, up to the value of one more condition; "" where it
// cannot be searched, or its records are not named to the caller.
func (lv listing) rows() string {
	if _, ok := lv.conditions(); !ok || lv.q.V.Options.Search == nil ||
		!lv.q.Rights.Gate.Named(lv.q.Rights.Caller, lv.q.Source.Name, lv.q.Kind.Spec) {
		return ""
	}
	whole := *lv.ask
	whole.layout.cursor = ""
	at := whole.address("", lv.ask.filters(), nil)
	if strings.Contains(at, "?") {
		return at + "&" + ownNarrow + "="
	}
	return at + "?" + ownNarrow + "="
}
