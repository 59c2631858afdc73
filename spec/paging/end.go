// End: what one answer proves of the end of its list.

package paging

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// said is the value at a place of an answer, as text; there is false where the answer does not
// have the place. Objects and arrays have no text.
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
		return "true"
	}
	return ""
}

// no are the texts that say no, in small letters. Null has the empty text.
var no = []string{"", "false", "0", "n", "no"}

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

func count(text string) int64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 1 || n > math.MaxInt32 || n != math.Trunc(n) {
		return 0
	}
	return int64(n)
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

// ended completes what a style says at the end of a list by what else the answer says. An end
// that the style has proven is only unproven for what nothing but a next page has.
func (r *Rules) ended(a *Answer, end Step) Step {
	if kind := end.Open.Kind; kind == understudy.OpenShort || kind == understudy.OpenSilent {
		return end // the page after this one tells
	}
	c := clues{a: a, unproven: end.Open.Kind != ""}
	c.first = !slices.ContainsFunc(a.Query, func(p understudy.Param) bool { return r.Position(p.Name) })
	c.header(a.Header)
	if a.Doc.Kind == jsonspan.Object {
		c.object(a.Doc, "", 0)
	}
	switch {
	case c.more != "":
		return open(understudy.OpenRefuted, "the answer says that there is more (%s)", c.more)
	case end.Open.Kind == understudy.OpenAlone && c.none:
		return Step{}
	}
	return end
}

// clues are what an answer says of further pages at places that the rules may not name.
type clues struct {
	a        *Answer
	unproven bool   // nothing else proves the end
	first    bool   // it is the first page
	more     string // what says that there is more, with its value
	none     bool   // something says that there is no more
}

// The names of such places, in small letters without anything but letters.
var (
	moreNames = []string{"hasmore", "hasnext", "hasnextpage", "more", "ismore", "moreavailable", "moreresults", "istruncated", "truncated",
		"hasmoreitems", "hasmorepages", "hasmoreresults", "xhasmore", "moredata"}
	nextNames = []string{"next", "nextpage", "nexturl", "nexturi", "nextlink", "nexthref", "nextpageurl", "nextpageuri",
		"nextpagelink", "nextcursor", "nextpagetoken", "nextpagecursor", "nexttoken", "nextoffset", "nextstart", "nextmarker",
		"nextkey", "nextrecordsurl", "odatanextlink", "continuationtoken", "nextcontinuationtoken", "xnextpage", "xnextcursor",
		"xnexttoken", "xcontinuationtoken"}
	totalNames = []string{"total", "totalcount", "totalresults", "totalitems", "totalelements", "totalrows", "totalrecords", "totalsize",
		"totalhits", "fullcount", "recordstotal", "count", "odatacount", "xtotal", "xtotalcount", "xtotalresults", "xpaginationtotalcount"}
	// partialNames say that rows are left out, and nothing of further pages.
	partialNames = []string{"incompleteresults", "incomplete", "partial", "partialresults"}
	limitNames   = []string{"limit", "pagesize", "perpage", "pagelimit", "itemsperpage", "maxresults"}
	pagesNames   = []string{"pages", "totalpages", "pagecount", "pagestotal", "numpages", "lastpage", "xtotalpages", "xpagecount"}
)

// read reads one place. Nobody has said what it means, so that only a clear yes counts.
func (c *clues) read(path, name, text string) {
	name = letters(name)
	more, yes := false, slices.Contains([]string{"true", "1", "y", "yes"}, strings.ToLower(text))
	switch {
	case slices.Contains(partialNames, name):
		more = yes
	case slices.Contains(limitNames, name):
		more = c.unproven && count(text) == int64(c.a.Count) && c.a.Count > 0 // the page is full
	case slices.Contains(moreNames, name):
		more = yes
		c.none = c.none || !isYes(text)
	case slices.Contains(nextNames, name):
		more = isToken(text) && text != "-1" && (c.unproven || strings.HasPrefix(name, "x"))
		c.none = c.none || !isToken(text)
	case slices.Contains(totalNames, name):
		more = c.first && count(text) > int64(c.a.Count)
	case slices.Contains(pagesNames, name):
		more = c.first && count(text) > 1
	}
	if more && c.more == "" {
		c.more = understudy.Clip(path) + ": " + understudy.Clip(text)
	}
}

// letters returns a name in small letters without anything but letters.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if r |= 0x20; r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, name)
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
	for name := range h {
		if strings.HasPrefix(name, "X-") {
			c.read(name, name, strings.TrimSpace(h.Get(name)))
		}
	}
}

// maxClueDepth is how deep in an answer such places are looked for.
const maxClueDepth = 5

func (c *clues) object(v jsonspan.Value, under string, depth int) {
	jsonspan.Members(c.a.Body, v, func(raw []byte, v jsonspan.Value) bool {
		name := jsonspan.Name(raw)
		path := strings.TrimPrefix(under+"."+name, ".")
		switch {
		case v.Kind == jsonspan.Array:
			if strings.HasPrefix(letters(name), "link") {
				c.links(path, v)
			}
		case v.Kind != jsonspan.Object:
			c.read(path, name, c.a.text(v))
		case slices.Contains(totalNames, letters(name)):
			value, _ := jsonspan.Find(c.a.Body, v, "value")
			c.read(path+".value", name, c.a.text(value))
		case slices.Contains([]string{"next", "Next"}, name) && v.End-v.Start > len("{}"):
			c.read(path, name, "true")
		case depth < maxClueDepth:
			c.object(v, path, depth+1)
		}
		return true
	})
}

// links reads an array of links that have their relation beside them.
func (c *clues) links(path string, v jsonspan.Value) {
	at := jsonspan.At(c.a.Body, v)
	at.Enter()
	for at.More() {
		link := at.Skip()
		relation, _ := jsonspan.Find(c.a.Body, link, "rel")
		if href, ok := jsonspan.Find(c.a.Body, link, "href"); ok && c.a.text(relation) == "next" {
			c.read(path, "next", c.a.text(href))
		}
	}
}
