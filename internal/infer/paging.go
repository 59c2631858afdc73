// Paging: how a list leads to its next page, by its parameters and its answer.

package infer

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec/paging"
)

// cut is how a list is cut into pages.
type cut struct {
	rules  paging.Rules
	why    map[string]string // by key of the spec
	unsure string            // why it may be otherwise; "" = sure
	// hinted: it takes a page's number or size, and its answer does not say how to go on.
	hinted bool
}

// pagingOf says how a list is cut.
func pagingOf(op *openapi.Operation, e *envelope) *cut {
	c := &cut{why: map[string]string{}}
	c.size(op)
	number := param(op, numberNames, "integer", "number", "")
	if number != nil {
		c.number(number)
	}
	for _, name := range slices.Concat(idNames, backNames, tokenNames) {
		if p := param(op, []string{name}, "string", "integer", ""); p != nil && p != number && !slices.Contains(c.rules.Tokens, p.Name) {
			c.rules.Tokens = append(c.rules.Tokens, p.Name)
		}
	}
	defer func() {
		c.rules.Tokens = slices.DeleteFunc(c.rules.Tokens, func(name string) bool { return name == c.rules.Cursor || name == c.rules.Back })
	}()
	if c.why["first_page"] == unsaid && (slices.ContainsFunc(op.Headers, isLink) || e.find("string", linkNames...) != nil) {
		c.rules.First, c.why["first_page"] = 0, "nothing says it; links lead on all the same"
	}
	for _, way := range []func(*openapi.Operation, *envelope) bool{c.header, c.link, c.token, c.cursor, c.offset, c.page, c.lastID} {
		if way(op, e) {
			if (c.rules.Style == "header" || c.rules.Style == "body") && c.rules.Page == "" && len(c.rules.Tokens) == 0 {
				if p := param(op, offsetNames, "string", ""); p != nil {
					c.rules.Tokens = []string{p.Name} // a token by its type: a number is counted
					return c
				}
				c.rules.Tokens, c.why["tokens"] = slices.Clone(usualTokens), "nothing names the parameters of its links: these are usual"
				c.unsure = "nothing names the parameters of its links: tokens has the usual ones; if they are others, name them there, " +
					"or its further pages are not kept"
			}
			return c
		}
	}
	c.none("neither its parameters nor its answer lead to a next page")
	says := "its answer does not say how it goes on"
	more := e.saysMore()
	if more != nil {
		says = more.path + " says whether there is more, and no parameter is named that leads on"
	}
	if c.rules.Size != "" || len(c.rules.Tokens) > 0 {
		takes := slices.DeleteFunc(slices.Concat(c.rules.Tokens, []string{c.rules.Size}), func(name string) bool { return name == "" })
		c.unsure, c.hinted = "it takes "+strings.Join(takes, ", ")+", and "+says+": taken as one page", true
		if len(c.rules.Tokens) > 0 {
			c.unsure += "; with a Link header write style: header, and where a parameter takes the last id style: cursor and its name at cursor"
		}
	} else if more != nil {
		c.unsure = says + ": taken as one page"
	}
	return c
}

// none makes it a list of one page.
func (c *cut) none(why string) {
	c.rules.Style, c.why["style"] = "none", why
	c.rules.Page, c.rules.First = "", 0
}

// needID makes a list of one page of one that goes on by the last id, where no field is the id.
func (c *cut) needID(k *kind) {
	if c.rules.Style != "cursor" || len(k.id) == 1 {
		return
	}
	c.rules.Tokens = slices.DeleteFunc([]string{c.rules.Cursor, c.rules.Back}, func(name string) bool { return name == "" })
	c.unsure = c.rules.Cursor +
		" takes the last id, and no field surely is one: taken as one page; give the kind an id, and write style: cursor"
	c.rules.Cursor, c.rules.Back, c.rules.Next, c.rules.More = "", "", "", ""
	c.none("no field is an id that its cursor could take")
}

func (c *cut) by(style, why string) bool {
	c.rules.Style, c.why["style"] = style, why
	return true
}

// header: the answer declares a Link header, or a description says that it has one.
func (c *cut) header(op *openapi.Operation, _ *envelope) bool {
	if slices.ContainsFunc(op.Headers, isLink) {
		return c.by("header", "the answer has a Link header")
	}
	text := op.Description
	for i := range op.Params {
		text += " " + op.Params[i].Description
	}
	return linkText.MatchString(text) && c.by("header", "its description names a Link header")
}

var linkText = regexp.MustCompile("(?i)\\blink`?\\s+(response\\s+)?header")

func isLink(name string) bool { return strings.EqualFold(name, "Link") }

// link: the body has a link to the next page.
func (c *cut) link(op *openapi.Operation, e *envelope) bool {
	for _, name := range linkNames {
		p := e.find("string", name)
		if p == nil || strings.Contains(lastPart(p.path), "@") {
			continue
		}
		if !isURL(p) {
			continue
		}
		c.rules.Next, c.why["next"] = p.path, "a link to the next page"
		if c.rules.Page == "" && c.countsRows(op) {
			return c.by("offset", "its links have "+c.rules.Page+", the number of rows before the page")
		}
		return c.by("body", "the answer has a link to the next page")
	}
	return false
}

// isURL reports whether a place holds a link: by its format, its name, or an example.
func isURL(p *place) bool {
	if slices.Contains([]string{"uri", "url", "uri-reference", "iri"}, p.schema.Format()) {
		return true
	}
	x := p.schema.Example()
	token := x != nil && x.Kind == openapi.String && x.Text != "" && x.Text != "string" && !strings.ContainsAny(x.Text, "/?:.")
	if has(p.path, "url", "uri", "href", "link", "links") && !token {
		return true
	}
	if x != nil && x.Kind == openapi.String {
		return strings.HasPrefix(x.Text, "/") || strings.HasPrefix(x.Text, "http") || strings.HasPrefix(x.Text, "?")
	}
	return regexp.MustCompile(`(?i)\b(url|uri|link)\b`).MatchString(p.schema.Description())
}

// token: the body, or a header, has a token that a parameter takes.
func (c *cut) token(op *openapi.Operation, e *envelope) bool {
	takes := param(op, tokenNames, "string", "")
	if takes == nil {
		takes = param(op, digitNames, "integer") // digits may be all that is seen of it
	}
	if takes == nil && e.find("string", "nextoffset") != nil {
		takes = param(op, []string{"offset"}, "string")
	}
	if takes == nil {
		return false
	}
	at := ""
	if name := tokenHeader(op.Headers); name != "" {
		at = "header:" + name
	} else {
		p := e.find("string", append([]string{"next" + plain(takes.Name), plain(takes.Name)}, nextTokenNames...)...)
		if p == nil {
			p = e.find("integer", slices.Concat([]string{"next" + plain(takes.Name)}, digitNames)...)
		}
		if p == nil {
			return false
		}
		at = p.path
	}
	c.rules.Next, c.why["next"] = at, "the token of the next page"
	c.rules.Cursor, c.why["cursor"] = takes.Name, "the parameter that takes it"
	if more := e.findMore(); more != nil {
		c.rules.More, c.why["more"] = more.path, "says whether there is more"
	}
	return c.by("token", "the answer has a token that "+takes.Name+" takes")
}

// tokenHeader is the header field with the token of the next page; "" = none.
func tokenHeader(names []string) string {
	for _, name := range names {
		if has(name, "next", "continuation") && has(name, "cursor", "token", "continuation") {
			return name
		}
	}
	return ""
}

// cursor: the body says that there is more, and a parameter takes the last id.
func (c *cut) cursor(op *openapi.Operation, e *envelope) bool {
	more, takes := e.findMore(), param(op, idNames, "string", "integer", "")
	if more == nil || takes == nil {
		return false
	}
	c.rules.Next, c.why["next"] = more.path, "says whether there is more"
	c.rules.Cursor, c.why["cursor"] = takes.Name, "takes the last id"
	if back := param(op, backNames, "string", "integer", ""); back != nil {
		c.rules.Back, c.why["back"] = back.Name, "takes the first id, for the page before"
	}
	return c.by("cursor", "the answer says whether there is more, and "+takes.Name+" takes the last id")
}

// describesID reports whether the description of a parameter says that it takes the id of a record.
func describesID(text string) bool {
	return idText.MatchString(text) && !tokenText.MatchString(text)
}

var idText, tokenText = regexp.MustCompile(`(?i)\bids?\b`), regexp.MustCompile(`(?i)\b(cursor|token|link)\b`)

// lastID: a parameter takes the last id, and nothing says whether there is more.
func (c *cut) lastID(op *openapi.Operation, _ *envelope) bool {
	var all []string
	for _, name := range slices.Concat(backNames, idNames, []string{"since"}) {
		p := param(op, []string{name}, "string", "integer", "")
		if p != nil && describesID(p.Description+" "+p.Schema.Description()) {
			all = append(all, p.Name)
		}
	}
	if len(all) == 0 {
		return false
	}
	c.rules.Cursor, c.why["cursor"], c.hinted = all[0], "takes the last id, by its description", true
	c.unsure = "nothing says whether there is more: pages are asked for by " + c.rules.Cursor + " until one has no rows"
	if len(all) > 1 {
		c.unsure += "; where the oldest come first, write cursor: " + all[1]
	}
	return c.by("cursor", c.rules.Cursor+" takes the last id")
}

// offset: a parameter takes the number of rows before the page.
func (c *cut) offset(op *openapi.Operation, e *envelope) bool {
	if !c.countsRows(op) {
		return false
	}
	c.end(op, e)
	return c.by("offset", c.rules.Page+" takes the number of rows before the page")
}

// countsRows notes the parameter that takes the number of rows before the page.
func (c *cut) countsRows(op *openapi.Operation) bool {
	names := slices.DeleteFunc(slices.Clone(offsetNames), func(name string) bool { return isEdge(op, name) })
	takes := param(op, names, "integer", "number")
	if text := param(op, names, "string"); takes == nil && text != nil && indexText.MatchString(text.Description) {
		takes = text
	}
	if takes == nil || c.rules.Size == "" && !is(takes.Name, "offset", "skip") { // others may be times
		return false
	}
	c.rules.Page, c.why["page"] = takes.Name, "the number of rows before the page"
	c.rules.First = 0
	delete(c.why, "first_page")
	if least, _, ok, _ := takes.Schema.Bounds(); ok && least == 1 || takes.Schema.Default() == "1" {
		c.rules.First, c.why["first_page"] = 1, "it counts from 1"
	}
	c.rules.Tokens = nil
	return true
}

// indexText matches what descriptions say of a number of rows whose type is a text.
var indexText = regexp.MustCompile(`(?i)\b(?:zero-based|0-based|index of the|position within the)\b`)

// edgeText matches what descriptions say of a time.
var edgeText = regexp.MustCompile(`(?i)\b(?:time|timestamp|date|epoch|unix)\b`)

// isEdge reports whether a parameter is the edge of a range, from or start, and no number of rows.
func isEdge(op *openapi.Operation, name string) bool {
	ends := map[string][]string{"from": {"to", "until"}, "start": {"end", "stop"}, "startat": {"endat"}}[name]
	p := param(op, []string{name})
	return p != nil && ends != nil && (param(op, ends) != nil || edgeText.MatchString(p.Description+" "+p.Schema.Description()))
}

// page: a parameter takes the number of the page.
func (c *cut) page(op *openapi.Operation, e *envelope) bool {
	if c.rules.Page == "" {
		return false
	}
	c.end(op, e)
	c.rules.Tokens, c.hinted = nil, true
	return c.by("number", c.rules.Page+" takes the number of the page")
}

// end says how a list by number or offset ends.
func (c *cut) end(op *openapi.Operation, e *envelope) {
	if p := e.findTotal(); p != nil {
		c.rules.Total, c.why["total"] = p.path, "how many rows all pages have"
	}
	if p := e.findMore(); p != nil {
		c.rules.Next, c.why["next"] = p.path, "says whether there is more"
	} else if p := e.find("integer", "nextpage", "pagingnextpage", "next", "nextoffset"); p != nil {
		c.rules.Next, c.why["next"] = p.path, "the next page's number"
	}
	for _, name := range op.Headers {
		switch {
		case c.rules.Total == "" && is(name, "xtotalcount", "xtotal", "totalcount", "xtotalresults", "xpaginationtotalcount"):
			c.rules.Total, c.why["total"] = "header:"+name, "how many rows all pages have"
		case c.rules.Next == "" && is(name, "xnextpage", "nextpage", "xnextoffset", "xhasmore"):
			c.rules.Next, c.why["next"] = "header:"+name, "says whether there is more"
		}
	}
	if c.rules.Total == "" && c.rules.Next == "" && c.rules.Default == 0 {
		c.unsure = "nothing says how many rows a full page has, so a list ends with a page without rows"
	}
}

// unsaid is why a list's pages count from 1 where nothing says it.
const unsaid = "nothing says it: usual"

// number notes the parameter with the page's number, and where it begins.
func (c *cut) number(p *openapi.Param) {
	c.rules.Page, c.why["page"] = p.Name, "the number of the page"
	least, _, hasLeast, _ := p.Schema.Bounds()
	first, err := strconv.Atoi(p.Schema.Default())
	text := strings.ToLower(p.Description + " " + p.Schema.Description())
	switch {
	case err == nil && (first == 0 || first == 1):
		c.rules.First, c.why["first_page"] = first, "its default"
	case hasLeast && (least == 0 || least == 1):
		c.rules.First, c.why["first_page"] = least, "its minimum"
	case strings.Contains(text, "zero-based") || strings.Contains(text, "0-based") || strings.Contains(text, "from 0") ||
		strings.Contains(text, "at 0"):
		c.rules.First, c.why["first_page"] = 0, "its description"
	default:
		c.rules.First, c.why["first_page"] = 1, unsaid
	}
}

// What descriptions say of a page's size.
var (
	mostText = regexp.MustCompile(`(?i)(?:\bmax(?:imum)?(?:\s+(?:value|number|page size|limit|allowed|size))?` +
		`(?:\s+(?:of|is|are))?|\bup to|between \d+ and|no more than|at most|\bmax:)[^\d.]{0,12}(\d{1,5})\b`)
	defaultText = regexp.MustCompile(`(?i)\bdefaults?(?:\s+(?:value|page size|limit|to|is|of))*[^\d.]{0,12}(\d{1,5})\b`)
)

// size notes the parameter with the page's size, its default and its largest.
func (c *cut) size(op *openapi.Operation) {
	p := sizeParam(op)
	if p == nil {
		return
	}
	c.rules.Size, c.why["size"] = p.Name, "the size of a page"
	text := p.Description + " " + p.Schema.Description()
	if n, err := strconv.Atoi(p.Schema.Default()); err == nil && n > 0 {
		c.rules.Default, c.why["default_size"] = n, "its default"
	} else if m := defaultText.FindStringSubmatch(text); m != nil {
		c.rules.Default, _ = strconv.Atoi(m[1])
		c.why["default_size"] = "its description"
	}
	if _, most, _, ok := p.Schema.Bounds(); ok && most > 0 && most < 1_000_000 {
		c.rules.Max, c.why["max_size"] = most, "its maximum"
	} else if m := mostText.FindStringSubmatch(text); m != nil {
		c.rules.Max, _ = strconv.Atoi(m[1])
		c.why["max_size"] = "its description"
	}
	if c.rules.Max > 0 && c.rules.Default > c.rules.Max {
		c.rules.Default = 0
	}
}

// same is what makes two lists cut alike, as one text.
func (c *cut) same() string {
	r := c.rules
	return fmt.Sprint(r.Style, "|", r.Next, "|", r.More, "|", r.Total, "|", r.Cursor, "|", r.Back, "|", r.Size, "|", r.Default, "|", r.Max,
		"|", r.Page, "|", r.First, "|", r.Tokens, "|", r.Template)
}
