// This file finds out how a list leads to its next page, from its parameters and its response.

package infer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec/paging"
)

// pagination holds the paging rules of a list, with the reasons for them.
type pagination struct {
	rules  paging.Rules
	why    map[string]string // the reason for each value, by the value's key in the spec
	caveat string            // why the paging rules may be wrong, or "" if they are certain
	// guessed is true if a parameter suggests that the list has pages, but the response does not show how to reach
	// the next page.
	guessed bool
}

// findPaging returns the paging rules of a list. It takes the first style that fits. If none fits, the list is a
// single page.
func findPaging(op *openapi.Operation, e *envelope) *pagination {
	c := &pagination{why: map[string]string{}}
	c.setPageSize(op)
	number := queryParam(op, pageNumberNames, "integer", "number", "")
	if number != nil {
		c.setPageNumber(number)
	}
	for _, name := range slices.Concat(afterIDNames, beforeIDNames, tokenNames) {
		if p := queryParam(op, []string{name}, "string", "integer", ""); p != nil && p != number && !slices.Contains(c.rules.Tokens, p.Name) {
			c.rules.Tokens = append(c.rules.Tokens, p.Name)
		}
	}
	defer func() {
		c.rules.Tokens = slices.DeleteFunc(c.rules.Tokens, func(name string) bool { return name == c.rules.Cursor || name == c.rules.Back })
	}()
	if c.why["first_page"] == assumedReason && (slices.ContainsFunc(op.Headers, isLinkHeader) || e.find("string", nextLinkNames...) != nil) {
		c.rules.First, c.why["first_page"] = 0, "a guess; links lead to the next page in any case"
	}
	for _, use := range []func(*openapi.Operation, *envelope) bool{
		c.useLinkHeader, c.useBodyLink, c.useToken, c.useCursor, c.useOffset, c.usePageNumber, c.useLastID,
	} {
		if use(op, e) {
			if (c.rules.Style == "header" || c.rules.Style == "body") && c.rules.Page == "" && len(c.rules.Tokens) == 0 {
				if p := queryParam(op, offsetNames, "string", ""); p != nil {
					c.rules.Tokens = []string{p.Name} // a token parameter of type string; a number would be counted
					return c
				}
				c.rules.Tokens, c.why["tokens"] = slices.Clone(commonTokens), "a guess: the parameters of its links are not known"
				c.caveat = "the parameters of its links are not known; tokens has common names; if the API uses others, write them there, " +
					"or later pages are not stored"
			}
			return c
		}
	}
	c.setSinglePage("neither its parameters nor its answer show how to request a next page")
	says := "its answer does not show how to request the next page"
	more := cmp.Or(e.findMore(), e.find("integer", totalNames...), e.find("string", slices.Concat(numericTokenNames, nextLinkNames)...))
	if more != nil { // the member suggests that more pages follow
		says = more.path + " says whether more pages exist, but no parameter is known that requests the next page"
	}
	if c.rules.Size != "" || len(c.rules.Tokens) > 0 {
		takes := slices.DeleteFunc(slices.Concat(c.rules.Tokens, []string{c.rules.Size}), func(name string) bool { return name == "" })
		c.caveat, c.guessed = "it accepts "+strings.Join(takes, ", ")+", but "+says+"; it is treated as one page", true
		if len(c.rules.Tokens) > 0 {
			c.caveat += "; if it has a Link header, write style: header; if a parameter takes the last id, write style: cursor and cursor: NAME"
		}
	} else if more != nil {
		c.caveat = says + "; it is treated as one page"
	}
	return c
}

// setSinglePage makes the list a single page and records the reason.
func (c *pagination) setSinglePage(why string) {
	c.rules.Style, c.why["style"] = "none", why
	c.rules.Page, c.rules.First = "", 0
}

// dropCursorWithoutID makes a list a single page if its cursor takes the last id but the kind's id is not a single field.
func (c *pagination) dropCursorWithoutID(k *kind) {
	if c.rules.Style != "cursor" || len(k.id) == 1 {
		return
	}
	c.rules.Tokens = slices.DeleteFunc([]string{c.rules.Cursor, c.rules.Back}, func(name string) bool { return name == "" })
	c.caveat = c.rules.Cursor +
		" takes the last id of a page, but no field is certainly the id; it is treated as one page; give the kind an id, and write style: cursor"
	c.rules.Cursor, c.rules.Back, c.rules.Next, c.rules.More = "", "", "", ""
	c.setSinglePage("the kind has no id for the cursor")
}

// setStyle stores the paging style with its reason. It returns true, so that a use function can return its result.
func (c *pagination) setStyle(style, why string) bool {
	c.rules.Style, c.why["style"] = style, why
	return true
}

// useLinkHeader chooses the style "header" if the response declares a Link header or a description mentions one.
func (c *pagination) useLinkHeader(op *openapi.Operation, _ *envelope) bool {
	if slices.ContainsFunc(op.Headers, isLinkHeader) {
		return c.setStyle("header", "the answer has a Link header")
	}
	text := op.Description
	for i := range op.Params {
		text += " " + op.Params[i].Description
	}
	return linkHeaderText.MatchString(text) && c.setStyle("header", "its description names a Link header")
}

var linkHeaderText = regexp.MustCompile("(?i)\\blink`?\\s+(response\\s+)?header")

func isLinkHeader(name string) bool { return strings.EqualFold(name, "Link") }

// useBodyLink looks for a link to the next page in the body. It chooses the style "body", or "offset" if the links
// count rows.
func (c *pagination) useBodyLink(op *openapi.Operation, e *envelope) bool {
	for _, name := range nextLinkNames {
		p := e.find("string", name)
		if p == nil || strings.Contains(lastPart(p.path), "@") || !hasURL(p) {
			continue
		}
		c.rules.Next, c.why["next"] = p.path, "a link to the next page"
		if c.rules.Page == "" && c.setOffsetParam(op) {
			return c.setStyle("offset", "its links have "+c.rules.Page+", the number of rows before the page")
		}
		return c.setStyle("body", "the answer has a link to the next page")
	}
	return false
}

// hasURL reports whether a member holds a URL, judged by its format, name, example and description.
func hasURL(p *envelopeMember) bool {
	if slices.Contains([]string{"uri", "url", "uri-reference", "iri"}, p.schema.Format()) {
		return true
	}
	x := p.schema.Example()
	token := x != nil && x.Kind == openapi.String && x.Text != "" && x.Text != "string" && !strings.ContainsAny(x.Text, "/?:.")
	if hasWord(p.path, "url", "uri", "href", "link", "links") && !token {
		return true
	}
	if x != nil && x.Kind == openapi.String {
		return strings.HasPrefix(x.Text, "/") || strings.HasPrefix(x.Text, "http") || strings.HasPrefix(x.Text, "?")
	}
	return regexp.MustCompile(`(?i)\b(url|uri|link)\b`).MatchString(p.schema.Description())
}

// useToken chooses the style "token" if the body or a header field has a token for which there is a parameter.
func (c *pagination) useToken(op *openapi.Operation, e *envelope) bool {
	takes := queryParam(op, tokenNames, "string", "")
	if takes == nil {
		takes = queryParam(op, numericTokenNames, "integer") // the example of a token may consist of digits
	}
	if takes == nil && e.find("string", "nextoffset") != nil {
		takes = queryParam(op, []string{"offset"}, "string")
	}
	if takes == nil {
		return false
	}
	at := ""
	if name := nextTokenHeader(op.Headers); name != "" {
		at = "header:" + name
	} else {
		p := e.find("string", append([]string{"next" + foldName(takes.Name), foldName(takes.Name)}, nextTokenNames...)...)
		if p == nil {
			p = e.find("integer", slices.Concat([]string{"next" + foldName(takes.Name)}, numericTokenNames)...)
		}
		if p == nil {
			return false
		}
		at = p.path
	}
	c.rules.Next, c.why["next"] = at, "the token of the next page"
	c.rules.Cursor, c.why["cursor"] = takes.Name, "the parameter that takes it"
	if more := e.findMore(); more != nil {
		c.rules.More, c.why["more"] = more.path, "says whether more pages exist"
	}
	return c.setStyle("token", "the answer has a token that "+takes.Name+" takes")
}

// nextTokenHeader returns the header field that holds the token of the next page, or "" if no field does.
func nextTokenHeader(names []string) string {
	for _, name := range names {
		if hasWord(name, "next", "continuation") && hasWord(name, "cursor", "token", "continuation") {
			return name
		}
	}
	return ""
}

// useCursor chooses the style "cursor" if the body says whether more pages follow and a parameter takes the last id
// of a page.
func (c *pagination) useCursor(op *openapi.Operation, e *envelope) bool {
	more, takes := e.findMore(), queryParam(op, afterIDNames, "string", "integer", "")
	if more == nil || takes == nil {
		return false
	}
	c.rules.Next, c.why["next"] = more.path, "says whether more pages exist"
	c.rules.Cursor, c.why["cursor"] = takes.Name, "takes the last id"
	if back := queryParam(op, beforeIDNames, "string", "integer", ""); back != nil {
		c.rules.Back, c.why["back"] = back.Name, "takes the first id, to request the page before"
	}
	return c.setStyle("cursor", "the answer says whether more pages exist, and "+takes.Name+" takes the last id")
}

// isIDDescription reports whether the description of a parameter says that it takes the id of a record.
func isIDDescription(text string) bool {
	return idText.MatchString(text) && !tokenText.MatchString(text)
}

var idText, tokenText = regexp.MustCompile(`(?i)\bids?\b`), regexp.MustCompile(`(?i)\b(cursor|token|link)\b`)

// useLastID chooses the style "cursor" if a parameter takes the last id of a page, though the response does not say
// whether more pages follow.
func (c *pagination) useLastID(op *openapi.Operation, _ *envelope) bool {
	var all []string
	for _, name := range slices.Concat(beforeIDNames, afterIDNames, []string{"since"}) {
		p := queryParam(op, []string{name}, "string", "integer", "")
		if p != nil && isIDDescription(p.Description+" "+p.Schema.Description()) {
			all = append(all, p.Name)
		}
	}
	if len(all) == 0 {
		return false
	}
	c.rules.Cursor, c.why["cursor"], c.guessed = all[0], "takes the last id, by its description", true
	c.caveat = "the answer does not say whether more pages exist; pages are requested with " + c.rules.Cursor + " until a page has no rows"
	if len(all) > 1 {
		c.caveat += "; if the oldest records come first, write cursor: " + all[1]
	}
	return c.setStyle("cursor", c.rules.Cursor+" takes the last id")
}

// useOffset chooses the style "offset" if a parameter takes the number of rows before the page.
func (c *pagination) useOffset(op *openapi.Operation, e *envelope) bool {
	if !c.setOffsetParam(op) {
		return false
	}
	c.findEnd(op, e)
	return c.setStyle("offset", c.rules.Page+" takes the number of rows before the page")
}

// setOffsetParam stores the parameter that takes the number of rows before the page. It reports whether it found
// such a parameter.
func (c *pagination) setOffsetParam(op *openapi.Operation) bool {
	names := slices.DeleteFunc(slices.Clone(offsetNames), func(name string) bool { return isRangeStart(op, name) })
	takes := queryParam(op, names, "integer", "number")
	if text := queryParam(op, names, "string"); takes == nil && text != nil && rowNumberText.MatchString(text.Description) {
		takes = text
	}
	// A parameter with another name may take a time, not a number of rows.
	if takes == nil || c.rules.Size == "" && !isOneOf(takes.Name, "offset", "skip") {
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

// rowNumberText matches the description of a parameter of type string that takes a number of rows.
var rowNumberText = regexp.MustCompile(`(?i)\b(?:zero-based|0-based|index of the|position within the)\b`)

// timeText matches a description that mentions a time.
var timeText = regexp.MustCompile(`(?i)\b(?:time|timestamp|date|epoch|unix)\b`)

// isRangeStart reports whether a parameter such as from or start is the beginning of a range, not a number of rows.
func isRangeStart(op *openapi.Operation, name string) bool {
	ends := map[string][]string{"from": {"to", "until"}, "start": {"end", "stop"}, "startat": {"endat"}}[name]
	p := queryParam(op, []string{name})
	return p != nil && ends != nil && (queryParam(op, ends) != nil || timeText.MatchString(p.Description+" "+p.Schema.Description()))
}

// usePageNumber chooses the style "number" if a parameter takes the number of the page.
func (c *pagination) usePageNumber(op *openapi.Operation, e *envelope) bool {
	if c.rules.Page == "" {
		return false
	}
	c.findEnd(op, e)
	c.rules.Tokens, c.guessed = nil, true
	return c.setStyle("number", c.rules.Page+" takes the number of the page")
}

// findEnd finds the member or header field that shows whether a page is the last, for paging by number or offset.
func (c *pagination) findEnd(op *openapi.Operation, e *envelope) {
	p := e.find("integer", totalNames...)
	if all := e.find("integer", "count"); all != nil && all.schema.Description() == countsAllText {
		p = all
	}
	if p != nil {
		c.rules.Total, c.why["total"] = p.path, "the number of rows on all pages"
	}
	if p := e.findMore(); p != nil {
		c.rules.Next, c.why["next"] = p.path, "says whether more pages exist"
	} else if p := e.find("integer", "nextpage", "pagingnextpage", "next", "nextoffset"); p != nil {
		c.rules.Next, c.why["next"] = p.path, "the next page's number"
	}
	for _, name := range op.Headers {
		switch {
		case c.rules.Total == "" && isOneOf(name, "xtotalcount", "xtotal", "totalcount", "xtotalresults", "xpaginationtotalcount"):
			c.rules.Total, c.why["total"] = "header:"+name, "the number of rows on all pages"
		case c.rules.Next == "" && isOneOf(name, "xnextpage", "nextpage", "xnextoffset", "xhasmore"):
			c.rules.Next, c.why["next"] = "header:"+name, "says whether more pages exist"
		}
	}
	if c.rules.Total == "" && c.rules.Next == "" && c.rules.Default == 0 {
		c.caveat = "it is not known how many rows a full page has, so a list ends with a page without rows"
	}
}

// assumedReason is the reason that the draft gives for counting pages from 1 if the document does not say where
// they start.
const assumedReason = "a guess: the usual value"

// setPageNumber stores the parameter for the page number, and the number of the first page.
func (c *pagination) setPageNumber(p *openapi.Param) {
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
		c.rules.First, c.why["first_page"] = 1, assumedReason
	}
}

// Patterns for descriptions that mention the maximum and the default size of a page.
var (
	maxSizeText = regexp.MustCompile(`(?i)(?:\bmax(?:imum)?(?:\s+(?:value|number|page size|limit|allowed|size))?` +
		`(?:\s+(?:of|is|are))?|\bup to|between \d+ and|no more than|at most|\bmax:)[^\d.]{0,12}(\d{1,5})\b`)
	defaultSizeText = regexp.MustCompile(`(?i)\bdefaults?(?:\s+(?:value|page size|limit|to|is|of))*[^\d.]{0,12}(\d{1,5})\b`)
)

// setPageSize stores the parameter for the page size, with the default and the maximum size.
func (c *pagination) setPageSize(op *openapi.Operation) {
	p := sizeParam(op)
	if p == nil {
		return
	}
	c.rules.Size, c.why["size"] = p.Name, "the size of a page"
	text := p.Description + " " + p.Schema.Description()
	if n, err := strconv.Atoi(p.Schema.Default()); err == nil && n > 0 {
		c.rules.Default, c.why["default_size"] = n, "its default"
	} else if m := defaultSizeText.FindStringSubmatch(text); m != nil {
		c.rules.Default, _ = strconv.Atoi(m[1])
		c.why["default_size"] = "its description"
	}
	if _, most, _, ok := p.Schema.Bounds(); ok && most > 0 && most < 1_000_000 {
		c.rules.Max, c.why["max_size"] = most, "its maximum"
	} else if m := maxSizeText.FindStringSubmatch(text); m != nil {
		c.rules.Max, _ = strconv.Atoi(m[1])
		c.why["max_size"] = "its description"
	}
	if c.rules.Max > 0 && c.rules.Default > c.rules.Max {
		c.rules.Default = 0
	}
}

// rulesKey returns a text that is equal for lists with the same paging rules.
func (c *pagination) rulesKey() string {
	r := c.rules
	return fmt.Sprint(r.Style, "|", r.Next, "|", r.More, "|", r.Total, "|", r.Cursor, "|", r.Back, "|", r.Size, "|", r.Default, "|", r.Max,
		"|", r.Page, "|", r.First, "|", r.Tokens, "|", r.Template)
}
