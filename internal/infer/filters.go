// Filters: the parameters of a list that select by a field of its records.

package infer

import (
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec"
)

// filter is one parameter of a list.
type filter struct {
	spec spec.Filter
	why  string
}

// edges are how APIs spell the edges of a range behind a field's name, and what they mean.
var edges = []struct {
	words []string
	op    string
	open  bool
}{
	{[]string{"gte", "ge", "min", "since", "from", "start"}, "since", false},
	{[]string{"gt", "after"}, "since", true},
	{[]string{"lte", "le", "max", "until", "to", "end"}, "until", false},
	{[]string{"lt", "before"}, "before", false},
}

// bracketed is how some APIs write the parameters that select: filter[status], filter[created][gte].
var bracketed = regexp.MustCompile(`^filters?\[([^\]]+)\](.*)$`)

// anyValue are values that usually narrow nothing.
var anyValue = []string{"all", "any"}

// Words in the name of a switch: those of records that lists usually leave out, those that begin a
// name of what is shown besides, and those of what stands around the records.
var (
	leftOut = []string{"all", "archived", "cancelled", "canceled", "closed", "completed", "deactivated", "deleted", "deprecated", "disabled",
		"drafts", "expired", "hidden", "inactive", "removed", "revoked", "suspended", "terminated", "trashed"}
	shown  = []string{"include", "includes", "with", "show"}
	around = []string{"total", "totals", "count", "counts", "meta", "metadata", "pagination", "stats", "statistics"}
)

// widens reports whether the name of a switch says that it shows more records.
func widens(name string) bool {
	all := splitWords(name)
	return !hasWord(name, around...) && (hasWord(name, leftOut...) || len(all) > 1 && slices.Contains(shown, all[0]))
}

// filtersOf finds the parameters of a list that select by a field, and those that order.
func filtersOf(l *list, k *kind) {
	at := func(name string) *field {
		for _, f := range k.fields {
			outer := strings.TrimSuffix(f.spec.Name, f.own)
			same := foldName(f.own) == foldName(name) && !strings.Contains(f.own, ".") && (outer == "" || foldName(outer) == "attributes")
			if same && f.spec.Class != spec.ClassSecret {
				return f
			}
		}
		return nil
	}
	for _, p := range l.op.Params {
		if r := &l.cut.rules; p.In != "query" || slices.Contains(append(slices.Clip(r.Tokens), r.Size, r.Page, r.Cursor), p.Name) {
			continue
		}
		if isOneOf(p.Name, "sort", "order", "orderby", "sortby", "direction", "sortorder", "sortdirection", "dir") && p.Schema.Default() != "" {
			l.filters = append(l.filters, &filter{spec.Filter{Name: p.Name, Op: "order", Meaning: spec.Meaning{Default: p.Schema.Default()}},
				"its name, its default"})
			continue
		}
		if p.Schema.Type() == "boolean" && p.Schema.Default() == "false" && !p.Required && at(p.Name) == nil {
			switch {
			case widens(p.Name):
				l.filters = append(l.filters, &filter{spec.Filter{Name: p.Name, Op: "widen", Meaning: spec.Meaning{Default: "false"}},
					"it shows more records, by its name; it is off by default"})
				continue
			case hasWord(p.Name, around...):
				l.filters = append(l.filters, &filter{spec.Filter{Name: p.Name, Op: "aside", Meaning: spec.Meaning{Default: "false"}},
					"it says more around the records, by its name; it is off by default"})
				continue
			}
		}
		l.addFilter(p.Name, p.Schema, at)
		if p.Required {
			l.demand(p.Name)
		}
		if p.Schema.Type() == "object" {
			for _, member := range p.Schema.Properties() {
				l.addFilter(p.Name+"["+member.Name+"]", member.Schema, at)
			}
		}
	}
}

// demand makes a parameter required: the list is not walked without it.
func (l *list) demand(name string) {
	i := slices.IndexFunc(l.filters, func(f *filter) bool { return f.spec.Name == name })
	if i < 0 {
		i, l.filters = len(l.filters), append(l.filters, &filter{spec: spec.Filter{Name: name}})
	}
	if f := l.filters[i]; f.spec.Op != "order" {
		f.spec.Meaning.Required, f.spec.Meaning.Default, f.why = true, "", "the document requires it"
	}
}

// addFilter adds the filter that a parameter is, if it is one.
func (l *list) addFilter(name string, s openapi.Schema, at func(string) *field) {
	f := &filter{spec: spec.Filter{Name: name}}
	if m := bracketed.FindStringSubmatch(name); m != nil {
		name = m[1] + m[2]
	}
	field := at(name)
	if field != nil {
		if s.Type() == "array" || s.Type() == "object" || !isScalar(field.schema) && field.spec.Type != spec.TypeBool {
			return
		}
		f.why = "a field has its name"
	} else if field = f.edge(name, at); field == nil {
		return
	}
	f.spec.Field, f.spec.Type = field.spec.Name, field.spec.Type
	if f.spec.Op == "" {
		f.values(s)
	}
	l.filters = append(l.filters, f)
}

// edge reads a name that ends with the edge of a range: created[gte], created_after.
func (f *filter) edge(name string, at func(string) *field) *field {
	all := splitWords(name)
	if len(all) < 2 {
		return nil
	}
	for _, e := range edges {
		if !slices.Contains(e.words, all[len(all)-1]) {
			continue
		}
		stem := strings.Join(all[:len(all)-1], "_")
		for _, name := range []string{stem, stem + "_at", "date_" + stem} {
			if field := at(name); field != nil && field.isTime() && field.spec.Type != spec.TypeMillis {
				f.spec.Op, f.spec.Exclusive, f.why = e.op, e.open, "an edge of a field's time, by its name"
				return field
			}
		}
	}
	return nil
}

// values notes the choices of a filter, its default, and the values that narrow nothing.
func (f *filter) values(s openapi.Schema) {
	enum := s.Enum()
	if len(enum) > 1 && len(enum) <= 30 {
		f.spec.Type = spec.TypeSelect
	}
	for _, v := range enum {
		if low := strings.ToLower(v); slices.Contains(anyValue, low) || strings.HasSuffix(low, "_unspecified") {
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
