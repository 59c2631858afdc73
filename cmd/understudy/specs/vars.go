// Vars: what fills the variables of paths, and the parameters that lists require.

package specs

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"understudy/spec"
)

// listPath is a path without the names of its variables and the ending of its last segment.
func listPath(segments []spec.Segment) string {
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

// fill puts values in place of a path's variables: those given, those of the command line,
// the user, and else the id of a record of the list at the path before the variable.
// missing is one that is not known.
func (t *trial) fill(template spec.Template, also map[string]string) (path, missing string) {
	at := -1
	path, _ = template.FillEscaped(func(name string) (string, bool) {
		for at++; template.Segments()[at].Name == ""; at++ {
		}
		values := []string{also[name], t.o.Vars[name], "", t.seen[listPath(template.Segments()[:at])]}
		if t.spec.Vars[name] == "user" {
			values[2] = t.o.As.User
		}
		if i := slices.IndexFunc(values, func(v string) bool { return v != "" }); i >= 0 {
			return values[i], true
		}
		missing = name
		return "", false
	})
	return path, missing
}

// demanded is the query without which the API refuses a list. missing is a parameter that is
// not given.
func (t *trial) demanded(l *spec.List) (query, missing string) {
	q := url.Values{}
	for _, f := range l.Filters {
		switch value := t.o.Vars[f.Name]; {
		case !f.Required:
		case value == "":
			return "", f.Name
		default:
			q.Set(f.Name, value)
		}
	}
	return q.Encode(), ""
}

// ReadVars reads NAME=VALUE.
func ReadVars(texts []string) (map[string]string, error) {
	vars := map[string]string{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("--var %q: want NAME=VALUE", text)
		}
		vars[name] = value
	}
	return vars, nil
}
