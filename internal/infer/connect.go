// Connect: how callers name themselves, and what links records.

package infer

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
)

// style is how a scheme sends a credential, as a spec writes it; "" when no style does.
func style(s openapi.Scheme) string {
	switch {
	case s.Type == "key" && s.In == "header" && strings.EqualFold(s.Name, "Authorization"):
		return styleOf(s.Text)
	case s.Type == "basic" || s.Type == "bearer":
		return s.Type
	case s.Type == "oauth2" || s.Type == "openIdConnect":
		return "bearer"
	case s.Type == "key" && (s.In == "header" || s.In == "query") && compiles(s.In+" "+s.Name, nil):
		return s.In + " " + s.Name
	}
	return ""
}

// keyText is how a description writes a field with a key: a word, and a place holder behind it.
var keyText = regexp.MustCompile(`(?i)([a-z][a-z0-9-]*(?: [a-z_]+=)?) ?["']?(?:<[^>]+>|\{[^}]+\}|\[[^\]]+\]|\$[A-Z_]+|\bYOUR[A-Z_-]+)`)

// headerText matches where a description writes the header with a key, and linkTo a link in Markdown.
var (
	headerText = regexp.MustCompile(`(?i)\bauthorization["'` + "`" + `]?:\s*`)
	linkTo     = regexp.MustCompile(`\[[^\]]*\]\([^)]*\)`)
)

// keyIn finds how a description writes the key: behind the header's name where it has that.
func keyIn(text string) []string {
	text = linkTo.ReplaceAllString(text, "")
	for _, at := range headerText.FindAllStringIndex(text, -1) {
		if m := keyText.FindStringSubmatchIndex(text[at[1]:]); m != nil && m[0] == 0 {
			return keyText.FindStringSubmatch(text[at[1]:])
		}
	}
	return keyText.FindStringSubmatch(text)
}

// styleOf returns the style of a key in Authorization by how the document describes it; bearer where it
// says nothing.
func styleOf(text string) string {
	m := keyIn(text)
	switch {
	case m == nil || strings.EqualFold(m[1], "bearer"):
		return "bearer"
	case strings.EqualFold(m[1], "basic") || m[1] == "token":
		return strings.ToLower(m[1])
	case strings.HasSuffix(m[1], "="):
		return "header Authorization " + m[1] + "{secret}"
	case compiles("header Authorization "+m[1], nil):
		return "header Authorization " + m[1]
	}
	return "bearer"
}

// auth says how requests name their caller.
func (a *api) auth() (sent string, callers []string, why string) {
	var styles []string
	for _, s := range a.doc.Schemes {
		if s.Type == "key" && strings.EqualFold(s.Name, "Authorization") && keyIn(s.Text) == nil {
			a.noteOnce("", "auth: the key stands in Authorization, and nothing says which word is before it: Bearer is likely")
		}
		if one := style(s); one != "" && !slices.Contains(styles, one) {
			styles = append(styles, one)
		}
	}
	var together []string
	for _, s := range a.doc.Together {
		together = append(together, style(s))
	}
	switch {
	case len(together) > 1 && !slices.Contains(together, ""):
		return strings.Join(together, " + "), nil, "the document wants both at once"
	case slices.Contains(styles, "bearer") && slices.Contains(styles, "basic"):
		return "bearer", []string{"bearer", "basic {secret}:"}, "the document has both: clients mostly send a bearer token"
	case len(styles) > 0 && a.seen:
		return styles[0], nil, "as it was asked"
	case len(styles) > 0:
		if len(styles) > 1 {
			a.noteOnce("", "auth: the document has several ways to name a caller: "+strings.Join(styles, ", ")+": the first is taken")
		}
		return styles[0], nil, "the document's security scheme"
	case len(a.doc.Schemes) > 0:
		a.noteOnce("", "auth: callers name themselves in a way that no style here has: requests go without a credential")
		return "none", nil, "left open: no style here is the document's"
	case takesKey(a.doc, a.key) != "":
		return takesKey(a.doc, a.key), nil, "its operations take it"
	case a.doc.Refuses:
		a.noteOnce("", "auth: the document has answers 401 and does not say how callers name themselves: a bearer token is likely")
		return "bearer", nil, "likely: there are answers 401"
	}
	return "none", nil, "the document has no security scheme"
}

// takesKey returns the style of a key that operations take as a header or a parameter, where the document has no
// security scheme; "" = none.
func takesKey(doc *openapi.Document, param string) string {
	for name := range sortedEntries(doc.Headers.Wanted) {
		if isOneOf(name, "xapikey", "apikey", "xauthtoken", "xaccesstoken") && compiles("header "+name, nil) {
			return "header " + name
		}
	}
	if param != "" && doc.Refuses && compiles("query "+param, nil) {
		return "query " + param
	}
	return ""
}

// userVar is the path variable that the source's user fills; "" = none.
func (a *api) userVar(sent string) string {
	if sent != "basic" {
		return ""
	}
	first := map[string]int{}
	for _, l := range a.lists {
		if vars := pathVars(l.op.Path); len(vars) > 0 {
			first[vars[0]]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(first)) {
		if 2*first[name] > len(a.lists) && hasWord(name, "account", "user", "owner", "tenant", "org", "organization", "workspace", "company") {
			return name
		}
	}
	return ""
}

// idEnds are how names end that hold the id of a record of another kind.
var idEnds = []string{"_id", "_sid", "_uuid", "_guid", "Id", "ID"}

const linkByName = "link: by its name"

// link finds the kinds that fields lead to, by their names and schemas.
func (a *api) link() {
	byName, byRef := map[string]*kind{}, map[string]*kind{}
	for _, k := range a.kinds {
		if len(k.id) == 1 {
			byName[foldName(singular(k.name))] = k
			if k.schema != "" {
				byRef[k.schema], byName[foldName(k.ref)] = k, k
			}
		}
	}
	for _, k := range a.kinds {
		for _, f := range k.fields {
			if f.spec.Class != "" || !isScalar(f.schema) || slices.Contains(k.id, f.spec.Name) && len(k.id) == 1 {
				continue
			}
			for _, end := range idEnds {
				if stem, ok := strings.CutSuffix(f.own, end); ok && byName[foldName(stem)] != nil {
					f.spec.Link, f.why = byName[foldName(stem)].name, linkByName
				}
			}
			for _, ref := range f.schema.Refs() {
				if byRef[ref] != nil && f.spec.Link == "" {
					f.spec.Link, f.why = byRef[ref].name, "link: its schema"
				}
			}
		}
	}
}

// findParent returns the field that names the record under which all lists of a kind lie; "" = none, and unsure says so
// where there are such records. user is the variable that the source's user fills.
func (k *kind) findParent(kinds []*kind, user string) (field, unsure string) {
	for i, l := range k.lists {
		free := l.free(user)
		if len(free) == 0 {
			return "", ""
		}
		name := ""
		if before, rest, ok := strings.Cut(l.op.Path, "/{"+free[0]+"}/"); ok && !strings.Contains(rest, "{") {
			name = k.findAbove(kinds, before, free[0])
		}
		if i > 0 && name != field {
			name = ""
		}
		field = name
	}
	switch {
	case len(k.id) == 0 || len(k.lists) == 0:
		return "", ""
	case field == "":
		return "", "its lists lie under other records, and no field surely names that record (parent): it is kept as it is asked for, " +
			"and never synced"
	}
	return field, ""
}

// free returns the variables of the list's path that the source's user does not fill.
func (l *list) free(user string) []string {
	return slices.DeleteFunc(pathVars(l.op.Path), func(name string) bool { return name == user })
}

// findAbove returns the field that names a record of the list at a path, as a variable behind the path does.
func (k *kind) findAbove(kinds []*kind, path, variable string) string {
	for _, p := range kinds {
		at := func(l *list) bool { return below(l.op.Path) == path }
		if _, unsure := p.idVars(path + "/{" + variable + "}"); p == k || len(p.id) != 1 || unsure != "" || !slices.ContainsFunc(p.lists, at) {
			continue
		}
		for _, f := range k.fields {
			named := f.why == linkByName || foldName(f.spec.Name) == foldName(variable)
			if named && f.spec.Link == p.name && f.own == f.spec.Name && !f.schema.Nullable() {
				return f.spec.Name
			}
		}
	}
	return ""
}

// shown finds the fields that show a path variable, in every kind whose lists have it.
func (a *api) shown() map[string]string {
	found, not := map[string]string{}, map[string]bool{}
	for _, k := range a.kinds {
		for _, l := range k.lists {
			for _, v := range pathVars(l.op.Path) {
				i := slices.IndexFunc(k.fields, func(f *field) bool {
					return foldName(f.spec.Name) == foldName(v) && (f.spec.Link != "" || slices.Contains(k.id, f.spec.Name) && len(k.id) > 1)
				})
				if i < 0 || found[v] != "" && found[v] != k.fields[i].spec.Name {
					not[v] = true
				} else {
					found[v] = k.fields[i].spec.Name
				}
			}
		}
	}
	maps.DeleteFunc(found, func(v, _ string) bool { return not[v] })
	return found
}
