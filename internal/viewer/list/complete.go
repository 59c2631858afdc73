// Completion in a search box: names of fields and values that begin with the typed word.

package list

import (
	"context"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// The maximum number of completions, and the maximum time for counting values.
const (
	maxOffers    = 8
	countTimeout = 300 * time.Millisecond
)

// offer is a possible completion of a word.
type offer struct {
	Text string `json:"text"` // the text that replaces the typed word: a condition, or the name of a field with a colon
	Note string `json:"note"` // what the text means, or how many records it finds
}

// serveComplete returns completions for a word of a search as JSON. The word is the beginning of a field's name, or a
// name with the beginning of a value. The browser sends only this word of the search. It offers no fields that the
// role sees only in part.
func serveComplete(q *page.Exchange) error {
	params, err := understudy.ParseQuery(q.R.URL.RawQuery)
	if err != nil {
		return err
	}
	var word string
	var kinds []string
	for _, p := range params {
		switch p.Name {
		case "word":
			word = p.Value
		case searchKind:
			kinds = page.AppendUnique(kinds, p.Value)
		default:
			return page.NewUnknownWord("parameter", p.Name, []string{"word", searchKind}, nil)
		}
	}
	if q.V.Options.Search == nil {
		return page.NewNotFound("Search is not available here", "This server has no search index.", "")
	}
	if len(word) > maxTypedBytes || len(kinds) > maxNarrow {
		return page.NewBadRequest("This is too long for suggestions", "Keep typing.", nil)
	}
	c := completion{q, kinds}
	name, value, valued := strings.Cut(word, ":")
	var all []offer
	switch {
	case !valued:
		all = c.names(name)
	case name == "has" || name == "no":
		for _, o := range c.fields(value) {
			all = append(all, offer{name + ":" + o.Text, o.Note})
		}
	default:
		all = c.values(name, value)
	}
	q.Reply.W.Header().Set("Cache-Control", "private, no-store")
	return q.SendJSON(map[string]any{"offers": append([]offer{}, all[:min(len(all), maxOffers)]...)})
}

// completion completes words for a search in some kinds, or in all kinds that the caller may see.
type completion struct {
	q     *page.Exchange
	kinds []string
}

// visitKinds calls f with each kind in which the search will look.
func (cv completion) visitKinds(f func(*plan.Kind)) {
	for _, s := range cv.q.V.Planned {
		for _, k := range s.Kinds {
			if cv.q.Rights.CanSee(s) && k.HasRecords() && cv.q.Rights.CanSeeKind(k) &&
				(len(cv.kinds) == 0 || slices.Contains(cv.kinds, k.Spec.Name)) {
				f(k)
			}
		}
	}
}

// names returns the field names that begin with a text. They include names that every kind has, such as "id".
func (cv completion) names(begin string) (all []offer) {
	own := []offer{{"kind:", "only this kind"}, {"date:", "a date or time"}, {"has:", "the field is set"}, {"no:", "the field is empty"},
		{"number:", "a phone number in any field"}, {"id:", "the id of a record"}}
	if cv.q.Rights.CanSeeAnyNotes(cv.q.Clock.AsOf) {
		own = append(own, offer{"note:", "words in a note"}, offer{"handled:", "marked as handled"})
	}
	for _, o := range own {
		if strings.HasPrefix(o.Text, begin) {
			all = append(all, o)
		}
	}
	for _, o := range cv.fields(begin) {
		all = append(all, offer{o.Text + ":", o.Note})
	}
	return all
}

// fields returns the fields that begin with a text, if the caller sees them completely, and for each field the kinds
// that have it.
func (cv completion) fields(begin string) (all []offer) {
	cv.visitKinds(func(k *plan.Kind) {
		for _, f := range k.AllColumns {
			if !strings.HasPrefix(f.Spec.Name, begin) || f.Spec.Type == spec.TypeMedia || cv.q.Rights.Level(k, f.Spec.Name) != access.See {
				continue
			}
			title := plan.UpperFirst(k.Spec.Title)
			if i := slices.IndexFunc(all, func(o offer) bool { return o.Text == f.Spec.Name }); i < 0 {
				all = append(all, offer{f.Spec.Name, f.Heading + " of " + title})
			} else if !strings.HasSuffix(all[i].Note, title) {
				all[i].Note += ", " + title
			}
		}
	})
	return all
}

// values returns the values of a field that begin with a text. It takes them from the stored records, or if it finds
// none there, from the spec.
func (cv completion) values(name, begin string) (all []offer) {
	add := func(value, note string) {
		text := name + ":" + page.QuoteValue(value)
		if why := cv.q.V.MeaningOf(name, value, nil); why != "" {
			note = strings.TrimSuffix(why+" · "+note, " · ")
		}
		if strings.HasPrefix(value, begin) && !slices.ContainsFunc(all, func(o offer) bool { return o.Text == text }) {
			all = append(all, offer{text, note})
		}
	}
	switch name {
	case "kind":
		cv.visitKinds(func(k *plan.Kind) { add(k.Spec.Name, plan.UpperFirst(k.Spec.Title)) })
		return all
	case "handled":
		add("no", "not handled yet")
		add("yes", "handled")
		return all
	}
	seen, isTime := false, name == "date"
	cv.visitKinds(func(k *plan.Kind) {
		if f := k.ByField[name]; f != nil && cv.q.Rights.Level(k, name) == access.See {
			seen, isTime = true, isTime || spec.IsTimeType(f.Spec.Type)
		}
	})
	switch {
	case isTime:
		add("today", "today")
		add("-1h", "in the last hour")
		add("-7d", "in the last 7 days")
		add("-30d", "in the last 30 days")
		add(cv.q.Clock.Start.In(cv.q.Clock.Zone).Format("2006-01"), "this month")
	case seen:
		cv.addCounted(name, add)
		cv.visitKinds(func(k *plan.Kind) {
			for _, l := range k.PlannedLists {
				for i, f := range l.Spec.Filters {
					if f.Field == name && cv.q.Rights.CanFilter(l, i) {
						for _, v := range f.Values {
							add(v, "")
						}
					}
				}
			}
		})
	}
	return all
}

// addCounted calls add for each value of a field in the stored records that the caller may see.
func (cv completion) addCounted(name string, add func(value, note string)) {
	ctx, cancel := context.WithTimeout(cv.q.Ctx, countTimeout)
	defer cancel()
	r, err := cv.q.V.Options.Search.Find(ctx, cv.q.Rights.Caller, query.SearchRequest{Kinds: cv.kinds, Facets: true, CountOnly: true})
	if err != nil {
		return // without counts, only the values in the spec are offered
	}
	for _, f := range r.Facets {
		if f.Name != name {
			continue
		}
		for _, v := range f.Values {
			note := page.Thousands(v.N)
			if v.AtLeast {
				note = "at least " + note
			}
			if v.Value != "" {
				add(v.Value, note)
			}
		}
	}
}
