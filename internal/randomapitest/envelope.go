// Envelope: what stands around the rows of a page, and how it is spelt.

package randomapitest

import (
	"net/http"
	"strconv"
)

// names are how members are called: snake_case, camelCase, dotted.
var names = map[string][3]string{
	"link":   {"next", "nextUrl", "@odata.nextLink"},
	"token":  {"next_cursor", "nextPageToken", ""},
	"page":   {"next_page", "nextPage", "paging.next_page"},
	"offset": {"next_offset", "nextOffset", ""},
	"more":   {"has_more", "hasMore", ""},
	"last":   {"is_last", "isLast", ""},
	"total":  {"total_count", "totalCount", "@odata.count"},
	"pages":  {"total_pages", "totalPages", "paging.total_pages"},
}

// name is how the API calls a member of its envelope.
func (a *API) name(member string) string {
	switch {
	case a.Has(odata2) && member == "link":
		return "__next"
	case a.Has(odata2) && member == "total":
		return "__count"
	case a.Has(lastTrue) && member == "more":
		return a.name("last")
	case a.Has(dottedNames):
		return names[member][2]
	case a.Has(camelCase):
		return names[member][1]
	}
	return names[member][0]
}

// member is what leads on in the body; "" = nothing does.
func (a *API) member() string {
	switch a.habits["paging"] {
	case tokenInBody:
		return "token"
	case relativeLink, absoluteLink, absoluteLinkToken, wholeList:
		return "link"
	case nextPageInBody:
		return "page"
	case nextOffsetInBody:
		return "offset"
	}
	return ""
}

// spellings are how APIs write that there is more, and that there is none.
var spellings = map[string][2]any{
	moreTrue: {true, false}, moreText: {"true", "false"}, moreTitle: {"True", "False"}, moreNumber: {1, 0}, moreDigit: {"1", "0"},
	moreSometimes: {true, false}, moreLetter: {"Y", "N"}, moreWord: {"yes", "no"}, moreNull: {true, nil}, lastTrue: {false, true},
}

// beside is what stands beside the rows of a page.
func (a *API) beside(w http.ResponseWriter, r *http.Request, p page, all []record) map[string]any {
	out := map[string]any{}
	a.leadOn(w, r, p, all, out)
	leavesOut := a.Has(moreSometimes) && p.from/p.size%2 == 1
	if spelling, ok := spellings[a.habits["end"]]; ok && !leavesOut {
		out[a.name("more")] = spelling[0]
		if p.last {
			out[a.name("more")] = spelling[1]
		}
	}
	if total, there := a.total(p); there && a.Has(totalHeader) {
		w.Header().Set("X-Total-Count", strconv.Itoa(total.(int)))
	} else if there && a.Has(totalPages) {
		out[a.name("pages")] = (len(a.records) + p.size - 1) / p.size
	} else if there {
		out[a.name("total")] = total
	}
	return out
}

// leadOn says where the next page is.
func (a *API) leadOn(w http.ResponseWriter, r *http.Request, p page, all []record, out map[string]any) {
	next := a.next(p, all)
	goes := !p.last
	if a.Has(tokenInBody) && a.Has(emptyPage) {
		goes = len(p.rows) > 0 || len(all) > 0 // the last page's token is its own
	}
	switch {
	case a.Has(linkHeader) || a.Has(linkHeaderToken):
		if goes {
			w.Header().Set("Link", "<"+a.link(r, next)+`>; rel="next"`)
		}
	case a.Has(tokenInHeader):
		if goes {
			w.Header().Set("X-Next-Cursor", next)
		}
	case a.Has(nextPageHeader):
		if goes {
			w.Header().Set("X-Next-Page", next)
		} else if a.Has(nextIsEmpty) {
			w.Header().Set("X-Next-Page", "")
		}
	case a.member() == "" || a.Has(wholeList) && !a.Has(nextIsNull):
	case goes:
		out[a.name(a.member())] = a.nextValue(r, next)
	case a.Has(nextIsEmpty):
		out[a.name(a.member())] = ""
	case !a.Has(nextIsAbsent):
		out[a.name(a.member())] = nil
	}
}

// nextValue is what stands in the body for the next page.
func (a *API) nextValue(r *http.Request, next string) any {
	switch a.member() {
	case "link":
		return a.link(r, next)
	case "page", "offset":
		n, _ := strconv.Atoi(next) // next wrote it
		return n
	}
	return next
}

// total is what a page says of all rows.
func (a *API) total(p page) (any, bool) {
	n := len(a.visible())
	switch a.habits["total"] {
	case noTotal:
		return nil, false
	case totalLow:
		return a.config.lie, true
	case totalMinusOne:
		return -1, true
	case totalZero:
		return 0, true
	case totalText:
		return strconv.Itoa(n) + ".0", true
	case totalFirstPage:
		return n, p.from == 0
	case totalOfPage:
		return len(p.rows), true
	}
	return n, true
}

// write writes a page.
func (a *API) write(w http.ResponseWriter, r *http.Request, p page, all []record) {
	rows := []any{}
	for _, one := range p.rows {
		rows = append(rows, a.row(one))
	}
	beside := a.beside(w, r, p, all)
	if a.Has(array) {
		write(w, rows)
		return
	}
	write(w, a.around(rows, beside))
}

// around puts the envelope around rows, or the schema of one around the schema of rows.
func (a *API) around(rows any, beside map[string]any) map[string]any {
	body := map[string]any{}
	for name, value := range beside {
		body[name] = value
	}
	switch a.habits["envelope"] {
	case items:
		body["items"] = rows
	case kindName:
		body[a.Kind] = rows
	case nested:
		body["items"] = rows
		return map[string]any{"response": body}
	case withMeta:
		return map[string]any{"data": rows, "meta": body}
	case odata2:
		body["results"] = rows
		return map[string]any{"d": body}
	default:
		body["data"] = rows
	}
	return body
}
