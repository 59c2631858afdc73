// This file finds the template of an API's list responses, for lists that are made from stored records.

package infer

import (
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
)

// findAnswerTemplates finds the response template of every list and notes the lists without a template. A template
// of fewer than three lists is dropped if another template is more common, so that it needs no paging entry.
func (a *api) findAnswerTemplates() {
	forms := map[string]map[string]int{} // the number of lists with each template, by the paging rules that the lists share
	for _, l := range a.lists {
		base := l.paging.rulesKey()
		if forms[base] == nil {
			forms[base] = map[string]int{}
		}
		form, missing := l.findAnswerTemplate()
		if missing != "" {
			a.addCaveat(l.op.Path, "answer: %s; the list is never composed from stored records", missing)
		}
		l.answerTemplate = form
		forms[base][form]++
	}
	for _, l := range a.lists {
		of := forms[l.paging.rulesKey()]
		most := 0
		for _, n := range of {
			most = max(most, n)
		}
		if n := of[l.answerTemplate]; n < most && n < 3 {
			l.answerTemplate = ""
		}
	}
	for _, l := range a.lists {
		l.paging.rules.Template = l.answerTemplate
		l.paging.why["answer"] = "the members of its answer, as in the document"
	}
}

// findAnswerTemplate returns the template of the list's response. If there is none, missing says why.
func (l *list) findAnswerTemplate() (form, missing string) {
	c := l.paging
	switch {
	case c.rules.Style == "token":
		return "", "only the API can make its page tokens"
	case c.rules.Style == "none" && c.caveat != "":
		return "", "it is not certain that the list has only one page"
	case strings.HasPrefix(c.rules.Next, "header:") || strings.HasPrefix(c.rules.Total, "header:"):
		return "", "a header field describes the other pages"
	case c.rules.Style != "none" && c.rules.Default == 0:
		return "", "it is not known how many rows a page has"
	case l.envelope.key == "":
		form = "{rows}"
	default:
		form, missing = l.writeObject(l.op.Answer, l.op.Example, "")
	}
	if missing != "" {
		return "", missing
	}
	rules := c.rules
	rules.Tokens = slices.Clone(rules.Tokens)
	if rules.Template = form; rules.Check() != nil {
		return "", "the members of the answer do not match the paging"
	}
	return form, ""
}

// writeObject returns the template of an object that contains the rows. Its members are in the order of the example.
func (l *list) writeObject(s openapi.Schema, example *openapi.Value, inside string) (form, missing string) {
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
			return "", "a spec cannot name the member " + quoteJSON(p.Name)
		}
		value, why := l.writeMember(envelopeMember{path: inside + p.Name, schema: p.Schema}, example.Get(p.Name))
		if why != "" {
			return "", why
		}
		name := quoteJSON(p.Name)
		if inside+p.Name == l.envelope.key {
			name = "{key}"
		}
		parts = append(parts, name+":"+value)
	}
	return "{" + strings.Join(parts, ",") + "}", ""
}

// ownAddress matches the description of a member that is the list's own URL.
var ownAddress = regexp.MustCompile(`(?i)\bur[li]\b.*\bthis (?:list|collection)\b`)

// writeMember returns the template of the rows or of another member of the response.
func (l *list) writeMember(p envelopeMember, example *openapi.Value) (value, missing string) {
	c, typ, enum := l.paging, p.schema.Type(), p.schema.Enum()
	name := lastPart(p.path)
	switch {
	case p.path == l.envelope.key:
		return "{rows}", ""
	case p.path == c.rules.Next && c.rules.Style == "body" && (p.schema.IsNullable() || example != nil && example.Kind == openapi.Null):
		return l.writeLink(p, example, "next")
	case p.path == c.rules.Next && typ == "boolean", p.path == c.rules.More:
		return "{more}", ""
	case p.path == c.rules.Total:
		return "{total}", ""
	case typ == "object" && len(p.schema.Properties()) > 0 && strings.Count(p.path, ".") < 3:
		return l.writeObject(p.schema, example, p.path+".")
	case typ == "string" && len(enum) == 1:
		return quoteJSON(enum[0]), ""
	case isOneOf(name, "object", "type", "kind") && slices.ContainsFunc([]string{"list", "collection", "page"}, example.IsText):
		return quoteJSON(example.Text), ""
	case typ == "boolean" && isOneOf(name, successNames...):
		return "true", ""
	case isOneOf(name, stateNames...) && errorCondition(envelopeMember{path: name, schema: p.schema}) != "":
		return quoteJSON(enum[slices.IndexFunc(enum, isSuccessWord)]), ""
	case isOneOf(name, "error") && p.schema.IsNullable():
		return "null", ""
	case typ == "integer" && isOneOf(name, totalNames...) && c.rules.Style != "cursor":
		return "{total}", ""
	case typ == "integer" && isOneOf(name, pageNumberNames...) && c.rules.Style != "offset":
		return "{page}", ""
	case typ == "integer" && isOneOf(name, "perpage", "pagesize", "limit", "itemsperpage", "resultsperpage"):
		return "{size}", ""
	case isOneOf(name, "url", "uri", "self", "href") && (strings.HasPrefix(p.schema.Pattern(), "^/") || example.IsText(l.op.Path) ||
		ownAddress.MatchString(p.schema.Description())):
		return "{path}", ""
	case typ == "string" && isOneOf(name, "first", "firstpage", "firstpageuri", "firstpageurl", "firsturl"):
		return l.writeLink(p, example, "first")
	case typ == "string" && isOneOf(name, "previous", "prev", "previouspage", "previouspageuri", "previouspageurl", "prevurl", "previousurl"):
		return l.writeLink(p, example, "previous")
	}
	return "", "the value of " + p.path + " is not known"
}

// writeLink returns the placeholder for a link to another page. An example decides whether the link is relative or absolute.
func (l *list) writeLink(p envelopeMember, example *openapi.Value, word string) (value, missing string) {
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
	return "", "it is not known whether the links at " + p.path + " are absolute"
}

// pagePlaceholder matches a placeholder that occurs only in the template of a list.
var pagePlaceholder = regexp.MustCompile(`\{(?:total|page|size|more|path|(?:next|first|previous)(?:_url)?)\}`)

// wrap sets the template of the response with a single record. It returns true if the whole template is known. Then
// a row of a list can be used to answer a request for the record.
func (in *instance) wrap() bool {
	if in.recordKey == "" {
		return true
	}
	around := &list{op: in.op, envelope: envelope{key: in.recordKey}, paging: &pagination{}}
	form, missing := around.writeObject(in.op.Answer, in.op.Example, "")
	if pagePlaceholder.MatchString(form) {
		missing = "only the answer of a list has such members"
	}
	alone := "{" + quoteJSON(in.recordKey) + ":{record}}"
	if in.answerTemplate = strings.NewReplacer("{key}", quoteJSON(in.recordKey), "{rows}", "{record}").Replace(form); missing != "" {
		in.answerTemplate = alone
	}
	if in.answerTemplate == alone && !strings.Contains(in.recordKey, ".") {
		in.answerTemplate = "" // this template is the default of a spec and needs no setting
	}
	return missing == ""
}
