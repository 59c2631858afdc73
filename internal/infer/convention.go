// Convention: lists that do not say how they go on do as the API's others.

package infer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// likeOthers makes lists whose answers do not show how they go on go on as others do, where these have
// links: a list without one ends all the same. So do lists with a Link header that names no parameter.
func likeOthers(all []*list) {
	var linked *pagination
	for _, l := range all {
		if l.cut.rules.Style == "header" && (linked == nil || linked.caveat != "" && l.cut.caveat == "") {
			linked = l.cut
		}
	}
	for _, l := range all {
		switch {
		case l.cut.rules.Style != "none" && (l.cut.rules.Style != "header" || l.cut.caveat == ""):
		case linked == nil:
			l.cut.caveat = cmp.Or(l.cut.caveat, "nothing in its answer shows how it goes on: taken as one page; ask for it when it has more")
		default:
			c := *linked
			c.why = maps.Clone(linked.why)
			c.why["style"] = "another list has a Link header, and nothing in this answer leads on"
			l.cut = &c
		}
	}
}

// byConvention makes lists that take a page's number, size or token, and whose answer says nothing, go on as most
// lists of this API do that take the same parameter: by a Link header. A list that is silent says nothing against
// a token's.
func byConvention(all []*list) {
	linked, others := map[string]int{}, map[string]int{}
	for _, l := range all {
		c := l.cut
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
		c := l.cut
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
		c.setStyle("header", fmt.Sprintf("%d lists that take %s have a Link header", linked[names[i]], names[i]))
	}
}

// tally counts each of the names once.
func tally(of map[string]int, names []string) {
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		of[name]++
	}
}
