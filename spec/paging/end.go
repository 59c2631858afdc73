// End: what one answer proves about the end of its list.

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

// valueAt returns the value at a place of an answer, as text. there is false if the answer lacks the place. An
// object or array with members gives "true", an empty one "".
func (a *Answer) valueAt(place string) (text string, there bool) {
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

// negatives are the lower-case texts that mean no. Null has the empty text.
var negatives = []string{"", "false", "0", "0.0", "n", "no", "off", "f"}

// isYes reports whether a text says that more pages exist. APIs write this in many ways, so every text counts
// as yes except the known negatives.
func isYes(text string) bool { return !slices.Contains(negatives, strings.ToLower(text)) }

// isToken reports whether a text may be a page token. Some APIs write 0 for no token.
func isToken(text string) bool { return text != "" && text != "0" && !strings.EqualFold(text, "false") }

// totalRows returns the number of rows of all pages, as the answer states it at Rules.Total, or 0 if it does not.
func (r *Rules) totalRows(a *Answer) int64 {
	if r.Total == "" {
		return 0
	}
	text, _ := a.valueAt(r.Total)
	return parseCount(text)
}

// statedTotal returns the total in the form of understudy.Page.TotalRows. A member beside the total may mark it
// as a minimum or an estimate.
func (r *Rules) statedTotal(a *Answer) int64 {
	total, above := r.totalRows(a), a.Doc
	if i := strings.LastIndexByte(r.Total, '.'); i >= 0 {
		above, _ = jsonspan.Find(a.Body, a.Doc, r.Total[:i])
	}
	if total == 0 || above.Kind != jsonspan.Object {
		return total
	}
	isLeast, isGuess := false, false
	jsonspan.VisitMembers(a.Body, above, func(raw []byte, v jsonspan.Value) bool {
		name, text := normalizeName(jsonspan.Name(raw)), strings.ToLower(a.text(v))
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

// groupedDigits matches a number with groups of three digits: 1,333.
var groupedDigits = regexp.MustCompile(`^[0-9]{1,3}(?:[,_ '.’][0-9]{3})+$`)

// parseCount parses a whole number of at least 1, also with grouped digits. It returns 0 for any other text.
func parseCount(text string) int64 {
	if !hasLeadingDigit(text) {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && groupedDigits.MatchString(text) {
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
	return int64(min(n, 1<<53)) // exact, because a float64 represents every whole number up to this value
}

// open returns the step after a page if the end of the list is not proven, with the reason.
func open(kind, why string, args ...any) Step {
	return Step{Open: understudy.OpenEnd{Kind: kind, Why: fmt.Sprintf(why, args...)}}
}

// openUnseen returns the step for an answer that lacks the place which leads to the next page.
func openUnseen(place string) Step {
	return open(understudy.OpenUnseen, "no answer had %s, which leads to the next page", place)
}

// isFull reports whether a page has the maximum number of rows. known is false if that number is not known.
func (r *Rules) isFull(a *Answer) (full, known bool) {
	_, size, err := r.readPosition(a)
	return int64(a.Count) >= size, err == nil && size > 0
}

// addClues completes the step of a paging style with other statements of the answer. If the style has proven
// the end, only a place that exists solely with a next page can disprove it.
func (r *Rules) addClues(a *Answer, step Step) Step {
	kind := step.Open.Kind
	c := clues{a: a, next: r.Next, unproven: kind != "", unlinked: kind == understudy.OpenUnlinked}
	c.first = !slices.ContainsFunc(a.Query, func(p understudy.Param) bool { return r.IsPosition(p.Name) })
	c.readHeader(a.Header)
	if a.Doc.Kind == jsonspan.Object {
		c.readPageCount("", a.Doc)
		c.readObject(a.Doc, "", 0)
	}
	if step.Open.Partial = c.partial; c.partial == "" {
		if what := FindError(a.Body, a.Doc); what != "" {
			step.Open.Partial = fmt.Sprintf("the answer reports an error beside its rows (%s)", what)
		}
	}
	if step.Total = r.statedTotal(a); r.Total == "" {
		step.Total = min(1-c.total, 0) // a total found by guessing may contradict the end of the list, but never proves it
	}
	step.Pages = c.pages
	if step.Link != "" || step.Param.Name != "" || kind == understudy.OpenShort || kind == understudy.OpenSilent {
		return step // the answer to the next page will show whether the list goes on
	}
	if c.more == "" && !c.noMore {
		c.more = c.token
	}
	switch {
	case c.more != "":
		step.Open.Kind, step.Open.Why = understudy.OpenRefuted, fmt.Sprintf("the answer says that there is more (%s)", c.more)
	case c.unlinked && c.noMore:
		step.Open = understudy.OpenEnd{}
	}
	return step
}

// clues collects what an answer says about further pages at places that the rules may not name.
type clues struct {
	a        *Answer
	next     string // the value of Rules.Next
	unproven bool   // no other statement proves the end of the list
	unlinked bool   // the rules name no way to a next page
	first    bool   // the answer is the first page of the list
	inHeader bool   // the members being read belong to a header field
	more     string // a statement that more pages exist, with its value
	token    string // a text that may be the token of a next page
	partial  string // a statement that rows were left out
	total    int64  // the number of rows of all pages, or 0 if not stated
	pages    int64  // the number of pages, or 0 if not stated
	noMore   bool   // the answer states that no more pages exist
}

// MoreNames are the usual names of a member that says whether more pages exist. This and the following lists
// contain the results of normalizeName: lower-case letters only.
var MoreNames = []string{"hasmore", "hasnext", "hasnextpage", "more", "ismore", "moreavailable", "moreresults", "moreresult",
	"istruncated", "truncated", "hasmoreitems", "hasmorepages", "hasmorepage", "hasmoreresults", "hasmorerecords", "hasmoredata",
	"moredata", "morerecords", "morepages", "moreitemsincollection"}

var (
	// lastNames say whether a page is the last one. doneNames say so at the top of an answer, where "true" may
	// instead be about the request.
	lastNames = []string{"islast", "last", "islastpage", "lastpage", "endreached", "isend", "endofstream", "endoflist", "endofresults",
		"nomore", "nomoreresults", "final", "isfinal", "finalpage"}
	doneNames = []string{"done", "complete", "finished", "exhausted", "eof", "end"}
	nextNames = []string{"next", "nextpage", "nexturl", "nexturi", "nextlink", "nexthref", "nextpageurl", "nextpageuri", "nextpagelink",
		"nextcursor", "nextpagetoken", "nextpagecursor", "nexttoken", "nextoffset", "nextstart", "nextmarker", "nextkey",
		"nextrecordsurl", "continuationtoken", "nextcontinuationtoken", "continuation", "continue", "nextpagestart", "nextpagenumber",
		"nextpageparams", "resumptiontoken", "resumetoken", "offsetnext", "cursornext", "pagenext", "tokennext", "nextrange",
		"nextopenid", "lastevaluatedkey", "nextresults", "skiptoken", "opcnextpage", "continuationnextpartitionkey",
		"continuationnextrowkey", "nextpageid", "nextrecordposition"}
	// tokenNames are names of a token that may belong to the next page or to another one.
	tokenNames = []string{"cursor", "aftercursor", "endcursor", "after", "marker", "bookmark", "pagetoken", "scrollid", "offset",
		"nextid", "nextindex", "nextposition", "nextbatch", "token", "nextcursormark", "pagestate", "lastkey", "searchafter"}
	totalNames = []string{"total", "totalcount", "totalresults", "totalitems", "totalelements", "totalrows", "totalrecords", "totalsize",
		"totalhits", "fullcount", "recordstotal", "count", "of", "nbhits", "hits", "hitcount", "numfound", "totalentries", "itemstotal",
		"totalsetsize", "numbermatched", "matched", "itemcount", "objectcount", "recordcount", "resultcount", "results",
		"resultstotal", "rowstotal", "recordsfound", "resultsfound", "found", "matches", "nbresults", "totalfound", "totalmatches",
		"datatotal", "entriestotal", "allcount", "numresults", "numrecords", "numitems", "available"}
	// vagueNames cannot disprove an end that something else proves.
	vagueNames = append([]string{"remaining", "of", "hits", "results", "matched", "found", "matches", "available"}, doneNames...)
	// partialNames say that rows were left out. They say nothing about further pages.
	partialNames   = []string{"incompleteresults", "incomplete", "partial", "partialresults", "timedout", "terminatedearly"}
	limitNames     = []string{"limit", "pagesize", "perpage", "pagelimit", "itemsperpage", "maxresults"}
	remainingNames = []string{"remaining", "remainingitems", "remainingitemcount", "remainingcount", "remainingpages", "remainingresults"}
	leastRelations = []string{"gte", "gt", ">=", ">", "at_least", "lower_bound"} // relations that mark a total as a minimum
	guessNames     = []string{"estimated", "isestimated", "totalisestimated", "approximate", "isapproximate", "totalisapproximate"}
	pagesNames     = []string{"pages", "totalpages", "totalpage", "pagecount", "pagestotal", "pagetotal", "numpages", "nbpages", "lastpage",
		"maxpage"}
)

// pagesPath matches the path of a member that describes the list, and not some other object.
var pagesPath = regexp.MustCompile(`(?i)^(data\.)?[^.]*$|pag|meta|last.?page|of.?(stream|list|results)$`)

// quotaPath matches the path of a member that says how many requests the caller has left.
var quotaPath = regexp.MustCompile("(?i)rate|quota|limit|credit|call|request|usage")

// read evaluates one member. Because its meaning is only guessed from its name, only a clear yes counts.
func (c *clues) read(path, name, text string) {
	name, small := normalizeName(name), strings.ToLower(text)
	more, yes, isLast := false, slices.Contains([]string{"true", "1", "y", "yes", "on", "t"}, small), slices.Contains(lastNames, name)
	switch {
	case small == "false" && (isLast || !strings.Contains(path, ".") && slices.Contains(doneNames, name)):
		more = true
	case small == "true" && isLast:
		c.noMore = c.noMore || pagesPath.MatchString(path)
	case slices.Contains(partialNames, name):
		if more = yes; yes && c.partial == "" {
			c.partial = fmt.Sprintf("the answer says that rows are left out (%s: %s)", understudy.Clip(path), understudy.Clip(text))
		}
	case slices.Contains(limitNames, name), name == "size" && strings.HasSuffix(normalizeName(path), "pagesize"):
		more = c.unlinked && parseCount(text) == int64(c.a.Count) && c.a.Count > 0 // the page has as many rows as its maximum
	case slices.Contains(remainingNames, name):
		more = parseCount(text) > 0 && !c.inHeader && !quotaPath.MatchString(path)
	case slices.Contains(MoreNames, name):
		more = yes
		c.noMore = c.noMore || !isYes(text)
	case slices.Contains(nextNames, name):
		leads := isToken(text) && text != "-1"
		more = leads && (c.unproven || c.inHeader)
		c.noMore = c.noMore || !isToken(text)
		if leads && c.a.Count > 0 {
			c.token = understudy.Clip(path) + ": " + understudy.Clip(text)
		}
	case slices.Contains(tokenNames, name):
		if c.unlinked && c.first && isToken(text) && (name != "offset" || isYes(text) && parseCount(text) == 0) {
			c.token = understudy.Clip(path) + ": " + understudy.Clip(text)
		}
	case slices.Contains(totalNames, name):
		more = c.first && isAbove(text, int64(c.a.Count))
		if n := parseCount(text); pagesPath.MatchString(path) && !slices.Contains(vagueNames, name) && (c.total == 0 || n < c.total) {
			c.total = n
		}
	case slices.Contains(pagesNames, name):
		n := parseCount(text)
		if more = c.first && n > 1; pagesPath.MatchString(path) && n != int64(c.a.Count) && (c.pages == 0 || n < c.pages) {
			c.pages = n // n equal to the row count may be the number of rows on this page, so it is excluded
		}
	case strings.Contains(name, "more"), name == "hasolder":
		more = yes
	default:
		var m []string
		if hasLeadingDigit(text) {
			m = partOfWhole.FindStringSubmatch(text)
		}
		more = m != nil && c.first && !quotaPath.MatchString(path) && parseCount(m[2]) > max(parseCount(m[1]), 1)
	}
	if vague := slices.Contains(vagueNames, name); more && c.more == "" && (c.unproven || !vague || path == c.next) {
		c.more = understudy.Clip(path) + ": " + understudy.Clip(text)
	}
}

// totalWithUnit matches a total followed by a plus or a word: "25+", "333 items".
var totalWithUnit = regexp.MustCompile(`^([0-9]+)(\+| [A-Za-z]+)$`)

// partOfWhole matches a part and its whole: "1-25/333", "1 of 12".
var partOfWhole = regexp.MustCompile(`^(?:[0-9]+ ?- ?)?([0-9]+) ?(?:/| of ) ?([0-9]+)$`)

// hasLeadingDigit reports whether a text may begin with a number, possibly after a plus. It quickly excludes
// nearly all texts.
func hasLeadingDigit(text string) bool {
	text = strings.TrimPrefix(text, "+")
	return text != "" && text[0] >= '0' && text[0] <= '9'
}

// isAbove reports whether a total is larger than the number of rows on a page.
func isAbove(text string, rows int64) bool {
	if n := parseCount(text); n > 0 || !hasLeadingDigit(text) {
		return n > rows
	}
	m := totalWithUnit.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	return parseCount(m[1]) > rows || m[2] == "+" && parseCount(m[1]) == rows && rows > 0
}

// normalizeName converts a name to lower case, keeps only letters and removes the prefixes that APIs use.
func normalizeName(name string) string {
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

// readHeader evaluates the header fields: links, the range, and single values or JSON objects.
func (c *clues) readHeader(h http.Header) {
	if link := LinkTarget(h["Link"], "next"); link != "" {
		c.more = "Link: " + understudy.Clip(link)
	}
	if link := LinkTarget(h["Link"], "last"); c.first {
		_, raw, _ := strings.Cut(link, "?")
		query, _ := understudy.ParseQuery(raw) // an invalid query counts as a query without a page parameter
		page, _ := query.Get("page")
		c.read("Link: "+link, "pages", page)
	}
	_, total, _ := strings.Cut(h.Get("Content-Range"), "/") // in the form of RFC 9110, 14.4
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
			c.readObject(doc, name, 0)
			c.a = whole
		}
	}
}

// maxClueDepth is the depth of objects to which an answer is searched for clues.
const maxClueDepth = 5

// readObject evaluates the members of an object. under is the dotted path of the object.
func (c *clues) readObject(v jsonspan.Value, under string, depth int) {
	jsonspan.VisitMembers(c.a.Body, v, func(raw []byte, v jsonspan.Value) bool {
		name := jsonspan.Name(raw)
		path := strings.TrimPrefix(under+"."+name, ".")
		value, counted := jsonspan.Find(c.a.Body, v, "value")
		switch {
		case v.Kind == jsonspan.Array:
			if strings.HasPrefix(normalizeName(name), "link") {
				c.readLinks(path, v)
			}
		case v.Kind != jsonspan.Object:
			c.read(path, name, c.a.text(v))
		case counted && slices.Contains(totalNames, normalizeName(name)):
			c.read(path+".value", name, c.a.text(value))
		case slices.Contains(nextNames, normalizeName(name)):
			if c.hasToken(v) {
				c.read(path, name, "true")
			}
		case depth < maxClueDepth:
			c.readPageCount(path, v)
			c.readObject(v, path, depth+1)
		}
		return true
	})
}

// readPageCount evaluates an object that states the current page and the number of pages, or totals. At the top
// of an answer totals count rows, and only "of" counts pages.
func (c *clues) readPageCount(path string, v jsonspan.Value) {
	said := map[string]string{}
	jsonspan.VisitMembers(c.a.Body, v, func(raw []byte, v jsonspan.Value) bool {
		said[normalizeName(jsonspan.Name(raw))] = c.a.text(v)
		return true
	})
	if said["page"] == "1" {
		c.read(strings.TrimPrefix(path+".of", "."), "pages", said["of"])
	}
	if said["current"] == "1" && path != "" {
		c.read(path, "pages", cmp.Or(said["last"], said["total"], said["pages"]))
	}
	if normalizeName(path[strings.LastIndexByte(path, '.')+1:]) == "totals" {
		c.read(path, "total", cmp.Or(said["all"], said["items"]))
	}
}

// readLinks evaluates an array of link objects that contain their relation.
func (c *clues) readLinks(path string, v jsonspan.Value) {
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

// hasToken reports whether an object contains a text or number that may be a page token.
func (c *clues) hasToken(v jsonspan.Value) (has bool) {
	jsonspan.VisitMembers(c.a.Body, v, func(_ []byte, v jsonspan.Value) bool {
		has = isToken(c.a.text(v))
		return !has
	})
	return has
}
