// Errors: how an API's errors look, and which good answers are errors.

package infer

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
)

// errorForm is how an API's errors look.
type errorForm struct {
	template, contentType string
	said, code            []string // where the message and the code stand
	enum                  []string // the codes, where they are words
}

// errorForm is the form of the API's errors: the body most of its operations answer with.
func (a *api) errorForm() *errorForm {
	count, forms := map[string]int{}, map[string]*errorForm{}
	for _, op := range a.doc.Reads {
		f := &errorForm{contentType: op.ErrorType}
		if text, ok := f.body(op.Errors, nil); ok {
			f.template = text
			count[text]++
			forms[text] = f
		}
	}
	if len(count) == 0 {
		return nil
	}
	return forms[slices.MaxFunc(slices.Sorted(maps.Keys(count)), func(x, y string) int { return cmp.Compare(count[x], count[y]) })]
}

// The names that APIs usually give to the parts of an error, the likely ones first.
var (
	saidNames   = []string{"message", "detail", "errormessage", "msg", "errordescription", "description", "reason", "error", "title"}
	codeNames   = []string{"code", "errorcode", "errortype", "type", "error"}
	statusNames = []string{"status", "statuscode", "httpstatus", "httpcode"}
)

// body writes an error of a schema: {message}, {code} and {status} in their places, and
// what is always the same.
func (f *errorForm) body(s openapi.Schema, at []string) (text string, ok bool) {
	props := s.Properties()
	find := func(names []string, kinds ...string) string {
		for _, name := range names {
			for _, p := range props {
				if foldName(p.Name) == name && slices.Contains(kinds, p.Schema.Type()) {
					return p.Name
				}
			}
		}
		return ""
	}
	said, code := find(saidNames, "string"), find(codeNames, "string")
	var parts []string
	for _, p := range props {
		value, enum := "", p.Schema.Enum()
		here := append(slices.Clone(at), p.Name)
		switch typ := p.Schema.Type(); {
		case p.Name == said:
			value, f.said, ok = "{message}", here, true
		case typ == "string" && len(enum) == 1:
			value = quoteJSON(enum[0])
		case p.Name == code:
			value, f.code, f.enum = "{code}", here, enum
		case isOneOf(p.Name, statusNames...) && typ == "string":
			value = `"{status}"`
		case (typ == "integer" || typ == "number") && (isOneOf(p.Name, statusNames...) || isOneOf(p.Name, "code")):
			value = "{status}"
		case typ == "boolean" && isOneOf(p.Name, goodNames...):
			value = "false"
		case (typ == "object" || typ == "array") && isOneOf(p.Name, "error", "errors", "fault", "meta") && len(at) < 3:
			value = f.inside(p.Schema, here, &ok)
		}
		if value != "" {
			parts = append(parts, quoteJSON(p.Name)+":"+value)
		}
	}
	return "{" + strings.Join(parts, ",") + "}", ok
}

// inside writes the object, or the list of one, that is inside an error.
func (f *errorForm) inside(s openapi.Schema, at []string, ok *bool) string {
	list := s.Type() == "array"
	if list {
		s = s.Items()
	}
	g := &errorForm{}
	text, said := g.body(s, at)
	switch {
	case !said || *ok && len(f.said) > 0: // its message is outside
		return ""
	case list:
		text = "[" + text + "]"
	}
	f.said, f.code, f.enum, *ok = g.said, g.code, g.enum, true
	return text
}

// ourWords are our words for errors: the status of each, and what its codes have in their
// names.
var ourWords = []struct {
	word     string
	statuses []string
	code     *regexp.Regexp
}{
	{"unauthorized", []string{"401"}, regexp.MustCompile(`^un?auth|notauth|authentication|apikey|invalidtoken`)},
	{"forbidden", []string{"403"}, regexp.MustCompile(`forbidden|permission|accessdenied|restricted`)},
	{"not_found", []string{"404"}, regexp.MustCompile(`notfound|nosuch|doesnotexist|resourcemissing`)},
	{"method", []string{"405"}, regexp.MustCompile(`methodnot|notallowed|badmethod`)},
	{"limited", []string{"429"}, regexp.MustCompile(`rate|toomany|throttl`)},
	{"server", []string{"500", "502", "503"}, regexp.MustCompile(`internal|server|unavailable|apierror|unexpected`)},
	{"invalid", []string{"400", "422"}, regexp.MustCompile(`invalidrequest|badrequest|validation|invalid`)},
}

// examples are what the examples of refusals have at a place, by our words: a text that at
// least so many of them share, and no other has another.
func (a *api) examples(place []string, least int) map[string]string {
	all, count := map[string]string{}, map[string]int{}
	for _, w := range ourWords {
		for _, status := range w.statuses {
			r := a.doc.Headers.Refusals[status]
			for i := 0; r != nil && len(place) > 0 && i < len(r.Examples); i++ {
				limited := false
				walkTexts(r.Examples[i], func(text string) { limited = limited || limitText.MatchString(text) })
				if w.word != "limited" && limited {
					continue
				}
				text := valueAt(r.Examples[i], place)
				if old, there := all[w.word]; there && old != text {
					text = ""
				}
				all[w.word] = text
				count[w.word]++
			}
		}
	}
	maps.DeleteFunc(all, func(word, text string) bool {
		return count[word] < least || text == "" || strings.Contains(text, missingID) || len(text) > 200 || strings.ContainsAny(text, "{}\n\r")
	})
	return all
}

// valueAt is the text at a place of a value; of lists the first element counts.
func valueAt(v *openapi.Value, place []string) string {
	for i, name := range place {
		if v != nil && v.Kind == openapi.Array && len(v.Items) > 0 {
			v = v.Items[0]
		}
		if i == len(place)-1 {
			return v.Of(name)
		}
		v = v.Get(name)
	}
	return ""
}

// codes are the API's codes by our words. They are nil where one is not known: then a number
// would stand where a client expects a word.
func (a *api) codes(f *errorForm) map[string]string {
	all := a.examples(f.code, 1)
	for _, w := range ourWords {
		for _, code := range f.enum {
			if all[w.word] == "" && w.code.MatchString(foldName(code)) && !slices.Contains(slices.Collect(maps.Values(all)), code) {
				all[w.word] = code
			}
		}
	}
	if all["method"] == "" && all["invalid"] != "" {
		all["method"] = all["invalid"]
	}
	if len(all) < len(ourWords) {
		return nil
	}
	return all
}

func (a *api) writeErrors(w *writer) {
	f, bodies := a.errorForm(), a.errorBodies()
	if f == nil && len(bodies) == 0 {
		return
	}
	w.writeLine(0, "errors:", "")
	if f != nil {
		if f.contentType != "" && f.contentType != "application/json" {
			w.writeEntry(1, "content_type", quoteJSON(f.contentType), "")
		}
		codes := map[string]string{}
		if len(f.code) > 0 {
			if codes = a.codes(f); codes == nil {
				f.template = withoutCode(f.template)
				a.noteOnce("", "errors: which code stands for which error is not known: our own have none; name them in errors.codes")
			}
		}
		why := "the error that most operations declare"
		if a.seen {
			why = "what it answers where there is no record"
		}
		w.writeLine(1, "template: "+quoteSingle(f.template), why)
		a.writeWords(w, "codes", codes, "its codes, by their names or in examples")
		a.writeWords(w, "messages", a.examples(f.said, 2), "of examples")
	}
	if len(bodies) > 0 {
		w.writeLine(1, "bodies: ["+strings.Join(bodies, ", ")+"]", "most lists have it beside their rows")
	}
}

func (a *api) writeWords(w *writer, key string, all map[string]string, why string) {
	f := &flowMapping{}
	for word, text := range sortedEntries(all) {
		f.addText(word, text)
	}
	w.writeEntry(1, key, f.String(), why)
}

// withoutCode is a template without the member that is a code.
func withoutCode(template string) string {
	template = regexp.MustCompile(`,?"(?:[^"\\]|\\.)*":\{code\}`).ReplaceAllString(template, "")
	return strings.ReplaceAll(template, "{,", "{")
}

// Booleans, and words, by which an answer says that it is none, or an error.
var (
	goodNames  = []string{"ok", "success", "succeeded"}
	stateNames = []string{"status", "stat", "result", "outcome"}
	goodWords  = []string{"ok", "success", "succeeded"}
	badWords   = []string{"error", "errors", "fail", "failed", "failure", "fault"}
)

func isGood(word string) bool { return slices.Contains(goodWords, strings.ToLower(word)) }

// errorBodies are the conditions by which a good answer is an error: most lists have the
// member beside their rows, and no record has it.
func (a *api) errorBodies() (conditions []string) {
	count := map[string]int{}
	var order []string
	for _, l := range a.lists {
		for _, p := range l.env.members {
			one := errorState(p)
			if one == "" || slices.ContainsFunc(a.kinds, func(k *kind) bool { return k.has(p.path) }) {
				continue
			}
			if count[one]++; count[one] == 1 {
				order = append(order, one)
			}
		}
	}
	for _, one := range order {
		if 2*count[one] > len(a.lists) && len(conditions) < 3 {
			conditions = append(conditions, one)
		}
	}
	return conditions
}

// errorState is the condition on a member beside rows by which an answer is an error; "" =
// none.
func errorState(p envelopeMember) string {
	f := &flowMapping{}
	f.addText("field", p.path)
	var bad []string
	for _, word := range p.schema.Enum() {
		if slices.Contains(badWords, strings.ToLower(word)) {
			bad = append(bad, word)
		}
	}
	good := slices.ContainsFunc(p.schema.Enum(), isGood)
	switch typ := p.schema.Type(); {
	case strings.Contains(p.path, "."):
		return ""
	case typ == "boolean" && isOneOf(p.path, goodNames...):
		f.add("in", `["false"]`)
	case isOneOf(p.path, stateNames...) && good && len(bad) > 0:
		f.add("in", yamlList(bad))
	case isOneOf(p.path, "error") && slices.Contains([]string{"string", "object", ""}, typ):
	default:
		return ""
	}
	return f.String()
}

// has reports whether a path that shows a record of the kind shows a member.
func (k *kind) has(name string) bool {
	return slices.ContainsFunc(k.instances, func(in *instance) bool { return in.op.Answer.Property(name).Known() })
}
