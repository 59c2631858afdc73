// Write: the draft as the text of a spec file, each reason behind its line.

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

// bare is a text that YAML reads as itself without quotes, in a list or alone.
var bare = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)

// yamlWords are read as something else than a text.
var yamlWords = []string{"true", "false", "yes", "no", "on", "off", "null", "y", "n"}

// quote is a text as JSON, which is YAML, too.
func quote(text string) string {
	out, _ := json.Marshal(strings.ToValidUTF8(text, "\uFFFD")) // a string always marshals
	return string(out)
}

// single is a text in single quotes, where that is shorter to read: for JSON.
func single(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return quote(text)
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// scalar returns a text as YAML; "" of none.
func scalar(text string) string {
	if text == "" || bare.MatchString(text) && !slices.Contains(yamlWords, strings.ToLower(text)) {
		return text
	}
	return quote(text)
}

// sequence returns a list of texts as YAML; "" of none.
func sequence(all []string) string {
	if len(all) == 0 {
		return ""
	}
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = cmp.Or(scalar(one), `""`)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// writer writes lines.
type writer struct{ bytes.Buffer }

// line writes one line, with its reason behind it.
func (w *writer) line(indent int, text, why string) {
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

// entry writes a key and its value, with its reason behind it, unless the value is empty.
func (w *writer) entry(indent int, key, value, why string) {
	if value != "" {
		w.line(indent, key+": "+value, why)
	}
}

// flow is a mapping in braces. Its methods leave out what is empty.
type flow struct{ parts []string }

func (f *flow) add(key, value string) {
	if value != "" {
		f.parts = append(f.parts, key+": "+value)
	}
}

func (f *flow) text(key, value string) { f.add(key, scalar(value)) }

func (f *flow) yes(key string, value bool) {
	if value {
		f.add(key, "true")
	}
}

// String returns the mapping as YAML; "" of none.
func (f *flow) String() string {
	if len(f.parts) == 0 {
		return ""
	}
	return "{" + strings.Join(f.parts, ", ") + "}"
}

// write is the spec file.
func (a *api) write(from string) []byte {
	w := &writer{}
	w.line(0, "# A spec drawn from "+understudy.Clip(from)+". Behind a line stands why it is so. What could not be told is left out.", "")
	w.line(0, "# Try it: understudy spec try FILE --upstream URL --user U --secret file:PATH", "")
	name, why := a.name()
	w.entry(0, "name", scalar(name), why)
	title, why := a.doc.Title, ""
	if title == "" || a.seen {
		title, why = strings.ToUpper(name[:1])+name[1:], "of the name"
	}
	w.line(0, "title: "+quote(understudy.Clip(title)), why)
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // it never fails
	w.line(0, "port: "+strconv.Itoa(firstPort+int(sum.Sum32()%ports)), "a proposal: any that is free")
	if strings.HasPrefix(a.doc.Docs, "https://") {
		w.line(0, "docs: "+quote(a.doc.Docs), "")
	}
	a.writeHosts(w)
	sent, callers, why := a.auth()
	auth := &flow{}
	auth.text("style", sent)
	auth.add("callers", sequence(callers))
	w.entry(0, "auth", auth.String(), why)
	a.writeHeaders(w, sent)
	a.writeLimits(w)
	a.link()
	user := a.userVar(sent)
	if user != "" {
		w.line(0, "vars: {"+scalar(user)+": user}", "most lists lie below it, and callers name themselves by user and secret")
	}
	shown := &flow{}
	for v, field := range sorted(a.shown()) {
		shown.add(scalar(v), scalar(field))
	}
	w.entry(0, "shown", shown.String(), "fields with the variables' names, in every kind whose lists have them")
	w.entry(0, "absolute", sequence(linksOf(a.lists, a.media())), "links to pages and records, which other answers may have unnamed")
	w.entry(0, "content_type", scalar(a.media()), "what all answers are")
	w.entry(0, "passes", sequence(a.passes), "their answers are neither lists nor objects")
	a.once("", "whole_lists: nothing says whether a list shows all records of its kind: set it when that is known")
	a.writePagings(w)
	a.writeErrors(w)
	w.line(0, "kinds:", "")
	for _, k := range a.kinds {
		parent, unsure := k.findParent(a.kinds, user)
		if unsure != "" {
			a.once("kind "+k.name, unsure)
		}
		a.writeKind(w, k, parent)
	}
	return w.Bytes()
}

// sorted goes through a map in the order of its keys.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// once adds a unsure that is not there yet.
func (a *api) once(where, text string) {
	if !slices.Contains(a.notes, unsure{where, text}) {
		a.unsure(where, "%s", text)
	}
}

// writePagings writes the most frequent way of paging as the spec's, the others by name.
func (a *api) writePagings(w *writer) {
	count, of := map[string]int{}, map[string]*cut{}
	var order []string
	for _, l := range a.lists {
		key := l.cut.same()
		if count[key]++; count[key] == 1 {
			order, of[key] = append(order, key), l.cut
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
		l.paging = names[l.cut.same()]
		if l.cut.unsure != "" {
			a.once(l.op.Path, l.cut.unsure)
		}
	}
	for i, key := range order {
		indent, head := 1, "paging:"
		if i == 1 {
			w.line(0, "pagings:", "")
		}
		if i > 0 {
			indent, head = 2, "  "+scalar(names[key])+":"
		}
		w.line(0, head, fmt.Sprintf("%d of %d lists", count[key], len(a.lists)))
		a.writePaging(w, indent, of[key], key)
	}
}

func (a *api) writePaging(w *writer, indent int, c *cut, same string) {
	put := func(key, value string) { w.entry(indent, key, scalar(value), c.why[key]) }
	count := func(key string, n int) {
		if n != 0 || key == "first_page" && c.rules.Page != "" && c.why[key] != "" {
			w.line(indent, key+": "+strconv.Itoa(n), c.why[key])
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
	w.entry(indent, "tokens", sequence(c.rules.Tokens), cmp.Or(c.why["tokens"], "they say where a page stands"))
	if c.rules.Template != "" {
		w.line(indent, "answer: "+single(c.rules.Template), c.why["answer"])
	}
	var beside []place
	isOther := func(l *list) bool { return l.cut.same() != same }
	lists, have := slices.DeleteFunc(slices.Clone(a.lists), isOther), map[string]int{}
	for _, l := range lists {
		for _, p := range l.env.beside {
			isRows := slices.ContainsFunc(lists, func(l *list) bool { return l.env.key == p.path })
			if have[p.path]++; have[p.path] == 1 && !isRows && !strings.Contains(p.path, "\n") {
				beside = append(beside, p)
			}
		}
	}
	if len(lists) > 1 { // what one list alone has is no part of this way of paging
		beside = slices.DeleteFunc(beside, func(p place) bool { return have[p.path] == 1 })
	}
	beside = beside[:min(len(beside), 30)]
	around := c.rules.Next[:strings.LastIndexByte(c.rules.Next, '.')+1]
	for _, name := range pageLinks { // a document often shows those of one page alone
		missing := !slices.ContainsFunc(beside, func(p place) bool { return p.path == around+name })
		if c.rules.Style == "body" && around != "" && c.rules.Next == around+"next" && !strings.HasSuffix("."+around, ".next.") && missing {
			beside = append(beside, place{path: around + name})
		}
	}
	for i, p := range beside {
		if i == 0 {
			w.line(indent, "envelope:", "what stands beside the rows")
		}
		f := &field{schema: p.schema}
		f.describe(p.path)
		out := &flow{}
		out.text("name", p.path)
		out.text("type", f.spec.Type)
		last, isLink := strings.CutPrefix(p.path, around)
		out.yes("absolute", f.spec.Class == spec.ClassURL || c.rules.Style == "body" && isLink && slices.Contains(pageLinks, last))
		w.line(indent+1, "- "+out.String(), "")
	}
}

// pageLinks are links beside that to the next page, which may be absolute as well.
var pageLinks = []string{"first", "prev", "previous", "next", "last"}

// linksOf returns the names that links in answers have: those between pages, and those of HAL
// (draft-kelly-json-hal, 5) and JSON:API (1.1, links).
func linksOf(lists []*list, media string) (names []string) {
	if media == "application/vnd.api+json" {
		names = append(names, "next", "related", "self")
	}
	for _, l := range lists {
		if l.op.Answer.Property("_links").Known() || l.env.row.Property("_links").Known() {
			names = append(names, "href")
		}
		if l.cut.rules.Style == "body" {
			name := lastPart(l.cut.rules.Next)
			if l.op.Answer.Property(l.cut.rules.Next).Known() {
				name = l.cut.rules.Next // @odata.nextLink
			}
			names = append(names, name)
		}
	}
	if slices.Contains(names, "next") {
		names = append(names, pageLinks...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (a *api) writeKind(w *writer, k *kind, parent string) {
	w.entry(1, "- name", scalar(k.name), k.why["name"])
	w.entry(2, "id", sequence(k.id), k.why["id"])
	w.entry(2, "prefixes", sequence(k.prefixes), k.why["prefixes"])
	w.entry(2, "clock", scalar(k.clock), k.why["clock"])
	w.entry(2, "parent", scalar(parent), "its lists lie under the record that the field names")
	w.entry(2, "columns", sequence(k.columns), "")
	if len(k.lists) == 0 {
		w.line(2, "group: Others", "")
	}
	for i, l := range k.lists {
		if i == 0 {
			w.line(2, "lists:", "")
		}
		w.entry(3, "- path", scalar(l.op.Path), "")
		w.entry(4, "key", quote(l.env.key), l.env.why)
		w.entry(4, "paging", scalar(l.paging), l.cut.why["style"])
		for i, f := range l.filters {
			if i == 0 {
				w.line(4, "filters:", "")
			}
			w.line(5, "- "+f.flow(), f.why)
		}
	}
	for i, in := range k.instances {
		if i == 0 {
			w.line(2, "instances:", "")
		}
		f := &flow{}
		f.text("path", in.op.Path)
		f.text("key", in.key)
		if in.answer != "" {
			f.add("answer", single(in.answer))
		}
		f.text("shape", in.shape)
		f.add("id", sequence(in.vars))
		why := ""
		if in.shape != "" {
			why = "its answer has other members than a row of the lists, or more around it"
		}
		w.line(3, "- "+f.String(), why)
	}
	for i, one := range k.fields {
		if i == 0 {
			w.line(2, "fields:", "")
		}
		f := &flow{}
		f.text("name", one.spec.Name)
		f.text("type", one.spec.Type)
		f.text("class", one.spec.Class)
		f.text("link", one.spec.Link)
		f.yes("absolute", one.spec.Class == spec.ClassURL && a.ownURL(one.schema))
		w.line(3, "- "+f.String(), one.why)
	}
}

// ownURL reports whether the example of a value is a URL of the API itself.
func (a *api) ownURL(s openapi.Schema) bool {
	x := s.Example()
	return x != nil && slices.ContainsFunc(a.doc.Servers, func(host string) bool { return strings.HasPrefix(x.Text, host) })
}

func (f *filter) flow() string {
	out := &flow{}
	out.text("name", f.spec.Name)
	out.text("field", f.spec.Field)
	out.text("op", f.spec.Op)
	out.text("type", f.spec.Type)
	out.add("values", sequence(f.spec.Values))
	out.yes("open", f.spec.Exclusive)
	out.text("default", f.spec.Meaning.Default)
	out.yes("required", f.spec.Meaning.Required)
	out.add("none", sequence(f.spec.Meaning.SelectAll))
	return out.String()
}
