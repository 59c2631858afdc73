// End: what one answer proves of the end of its list.

package paging

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// said is the value at a place of an answer, as text; there is false where the answer does not
// have the place. Objects and arrays say "true", those without members say nothing.
func (a *Answer) said(place string) (text string, there bool) {
	if name, ok := strings.CutPrefix(place, inHeader); ok {
		return strings.TrimSpace(a.Header.Get(name)), len(a.Header.Values(name)) > 0
	}
	v, ok := jsonspan.Find(a.Body, a.Doc, place)
	return a.text(v), ok
}

func (a *Answer) text(v jsonspan.Value) string {
	switch v.Kind {
	case jsonspan.String, jsonspan.Number, jsonspan.Bool:
		return jsonspan.Text(a.Body, v)
	case jsonspan.Object, jsonspan.Array:
		if within := v.Bytes(a.Body); len(bytes.TrimSpace(within[1:len(within)-1])) > 0 {
			return "true"
		}
	}
	return ""
}

// no are the texts that say no, in small letters. Null has the empty text.
var no = []string{"", "false", "0", "0.0", "n", "no", "off", "f"}

// isYes reads what an answer says of whether there is more. Every API writes it otherwise, so
// that all but a few texts say yes.
func isYes(text string) bool { return !slices.Contains(no, strings.ToLower(text)) }

// isToken reports whether a text may be a page's token. Some APIs write 0 where there is none.
func isToken(text string) bool { return text != "" && text != "0" && !strings.EqualFold(text, "false") }

// total is how many rows all pages have, as an answer says it; 0: it does not say it, or does
// not know.
func (r *Rules) total(a *Answer) int64 {
	if r.Total == "" {
		return 0
	}
	text, _ := a.said(r.Total)
	return count(text)
}

// statedTotal is total as understudy.Page.Total returns it. A member beside it may say that it is the
// least or a guess.
func (r *Rules) statedTotal(a *Answer) int64 {
	total, above := r.total(a), a.Doc
	if i := strings.LastIndexByte(r.Total, '.'); i >= 0 {
		above, _ = jsonspan.Find(a.Body, a.Doc, r.Total[:i])
	}
	if total == 0 || above.Kind != jsonspan.Object {
		return total
	}
	isLeast, isGuess := false, false
	jsonspan.VisitMembers(a.Body, above, func(raw []byte, v jsonspan.Value) bool {
		name, text := plain(jsonspan.Name(raw)), strings.ToLower(a.text(v))
		isLeast = isLeast || strings.HasSuffix(name, "relation") && slices.Contains(leastRelations, text)
		isGuess = isGuess || strings.HasSuffix(name, "exact") && !isYes(text) || slices.Contains(guessNames, name) && text == "true"
		return true
	})
	switch {
	case isLeast:
		return -total
	case isGuess:
		return 0
	}
	return total
}

// grouped matches a number whose digits stand in groups of three: 1,333.
var grouped = regexp.MustCompile(`^[0-9]{1,3}(?:[,_ '.’][0-9]{3})+$`)

func count(text string) int64 {
	if !beginsWithDigit(text) {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && grouped.MatchString(text) {
		n, err = strconv.ParseFloat(strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, text), 64)
	}
	if err != nil || n < 1 || n != math.Trunc(n) || math.IsInf(n, 1) {
		return 0
	}
	return int64(min(n, 1<<53)) // a float64 holds all whole numbers below
}

// open returns the end of a list that is open, and why.
func open(kind, why string, args ...any) Step {
	return Step{Open: understudy.OpenEnd{Kind: kind, Why: fmt.Sprintf(why, args...)}}
}

// unseen returns the open end of a list whose answer has not what leads on.
func unseen(place string) Step {
	return open(understudy.OpenUnseen, "no answer had %s, which leads to the next page", place)
}

// isFull reports whether a page has as many rows as fit in one; known is false where nobody
// says how many do.
func (r *Rules) isFull(a *Answer) (full, known bool) {
	_, size, err := r.stands(a)
	return int64(a.Count) >= size, err == nil && size > 0
}

// addClues completes what a style says of a page by what else the answer says. An end that the
// style has proven is only unproven for what nothing but a next page has.
func (r *Rules) addClues(a *Answer, step Step) Step {
	kind := step.Open.Kind
	c := clues{a: a, next: r.Next, unproven: kind != "", alone: kind == understudy.OpenAlone}
	c.first = !slices.ContainsFunc(a.Query, func(p understudy.Param) bool { return r.Position(p.Name) })
	c.header(a.Header)
	if a.Doc.Kind == jsonspan.Object {
		c.ofPages("", a.Doc)
		c.object(a.Doc, "", 0)
	}
	if step.Open.Partial = c.partial; c.partial == "" {
		step.Open.Partial = partial(a)
	}
	if step.Total = r.statedTotal(a); r.Total == "" {
		step.Total = min(1-c.total, 0) // it may contradict the end, and never proves it
	}
	step.Pages = c.pages
	if step.Link != "" || step.Param.Name != "" || kind == understudy.OpenShort || kind == understudy.OpenSilent {
		return step // the page after this one tells
	}
	if c.more == "" && !c.none {
		c.more = c.token
	}
	switch {
	case c.more != "":
		step.Open.Kind, step.Open.Why = understudy.OpenRefuted, fmt.Sprintf("the answer says that there is more (%s)", c.more)
	case c.alone && c.none:
		step.Open = understudy.OpenEnd{}
	}
	return step
}

// clues are what an answer says of further pages at places that the rules may not name.
type clues struct {
	a        *Answer
	next     string // Rules.Next
	unproven bool   // nothing else proves the end
	alone    bool   // the rules know no way to a next page
	first    bool   // it is the first page
	inHeader bool   // a header is read
	more     string // what says that there is more, with its value
	token    string // what may be the token of a next page, with its value
	partial  string // what says that rows are left out
	total    int64  // how many rows all pages have, 0: nothing says so
	pages    int64  // how many pages there are, 0: nothing says so
	none     bool   // something says that there is no more
}

// MoreNames are the usual names of what says whether there is more, in small letters without
// anything but letters, as those below.
var MoreNames = []string{"hasmore", "hasnext", "hasnextpage", "more", "ismore", "moreavailable", "moreresults", "moreresult",
	"istruncated", "truncated", "hasmoreitems", "hasmorepages", "hasmorepage", "hasmoreresults", "hasmorerecords", "hasmoredata",
	"moredata", "morerecords", "morepages", "moreitemsincollection"}

var (
	// lastNames say whether a page is the last one, doneNames so at the top of an answer. A "true"
	// of doneNames may be said of the request.
	lastNames = []string{"islast", "last", "islastpage", "lastpage", "endreached", "isend", "endofstream", "endoflist", "endofresults",
		"nomore", "nomoreresults", "final", "isfinal", "finalpage"}
	doneNames = []string{"done", "complete", "finished", "exhausted", "eof", "end"}
	nextNames = []string{"next", "nextpage", "nexturl", "nexturi", "nextlink", "nexthref", "nextpageurl", "nextpageuri", "nextpagelink",
		"nextcursor", "nextpagetoken", "nextpagecursor", "nexttoken", "nextoffset", "nextstart", "nextmarker", "nextkey",
		"nextrecordsurl", "continuationtoken", "nextcontinuationtoken", "continuation", "continue", "nextpagestart", "nextpagenumber",
		"nextpageparams", "resumptiontoken", "resumetoken", "offsetnext", "cursornext", "pagenext", "tokennext", "nextrange",
		"nextopenid", "lastevaluatedkey", "nextresults", "skiptoken", "opcnextpage", "continuationnextpartitionkey",
		"continuationnextrowkey", "nextpageid", "nextrecordposition"}
	// tokenNames are the names of a next page's token, which may also be that of another page.
	tokenNames = []string{"cursor", "aftercursor", "endcursor", "after", "marker", "bookmark", "pagetoken", "scrollid", "offset",
		"nextid", "nextindex", "nextposition", "nextbatch", "token", "nextcursormark", "pagestate", "lastkey", "searchafter"}
	totalNames = []string{"total", "totalcount", "totalresults", "totalitems", "totalelements", "totalrows", "totalrecords", "totalsize",
		"totalhits", "fullcount", "recordstotal", "count", "of", "nbhits", "hits", "hitcount", "numfound", "totalentries", "itemstotal",
		"totalsetsize", "numbermatched", "matched", "itemcount", "objectcount", "recordcount", "resultcount", "results",
		"resultstotal", "rowstotal", "recordsfound", "resultsfound", "found", "matches", "nbresults", "totalfound", "totalmatches",
		"datatotal", "entriestotal", "allcount", "numresults", "numrecords", "numitems", "available"}
	// vagueNames say nothing against an end that something else proves.
	vagueNames = append([]string{"remaining", "of", "hits", "results", "matched", "found", "matches", "available"}, doneNames...)
	// partialNames say that rows are left out, and nothing of further pages.
	partialNames   = []string{"incompleteresults", "incomplete", "partial", "partialresults", "timedout", "terminatedearly"}
	limitNames     = []string{"limit", "pagesize", "perpage", "pagelimit", "itemsperpage", "maxresults"}
	remainingNames = []string{"remaining", "remainingitems", "remainingitemcount", "remainingcount", "remainingpages", "remainingresults"}
	leastRelations = []string{"gte", "gt", ">=", ">", "at_least", "lower_bound"} // of a total to the rows
	guessNames     = []string{"estimated", "isestimated", "totalisestimated", "approximate", "isapproximate", "totalisapproximate"}
	pagesNames     = []string{"pages", "totalpages", "totalpage", "pagecount", "pagestotal", "pagetotal", "numpages", "nbpages", "lastpage",
		"maxpage"}
)

// ofPages matches where an answer says of the list, and of no other object, that it has ended.
var ofPages = regexp.MustCompile(`(?i)^(data\.)?[^.]*$|pag|meta|last.?page|of.?(stream|list|results)$`)

// allowance matches where an answer says how many requests its caller has left.
var allowance = regexp.MustCompile("(?i)rate|quota|limit|credit|call|request|usage")

// read reads one place. Nobody has said what it means, so that only a clear yes counts.
func (c *clues) read(path, name, text string) {
	name, small := plain(name), strings.ToLower(text)
	more, yes, isLast := false, slices.Contains([]string{"true", "1", "y", "yes", "on", "t"}, small), slices.Contains(lastNames, name)
	switch {
	case small == "false" && (isLast || !strings.Contains(path, ".") && slices.Contains(doneNames, name)):
		more = true
	case small == "true" && isLast:
		c.none = c.none || ofPages.MatchString(path)
	case slices.Contains(partialNames, name):
		if more = yes; yes && c.partial == "" {
			c.partial = fmt.Sprintf("the answer says that rows are left out (%s: %s)", understudy.Clip(path), understudy.Clip(text))
		}
	case slices.Contains(limitNames, name), name == "size" && strings.HasSuffix(plain(path), "pagesize"):
		more = c.alone && count(text) == int64(c.a.Count) && c.a.Count > 0 // the page is full
	case slices.Contains(remainingNames, name):
		more = count(text) > 0 && !c.inHeader && !allowance.MatchString(path)
	case slices.Contains(MoreNames, name):
		more = yes
		c.none = c.none || !isYes(text)
	case slices.Contains(nextNames, name):
		leads := isToken(text) && text != "-1"
		more = leads && (c.unproven || c.inHeader)
		c.none = c.none || !isToken(text)
		if leads && c.a.Count > 0 {
			c.token = understudy.Clip(path) + ": " + understudy.Clip(text)
		}
	case slices.Contains(tokenNames, name):
		if c.alone && c.first && isToken(text) && (name != "offset" || isYes(text) && count(text) == 0) {
			c.token = understudy.Clip(path) + ": " + understudy.Clip(text)
		}
	case slices.Contains(totalNames, name):
		more = c.first && isAbove(text, int64(c.a.Count))
		if n := count(text); ofPages.MatchString(path) && !slices.Contains(vagueNames, name) && (c.total == 0 || n < c.total) {
			c.total = n
		}
	case slices.Contains(pagesNames, name):
		n := count(text)
		if more = c.first && n > 1; ofPages.MatchString(path) && n != int64(c.a.Count) && (c.pages == 0 || n < c.pages) {
			c.pages = n // unless it is that of the page's rows
		}
	case strings.Contains(name, "more"), name == "hasolder":
		more = yes
	default:
		var m []string
		if beginsWithDigit(text) {
			m = ofWhole.FindStringSubmatch(text)
		}
		more = m != nil && c.first && !allowance.MatchString(path) && count(m[2]) > max(count(m[1]), 1)
	}
	if vague := slices.Contains(vagueNames, name); more && c.more == "" && (c.unproven || !vague || path == c.next) {
		c.more = understudy.Clip(path) + ": " + understudy.Clip(text)
	}
}

// inWords matches a total that is not a number alone: "25+", "333 items".
var inWords = regexp.MustCompile(`^([0-9]+)(\+| [A-Za-z]+)$`)

// ofWhole matches a part and the whole that it is of: "1-25/333", "1 of 12".
var ofWhole = regexp.MustCompile(`^(?:[0-9]+ ?- ?)?([0-9]+) ?(?:/| of ) ?([0-9]+)$`)

// beginsWithDigit reports whether a text may begin with a number, as nearly none does. A plus may stand before it.
func beginsWithDigit(text string) bool {
	text = strings.TrimPrefix(text, "+")
	return text != "" && text[0] >= '0' && text[0] <= '9'
}

// isAbove reports whether a total is above the rows of a page.
func isAbove(text string, rows int64) bool {
	if n := count(text); n > 0 || !beginsWithDigit(text) {
		return n > rows
	}
	m := inWords.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	return count(m[1]) > rows || m[2] == "+" && count(m[1]) == rows && rows > 0
}

// plain returns a name in small letters without anything but letters, and without the words that
// APIs set before it.
func plain(name string) string {
	name = strings.Map(func(r rune) rune {
		if r |= 0x20; r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, name)
	for _, word := range []string{"x", "wp", "ms", "paging", "pagination", "odata", "hydra", "opensearch"} {
		name = strings.TrimPrefix(name, word)
	}
	return name
}

func (c *clues) header(h http.Header) {
	if link := Related(h["Link"], "next"); link != "" {
		c.more = "Link: " + understudy.Clip(link)
	}
	if link := Related(h["Link"], "last"); c.first {
		_, raw, _ := strings.Cut(link, "?")
		query, _ := understudy.ParseQuery(raw) // without the parameter nothing is known
		page, _ := query.Get("page")
		c.read("Link: "+link, "pages", page)
	}
	_, total, _ := strings.Cut(h.Get("Content-Range"), "/") // RFC 9110, 14.4
	c.read("Content-Range", "total", total)
	whole := c.a
	for name := range h {
		value := strings.TrimSpace(h.Get(name))
		c.inHeader = true
		c.read(name, name, value)
		c.inHeader = false
		if !strings.HasPrefix(value, "{") {
			continue
		}
		if doc, err := jsonspan.Parse([]byte(value)); err == nil {
			c.a = &Answer{Body: []byte(value), Count: whole.Count}
			c.object(doc, name, 0)
			c.a = whole
		}
	}
}

// maxClueDepth is how deep in an answer such places are looked for.
const maxClueDepth = 5

func (c *clues) object(v jsonspan.Value, under string, depth int) {
	jsonspan.VisitMembers(c.a.Body, v, func(raw []byte, v jsonspan.Value) bool {
		name := jsonspan.Name(raw)
		path := strings.TrimPrefix(under+"."+name, ".")
		value, counted := jsonspan.Find(c.a.Body, v, "value")
		switch {
		case v.Kind == jsonspan.Array:
			if strings.HasPrefix(plain(name), "link") {
				c.links(path, v)
			}
		case v.Kind != jsonspan.Object:
			c.read(path, name, c.a.text(v))
		case counted && slices.Contains(totalNames, plain(name)):
			c.read(path+".value", name, c.a.text(value))
		case slices.Contains(nextNames, plain(name)):
			if c.holdsToken(v) {
				c.read(path, name, "true")
			}
		case depth < maxClueDepth:
			c.ofPages(path, v)
			c.object(v, path, depth+1)
		}
		return true
	})
}

// ofPages reads an object that says which page it is and how many there are, and one of totals. At the top, where
// totals are of rows, only "of" counts pages.
func (c *clues) ofPages(path string, v jsonspan.Value) {
	said := map[string]string{}
	jsonspan.VisitMembers(c.a.Body, v, func(raw []byte, v jsonspan.Value) bool {
		said[plain(jsonspan.Name(raw))] = c.a.text(v)
		return true
	})
	if said["page"] == "1" {
		c.read(strings.TrimPrefix(path+".of", "."), "pages", said["of"])
	}
	if said["current"] == "1" && path != "" {
		c.read(path, "pages", cmp.Or(said["last"], said["total"], said["pages"]))
	}
	if plain(path[strings.LastIndexByte(path, '.')+1:]) == "totals" {
		c.read(path, "total", cmp.Or(said["all"], said["items"]))
	}
}

// links reads an array of links that have their relation beside them.
func (c *clues) links(path string, v jsonspan.Value) {
	at := jsonspan.NewCursor(c.a.Body, v)
	at.Enter()
	for at.Next() {
		link := at.Skip()
		for _, names := range [][2]string{{"rel", "href"}, {"relation", "url"}} {
			relation, _ := jsonspan.Find(c.a.Body, link, names[0])
			if href, ok := jsonspan.Find(c.a.Body, link, names[1]); ok && c.a.text(relation) == "next" {
				c.read(path, "next", c.a.text(href))
			}
		}
	}
}

// holdsToken reports whether an object has a text or number that may lead on.
func (c *clues) holdsToken(v jsonspan.Value) (has bool) {
	jsonspan.VisitMembers(c.a.Body, v, func(_ []byte, v jsonspan.Value) bool {
		has = isToken(c.a.text(v))
		return !has
	})
	return has
}
