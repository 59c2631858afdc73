// This file gives lists that do not show their paging the paging of the API's other lists.

package infer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// applyLinkHeaders gives lists without visible paging the rules of a list that has a Link header, if there is one. This is
// safe because a list ends where a response has no link. Lists whose Link header names no parameter get these rules too.
func applyLinkHeaders(all []*list) {
	var linked *pagination
	for _, l := range all {
		if l.paging.rules.Style == "header" && (linked == nil || linked.caveat != "" && l.paging.caveat == "") {
			linked = l.paging
		}
	}
	for _, l := range all {
		switch {
		case l.paging.rules.Style != "none" && (l.paging.rules.Style != "header" || l.paging.caveat == ""):
		case linked == nil:
			l.paging.caveat = cmp.Or(l.paging.caveat, "its answer does not show how to request the next page; it is treated as one "+
				"page; draw it again when it has more rows")
		default:
			c := *linked
			c.why = maps.Clone(linked.why)
			c.why["style"] = "another list has a Link header, and this answer does not show how to request the next page"
			l.paging = &c
		}
	}
}

// applyConvention decides that a list uses a Link header if most lists of the API with the same paging parameter
// use one. It concerns lists that accept a page number, a page size or a token, and whose responses do not show the
// paging. Such lists do not count as lists without a Link header.
func applyConvention(all []*list) {
	linked, others := map[string]int{}, map[string]int{}
	for _, l := range all {
		c := l.paging
		switch names := []string{c.rules.Page, c.rules.Size}; {
		case c.rules.Style == "header":
			tally(linked, append(names, c.rules.Tokens...))
		case c.guessed:
			tally(others, names)
		default:
			tally(others, append(slices.Clone(c.rules.Tokens), c.rules.Cursor))
		}
	}
	for _, l := range all {
		c := l.paging
		names := []string{c.rules.Page}
		if c.rules.Page == "" {
			names = append(slices.Clone(c.rules.Tokens), c.rules.Size)
		}
		i := slices.IndexFunc(names, func(p string) bool { return p != "" && linked[p] > others[p] })
		if !c.guessed || i < 0 {
			continue
		}
		if c.rules.Cursor != "" {
			c.rules.Tokens, c.rules.Cursor = append(c.rules.Tokens, c.rules.Cursor), ""
		}
		c.rules.Total, c.rules.Next, c.caveat = "", "", ""
		delete(c.why, "total")
		delete(c.why, "next")
		c.setStyle("header", fmt.Sprintf("%d lists that accept %s have a Link header", linked[names[i]], names[i]))
	}
}

// tally adds one to the count of each name, also if the name is repeated.
func tally(counts map[string]int, names []string) {
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		counts[name]++
	}
}
