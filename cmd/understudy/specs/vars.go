// Vars: the values of path variables, and of parameters that a list requires.

package specs

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"understudy/spec"
)

// describePath returns a path without the names of its variables and without a file extension, so that paths can be compared.
func describePath(segments []spec.Segment) string {
	var b strings.Builder
	for i, s := range segments {
		text := s.Head
		if s.Name != "" {
			text += "{}" + s.Tail
		}
		if i == len(segments)-1 {
			text, _, _ = strings.Cut(text, ".")
		}
		b.WriteString("/" + text)
	}
	return b.String()
}

// fill replaces the variables of a path by values. It looks for a value in also, then in --var, then in the user, and
// then in the id of a record of the list before the variable. missing is the name of a variable that has no value.
func (t *trial) fill(template spec.Template, also map[string]string) (path, missing string) {
	at := -1
	path, _ = template.FillEscaped(func(name string) (string, bool) {
		for at++; template.Segments()[at].Name == ""; at++ {
		}
		values := []string{also[name], t.options.Vars[name], "", t.ids[describePath(template.Segments()[:at])]}
		if t.spec.Vars[name] == "user" {
			values[2] = t.options.As.User
		}
		if i := slices.IndexFunc(values, func(v string) bool { return v != "" }); i >= 0 {
			return values[i], true
		}
		missing = name
		return "", false
	})
	return path, missing
}

// requiredQuery returns a query with the parameters that a list requires. missing is the name of a parameter that has no value.
func (t *trial) requiredQuery(l *spec.List) (query, missing string) {
	q := url.Values{}
	for _, f := range l.Filters {
		switch value := t.options.Vars[f.Name]; {
		case !f.Required:
		case value == "":
			return "", f.Name
		default:
			q.Set(f.Name, value)
		}
	}
	return q.Encode(), ""
}

// ReadVars parses values in the form NAME=VALUE.
func ReadVars(texts []string) (map[string]string, error) {
	vars := map[string]string{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("--var %q: write NAME=VALUE", text)
		}
		vars[name] = value
	}
	return vars, nil
}
