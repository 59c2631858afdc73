// The address of a list query: its canonical form, and where its neighbours are.

package viewer

import (
	"net/url"
	"slices"
	"strconv"

	"understudy"
)

func has(q understudy.Query, name string) bool {
	_, ok := q.Get(name)
	return ok
}

// sibling is the filter of a list on the same field with another meaning.
func sibling(l *List, f *understudy.Filter, op string) *understudy.Filter {
	for _, other := range l.Filters {
		if other.Op == op && other.Field == f.Field && other.Field != "" {
			return other
		}
	}
	return nil
}

// address is the viewer's address of a query with another position: query
// holds upstream's parameters, back the newer pages.
func (ask *listQuery) address(suffix string, query understudy.Query, back []string) string {
	own := append(ask.arrangement.params(), ask.asOf.param()...)
	for _, b := range back[max(0, len(back)-maxBack):] {
		own = append(own, understudy.Param{Name: ownBack, Value: b})
	}
	return ask.list.address(suffix, slices.Concat(ask.vars, query), own)
}

// address is the page of a list: params are its variables and upstream's parameters,
// own the viewer's.
func (l *List) address(suffix string, params, own understudy.Query) string {
	if l.kind.pick("", params) != l {
		params = append(understudy.Query{{Name: ownList, Value: l.slug}}, params...)
	}
	return l.kind.href + suffix + withQuery(append(params, own...))
}

// place is the address of the record or list a target means, "" when the
// viewer has no page for it. Filters and position stay as they are.
func (s *Source) place(t *understudy.Target) string {
	if t == nil || t.Kind == nil {
		return ""
	}
	k := s.byName[t.Kind.Name]
	if k == nil {
		return ""
	}
	if t.Instance != nil {
		return k.href + "/" + url.PathEscape(t.ID) + withQuery(s.given(t, t.Instance.ID))
	}
	for _, l := range k.PlannedLists {
		if l.List == t.List {
			query := t.Query.Without(func(p understudy.Param) bool {
				return p.Name == l.PagingStyle.Size && p.Value == strconv.Itoa(l.PagingStyle.Default)
			})
			return l.address("", slices.Concat(s.given(t, nil), query), nil)
		}
	}
	return ""
}

// given are the path variables of a target that an address must name: not
// those of the id, nor those the source fills with the same.
func (s *Source) given(t *understudy.Target, id []string) understudy.Query {
	var all understudy.Query
	for _, v := range t.Vars {
		def, own := s.fill(v.Name)
		switch {
		case slices.Contains(id, v.Name), own && def == v.Value:
		case own:
			all = append(all, understudy.Param{Name: understudy.OwnPrefix + v.Name, Value: v.Value})
		default:
			all = append(all, understudy.Param{Name: v.Name, Value: v.Value})
		}
	}
	return all
}

func withQuery(q understudy.Query) string {
	if len(q) == 0 {
		return ""
	}
	return "?" + q.String()
}
