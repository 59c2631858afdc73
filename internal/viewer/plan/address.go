// The addresses of the viewer's pages for records, lists and phone numbers.

package plan

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/spec"
)

// OwnList is the parameter that chooses one of a kind's lists by its slug.
const OwnList = understudy.OwnPrefix + "list"

// HasParam reports whether a query has a parameter.
func HasParam(q understudy.Query, name string) bool {
	_, ok := q.Get(name)
	return ok
}

// Address returns the viewer's address of a list. params are the list's path variables and upstream's parameters. own
// are parameters that belong to the viewer.
func (l *List) Address(suffix string, params, own understudy.Query) string {
	if l.Kind.FindList("", params) != l {
		params = append(understudy.Query{{Name: OwnList, Value: l.Slug}}, params...)
	}
	return l.Kind.Href + suffix + WithQuery(append(params, own...))
}

// Place returns the viewer's address of a record or list, or "" if the viewer has no page for it. The address keeps
// the filters and the position in the list.
func (s *Source) Place(t *spec.Target) string {
	if t == nil || t.Kind == nil {
		return ""
	}
	k := s.ByName[t.Kind.Name]
	if k == nil {
		return ""
	}
	if t.Instance != nil {
		return k.Href + "/" + url.PathEscape(t.ID) + WithQuery(s.AddressVars(t, t.Instance.ID))
	}
	for _, l := range k.PlannedLists {
		if l.Spec == t.List {
			query := t.Query.Remove(func(p understudy.Param) bool {
				return p.Name == l.PagingStyle.Size && p.Value == strconv.Itoa(l.PagingStyle.Default)
			})
			return l.Address("", slices.Concat(s.AddressVars(t, nil), query), nil)
		}
	}
	return ""
}

// AddressVars returns the path variables that the viewer's address of a target needs. It leaves out variables that
// are part of the record's id, and those to which the source gives the same value.
func (s *Source) AddressVars(t *spec.Target, id []string) understudy.Query {
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

// WithQuery returns a query with a "?" before it, as the end of an address. It returns "" if the query is empty.
func WithQuery(q understudy.Query) string {
	if len(q) == 0 {
		return ""
	}
	return "?" + q.String()
}

// FindList returns the list that an address names by its slug. Without a slug, it returns the first list whose parent
// record is in the parameters and that accepts all of them, else the first whose parent record is in the parameters,
// else the first list. It returns nil if the kind has no list with the slug.
func (k *Kind) FindList(slug string, params understudy.Query) *List {
	if slug != "" {
		if i := slices.IndexFunc(k.PlannedLists, func(l *List) bool { return l.Slug == slug }); i >= 0 {
			return k.PlannedLists[i]
		}
		return nil
	}
	var given *List
	for _, l := range k.PlannedLists {
		if l.IsMissing(params) {
			continue
		}
		if !slices.ContainsFunc(params, func(p understudy.Param) bool { return !l.hasParam(p.Name) }) {
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

// IsMissing reports whether an address lacks the id of the list's parent record, or a filter without which upstream
// refuses the list. A list of all roots needs no value for the root.
func (l *List) IsMissing(params understudy.Query) bool {
	return slices.ContainsFunc(l.Needs, func(name string) bool {
		return !HasParam(params, name) && !(l.IsAcrossRoots() && slices.Contains(l.Kind.Source.Spec.Roots.Vars, name))
	}) || slices.ContainsFunc(l.Spec.Filters, func(f *spec.Filter) bool { return f.Required && !HasParam(params, f.Name) })
}

func (l *List) hasParam(name string) bool {
	return strings.HasPrefix(name, understudy.OwnPrefix) || slices.Contains(l.Needs, name) || l.Spec.Filter(name) != nil ||
		name != "" && name == l.PagingStyle.Size || IsPosition(l.PagingStyle, name)
}

// IsVar reports whether a parameter is a variable of the list's path.
func (l *List) IsVar(name string) bool {
	own, _ := strings.CutPrefix(name, understudy.OwnPrefix)
	return slices.Contains(l.Needs, name) || IsOwnVar(l.Spec.Template(), name) && !slices.Contains(l.Needs, own)
}

// IsOwnVar reports whether a parameter such as understudy.AccountSid replaces the value that the source gives to a
// path variable.
func IsOwnVar(path spec.Template, name string) bool {
	own, ok := strings.CutPrefix(name, understudy.OwnPrefix)
	return ok && path.Has(own)
}

// CompareNames compares two parameters by their names, for sorting.
func CompareNames(a, b understudy.Param) int { return strings.Compare(a.Name, b.Name) }

// IsPosition reports whether a parameter contains the position of a page in a list.
func IsPosition(p *spec.Paging, name string) bool {
	return name != "" && p.IsPosition(name)
}

// PathTo returns upstream's path of a record. The values of its variables come from the parts of the id, the
// parameters of the viewer's address, and the source. ok is false if a value is missing.
func (k *Kind) PathTo(parts []string, params understudy.Query) (path string, ok bool) {
	in := k.PlannedInstances[0]
	return in.Spec.Template().FillEscaped(func(name string) (string, bool) {
		if i := slices.Index(in.Spec.ID, name); i >= 0 {
			return parts[i], true
		}
		return k.Source.PathVar(params, name)
	})
}

// PathVar returns the value of a path variable from the parameters of the viewer's address. Without such a parameter
// it returns the value that the source gives to the variable.
func (s *Source) PathVar(params understudy.Query, name string) (string, bool) {
	if given, ok := params.Get(name); ok {
		return given, true
	}
	if given, ok := params.Get(understudy.OwnPrefix + name); ok {
		return given, true
	}
	return s.Config.PathVar(name)
}

// CanOpen reports whether the viewer has a page for a record with this id. It has none if the id contains a slash or
// is too long, for example, or if it is "." or "..", which browsers remove from addresses.
func (k *Kind) CanOpen(id string, params understudy.Query) bool {
	parts := strings.Split(id, spec.IDSeparator)
	if len(parts) != len(k.Spec.ID) || id == "." || id == ".." {
		return false
	}
	path, ok := k.PathTo(parts, params)
	if !ok {
		return false
	}
	t, err := k.Source.Spec.Resolve(k.Source.Name, path, "")
	return err == nil && t.Instance == k.PlannedInstances[0].Spec
}

// NumberHref returns the address of a phone number's page. It returns "" if the text is neither a number in E.164 nor
// a short code.
func (s *Source) NumberHref(text string) string {
	if !IsNumber(text) {
		return ""
	}
	return "/" + s.Name + "/" + NumberWord + "/" + text
}

// OwnVars returns the parameters with the viewer's prefix, which replace values that the source gives to path variables.
func OwnVars(q understudy.Query) understudy.Query {
	return q.Remove(func(p understudy.Param) bool { return !strings.HasPrefix(p.Name, understudy.OwnPrefix) })
}
