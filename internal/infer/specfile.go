// This file writes the draft as a spec file, with the reason for each line as a comment.

package infer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/openapi"
	"understudy/spec"
)

// plainYAML matches a text that needs no quotes in YAML, alone or in a list.
var plainYAML = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)

// yamlKeywords are the words that YAML does not read as a string unless they are quoted.
var yamlKeywords = []string{"true", "false", "yes", "no", "on", "off", "null", "y", "n"}

// quoteJSON returns a text as a JSON string, which is also valid YAML.
func quoteJSON(text string) string {
	out, _ := json.Marshal(strings.ToValidUTF8(text, "\uFFFD")) // cannot fail, because every string can be encoded
	return string(out)
}

// quoteSingle returns a text in single quotes, which keeps JSON readable. A text that is not printable ASCII is quoted
// as JSON.
func quoteSingle(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return quoteJSON(text)
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// yamlScalar returns a text as a YAML scalar, or "" for an empty text.
func yamlScalar(text string) string {
	if text == "" || plainYAML.MatchString(text) && !slices.Contains(yamlKeywords, strings.ToLower(text)) {
		return text
	}
	return quoteJSON(text)
}

// yamlList returns texts as a YAML list in brackets, or "" if there are none.
func yamlList(all []string) string {
	if len(all) == 0 {
		return ""
	}
	out := make([]string, len(all))
	for i, text := range all {
		out[i] = cmp.Or(yamlScalar(text), `""`)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// writer collects the lines of a spec file.
type writer struct{ bytes.Buffer }

// writeLine writes one line, with the reason for it as a comment.
func (w *writer) writeLine(indent int, text, why string) {
	w.WriteString(strings.Repeat("  ", indent) + text)
	if why != "" {
		w.WriteString(" # " + strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(why, "\uFFFD")))
	}
	w.WriteByte('\n')
}

// writeEntry writes a key and its value, with the reason as a comment. It writes nothing if the value is empty.
func (w *writer) writeEntry(indent int, key, value, why string) {
	if value != "" {
		w.writeLine(indent, key+": "+value, why)
	}
}

// flowMapping is a YAML mapping in braces. Its methods skip empty values.
type flowMapping struct{ parts []string }

func (f *flowMapping) add(key, value string) {
	if value != "" {
		f.parts = append(f.parts, key+": "+value)
	}
}

func (f *flowMapping) addText(key, value string) { f.add(key, yamlScalar(value)) }

func (f *flowMapping) addTrue(key string, value bool) {
	if value {
		f.add(key, "true")
	}
}

// String returns the mapping as YAML, or "" if it is empty.
func (f *flowMapping) String() string {
	if len(f.parts) == 0 {
		return ""
	}
	return "{" + strings.Join(f.parts, ", ") + "}"
}

// writeSpec returns the text of the spec file. from names the document or the addresses from which the spec was drafted.
func (a *api) writeSpec(from string) []byte {
	w := &writer{}
	w.writeLine(0, "# A spec drawn from "+understudy.Clip(from)+". The comment on a line says where it comes from. What is not "+
		"known is left out.", "")
	w.writeLine(0, "# Try it: understudy spec try FILE --upstream URL --user U --secret file:PATH", "")
	name, why := a.name()
	w.writeEntry(0, "name", yamlScalar(name), why)
	title, why := a.doc.Title, ""
	if title == "" || a.observed {
		title, why = strings.ToUpper(name[:1])+name[1:], "from the name"
	}
	w.writeLine(0, "title: "+quoteJSON(understudy.Clip(title)), why)
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // writing to a hash never fails
	w.writeLine(0, "port: "+strconv.Itoa(minPort+int(sum.Sum32()%portCount)), "a proposal; any free port will do")
	if strings.HasPrefix(a.doc.DocsURL, "https://") {
		w.writeLine(0, "docs: "+quoteJSON(a.doc.DocsURL), "")
	}
	a.writeHosts(w)
	sent, callers, why := a.auth()
	auth := &flowMapping{}
	auth.addText("style", sent)
	auth.add("callers", yamlList(callers))
	w.writeEntry(0, "auth", auth.String(), why)
	a.writeHeaders(w, sent)
	a.writeLimits(w)
	a.link()
	user := a.userVar(sent)
	if user != "" {
		w.writeLine(0, "vars: {"+yamlScalar(user)+": user}", "most lists are below it, and the credential is a user and a secret")
	}
	shown := &flowMapping{}
	for v, field := range sortedEntries(a.findShownVariables()) {
		shown.add(yamlScalar(v), yamlScalar(field))
	}
	w.writeEntry(0, "shown", shown.String(), "fields with the values of the variables, in every kind whose lists have them")
	absolute := yamlList(absoluteNames(a.lists, a.mediaType()))
	w.writeEntry(0, "absolute", absolute, "links to pages and records; other answers may have them, too")
	w.writeEntry(0, "content_type", yamlScalar(a.mediaType()), "the type of all answers")
	w.writeEntry(0, "passes", yamlList(a.passThroughPaths), "their answers are neither lists nor objects")
	a.noteOnce("", "whole_lists: it is not known whether a list shows all records of its kind; set it when you know")
	a.writePagings(w)
	a.writeErrors(w)
	w.writeLine(0, "kinds:", "")
	for _, k := range a.kinds {
		parent, unsure := k.findParent(a.kinds, user)
		if unsure != "" {
			a.noteOnce("kind "+k.name, unsure)
		}
		a.writeKind(w, k, parent)
	}
	return w.Bytes()
}

// sortedEntries iterates over a map in the order of its keys.
func sortedEntries[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// noteOnce adds a caveat unless the same caveat exists.
func (a *api) noteOnce(where, text string) {
	if !slices.Contains(a.caveats, caveat{where, text}) {
		a.addCaveat(where, "%s", text)
	}
}

// writePagings writes the most frequent paging rules as the default of the spec, and the other rules under names.
func (a *api) writePagings(w *writer) {
	count, of := map[string]int{}, map[string]*pagination{}
	var order []string
	for _, l := range a.lists {
		key := l.paging.rulesKey()
		if count[key]++; count[key] == 1 {
			order, of[key] = append(order, key), l.paging
		}
	}
	slices.SortStableFunc(order, func(x, y string) int { return count[y] - count[x] })
	names, used := map[string]string{}, map[string]int{}
	for i, key := range order {
		style := of[key].rules.Style
		if used[style]++; i > 0 {
			names[key] = style
			if used[style] > 1 {
				names[key] = style + strconv.Itoa(used[style])
			}
		}
	}
	for _, l := range a.lists {
		l.pagingName = names[l.paging.rulesKey()]
		if l.paging.caveat != "" {
			a.noteOnce(l.op.Path, l.paging.caveat)
		}
	}
	for i, key := range order {
		indent, head := 1, "paging:"
		if i == 1 {
			w.writeLine(0, "pagings:", "")
		}
		if i > 0 {
			indent, head = 2, "  "+yamlScalar(names[key])+":"
		}
		w.writeLine(0, head, fmt.Sprintf("%d of %d lists", count[key], len(a.lists)))
		a.writePaging(w, indent, of[key], key)
	}
}

// writePaging writes the paging rules whose rulesKey is same. It also writes the members that surround the rows in
// lists with these rules.
func (a *api) writePaging(w *writer, indent int, c *pagination, same string) {
	put := func(key, value string) { w.writeEntry(indent, key, yamlScalar(value), c.why[key]) }
	count := func(key string, n int) {
		if n != 0 || key == "first_page" && c.rules.Page != "" && c.why[key] != "" {
			w.writeLine(indent, key+": "+strconv.Itoa(n), c.why[key])
		}
	}
	put("style", c.rules.Style)
	put("next", c.rules.Next)
	put("more", c.rules.More)
	put("total", c.rules.Total)
	put("cursor", c.rules.Cursor)
	put("back", c.rules.Back)
	put("size", c.rules.Size)
	count("default_size", c.rules.Default)
	count("max_size", c.rules.Max)
	put("page", c.rules.Page)
	count("first_page", c.rules.First)
	w.writeEntry(indent, "tokens", yamlList(c.rules.Tokens), cmp.Or(c.why["tokens"], "they say where a page begins"))
	if c.rules.Template != "" {
		w.writeLine(indent, "answer: "+quoteSingle(c.rules.Template), c.why["answer"])
	}
	var beside []envelopeMember
	isOther := func(l *list) bool { return l.paging.rulesKey() != same }
	lists, have := slices.DeleteFunc(slices.Clone(a.lists), isOther), map[string]int{}
	for _, l := range lists {
		for _, p := range l.envelope.members {
			isRows := slices.ContainsFunc(lists, func(l *list) bool { return l.envelope.key == p.path })
			if have[p.path]++; have[p.path] == 1 && !isRows && !strings.Contains(p.path, "\n") {
				beside = append(beside, p)
			}
		}
	}
	if len(lists) > 1 { // a member of a single list does not belong to these paging rules
		beside = slices.DeleteFunc(beside, func(p envelopeMember) bool { return have[p.path] == 1 })
	}
	beside = beside[:min(len(beside), 30)]
	around := c.rules.Next[:strings.LastIndexByte(c.rules.Next, '.')+1]
	for _, name := range pageLinkNames { // a document often shows the links of a single page only
		missing := !slices.ContainsFunc(beside, func(p envelopeMember) bool { return p.path == around+name })
		if c.rules.Style == "body" && around != "" && c.rules.Next == around+"next" && !strings.HasSuffix("."+around, ".next.") && missing {
			beside = append(beside, envelopeMember{path: around + name})
		}
	}
	for i, p := range beside {
		if i == 0 {
			w.writeLine(indent, "envelope:", "the members next to the rows")
		}
		f := &field{schema: p.schema}
		f.describe(p.path)
		out := &flowMapping{}
		out.addText("name", p.path)
		out.addText("type", f.spec.Type)
		last, isLink := strings.CutPrefix(p.path, around)
		out.addTrue("absolute", f.spec.Class == spec.ClassURL || c.rules.Style == "body" && isLink && slices.Contains(pageLinkNames, last))
		w.writeLine(indent+1, "- "+out.String(), "")
	}
}

// pageLinkNames are the usual names of links to other pages. Each of the links may be an absolute URL.
var pageLinkNames = []string{"first", "prev", "previous", "next", "last"}

// absoluteNames returns the names of members that hold links: links between pages, and the links of HAL
// (draft-kelly-json-hal, 5) and JSON:API (1.1, links).
func absoluteNames(lists []*list, media string) (names []string) {
	if media == "application/vnd.api+json" {
		names = append(names, "next", "related", "self")
	}
	for _, l := range lists {
		if l.op.Answer.Property("_links").IsKnown() || l.envelope.row.Property("_links").IsKnown() {
			names = append(names, "href")
		}
		if l.paging.rules.Style == "body" {
			name := lastPart(l.paging.rules.Next)
			if l.op.Answer.Property(l.paging.rules.Next).IsKnown() {
				name = l.paging.rules.Next // the member's own name has dots, such as @odata.nextLink
			}
			names = append(names, name)
		}
	}
	if slices.Contains(names, "next") {
		names = append(names, pageLinkNames...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// writeKind writes one kind with its lists, instances and fields. parent is the field that names the parent record.
func (a *api) writeKind(w *writer, k *kind, parent string) {
	w.writeEntry(1, "- name", yamlScalar(k.name), k.why["name"])
	w.writeEntry(2, "id", yamlList(k.id), k.why["id"])
	w.writeEntry(2, "prefixes", yamlList(k.prefixes), k.why["prefixes"])
	w.writeEntry(2, "clock", yamlScalar(k.clock), k.why["clock"])
	w.writeEntry(2, "parent", yamlScalar(parent), "its lists are below the record with this id")
	w.writeEntry(2, "columns", yamlList(k.columns), "")
	if len(k.lists) == 0 {
		w.writeLine(2, "group: Others", "")
	}
	for i, l := range k.lists {
		if i == 0 {
			w.writeLine(2, "lists:", "")
		}
		w.writeEntry(3, "- path", yamlScalar(l.op.Path), "")
		w.writeEntry(4, "key", quoteJSON(l.envelope.key), l.envelope.why)
		w.writeEntry(4, "paging", yamlScalar(l.pagingName), l.paging.why["style"])
		for i, f := range l.filters {
			if i == 0 {
				w.writeLine(4, "filters:", "")
			}
			w.writeLine(5, "- "+f.flowText(), f.why)
		}
	}
	for i, in := range k.instances {
		if i == 0 {
			w.writeLine(2, "instances:", "")
		}
		f := &flowMapping{}
		f.addText("path", in.op.Path)
		f.addText("key", in.recordKey)
		if in.answerTemplate != "" {
			f.add("answer", quoteSingle(in.answerTemplate))
		}
		f.addText("shape", in.shape)
		f.add("id", yamlList(in.vars))
		why := ""
		if in.shape != "" {
			why = "its answer has other members than a row of the lists, or more members around it"
		}
		w.writeLine(3, "- "+f.String(), why)
	}
	for i, shown := range k.fields {
		if i == 0 {
			w.writeLine(2, "fields:", "")
		}
		f := &flowMapping{}
		f.addText("name", shown.spec.Name)
		f.addText("type", shown.spec.Type)
		f.addText("class", shown.spec.Class)
		f.addText("link", shown.spec.Link)
		f.addTrue("absolute", shown.spec.Class == spec.ClassURL && a.isOwnURL(shown.schema))
		w.writeLine(3, "- "+f.String(), shown.why)
	}
}

// isOwnURL reports whether the example of a value is a URL on a server of the API.
func (a *api) isOwnURL(s openapi.Schema) bool {
	x := s.Example()
	return x != nil && slices.ContainsFunc(a.doc.Servers, func(host string) bool { return strings.HasPrefix(x.Text, host) })
}

func (f *filter) flowText() string {
	out := &flowMapping{}
	out.addText("name", f.spec.Name)
	out.addText("field", f.spec.Field)
	out.addText("op", f.spec.Op)
	out.addText("type", f.spec.Type)
	out.add("values", yamlList(f.spec.Values))
	out.addTrue("open", f.spec.Exclusive)
	out.addText("default", f.spec.Meaning.Default)
	out.addTrue("required", f.spec.Meaning.Required)
	out.add("none", yamlList(f.spec.Meaning.SelectAll))
	return out.String()
}
