// Search: from an id or a phone number to its page.

package viewer

import (
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"

	"understudy"
)

// searchPage is what search.html shows.
type searchPage struct {
	Typed   string
	Matches []link
	Sources []searchable
	Finds   bool     // words are searched for, too
	Kinds   []option // to look in
	Orders  []option
	Source  string
	Narrow  []string
	Wrong   *pointer   // a mistake in what was typed
	Found   *foundPage // nil: nothing was searched for
	Shelf   *shelf
}

// searchable is what can be typed of one source.
type searchable struct {
	Title    string
	Prefixes []prefixHelp
	Numbers  bool
}

type prefixHelp struct{ Prefix, Kind, Href string }

// maxTyped and maxSought bound what may be typed, in bytes: a name alone, and
// words where they are searched for.
const maxTyped, maxSought = 200, 2000

func searchHref(text string) string {
	return "/search?" + understudy.Query{{Name: "q", Value: text}}.String()
}

// search moves on to the one page that was meant, or shows those that may have
// been, what was found, or what can be typed. To find a page it looks at what was
// typed and at nothing held, but for ids two kinds could have.
func (v *Viewer) search(q *visit) error {
	s, err := q.seeking()
	if err != nil {
		return err
	}
	most := maxTyped
	if v.Search != nil {
		most = maxSought
	}
	if len(s.text) > most {
		return badRequest("That is too long to search for", "Paste an id alone, or take the words that matter.", nil)
	}
	q.typed = s.text
	var matches []link
	if s.plain() && len(s.text) <= maxTyped {
		matches = q.matches(s.text)
	}
	if q.data != "" {
		return q.searchData(s, matches)
	}
	if len(matches) == 1 {
		q.goBack(matches[0].Href)
		q.w.Header().Set("Cache-Control", "private, no-store")
		return nil
	}
	p := searchPage{Typed: s.text, Matches: matches, Sources: q.searchables(), Finds: v.Search != nil, Source: s.source, Narrow: s.narrow}
	status, title := http.StatusOK, "Search"
	if p.Finds {
		p.Kinds, p.Orders = q.kindOptions(s), q.orderOptions(s)
		if query := s.query(); query != "" || len(s.kinds) > 0 || s.source != "" {
			if s.counts && q.partial() {
				counted, end := q.searchCounting(s)
				defer end()
				return q.sendCounts(counted(), searchTotal)
			}
			if p.Found, p.Wrong, err = q.find(s); err != nil {
				return err
			}
			title = clip(query) + " · Search"
		}
		if p.Shelf, err = q.shelf(s, p.Found != nil); err != nil {
			return err
		}
	}
	if p.Wrong != nil {
		status = statusOf(p.Wrong.kind)
	}
	return q.render(status, "search", title, p)
}

// searchData is a search as data: the pages that may be meant, else all that is
// found.
func (q *visit) searchData(s *seeking, matches []link) error {
	if q.v.Search == nil && q.data != dataSuffix {
		return notFound("Nothing can be searched here", "This server keeps no index.", "")
	}
	if q.v.Search == nil || len(matches) > 0 && q.data == dataSuffix || s.query() == "" && len(s.kinds) == 0 && s.source == "" {
		type match struct {
			Href string `json:"href"`
			Text string `json:"text"`
		}
		all := []match{}
		for _, m := range matches {
			all = append(all, match{m.Href, m.Text})
		}
		return q.sendJSON(map[string]any{"matches": all})
	}
	first := s.first()
	err := q.exportFound(q.fileName("search"), first.ask(), nil)
	if wrong := syntaxOf(err); wrong != nil {
		return &problem{Title: "This cannot be searched for", Hint: fmt.Sprintf("Character %d: %s.", wrong.Character+1, wrong.Why), kind: wrong.Kind}
	}
	return err
}

// kindOptions are the kinds to look in that the caller sees.
func (q *visit) kindOptions(s *seeking) []option {
	all := []option{{"", "everything", len(s.kinds) == 0}}
	for _, src := range q.v.sources {
		if !q.sees(src) {
			continue
		}
		for _, k := range src.kinds {
			if k.remembered() && q.seesKind(k) && !slices.ContainsFunc(all, func(o option) bool { return o.Value == k.Name }) {
				all = append(all, option{k.Name, upperFirst(k.Title), slices.Contains(s.kinds, k.Name)})
			}
		}
	}
	return all
}

// orderOptions are the orders of every search, and the one at hand when a search
// that was kept is by a field.
func (q *visit) orderOptions(s *seeking) []option {
	all := slices.Clone(orders)
	if c := q.fieldOf(s.sort); c != nil && !ordered(s.sort) {
		text := "by " + c.title
		if strings.HasPrefix(s.sort, "-") {
			text += ", largest first"
		}
		all = append(all, option{Value: s.sort, Text: text})
	}
	for i := range all {
		all[i].Selected = all[i].Value == s.sort
	}
	return all
}

// matches are the pages a text may mean, of every source the caller may ask.
func (q *visit) matches(typed string) []link {
	var all []link
	for _, s := range q.v.sources {
		if !q.sees(s) || typed == "" {
			continue
		}
		q.source = s
		all = append(all, q.matchIDs(s, typed)...)
		if len(all) == 0 && len(q.talks(s)) > 0 {
			for _, number := range q.matchNumbers(s, typed) {
				text := groupPhone(number)
				if len(q.v.sources) > 1 {
					text += " in " + s.Spec.Title
				}
				all = append(all, link{Href: s.numberHref(number), Text: text})
			}
		}
	}
	q.source = nil
	return all
}

// matchIDs are the records a text may name: of one kind when its prefix is that
// kind's alone. Where two kinds share it both are asked, and the one that
// knows it is meant.
func (q *visit) matchIDs(s *sourcePlan, typed string) []link {
	var all []link
	var targets []*understudy.Target
	typed = s.spellID(typed)
	for _, k := range s.kinds {
		if len(k.instances) == 0 || len(k.instances[0].needs) > 0 || !q.seesKind(k) || !s.mayName(k, typed) {
			continue
		}
		path, ok := expand(k.instances[0].Path, func(name string) (string, bool) {
			if i := slices.Index(k.instances[0].ID, name); i >= 0 {
				return strings.Split(typed, understudy.IDSeparator)[i], true
			}
			return s.fill(name)
		})
		if !ok {
			continue
		}
		t, err := s.Spec.Target(s.Name, path, "")
		if err != nil || t.Instance != k.instances[0].Instance {
			continue
		}
		all = append(all, link{Href: s.place(t), Text: upperFirst(k.One) + " " + typed})
		targets = append(targets, t)
	}
	if len(all) < 2 {
		return all
	}
	var found []link
	for i, r := range q.readAll(targets) {
		if len(r.rows()) == 1 {
			found = append(found, all[i])
		}
	}
	if len(found) > 0 {
		return found
	}
	return all
}

// spellID is an id that was typed in any letter case as records spell it.
func (s *sourcePlan) spellID(typed string) string {
	parts := strings.Split(typed, understudy.IDSeparator)
	for i, part := range parts {
		for _, k := range s.kinds {
			if id, ok := k.SpellID(part); ok {
				parts[i] = id
				break
			}
		}
	}
	return strings.Join(parts, understudy.IDSeparator)
}

// mayName reports whether a text has the form of an id of the kind.
func (s *sourcePlan) mayName(k *kindPlan, text string) bool {
	parts := strings.Split(text, understudy.IDSeparator)
	switch {
	case len(k.ID) == 0 || len(parts) != len(k.ID):
		return false
	case len(parts) == 1:
		return k.HasPrefix(text) && formedID(text)
	}
	for i, name := range k.ID {
		f := k.Field(name)
		of := s.byName[f.Link]
		if of == nil || !of.HasPrefix(parts[i]) || !formedID(parts[i]) {
			return false
		}
	}
	return true
}

// matchNumbers reads what people type for a number: E.164 with any marks
// between the digits, 00 for the plus, or national digits, completed by the
// country codes of our own numbers as far as the caller may know them.
func (q *visit) matchNumbers(s *sourcePlan, typed string) []string {
	digits, plus, ok := dialled(typed)
	switch {
	case !ok:
		return nil
	case plus || len(digits) <= 6:
		if plus {
			digits = "+" + digits
		}
		if isNumber(digits) {
			return []string{digits}
		}
		return nil
	}
	var all []string
	for _, code := range q.ownCodes(s) {
		number := "+" + code + strings.TrimLeft(digits, "0")
		if strings.HasPrefix(digits, code) && len(digits) > 10 {
			number = "+" + digits
		}
		if isNumber(number) && !slices.Contains(all, number) {
			all = append(all, number)
		}
	}
	if whole := "+" + digits; len(digits) > 10 && isNumber(whole) && !slices.Contains(all, whole) {
		all = append(all, whole)
	}
	return all
}

// dialled takes the marks off a number as people write it; ok is false for
// anything else. plus says that a country code comes first.
func dialled(text string) (digits string, plus, ok bool) {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r >= '0' && r <= '9':
			b.WriteRune(r)
		case r == '+' && b.Len() == 0 && !plus:
			plus = true
		case strings.ContainsRune(" -./()\u00a0\u2011", r):
		default:
			return "", false, false
		}
		if i > 40 {
			return "", false, false
		}
	}
	digits = b.String()
	if rest, international := strings.CutPrefix(digits, "00"); international && !plus {
		digits, plus = rest, true
	}
	return digits, plus, len(digits) >= 3
}

// ownCodes are the country codes of our own numbers, the most frequent first.
func (q *visit) ownCodes(s *sourcePlan) []string {
	own := map[string]bool{}
	var targets []*understudy.Target
	for _, k := range s.own {
		if q.ownVisible(k) {
			targets = append(targets, k.lists[0].newest)
		}
	}
	for i, r := range q.readAll(targets) {
		q.addOwn(own, s.byName[targets[i].Kind.Name], r)
	}
	counts := map[string]int{}
	for number := range own {
		if strings.HasPrefix(number, "+") && isNumber(number) {
			counts[number[1:1+countryDigits(number[1:])]]++
		}
	}
	codes := make([]string, 0, len(counts))
	for code := range counts {
		codes = append(codes, code)
	}
	slices.SortFunc(codes, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	return codes
}

// searchables say what can be typed, of what the caller may open.
func (q *visit) searchables() []searchable {
	var all []searchable
	for _, s := range q.v.sources {
		if !q.sees(s) {
			continue
		}
		out := searchable{Title: s.Spec.Title, Numbers: len(q.talks(s)) > 0}
		for _, k := range s.kinds {
			if len(k.instances) == 0 || len(k.instances[0].needs) > 0 || len(k.ID) != 1 || !q.seesKind(k) {
				continue
			}
			for _, p := range k.Prefixes {
				href := ""
				if k.browsable() {
					href = k.href
				}
				out.Prefixes = append(out.Prefixes, prefixHelp{p + "…", upperFirst(k.One), href})
			}
		}
		if out.Numbers || len(out.Prefixes) > 0 {
			all = append(all, out)
		}
	}
	return all
}

// openSearch describes the search box to browsers (OpenSearch 1.1). It says
// nothing of any record and is open to everyone.
func (v *Viewer) openSearch(w http.ResponseWriter, r *http.Request) {
	origin := strings.TrimSuffix(v.PublicURL, "/")
	if origin == "" {
		origin = "http://" + r.Host
		if r.TLS != nil {
			origin = "https://" + r.Host
		}
	}
	h := w.Header()
	h.Set("Content-Type", "application/opensearchdescription+xml")
	h.Set("Cache-Control", "private, max-age=3600")
	_, _ = w.Write([]byte(`<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
<ShortName>Understudy</ShortName>
<Description>Open a record by its id, or the page of a phone number</Description>
<Url type="text/html" template="` + html.EscapeString(origin) + `/search?q={searchTerms}"/>
</OpenSearchDescription>
`)) // the reader has gone; nobody is left to tell
}
