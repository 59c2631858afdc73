// Answer: how an API writes a list's answer, for lists that are made from records.

package infer

import (
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
)

// answers finds the form of every list's answer, and says of which it is not known. A form
// that few lists have makes no paging of its own.
func (a *api) answers() {
	forms := map[string]map[string]int{} // how many lists have a form, by what is the same of their paging
	for _, l := range a.lists {
		base := l.cut.rulesKey()
		if forms[base] == nil {
			forms[base] = map[string]int{}
		}
		form, missing := l.answer()
		if missing != "" {
			a.unsure(l.op.Path, "answer: %s: the list is not made from records", missing)
		}
		l.form = form
		forms[base][form]++
	}
	for _, l := range a.lists {
		of := forms[l.cut.rulesKey()]
		most := 0
		for _, n := range of {
			most = max(most, n)
		}
		if n := of[l.form]; n < most && n < 3 {
			l.form = ""
		}
	}
	for _, l := range a.lists {
		l.cut.rules.Template = l.form
		l.cut.why["answer"] = "its members, as the document has them"
	}
}

// answer is the form of a list's answer; missing says why it is not known.
func (l *list) answer() (form, missing string) {
	c := l.cut
	switch {
	case c.rules.Style == "token":
		return "", "its tokens are the API's own"
	case c.rules.Style == "none" && c.caveat != "":
		return "", "whether it has one page is not sure"
	case strings.HasPrefix(c.rules.Next, "header:") || strings.HasPrefix(c.rules.Total, "header:"):
		return "", "a header tells of the other pages"
	case c.rules.Style != "none" && c.rules.Default == 0:
		return "", "nothing says how many rows a page has"
	case l.env.key == "":
		form = "{rows}"
	default:
		form, missing = l.object(l.op.Answer, l.op.Example, "")
	}
	if missing != "" {
		return "", missing
	}
	rules := c.rules
	rules.Tokens = slices.Clone(rules.Tokens)
	if rules.Template = form; rules.Check() != nil {
		return "", "it does not lead on as the paging says"
	}
	return form, ""
}

// object writes an object around the rows, its members in the order of the example.
func (l *list) object(s openapi.Schema, example *openapi.Value, inside string) (form, missing string) {
	props := s.Properties()
	if example != nil && example.Kind == openapi.Object {
		at := func(p openapi.Property) int { return slices.Index(example.Keys, p.Name) }
		if !slices.ContainsFunc(props, func(p openapi.Property) bool { return at(p) < 0 }) {
			slices.SortFunc(props, func(x, y openapi.Property) int { return at(x) - at(y) })
		}
	}
	var parts []string
	for _, p := range props {
		if p.Name == "" || strings.Contains(p.Name, ".") {
			return "", "no name leads to " + quoteJSON(p.Name)
		}
		value, why := l.member(envelopeMember{path: inside + p.Name, schema: p.Schema}, example.Get(p.Name))
		if why != "" {
			return "", why
		}
		name := quoteJSON(p.Name)
		if inside+p.Name == l.env.key {
			name = "{key}"
		}
		parts = append(parts, name+":"+value)
	}
	return "{" + strings.Join(parts, ",") + "}", ""
}

// ofList is how an address is described that is the list's own.
var ofList = regexp.MustCompile(`(?i)\bur[li]\b.*\bthis (?:list|collection)\b`)

// member writes one member beside the rows, or the rows.
func (l *list) member(p envelopeMember, example *openapi.Value) (value, missing string) {
	c, typ, enum := l.cut, p.schema.Type(), p.schema.Enum()
	name := lastPart(p.path)
	switch {
	case p.path == l.env.key:
		return "{rows}", ""
	case p.path == c.rules.Next && c.rules.Style == "body" && (p.schema.Nullable() || example != nil && example.Kind == openapi.Null):
		return l.link(p, example, "next")
	case p.path == c.rules.Next && typ == "boolean", p.path == c.rules.More:
		return "{more}", ""
	case p.path == c.rules.Total:
		return "{total}", ""
	case typ == "object" && len(p.schema.Properties()) > 0 && strings.Count(p.path, ".") < 3:
		return l.object(p.schema, example, p.path+".")
	case typ == "string" && len(enum) == 1:
		return quoteJSON(enum[0]), ""
	case isOneOf(name, "object", "type", "kind") && slices.ContainsFunc([]string{"list", "collection", "page"}, example.IsText):
		return quoteJSON(example.Text), ""
	case typ == "boolean" && isOneOf(name, goodNames...):
		return "true", ""
	case isOneOf(name, stateNames...) && errorState(envelopeMember{path: name, schema: p.schema}) != "":
		return quoteJSON(enum[slices.IndexFunc(enum, isGood)]), ""
	case isOneOf(name, "error") && p.schema.Nullable():
		return "null", ""
	case typ == "integer" && isOneOf(name, totalNames...) && c.rules.Style != "cursor":
		return "{total}", ""
	case typ == "integer" && isOneOf(name, pageNumberNames...) && c.rules.Style != "offset":
		return "{page}", ""
	case typ == "integer" && isOneOf(name, "perpage", "pagesize", "limit", "itemsperpage", "resultsperpage"):
		return "{size}", ""
	case isOneOf(name, "url", "uri", "self", "href") && (strings.HasPrefix(p.schema.Pattern(), "^/") || example.IsText(l.op.Path) ||
		ofList.MatchString(p.schema.Description())):
		return "{path}", ""
	case typ == "string" && isOneOf(name, "first", "firstpage", "firstpageuri", "firstpageurl", "firsturl"):
		return l.link(p, example, "first")
	case typ == "string" && isOneOf(name, "previous", "prev", "previouspage", "previouspageuri", "previouspageurl", "prevurl", "previousurl"):
		return l.link(p, example, "previous")
	}
	return "", "nothing says what stands at " + p.path
}

// link writes a link to another page: relative or absolute, as an example has it.
func (l *list) link(p envelopeMember, example *openapi.Value, word string) (value, missing string) {
	if example == nil || example.Kind != openapi.String {
		example = p.schema.Example()
	}
	switch {
	case example == nil || example.Kind != openapi.String:
	case strings.HasPrefix(example.Text, "/"):
		return "{" + word + "}", ""
	case strings.HasPrefix(example.Text, "http"):
		return "{" + word + "_url}", ""
	}
	return "", "nothing says whether the links at " + p.path + " are absolute"
}

// ofPages matches a place holder that only the answer of a list has.
var ofPages = regexp.MustCompile(`\{(?:total|page|size|more|path|(?:next|first|previous)(?:_url)?)\}`)

// wrap writes what stands around the record in an answer. It reports whether that is known, so that
// a row of a list may answer for the record.
func (in *instance) wrap() bool {
	if in.key == "" {
		return true
	}
	around := &list{op: in.op, env: envelope{key: in.key}, cut: &pagination{}}
	form, missing := around.object(in.op.Answer, in.op.Example, "")
	if ofPages.MatchString(form) {
		missing = "only an answer with pages has them"
	}
	alone := "{" + quoteJSON(in.key) + ":{record}}"
	if in.answer = strings.NewReplacer("{key}", quoteJSON(in.key), "{rows}", "{record}").Replace(form); missing != "" {
		in.answer = alone
	}
	if in.answer == alone && !strings.Contains(in.key, ".") {
		in.answer = "" // it is made so without being named
	}
	return missing == ""
}
