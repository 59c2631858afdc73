// Question: what the address of a list page asks, checked and made canonical.

package viewer

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
)

// The viewer's own parameters. A path variable is named likewise:
// understudy.AccountSid.
const (
	ownList = understudy.OwnPrefix + "list" // which of a kind's lists, by its slug
	ownBack = understudy.OwnPrefix + "back" // positions of the newer pages on the way here, oldest first
)

// maxBack bounds how many newer pages an address remembers.
const maxBack = 8

// question is a list page's address, read.
type question struct {
	list   *listPlan
	vars   understudy.Query // path variables given, as own parameters
	back   []string         // queries of the newer pages, "" for the newest
	query  understudy.Query // upstream's parameters, dates in UTC, no empty ones
	target *understudy.Target
	tidy   bool // the address was already in the form address gives
}

// question reads the request's address; an unknown parameter is a problem that
// names it.
func (q *visit) question() (*question, error) {
	params, err := understudy.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	slug, _ := params.Get(ownList)
	ask := &question{list: q.kind.list(slug), tidy: true}
	if ask.list == nil {
		return nil, q.noList(slug)
	}
	for _, p := range params {
		if err := q.param(ask, p); err != nil {
			return nil, err
		}
	}
	if !q.json {
		q.turnDay(ask)
	}
	path, ok := expand(ask.list.Path, func(name string) (string, bool) {
		if v, ok := ask.vars.Get(understudy.OwnPrefix + name); ok {
			return v, true
		}
		return q.source.fill(name)
	})
	if !ok {
		return nil, badRequest("This list belongs to a record", "It is reached from the page of that record, or with "+understudy.OwnPrefix+strings.Join(ask.list.needs, " and "+understudy.OwnPrefix)+" in the address.", nil)
	}
	ask.target, err = q.source.Spec.Target(q.source.Name, path, ask.query.String())
	if err != nil {
		return nil, err
	}
	if ask.target.List != ask.list.List {
		return nil, badRequest("A path variable of this address names another list", "Start again from the list.", nil)
	}
	return ask, nil
}

func (q *visit) noList(slug string) error {
	var known []string
	for _, l := range q.kind.lists {
		if l.slug != "" {
			known = append(known, l.slug)
		}
	}
	return unknownWord("list of "+q.kind.Title, slug, known, func(s string) string { return q.kind.href + "?" + ownList + "=" + s })
}

// param sorts one parameter of the address into the question.
func (q *visit) param(ask *question, p understudy.Param) error {
	paging := &q.source.Spec.Paging
	f := ask.list.Filter(p.Name)
	switch {
	case p.Name == ownList:
		return nil
	case p.Name == ownBack:
		ask.back = append(ask.back, p.Value)
		return q.checkBack(ask)
	case q.isVar(ask.list, p.Name):
		if p.Value != "" {
			ask.vars = append(ask.vars, understudy.Param{Name: p.Name, Value: p.Value})
		}
		return nil
	case f == nil && p.Name != paging.Size && !isPosition(paging, p.Name) || p.Name == "":
		return q.unknownParam(ask, p.Name)
	case p.Value == "": // an input of the form left empty
		ask.tidy = false
		return nil
	case p.Name == paging.Size && p.Value == strconv.Itoa(paging.Default):
		ask.tidy = false
		return nil
	}
	if f != nil && isDate(f.Type) {
		if t, ok := parseLocal(p.Value, q.zone); ok {
			p.Value, ask.tidy = writeDate(f.Type, t), false
		}
	}
	ask.query = append(ask.query, understudy.Param{Name: p.Name, Value: p.Value})
	return nil
}

func (q *visit) isVar(l *listPlan, name string) bool {
	own, ok := strings.CutPrefix(name, understudy.OwnPrefix)
	if !ok {
		return false
	}
	for v := range pathVars(l.Path) {
		if v == own {
			return true
		}
	}
	return false
}

// isPosition reports the parameters that say which page of a list is meant.
func isPosition(p *understudy.Paging, name string) bool {
	return name != "" && (name == p.Page || slices.Contains(p.Tokens, name))
}

// checkBack makes sure a remembered position holds nothing but a position: it
// becomes part of a link.
func (q *visit) checkBack(ask *question) error {
	params, err := understudy.ParseQuery(ask.back[len(ask.back)-1])
	if err != nil {
		return err
	}
	for _, p := range params {
		if !isPosition(&q.source.Spec.Paging, p.Name) {
			return badRequest(ownBack+" holds "+clip(p.Name)+", which is no position in a list", "Start again from the newest page.", nil)
		}
	}
	if len(ask.back) > maxBack {
		ask.back = ask.back[1:]
	}
	return nil
}

func (q *visit) unknownParam(ask *question, name string) error {
	var known []string
	for i, f := range ask.list.Filters {
		if q.offers(ask.list, i) {
			known = append(known, f.Name)
		}
	}
	paging := &q.source.Spec.Paging
	for _, n := range append([]string{paging.Size, paging.Page}, paging.Tokens...) {
		if n != "" && !slices.Contains(known, n) {
			known = append(known, n)
		}
	}
	return unknownWord("parameter", name, known, nil)
}

// offers reports whether the caller may use a list's filter.
func (q *visit) offers(l *listPlan, filter int) bool {
	return filter < len(l.probes) && q.v.Gate.Read(q.caller, l.probes[filter]) == nil
}

// turnDay makes a day of the reader's calendar out of a day filter: upstream
// takes a plain date as a day in UTC, so elsewhere the day becomes the moments
// it begins and ends at, under the filters for those.
func (q *visit) turnDay(ask *question) {
	for i, p := range ask.query {
		f := ask.list.Filter(p.Name)
		if f == nil || f.Op != "day" || !isDate(f.Type) || f.Type == understudy.TypeDate {
			continue
		}
		day, err := time.ParseInLocation(time.DateOnly, p.Value, q.zone)
		if err != nil {
			continue
		}
		end := day.AddDate(0, 0, 1)
		if _, a := day.Zone(); a == 0 {
			if _, b := end.Zone(); b == 0 {
				continue // the reader's day is the day in UTC
			}
		}
		since, until := sibling(ask.list, f, "since"), sibling(ask.list, f, "until")
		if since == nil || until == nil || has(ask.query, since.Name) || has(ask.query, until.Name) {
			continue
		}
		ask.tidy = false
		ask.query = slices.Replace(slices.Clone(ask.query), i, i+1,
			understudy.Param{Name: since.Name, Value: writeDate(f.Type, day)},
			understudy.Param{Name: until.Name, Value: writeDate(f.Type, end.Add(-time.Second))})
		return
	}
}

func has(q understudy.Query, name string) bool {
	_, ok := q.Get(name)
	return ok
}

// sibling is the filter of a list on the same field with another meaning.
func sibling(l *listPlan, f *understudy.Filter, op string) *understudy.Filter {
	for _, other := range l.Filters {
		if other.Op == op && other.Field == f.Field && other.Field != "" {
			return other
		}
	}
	return nil
}

// address is the viewer's address of a question with another position: query
// holds upstream's parameters, back the newer pages.
func (ask *question) address(k *kindPlan, suffix string, query understudy.Query, back []string) string {
	var all understudy.Query
	if ask.list.slug != "" && ask.list != k.lists[0] {
		all = append(all, understudy.Param{Name: ownList, Value: ask.list.slug})
	}
	all = append(append(all, ask.vars...), query...)
	if len(back) > maxBack {
		back = back[len(back)-maxBack:]
	}
	for _, b := range back {
		all = append(all, understudy.Param{Name: ownBack, Value: b})
	}
	if len(all) == 0 {
		return k.href + suffix
	}
	return k.href + suffix + "?" + all.String()
}

// place is the address of the record or list a target means, "" when the
// viewer has no page for it. Filters and position stay as they are.
func (s *sourcePlan) place(t *understudy.Target) string {
	if t == nil || t.Kind == nil {
		return ""
	}
	k := s.byName[t.Kind.Name]
	if k == nil {
		return ""
	}
	var named []string
	if t.Instance != nil {
		named = t.Instance.ID
	}
	var own understudy.Query
	for _, v := range t.Vars {
		if def, ok := s.fill(v.Name); slices.Contains(named, v.Name) || ok && def == v.Value {
			continue
		}
		own = append(own, understudy.Param{Name: understudy.OwnPrefix + v.Name, Value: v.Value})
	}
	if t.Instance != nil {
		return k.href + "/" + url.PathEscape(t.ID) + withQuery(own)
	}
	for _, l := range k.lists {
		if l.List == t.List {
			paging := &s.Spec.Paging
			query := t.Query.Without(func(p understudy.Param) bool {
				return p.Name == paging.Size && p.Value == strconv.Itoa(paging.Default)
			})
			return (&question{list: l, vars: own}).address(k, "", query, nil)
		}
	}
	return ""
}

func withQuery(q understudy.Query) string {
	if len(q) == 0 {
		return ""
	}
	return "?" + q.String()
}
