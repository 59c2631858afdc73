// The numbers of today's failures and of failures that nobody has handled, for the home page.

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

// todayKind is a kind whose records can fail, with the numbers of its failures.
type todayKind struct {
	Kind   string
	Counts []todayCount
	Name   string // the name of the kind
}

// todayCount is one count of failed records: of today, or of those that nobody has marked as handled.
type todayCount struct {
	Title, Href string
	Text        string // the number of failures in words; empty if it is not known
	HasAny      bool
}

// failureSearch is a kind and the search condition for its failed records.
type failureSearch struct {
	kind   *plan.Kind
	failed string
}

// failureSearches returns the main kinds of a source whose records can fail.
func failureSearches(q *page.Exchange, s *plan.Source) (all []failureSearch) {
	if q.V.Options.Search == nil {
		return nil
	}
	for _, k := range q.Rights.ReadableKinds(s) {
		if failed := failedCondition(k); failed != "" && k.Spec.Clock != "" && k.Spec.Group == "" {
			all = append(all, failureSearch{k, failed})
		}
	}
	return all
}

// failedCondition returns the search condition for the failed records of a kind.
func failedCondition(k *plan.Kind) string {
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

// todayCondition returns the search condition for records of today in the reader's time zone.
func todayCondition(q *page.Exchange) string {
	at := q.Clock.Start.In(q.Clock.Zone)
	midnight := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, q.Clock.Zone)
	if _, offset := midnight.Zone(); offset == 0 {
		return "date:today"
	}
	return "date>=" + midnight.UTC().Format("2006-01-02T15:04")
}

// countToday counts the failures of each kind. It leaves out a kind if no count succeeded, because the role may not
// see the fields or because there was no time left.
func countToday(ctx context.Context, q *page.Exchange, s *plan.Source, asked []failureSearch) (all []todayKind) {
	conditions := []struct{ title, text, handled string }{{"Failed today", todayCondition(q), ""}}
	if q.Rights.CanSeeNotes(s, q.Clock.AsOf) {
		conditions = append(conditions, struct{ title, text, handled string }{"Not handled, 7 days", "date:-7d", " handled:"})
	}
	for _, one := range asked {
		view, known := todayKind{Kind: plan.UpperFirst(one.kind.Spec.Title), Name: one.kind.Spec.Name}, false
		for _, c := range conditions {
			ask := query.SearchRequest{Text: one.failed + " " + c.text, Source: s.Name, Kinds: []string{one.kind.Spec.Name},
				CountOnly: true}
			n := countRecords(ctx, q, s, one.kind, ask)
			shown, handled := ask, ask
			if c.handled != "" { // counting the few handled failures and subtracting them is faster than counting the others
				shown.Text, handled.Text = ask.Text+c.handled+"no", ask.Text+c.handled+"yes"
				n = n.subtract(countRecords(ctx, q, s, one.kind, handled))
			}
			count := todayCount{Title: c.title, Href: page.SearchAddress("/search", shown)}
			if n != nil {
				known, count.HasAny, count.Text = true, n.N > 0, page.Thousands(n.N)
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

// removeUncertainCounts removes counts that may be wrong. If the newest records of a kind may be missing from the store,
// only counts above zero are kept, because a 0 would claim that nothing failed.
func removeUncertainCounts(today []todayKind, snap *page.Snapshot) (all []todayKind) {
	for _, view := range today {
		if held := snap.Kinds[view.Name]; !held.Complete && held.CaughtUp.IsZero() {
			some := false
			view.Counts = slices.Clone(view.Counts)
			for i := range view.Counts {
				if c := &view.Counts[i]; c.HasAny {
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

// matchCount is the number of records that match a search. It is nil if they could not be counted.
type matchCount query.Count

func countRecords(ctx context.Context, q *page.Exchange, s *plan.Source, k *plan.Kind, ask query.SearchRequest) *matchCount {
	found, err := q.Search(ctx, s, k, ask)
	if err != nil || found.Total == nil {
		return nil
	}
	return &matchCount{N: found.Total.N, AtLeast: found.Total.AtLeast || found.Partial}
}

// subtract returns n less some. It returns nil if one of them is not known exactly enough.
func (n *matchCount) subtract(some *matchCount) *matchCount {
	if n == nil || some == nil || some.AtLeast {
		return nil
	}
	return &matchCount{N: max(n.N-some.N, 0), AtLeast: n.AtLeast}
}
