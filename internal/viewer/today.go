// Today: what failed, and what nobody has taken care of, for whoever looks after the records.

package viewer

import (
	"context"
	"slices"
	"strings"
	"time"

	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// todayView is a kind whose records are to be looked at.
type todayView struct {
	Kind   string
	Counts []todayCount
	Name   string // of the kind
}

// todayCount is how many there are: what failed today, and what nobody has handled.
type todayCount struct {
	Title, Href string
	Text        string // "" where it cannot be counted
	Some        bool
}

// todayAsked are the questions about a kind: the condition beside that a record failed.
type todayAsked struct {
	kind   *plan.Kind
	failed string
}

// askToday returns the main kinds of a source whose records can fail.
func askToday(q *page.Exchange, s *plan.Source) (all []todayAsked) {
	if q.V.Options.Search == nil {
		return nil
	}
	for _, k := range q.Rights.Readable(s) {
		if failed := failedText(k); failed != "" && k.Spec.Clock != "" && k.Spec.Group == "" {
			all = append(all, todayAsked{k, failed})
		}
	}
	return all
}

// failedText is a search for the failed records of a kind.
func failedText(k *plan.Kind) string {
	var either []string
	for _, state := range k.Spec.Failed {
		if len(state.In) == 0 {
			either = append(either, "has:"+state.Field)
			continue
		}
		either = append(either, state.Field+":"+strings.Join(state.In, ","))
	}
	if len(either) > 1 {
		return "(" + strings.Join(either, " OR ") + ")"
	}
	return strings.Join(either, "")
}

// findMidnight returns the condition that a record is of today, where its reader is.
func findMidnight(q *page.Exchange) string {
	at := q.Clock.Start.In(q.Clock.Zone)
	midnight := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, q.Clock.Zone)
	if _, offset := midnight.Zone(); offset == 0 {
		return "date:today"
	}
	return "date>=" + midnight.UTC().Format("2006-01-02T15:04")
}

// countToday counts. A kind of which nothing can be counted is left out: the role may not see the
// fields that tell, or the time is over.
func countToday(ctx context.Context, q *page.Exchange, s *plan.Source, asked []todayAsked) (all []todayView) {
	conditions := []struct{ title, text, handled string }{{"Failed today", findMidnight(q), ""}}
	if q.Rights.SeesNotes(s, q.Clock.AsOf) {
		conditions = append(conditions, struct{ title, text, handled string }{"Not handled, 7 days", "date:-7d", " handled:"})
	}
	for _, one := range asked {
		view, known := todayView{Kind: plan.UpperFirst(one.kind.Spec.Title), Name: one.kind.Spec.Name}, false
		for _, c := range conditions {
			ask := query.SearchRequest{Text: one.failed + " " + c.text, Source: s.Name, Kinds: []string{one.kind.Spec.Name},
				CountOnly: true}
			n := countRecords(ctx, q, s, one.kind, ask)
			shown, handled := ask, ask
			if c.handled != "" { // counting all that are not handled takes longer than the few that are
				shown.Text, handled.Text = ask.Text+c.handled+"no", ask.Text+c.handled+"yes"
				n = n.less(countRecords(ctx, q, s, one.kind, handled))
			}
			count := todayCount{Title: c.title, Href: page.SearchAddress("/search", shown)}
			if n != nil {
				known, count.Some, count.Text = true, n.N > 0, page.Thousands(n.N)
				if n.AtLeast {
					count.Text += " or more"
				}
			}
			view.Counts = append(view.Counts, count)
		}
		if known {
			all = append(all, view)
		}
	}
	return all
}

// keepFetched returns the counts of kinds whose newest records are held. Of other kinds, such
// as one of which a single record was fetched, it keeps what was found: a 0 would say that nothing failed.
func keepFetched(today []todayView, snap *page.Snapshot) (all []todayView) {
	for _, view := range today {
		if held := snap.Kinds[view.Name]; !held.Complete && held.CaughtUp.IsZero() {
			some := false
			view.Counts = slices.Clone(view.Counts)
			for i := range view.Counts {
				if c := &view.Counts[i]; c.Some {
					some = true
				} else {
					c.Text = ""
				}
			}
			if !some {
				continue
			}
		}
		all = append(all, view)
	}
	return all
}

// counted is a number of matches; nil: they could not be counted.
type counted query.Count

// countRecords counts the matches of a search.
func countRecords(ctx context.Context, q *page.Exchange, s *plan.Source, k *plan.Kind, ask query.SearchRequest) *counted {
	found, err := q.Search(ctx, s, k, ask)
	if err != nil || found.Total == nil {
		return nil
	}
	return &counted{N: found.Total.N, AtLeast: found.Total.AtLeast || found.Partial}
}

// less is the number without some of them.
func (n *counted) less(some *counted) *counted {
	if n == nil || some == nil || some.AtLeast {
		return nil
	}
	return &counted{N: max(n.N-some.N, 0), AtLeast: n.AtLeast}
}
