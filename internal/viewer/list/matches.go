// Ids and phone numbers in the search box. Searching for one opens its page.

package list

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// findMatches returns links to the pages that the text of the search box may mean, in every source that the caller may use.
func findMatches(q *page.Exchange, typed string) []page.Link {
	var all []page.Link
	for _, s := range q.V.Planned {
		if !q.Rights.CanSee(s) || typed == "" {
			continue
		}
		q.Source = s
		all = append(all, matchIDs(q, s, typed)...)
		if len(all) == 0 && len(q.Rights.ContactKinds(s)) > 0 {
			for _, number := range matchNumbers(q, s, typed) {
				text := plan.GroupPhone(number)
				if len(q.V.Planned) > 1 {
					text += " in " + s.Spec.Title
				}
				all = append(all, page.Link{Href: s.NumberHref(number), Text: text})
			}
		}
	}
	q.Source = nil
	return all
}

// matchIDs returns links to the records whose id the text may be. If the id's prefix belongs to several kinds, it
// reads the record of each kind and returns those that exist.
func matchIDs(q *page.Exchange, s *plan.Source, typed string) []page.Link {
	var all []page.Link
	var targets []*spec.Target
	typed = s.SpellID(typed)
	for _, k := range s.Kinds {
		if len(k.PlannedInstances) == 0 || len(k.PlannedInstances[0].Needs) > 0 || !q.Rights.CanSeeKind(k) || !s.CanName(k, typed) {
			continue
		}
		path, ok := k.PathTo(strings.Split(typed, spec.IDSeparator), nil)
		if !ok {
			continue
		}
		t, err := s.Spec.Resolve(s.Name, path, "")
		if err != nil || t.Instance != k.PlannedInstances[0].Spec {
			continue
		}
		all = append(all, page.Link{Href: s.Place(t), Text: plan.UpperFirst(k.Spec.Singular) + " " + typed})
		targets = append(targets, t)
	}
	if len(all) < 2 {
		return all
	}
	var found []page.Link
	for i, r := range q.ReadAll(targets) {
		if len(r.Rows()) == 1 {
			found = append(found, all[i])
		}
	}
	if len(found) > 0 {
		return found
	}
	return all
}

// matchNumbers returns the phone numbers that a text may mean. It accepts E.164 with spaces or marks between the digits, and 00
// instead of the plus sign. It completes national numbers by the country codes of our own numbers that the caller may know.
func matchNumbers(q *page.Exchange, s *plan.Source, typed string) []string {
	digits, plus, ok := page.ParseDialled(typed)
	switch {
	case !ok:
		return nil
	case plus || len(digits) <= 6:
		if plus {
			digits = "+" + digits
		}
		if plan.IsNumber(digits) {
			return []string{digits}
		}
		return nil
	}
	var all []string
	for _, code := range readOwnCodes(q, s) {
		number := "+" + code + strings.TrimLeft(digits, "0")
		if strings.HasPrefix(digits, code) && len(digits) > 10 {
			number = "+" + digits
		}
		if plan.IsNumber(number) && !slices.Contains(all, number) {
			all = append(all, number)
		}
	}
	if whole := "+" + digits; len(digits) > 10 && plan.IsNumber(whole) && !slices.Contains(all, whole) {
		all = append(all, whole)
	}
	return all
}

// readOwnCodes returns the country codes of our own numbers, the most frequent first.
func readOwnCodes(q *page.Exchange, s *plan.Source) []string {
	own := map[string]bool{}
	var targets []*spec.Target
	for _, k := range s.OwnKinds {
		if q.Rights.CanSeeOwnNumbers(k) {
			targets = append(targets, k.PlannedLists[0].Newest)
		}
	}
	for i, r := range q.ReadAll(targets) {
		q.V.Numbers.Add(own, q.Rights.Caller.Role(), s.ByName[targets[i].Kind.Name], r)
	}
	counts := map[string]int{}
	for number := range own {
		if strings.HasPrefix(number, "+") && plan.IsNumber(number) {
			counts[number[1:1+plan.CountryDigits(number[1:])]]++
		}
	}
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
}

// listSearchables returns what the caller can type into the search box to open a page.
func listSearchables(q *page.Exchange) []searchable {
	var all []searchable
	for _, s := range q.V.Planned {
		if !q.Rights.CanSee(s) {
			continue
		}
		out := searchable{Title: s.Spec.Title, Numbers: len(q.Rights.ContactKinds(s)) > 0}
		for _, k := range s.Kinds {
			if len(k.PlannedInstances) == 0 || len(k.PlannedInstances[0].Needs) > 0 || len(k.Spec.ID) != 1 || !q.Rights.CanSeeKind(k) {
				continue
			}
			for _, p := range k.Spec.Prefixes {
				href := ""
				if k.IsBrowsable() {
					href = k.Href
				}
				out.Prefixes = append(out.Prefixes, prefixHelp{p + "…", plan.UpperFirst(k.Spec.Singular), href})
			}
		}
		if out.Numbers || len(out.Prefixes) > 0 {
			all = append(all, out)
		}
	}
	return all
}
