// This file finds the parameters of a list that select or order its records.

package infer

import (
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec"
)

// filter is a parameter of a list that selects records, with the reasons for what is known about it.
type filter struct {
	spec spec.Filter
	why  string
}

// rangeEdges are the words after a field's name that mark the start or the end of a range, and their operators.
var rangeEdges = []struct {
	words []string
	op    string
	open  bool
}{
	{[]string{"gte", "ge", "min", "since", "from", "start"}, "since", false},
	{[]string{"gt", "after"}, "since", true},
	{[]string{"lte", "le", "max", "until", "to", "end"}, "until", false},
	{[]string{"lt", "before"}, "before", false},
}

// bracketPattern matches parameters such as filter[status] and filter[created][gte].
var bracketPattern = regexp.MustCompile(`^filters?\[([^\]]+)\](.*)$`)

// anyValues are filter values that usually select all records.
var anyValues = []string{"all", "any"}

// Words in the name of a boolean parameter: words for records that lists usually leave out, beginnings that mean
// "include", and members beside the records.
var (
	leftOutWords = []string{"all", "archived", "cancelled", "canceled", "closed", "completed", "deactivated", "deleted", "deprecated",
		"disabled", "drafts", "expired", "hidden", "inactive", "removed", "revoked", "suspended", "terminated", "trashed"}
	includeWords    = []string{"include", "includes", "with", "show"}
	besideRowsWords = []string{"total", "totals", "count", "counts", "meta", "metadata", "pagination", "stats", "statistics"}
)

// isWidening reports whether the name of a boolean parameter says that the list then returns more records.
func isWidening(name string) bool {
	all := splitWords(name)
	return !hasWord(name, besideRowsWords...) && (hasWord(name, leftOutWords...) || len(all) > 1 && slices.Contains(includeWords, all[0]))
}

// findFilters adds the list's parameters that select by a field, order the records, widen the list or add totals.
func findFilters(l *list, k *kind) {
	at := func(name string) *field {
		for _, f := range k.fields {
			outer := strings.TrimSuffix(f.spec.Name, f.ownName)
			same := foldName(f.ownName) == foldName(name) && !strings.Contains(f.ownName, ".") && (outer == "" || foldName(outer) == "attributes")
			if same && f.spec.Class != spec.ClassSecret {
				return f
			}
		}
		return nil
	}
	for _, p := range l.op.Params {
		if r := &l.paging.rules; p.In != "query" || slices.Contains(append(slices.Clip(r.Tokens), r.Size, r.Page, r.Cursor), p.Name) {
			continue
		}
		if isOneOf(p.Name, "sort", "order", "orderby", "sortby", "direction", "sortorder", "sortdirection", "dir") && p.Schema.Default() != "" {
			l.filters = append(l.filters, &filter{spec.Filter{Name: p.Name, Op: "order", Meaning: spec.Meaning{Default: p.Schema.Default()}},
				"its name, its default"})
			continue
		}
		if p.Schema.Type() == "boolean" && p.Schema.Default() == "false" && !p.Required && at(p.Name) == nil {
			switch {
			case isWidening(p.Name):
				l.filters = append(l.filters, &filter{spec.Filter{Name: p.Name, Op: "widen", Meaning: spec.Meaning{Default: "false"}},
					"it is off by default, and its name says that it adds records"})
				continue
			case hasWord(p.Name, besideRowsWords...):
				l.filters = append(l.filters, &filter{spec.Filter{Name: p.Name, Op: "aside", Meaning: spec.Meaning{Default: "false"}},
					"it is off by default, and its name says that it adds members next to the rows"})
				continue
			}
		}
		l.addFilter(p.Name, p.Schema, at)
		if p.Required {
			l.addRequired(p.Name)
		}
		if p.Schema.Type() == "object" {
			for _, member := range p.Schema.Properties() {
				l.addFilter(p.Name+"["+member.Name+"]", member.Schema, at)
			}
		}
	}
}

// addRequired marks a parameter as required. A sync does not walk a list without its required parameters.
func (l *list) addRequired(name string) {
	i := slices.IndexFunc(l.filters, func(f *filter) bool { return f.spec.Name == name })
	if i < 0 {
		i, l.filters = len(l.filters), append(l.filters, &filter{spec: spec.Filter{Name: name}})
	}
	if f := l.filters[i]; f.spec.Op != "order" {
		f.spec.Meaning.Required, f.spec.Meaning.Default, f.why = true, "", "the document requires it"
	}
}

// addFilter adds the parameter as a filter if it selects records by a field.
func (l *list) addFilter(name string, s openapi.Schema, at func(string) *field) {
	f := &filter{spec: spec.Filter{Name: name}}
	if m := bracketPattern.FindStringSubmatch(name); m != nil {
		name = m[1] + m[2]
	}
	field := at(name)
	if field != nil {
		if s.Type() == "array" || s.Type() == "object" || !isScalar(field.schema) && field.spec.Type != spec.TypeBool {
			return
		}
		f.why = "a field has the same name"
	} else if field = f.findEdge(name, at); field == nil {
		return
	}
	f.spec.Field, f.spec.Type = field.spec.Name, field.spec.Type
	if f.spec.Op == "" {
		f.addValues(s)
	}
	l.filters = append(l.filters, f)
}

// findEdge parses a name such as created[gte] or created_after. It returns the time field, or nil for other names.
func (f *filter) findEdge(name string, at func(string) *field) *field {
	all := splitWords(name)
	if len(all) < 2 {
		return nil
	}
	for _, e := range rangeEdges {
		if !slices.Contains(e.words, all[len(all)-1]) {
			continue
		}
		stem := strings.Join(all[:len(all)-1], "_")
		for _, name := range []string{stem, stem + "_at", "date_" + stem} {
			if field := at(name); field != nil && field.isTime() && field.spec.Type != spec.TypeMillis {
				f.spec.Op, f.spec.Exclusive, f.why = e.op, e.open, "a limit of a time range, by its name"
				return field
			}
		}
	}
	return nil
}

// addValues sets the choices of a filter, its default, and the values that select all records.
func (f *filter) addValues(s openapi.Schema) {
	enum := s.Enum()
	if len(enum) > 1 && len(enum) <= 30 {
		f.spec.Type = spec.TypeSelect
	}
	for _, v := range enum {
		if low := strings.ToLower(v); slices.Contains(anyValues, low) || strings.HasSuffix(low, "_unspecified") {
			f.spec.Meaning.SelectAll = append(f.spec.Meaning.SelectAll, v)
		} else if f.spec.Type == spec.TypeSelect {
			f.spec.Values = append(f.spec.Values, v)
		}
	}
	if d := s.Default(); d != "" && !slices.Contains(f.spec.Meaning.SelectAll, d) && f.spec.Type != spec.TypeBool {
		f.spec.Meaning.Default = d
		f.why += ", its default"
	}
}
