// This file finds the format of an API's errors, and which responses with a success status are errors.

package infer

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
)

// errorForm is the format of an API's errors.
type errorForm struct {
	template, contentType string
	messagePath, codePath []string // the paths of the message and of the code in the body
	codeWords             []string // the possible error codes, if the schema lists them
}

// errorForm returns the error format that most operations have, or nil if none is known.
func (a *api) errorForm() *errorForm {
	count, forms := map[string]int{}, map[string]*errorForm{}
	for _, op := range a.doc.Reads {
		f := &errorForm{contentType: op.ErrorType}
		if text, ok := f.buildTemplate(op.Errors, nil); ok {
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

// Usual names of the members for an error's message, code and status, the most likely names first.
var (
	messageNames = []string{"message", "detail", "errormessage", "msg", "errordescription", "description", "reason", "error", "title"}
	codeNames    = []string{"code", "errorcode", "errortype", "type", "error"}
	statusNames  = []string{"status", "statuscode", "httpstatus", "httpcode"}
)

// buildTemplate returns the template of an error with this schema. It contains {message}, {code} and {status} at
// their places, and the members with a constant value. ok is false if the schema has no message.
func (f *errorForm) buildTemplate(s openapi.Schema, at []string) (text string, ok bool) {
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
	said, code := find(messageNames, "string"), find(codeNames, "string")
	var parts []string
	for _, p := range props {
		value, enum := "", p.Schema.Enum()
		here := append(slices.Clone(at), p.Name)
		switch typ := p.Schema.Type(); {
		case p.Name == said:
			value, f.messagePath, ok = "{message}", here, true
		case typ == "string" && len(enum) == 1:
			value = quoteJSON(enum[0])
		case p.Name == code:
			value, f.codePath, f.codeWords = "{code}", here, enum
		case isOneOf(p.Name, statusNames...) && typ == "string":
			value = `"{status}"`
		case (typ == "integer" || typ == "number") && (isOneOf(p.Name, statusNames...) || isOneOf(p.Name, "code")):
			value = "{status}"
		case typ == "boolean" && isOneOf(p.Name, successNames...):
			value = "false"
		case (typ == "object" || typ == "array") && isOneOf(p.Name, "error", "errors", "fault", "meta") && len(at) < 3:
			value = f.buildInner(p.Schema, here, &ok)
		}
		if value != "" {
			parts = append(parts, quoteJSON(p.Name)+":"+value)
		}
	}
	return "{" + strings.Join(parts, ",") + "}", ok
}

// buildInner returns the template of an object, or of an array with one object, inside an error. It returns "" to
// leave the member out.
func (f *errorForm) buildInner(s openapi.Schema, at []string, ok *bool) string {
	list := s.Type() == "array"
	if list {
		s = s.Items()
	}
	g := &errorForm{}
	text, said := g.buildTemplate(s, at)
	switch {
	case !said || *ok && len(f.messagePath) > 0: // the inner object has no message, or the outer object has the message
		return ""
	case list:
		text = "[" + text + "]"
	}
	f.messagePath, f.codePath, f.codeWords, *ok = g.messagePath, g.codePath, g.codeWords, true
	return text
}

// errorWords are the words by which a spec names errors. Each word has its HTTP statuses and a pattern that matches
// the API's codes for the same error.
var errorWords = []struct {
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

// exampleTexts returns, by error word, the text that the examples of an error have at a place. At least `least`
// examples must have that text, and no example may have another text there.
func (a *api) exampleTexts(place []string, least int) map[string]string {
	all, count := map[string]string{}, map[string]int{}
	for _, w := range errorWords {
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

// valueAt returns the text at a place inside v. In an array it looks at the first element.
func valueAt(v *openapi.Value, place []string) string {
	for i, name := range place {
		if v != nil && v.Kind == openapi.Array && len(v.Items) > 0 {
			v = v.Items[0]
		}
		if i == len(place)-1 {
			return v.TextOf(name)
		}
		v = v.Get(name)
	}
	return ""
}

// codes returns the API's code for each error word. It returns nil if the code of any word is unknown,
// because a client that expects a word would then receive a number.
func (a *api) codes(f *errorForm) map[string]string {
	all := a.exampleTexts(f.codePath, 1)
	for _, w := range errorWords {
		for _, code := range f.codeWords {
			if all[w.word] == "" && w.code.MatchString(foldName(code)) && !slices.Contains(slices.Collect(maps.Values(all)), code) {
				all[w.word] = code
			}
		}
	}
	if all["method"] == "" && all["invalid"] != "" {
		all["method"] = all["invalid"]
	}
	if len(all) < len(errorWords) {
		return nil
	}
	return all
}

// writeErrors writes the errors section of the spec: the template, its codes and messages, and the error conditions.
func (a *api) writeErrors(w *writer) {
	f, bodies := a.errorForm(), a.errorConditions()
	if f == nil && len(bodies) == 0 {
		return
	}
	w.writeLine(0, "errors:", "")
	if f != nil {
		if f.contentType != "" && f.contentType != "application/json" {
			w.writeEntry(1, "content_type", quoteJSON(f.contentType), "")
		}
		codes := map[string]string{}
		if len(f.codePath) > 0 {
			if codes = a.codes(f); codes == nil {
				f.template = regexp.MustCompile(`,?"(?:[^"\\]|\\.)*":\{code\}`).ReplaceAllString(f.template, "")
				f.template = strings.ReplaceAll(f.template, "{,", "{")
				a.noteOnce("", "errors: the codes of the API's errors are not known, so Understudy's own errors have no code; add them to errors.codes")
			}
		}
		why := "the error that most operations declare"
		if a.observed {
			why = "the answer to a request for a missing record"
		}
		w.writeLine(1, "template: "+quoteSingle(f.template), why)
		a.writeWords(w, "codes", codes, "codes from their names or from examples")
		a.writeWords(w, "messages", a.exampleTexts(f.messagePath, 2), "from examples")
	}
	if len(bodies) > 0 {
		w.writeLine(1, "bodies: ["+strings.Join(bodies, ", ")+"]", "most lists have it next to their rows")
	}
}

func (a *api) writeWords(w *writer, key string, all map[string]string, why string) {
	f := &flowMapping{}
	for word, text := range sortedEntries(all) {
		f.addText(word, text)
	}
	w.writeEntry(1, key, f.String(), why)
}

// Names and values of the members by which a response states its success or failure.
var (
	successNames = []string{"ok", "success", "succeeded"}
	stateNames   = []string{"status", "stat", "result", "outcome"}
	successWords = []string{"ok", "success", "succeeded"}
	failureWords = []string{"error", "errors", "fail", "failed", "failure", "fault"}
)

func isSuccessWord(word string) bool { return slices.Contains(successWords, strings.ToLower(word)) }

// errorConditions returns at most three conditions by which a response with a success status is an error. Most lists
// must have the condition's member beside their rows, and no response with a single record may have the member.
func (a *api) errorConditions() (conditions []string) {
	count := map[string]int{}
	var order []string
	for _, l := range a.lists {
		for _, p := range l.envelope.members {
			one := errorCondition(p)
			if one == "" || slices.ContainsFunc(a.kinds, func(k *kind) bool { return k.hasInstanceMember(p.path) }) {
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

// errorCondition returns the condition on a member beside the rows by which a response is an error, or "" if the
// member says nothing about errors.
func errorCondition(p envelopeMember) string {
	f := &flowMapping{}
	f.addText("field", p.path)
	var bad []string
	for _, word := range p.schema.Enum() {
		if slices.Contains(failureWords, strings.ToLower(word)) {
			bad = append(bad, word)
		}
	}
	good := slices.ContainsFunc(p.schema.Enum(), isSuccessWord)
	switch typ := p.schema.Type(); {
	case strings.Contains(p.path, "."):
		return ""
	case typ == "boolean" && isOneOf(p.path, successNames...):
		f.add("in", `["false"]`)
	case isOneOf(p.path, stateNames...) && good && len(bad) > 0:
		f.add("in", yamlList(bad))
	case isOneOf(p.path, "error") && slices.Contains([]string{"string", "object", ""}, typ):
	default:
		return ""
	}
	return f.String()
}

// hasInstanceMember reports whether the response with a single record of the kind has a member of the given name.
func (k *kind) hasInstanceMember(name string) bool {
	return slices.ContainsFunc(k.instances, func(in *instance) bool { return in.op.Answer.Property(name).IsKnown() })
}
