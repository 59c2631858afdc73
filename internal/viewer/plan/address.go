// Address: where the page of a record, a list or a number is.

package plan

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/spec"
)

// ownList says in an address which of a kind's lists is meant, by its slug.
const OwnList = understudy.OwnPrefix + "list"

// Has reports whether a parameter is given.
func Has(q understudy.Query, name string) bool {
	_, ok := q.Get(name)
	return ok
}

// Address is the page of a list: params are its variables and upstream's parameters,
// own the viewer's.
func (l *List) Address(suffix string, params, own understudy.Query) string {
	if l.Kind.Pick("", params) != l {
		params = append(understudy.Query{{Name: OwnList, Value: l.Slug}}, params...)
	}
	return l.Kind.Href + suffix + WithQuery(append(params, own...))
}

// Place is the address of the record or list a target means, "" when the
// viewer has no page for it. Filters and position stay as they are.
func (s *Source) Place(t *spec.Target) string {
	if t == nil || t.Kind == nil {
		return ""
	}
	k := s.ByName[t.Kind.Name]
	if k == nil {
		return ""
	}
	if t.Instance != nil {
		return k.Href + "/" + url.PathEscape(t.ID) + WithQuery(s.Given(t, t.Instance.ID))
	}
	for _, l := range k.PlannedLists {
		if l.Spec == t.List {
			query := t.Query.Without(func(p understudy.Param) bool {
				return p.Name == l.PagingStyle.Size && p.Value == strconv.Itoa(l.PagingStyle.Default)
			})
			return l.Address("", slices.Concat(s.Given(t, nil), query), nil)
		}
	}
	return ""
}

// Given are the path variables of a target that an address must name: not
// those of the id, nor those the source fills with the same.
func (s *Source) Given(t *spec.Target, id []string) understudy.Query {
	var all understudy.Query
	for _, v := range t.Vars {
		def, own := s.Config.PathVar(v.Name)
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

// WithQuery is a query as the end of an address, "" when it is empty.
func WithQuery(q understudy.Query) string {
	if len(q) == 0 {
		return ""
	}
	return "?" + q.String()
}

// Pick is the list an address means: the one it names; else the first whose
// record it names and that knows all its parameters, else the first whose
// record it names, else the first. It is nil when there is none of that name.
func (k *Kind) Pick(slug string, params understudy.Query) *List {
	if slug != "" {
		if i := slices.IndexFunc(k.PlannedLists, func(l *List) bool { return l.Slug == slug }); i >= 0 {
			return k.PlannedLists[i]
		}
		return nil
	}
	var given *List
	for _, l := range k.PlannedLists {
		if l.Lacks(params) {
			continue
		}
		if !slices.ContainsFunc(params, func(p understudy.Param) bool { return !l.knows(p.Name) }) {
			return l
		}
		if given == nil {
			given = l
		}
	}
	if given == nil && len(k.PlannedLists) > 0 {
		return k.PlannedLists[0]
	}
	return given
}

// Lacks reports whether parameters leave out a record that the list lies under, or a filter
// without which upstream refuses it. Of a list that is shown everywhere no root has to be
// given.
func (l *List) Lacks(params understudy.Query) bool {
	return slices.ContainsFunc(l.Needs, func(name string) bool {
		return !Has(params, name) && !(l.Everywhere() && slices.Contains(l.Kind.Source.Spec.Roots.Vars, name))
	}) || slices.ContainsFunc(l.Spec.Filters, func(f *spec.Filter) bool { return f.Required && !Has(params, f.Name) })
}

// knows reports whether a parameter means something to a list.
func (l *List) knows(name string) bool {
	return strings.HasPrefix(name, understudy.OwnPrefix) || slices.Contains(l.Needs, name) || l.Spec.Filter(name) != nil ||
		name != "" && name == l.PagingStyle.Size || IsPosition(l.PagingStyle, name)
}

// IsVar reports whether a parameter is a variable of the list's path.
func (l *List) IsVar(name string) bool {
	own, _ := strings.CutPrefix(name, understudy.OwnPrefix)
	return slices.Contains(l.Needs, name) || IsOwnVar(l.Spec.Template(), name) && !slices.Contains(l.Needs, own)
}

// IsOwnVar reports whether a parameter is a path's variable as the viewer
// names those the source fills: understudy.AccountSid.
func IsOwnVar(path spec.Template, name string) bool {
	own, ok := strings.CutPrefix(name, understudy.OwnPrefix)
	return ok && path.Has(own)
}

// ByName orders parameters.
func ByName(a, b understudy.Param) int { return strings.Compare(a.Name, b.Name) }

// IsPosition reports the parameters that say which page of a list is meant.
func IsPosition(p *spec.Paging, name string) bool {
	return name != "" && p.Position(name)
}

// PathTo is upstream's path of a record: the parts of its id, the parameters of
// the viewer's address and what the source fills in. ok: nothing lacks.
func (k *Kind) PathTo(parts []string, params understudy.Query) (path string, ok bool) {
	in := k.PlannedInstances[0]
	return in.Spec.Template().FillEscaped(func(name string) (string, bool) {
		if i := slices.Index(in.Spec.ID, name); i >= 0 {
			return parts[i], true
		}
		return k.Source.PathVar(params, name)
	})
}

// PathVar returns a path variable as the viewer's address gives it, else as the source does.
func (s *Source) PathVar(params understudy.Query, name string) (string, bool) {
	if given, ok := params.Get(name); ok {
		return given, true
	}
	if given, ok := params.Get(understudy.OwnPrefix + name); ok {
		return given, true
	}
	return s.Config.PathVar(name)
}

// Opens reports whether the page of a record finds it by its id: not when the
// id holds a slash, for one, or is longer than a request can be. Browsers take
// "." and ".." out of an address.
func (k *Kind) Opens(id string, params understudy.Query) bool {
	parts := strings.Split(id, spec.IDSeparator)
	if len(parts) != len(k.Spec.ID) || id == "." || id == ".." {
		return false
	}
	path, ok := k.PathTo(parts, params)
	if !ok {
		return false
	}
	t, err := k.Source.Spec.Target(k.Source.Name, path, "")
	return err == nil && t.Instance == k.PlannedInstances[0].Spec
}

// NumberHref is the page of a number, "" when the text is none. A number is
// E.164, or the few digits of a short code.
func (s *Source) NumberHref(text string) string {
	if !IsNumber(text) {
		return ""
	}
	return "/" + s.Name + "/" + NumberWord + "/" + text
}

// OwnVars are the parameters that give another value to what the source fills.
func OwnVars(q understudy.Query) understudy.Query {
	return q.Without(func(p understudy.Param) bool { return !strings.HasPrefix(p.Name, understudy.OwnPrefix) })
}
