// Connect: how callers name themselves, header fields, errors, and what links records.

package infer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec"
)

// style is how a scheme sends a credential, as a spec writes it; "" when no style does.
func style(s openapi.Scheme) string {
	switch {
	case s.Type == "basic" || s.Type == "bearer":
		return s.Type
	case s.Type == "oauth2" || s.Type == "openIdConnect":
		return "bearer"
	case s.Type == "key" && (s.In == "header" || s.In == "query") && compiles(s.In+" "+s.Name, nil):
		return s.In + " " + s.Name
	}
	return ""
}

// auth says how requests name their caller.
func (a *api) auth() (sent string, callers []string, why string) {
	var styles []string
	for _, s := range a.doc.Schemes {
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
	case len(styles) > 0:
		return styles[0], nil, "the document's security scheme"
	case len(a.doc.Schemes) > 0:
		a.once("", "auth: callers name themselves in a way that no style here has: requests go without a credential")
		return "none", nil, "left open: no style here is the document's"
	case a.doc.Refuses:
		a.once("", "auth: the document has answers 401 and does not say how callers name themselves: a bearer token is likely")
		return "bearer", nil, "likely: there are answers 401"
	}
	return "none", nil, "the document has no security scheme"
}

// userVar is the path variable that the source's user fills; "" = none.
func (a *api) userVar(sent string) string {
	if sent != "basic" {
		return ""
	}
	first := map[string]int{}
	for _, l := range a.lists {
		if vars := varsOf(l.op.Path); len(vars) > 0 {
			first[vars[0]]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(first)) {
		if 2*first[name] > len(a.lists) {
			return name
		}
	}
	return ""
}

// plainHeaders are fields that change no answer, or that every server reads by itself.
var plainHeaders = []string{"Accept", "Accept-Language", "Cache-Control", "If-Modified-Since", "If-None-Match", "Traceparent",
	"X-Correlation-Id", "X-Request-Id"}

// compiles reports whether a spec may have the style and name the header fields.
func compiles(auth string, names []string) bool {
	sp := spec.Spec{Name: "x", Hosts: []spec.Host{{URL: "http://x"}}, Auth: spec.Auth{Style: auth}, Headers: spec.Headers{Write: names}}
	return sp.Compile() == nil
}

// headers sorts the header fields that operations take: those that are passed on with
// writes, those that are part of the question, and those that are always sent.
func (a *api) headers(auth string) (write, key []string, send map[string]string) {
	send = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(a.doc.Wanted)) {
		h := a.doc.Wanted[name]
		switch {
		case slices.Contains(plainHeaders, name) || !compiles(auth, []string{name}):
		case h.Required > 0 && len(h.Values) == 1:
			send[name] = h.Values[0]
		case h.Reads > 0 && len(key) < 8:
			key = append(key, name)
		case h.Writes > 0 && len(write) < 8:
			write = append(write, name)
		}
	}
	return write, key, send
}

// errorTemplate is the form of the API's errors: the body most of its operations answer
// with.
func (a *api) errorTemplate() (template, contentType string) {
	count, kinds := map[string]int{}, map[string]string{}
	for _, op := range a.doc.Reads {
		if text, ok := errorBody(op.Errors, 0); ok && strings.Contains(text, "{message}") {
			count[text]++
			kinds[text] = op.ErrorType
		}
	}
	if len(count) == 0 {
		return "", ""
	}
	template = slices.MaxFunc(slices.Sorted(maps.Keys(count)), func(x, y string) int { return cmp.Compare(count[x], count[y]) })
	return template, kinds[template]
}

// errorBody writes an error of a schema, {message}, {code} and {status} in their places.
func errorBody(s openapi.Schema, depth int) (text string, ok bool) {
	var parts []string
	said := false
	for _, p := range s.Properties() {
		value := ""
		switch typ := p.Schema.Type(); {
		case typ == "string" && !said && is(p.Name, "message", "detail", "errormessage", "msg", "error", "description", "title",
			"errordescription"):
			value, said = "{message}", true
		case (typ == "integer" || typ == "number") && is(p.Name, "status", "statuscode", "httpstatus", "code"):
			value = "{status}"
		case typ == "object" && is(p.Name, "error", "errors", "fault", "meta") && depth < 2:
			if inner, ok := errorBody(p.Schema, depth+1); ok {
				value, said = inner, true
			}
		}
		if value != "" {
			parts = append(parts, quote(p.Name)+":"+value)
		}
	}
	return "{" + strings.Join(parts, ",") + "}", said
}

// idEnds are how names end that hold the id of a record of another kind.
var idEnds = []string{"_id", "_sid", "_uuid", "_guid", "Id", "ID"}

// link finds the kinds that fields lead to, by their names and schemas.
func (a *api) link() {
	byName, byRef := map[string]*kind{}, map[string]*kind{}
	for _, k := range a.kinds {
		if len(k.id) == 1 {
			byName[plain(singular(k.name))] = k
			if k.ref != "" {
				byRef[k.ref], byName[plain(k.ref)] = k, k
			}
		}
	}
	for _, k := range a.kinds {
		for _, f := range k.fields {
			if f.Class != "" || !isScalar(f.schema) || slices.Contains(k.id, f.Name) && len(k.id) == 1 {
				continue
			}
			name := f.Name[strings.LastIndexByte(f.Name, '.')+1:]
			for _, end := range idEnds {
				if stem, ok := strings.CutSuffix(name, end); ok && byName[plain(stem)] != nil {
					f.Link, f.why = byName[plain(stem)].name, "link: by its name"
				}
			}
			for _, ref := range f.schema.Refs() {
				if byRef[ref] != nil && f.Link == "" {
					f.Link, f.why = byRef[ref].name, "link: its schema"
				}
			}
		}
	}
}

// shown finds the fields that show a path variable, in every kind whose lists have it.
func (a *api) shown() map[string]string {
	found, not := map[string]string{}, map[string]bool{}
	for _, k := range a.kinds {
		for _, l := range k.lists {
			for _, v := range varsOf(l.op.Path) {
				i := slices.IndexFunc(k.fields, func(f *field) bool {
					return plain(f.Name) == plain(v) && (f.Link != "" || slices.Contains(k.id, f.Name))
				})
				if i < 0 || found[v] != "" && found[v] != k.fields[i].Name {
					not[v] = true
				} else {
					found[v] = k.fields[i].Name
				}
			}
		}
	}
	maps.DeleteFunc(found, func(v, _ string) bool { return not[v] })
	return found
}
