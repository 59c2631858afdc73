// This file finds out how callers authenticate, and which fields link records to each other.

package infer

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
)

// schemeStyle returns the auth style of a security scheme as a spec writes it, or "" if no style fits.
func schemeStyle(s openapi.Scheme) string {
	switch {
	case s.Type == "key" && s.In == "header" && strings.EqualFold(s.Name, "Authorization"):
		return styleFromText(s.Text)
	case s.Type == "basic" || s.Type == "bearer":
		return s.Type
	case s.Type == "oauth2" || s.Type == "openIdConnect":
		return "bearer"
	case s.Type == "key" && (s.In == "header" || s.In == "query") && canCompile(s.In+" "+s.Name, nil):
		return s.In + " " + s.Name
	}
	return ""
}

// keyPattern matches a key in a description: a word such as Bearer, followed by a placeholder for the secret.
var keyPattern = regexp.MustCompile(`(?i)([a-z][a-z0-9-]*(?: [a-z_]+=)?) ?["']?(?:<[^>]+>|\{[^}]+\}|\[[^\]]+\]|\$[A-Z_]+|\bYOUR[A-Z_-]+)`)

// authorizationPattern matches the name of the Authorization header in a description. markdownLink matches a Markdown link.
var (
	authorizationPattern = regexp.MustCompile(`(?i)\bauthorization["'` + "`" + `]?:\s*`)
	markdownLink         = regexp.MustCompile(`\[[^\]]*\]\([^)]*\)`)
)

// findKeyText returns the match of keyPattern in a description. A match right after "Authorization:" comes first.
func findKeyText(text string) []string {
	text = markdownLink.ReplaceAllString(text, "")
	for _, at := range authorizationPattern.FindAllStringIndex(text, -1) {
		if m := keyPattern.FindStringSubmatchIndex(text[at[1]:]); m != nil && m[0] == 0 {
			return keyPattern.FindStringSubmatch(text[at[1]:])
		}
	}
	return keyPattern.FindStringSubmatch(text)
}

// styleFromText returns the auth style that a description gives for a key in the Authorization header.
// The style is bearer if the description says nothing.
func styleFromText(text string) string {
	m := findKeyText(text)
	switch {
	case m == nil || strings.EqualFold(m[1], "bearer"):
		return "bearer"
	case strings.EqualFold(m[1], "basic") || m[1] == "token":
		return strings.ToLower(m[1])
	case strings.HasSuffix(m[1], "="):
		return "header Authorization " + m[1] + "{secret}"
	case canCompile("header Authorization "+m[1], nil):
		return "header Authorization " + m[1]
	}
	return "bearer"
}

// auth returns the style of the source's credential, the other styles that callers may use, and the reason for
// both.
func (a *api) auth() (sent string, callers []string, why string) {
	var styles []string
	for _, s := range a.doc.Schemes {
		if s.Type == "key" && strings.EqualFold(s.Name, "Authorization") && findKeyText(s.Text) == nil {
			a.noteOnce("", "auth: the key is sent in Authorization, and the document does not say which word comes before it; the spec uses Bearer")
		}
		if one := schemeStyle(s); one != "" && !slices.Contains(styles, one) {
			styles = append(styles, one)
		}
	}
	var together []string
	for _, s := range a.doc.Combined {
		together = append(together, schemeStyle(s))
	}
	switch {
	case len(together) > 1 && !slices.Contains(together, ""):
		return strings.Join(together, " + "), nil, "the document requires both at once"
	case slices.Contains(styles, "bearer") && slices.Contains(styles, "basic"):
		return "bearer", []string{"bearer", "basic {secret}:"}, "the document allows both; most clients send a bearer token"
	case len(styles) > 0 && a.observed:
		return styles[0], nil, "the credential of the requests for this draft"
	case len(styles) > 0:
		if len(styles) > 1 {
			a.noteOnce("", "auth: the document allows several kinds of credentials: "+strings.Join(styles, ", ")+"; the spec uses the first")
		}
		return styles[0], nil, "the document's security scheme"
	case len(a.doc.Schemes) > 0:
		a.noteOnce("", "auth: a spec cannot describe this API's kind of credential; requests are sent without a credential")
		return "none", nil, "a spec cannot describe the document's kind of credential"
	case findKeyStyle(a.doc, a.credentialParam) != "":
		return findKeyStyle(a.doc, a.credentialParam), nil, "its operations accept a key there"
	case a.doc.Has401:
		a.noteOnce("", "auth: the document has answers with status 401, but no kind of credential; the spec uses a bearer token")
		return "bearer", nil, "a guess: the document has answers with status 401"
	}
	return "none", nil, "the document has no security scheme"
}

// findKeyStyle returns the auth style of a key that operations accept as a header or a query parameter, or "" if
// there is no such key. It is for documents without a security scheme.
func findKeyStyle(doc *openapi.Document, param string) string {
	for name := range sortedEntries(doc.Headers.Requests) {
		if isOneOf(name, "xapikey", "apikey", "xauthtoken", "xaccesstoken") && canCompile("header "+name, nil) {
			return "header " + name
		}
	}
	if param != "" && doc.Has401 && canCompile("query "+param, nil) {
		return "query " + param
	}
	return ""
}

// userVar returns the path variable whose value is the source's user, or "" if there is none.
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

// idSuffixes are the endings of field names that contain the id of a record of another kind.
var idSuffixes = []string{"_id", "_sid", "_uuid", "_guid", "Id", "ID"}

const linkByName = "link: by its name"

// link finds, by field names and schemas, the kinds whose records the fields refer to.
func (a *api) link() {
	byName, byRef := map[string]*kind{}, map[string]*kind{}
	for _, k := range a.kinds {
		if len(k.id) == 1 {
			byName[foldName(singular(k.name))] = k
			if k.schemaRef != "" {
				byRef[k.schemaRef], byName[foldName(k.schemaName)] = k, k
			}
		}
	}
	for _, k := range a.kinds {
		for _, f := range k.fields {
			if f.spec.Class != "" || !isScalar(f.schema) || slices.Contains(k.id, f.spec.Name) && len(k.id) == 1 {
				continue
			}
			for _, end := range idSuffixes {
				if stem, ok := strings.CutSuffix(f.ownName, end); ok && byName[foldName(stem)] != nil {
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

// findParent returns the field with the id of the parent record, if all lists of the kind have that id in their
// path. It returns "" if there is none. If there are parent records but no such field, unsure explains why. user is
// the path variable whose value is the source's user.
func (k *kind) findParent(kinds []*kind, user string) (field, unsure string) {
	for i, l := range k.lists {
		free := slices.DeleteFunc(pathVars(l.op.Path), func(name string) bool { return name == user })
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
		return "", "its lists are below other records, but no field is certainly the id of that record (parent); its records are stored when " +
			"a client requests them, and it is never synced"
	}
	return field, ""
}

// findAbove returns the field that holds the id of a record from the list at path. The given variable, which
// follows path, holds the same id.
func (k *kind) findAbove(kinds []*kind, path, variable string) string {
	for _, p := range kinds {
		at := func(l *list) bool { return trimExtension(l.op.Path) == path }
		if _, unsure := p.idVars(path + "/{" + variable + "}"); p == k || len(p.id) != 1 || unsure != "" || !slices.ContainsFunc(p.lists, at) {
			continue
		}
		for _, f := range k.fields {
			named := f.why == linkByName || foldName(f.spec.Name) == foldName(variable)
			if named && f.spec.Link == p.name && f.ownName == f.spec.Name && !f.schema.IsNullable() {
				return f.spec.Name
			}
		}
	}
	return ""
}

// findShownVariables maps path variables to a field with the same value. Every kind whose lists use the variable
// has that field.
func (a *api) findShownVariables() map[string]string {
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
