// Updates of an open list while records change.

package list

import (
	"slices"
	"strings"

	"understudy"
)

// live is how an open list follows its records.
type live struct {
	Feed         string // the address of the feed of the kind's changes
	Rows         string // the address of the list up to the ids of changed records; empty if rows cannot be updated
	AnnouncesNew bool   // new records belong on this page, because it is the newest without filters
	Script       string
}

// liveUpdates returns how the list follows its records. It returns nil for an earlier moment, and for kinds that
// are stored as pages. A change does not say which filters it passes, so a filtered page does not announce new
// records. It still updates its rows, through the filtered list.
func (lv listing) liveUpdates() *live {
	if lv.q.V.Options.Feed == "" || !lv.q.Clock.AsOf.At.IsZero() || !lv.q.Kind.HasRecords() {
		return nil
	}
	filtered := slices.ContainsFunc(lv.ask.query, func(p understudy.Param) bool { return p.Name != lv.ask.list.PagingStyle.Size })
	l := &live{
		Feed: lv.q.V.Options.Feed + "?" + understudy.Query{{Name: "source", Value: lv.q.Source.Name},
			{Name: "kind", Value: lv.q.Kind.Spec.Name}}.String(),
		AnnouncesNew: lv.ask.target.First && !filtered && lv.ask.list == lv.q.Kind.PlannedLists[0] &&
			len(lv.ask.vars) == 0 && !lv.ask.arrangement.isSearch(),
		Rows: lv.rowsAddress(), Script: lv.q.V.Files.Address["live.js"],
	}
	if l.Rows == "" && !l.AnnouncesNew {
		return nil
	}
	return l
}

// rowsAddress returns the address of the list without a position, up to the value of one more condition. It returns
// "" if the list cannot be searched, or if the caller may not see the ids.
func (lv listing) rowsAddress() string {
	if _, ok := lv.conditions(); !ok || lv.q.V.Options.Search == nil ||
		!lv.q.Rights.Gate.CanSeeIDs(lv.q.Rights.Caller, lv.q.Source.Name, lv.q.Kind.Spec) {
		return ""
	}
	whole := *lv.ask
	whole.arrangement.cursor = ""
	at := whole.address("", lv.ask.filters(), nil)
	if strings.Contains(at, "?") {
		return at + "&" + paramNarrow + "="
	}
	return at + "?" + paramNarrow + "="
}
