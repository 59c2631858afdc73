// Paging: which rows a request for a list gets, and what the answer says of the others.

package imitation

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// list answers one page of a list. The parameters that the operation takes say how it goes on.
func (a *API) list(op *operation, header http.Header, r *http.Request, path string, vars map[string]string) any {
	q := r.URL.Query()
	rows := a.rowsOf(op, path, vars, q)
	whole := any(rows)
	if op.rows != "" {
		whole = a.value(op.schema, "", at{seed: path})
	}
	body, _ := whole.(object)
	from, to := 0, len(rows)
	for name, end := range map[string]any{"links": object{}, "more": false, "has_more": false, "next_page": nil, "next_cursor": nil, "next_page_token": nil} {
		if _, is := body[name]; is {
			body[name] = end
		}
	}
	switch {
	case q.Get("pagination") == "keyset" && op.has("id_after"):
		rows = slices.Clone(rows)
		slices.SortFunc(rows, func(x, y object) int { return x["id"].(int) - y["id"].(int) })
		after := number64(q.Get("id_after"), 0)
		from, to = cut(len(rows), slices.IndexFunc(append(rows, object{"id": after + 1}), func(row object) bool { return row["id"].(int) > after }),
			op.size(q, "per_page", 20))
		if to < len(rows) {
			q.Set("id_after", fmt.Sprint(rows[to-1]["id"]))
			header.Set("Link", fmt.Sprintf("<%s%s?%s>; rel=%q", origin(r), r.URL.EscapedPath(), q.Encode(), "next"))
		}
	case op.has("page"):
		size, page := op.size(q, "per_page", 20), max(1, number64(q.Get("page"), 1))
		from, to = cut(len(rows), (page-1)*size, size)
		pages := max(1, (len(rows)+size-1)/size)
		op.tell(header, r, page, size, len(rows))
		if body["links"] != nil && pages > 1 {
			body["links"] = object{"pages": op.links(r, page, size, pages)}
		}
		if meta, is := body["meta"].(object); is {
			meta["total"] = len(rows)
			if _, is := meta["pages"]; is {
				meta["page"], meta["pages"] = page, pages
			}
		}
		for name, value := range map[string]int{"total_items": len(rows), "total_pages": pages, "current_page": page} {
			if _, is := body[name]; is {
				body[name] = value
			}
		}
	case op.has("cursor"), op.has("page_token"), op.has("after"):
		name := map[bool]string{true: "cursor", false: "after"}[op.has("cursor")]
		if op.has("page_token") {
			name = "page_token"
		}
		size := op.size(q, "limit", op.size(q, "page_size", 25))
		from, to = cut(len(rows), placeOf(q.Get(name)), size)
		var next any
		if to < len(rows) {
			next = tokenOf(to)
		}
		for _, member := range []string{"next_cursor", "after", "next_page_token"} {
			if _, is := body[member]; is {
				body[member] = next
			}
		}
		for member, value := range map[string]any{"has_more": next != nil, "limit": size, "before": nil} {
			if _, is := body[member]; is {
				body[member] = value
			}
		}
	case op.has("offset") && op.asks("next_page"):
		size := op.size(q, "limit", len(rows))
		from, to = cut(len(rows), placeOf(q.Get("offset")), size)
		body["next_page"] = nil
		if to < len(rows) {
			q.Set("offset", tokenOf(to))
			q.Set("limit", strconv.Itoa(size))
			target := strings.TrimPrefix(path, a.vendor.Prefix) + "?" + q.Encode()
			body["next_page"] = object{"offset": tokenOf(to), "path": target, "uri": origin(r) + a.vendor.Prefix + target}
		}
	case op.has("offset"):
		size, offset := op.size(q, "limit", 25), number64(q.Get("offset"), 0)
		from, to = cut(len(rows), offset, size)
		var total any
		if q.Get("total") == "true" {
			total = len(rows)
		}
		for member, value := range map[string]any{"offset": offset, "limit": size, "more": to < len(rows), "total": total} {
			if op.asks(member) {
				body[member] = value
			}
		}
	case op.has("limit"):
		from, to = cut(len(rows), 0, op.size(q, "limit", len(rows)))
	}
	page := chosen(rows[from:to], q.Get("opt_fields"))
	if op.rows == "" {
		return page
	}
	body[op.rows] = page
	return body
}

// tell writes the header fields by which an answer says where it stands, those that the document has.
func (op *operation) tell(header http.Header, r *http.Request, page, size, total int) {
	pages := max(1, (total+size-1)/size)
	var links []string
	for rel, to := range op.links(r, page, size, pages) {
		links = append(links, fmt.Sprintf("<%s>; rel=%q", to, rel))
	}
	slices.Sort(links)
	for name, value := range map[string]string{"Link": strings.Join(links, ", "), "X-Total": strconv.Itoa(total), "X-Total-Pages": strconv.Itoa(pages),
		"X-Page": strconv.Itoa(page), "X-Per-Page": strconv.Itoa(size), "X-Next-Page": map[bool]string{true: strconv.Itoa(page + 1)}[page < pages]} {
		if op.headers[name] != nil {
			header.Set(name, value)
		}
	}
}

func (op *operation) has(name string) bool {
	_, is := op.params["query "+name]
	return is
}

// asks reports whether the answer has a member.
func (op *operation) asks(name string) bool {
	properties, _ := op.schema["properties"].(object)
	return properties[name] != nil
}

// size returns how many rows a page has.
func (op *operation) size(q url.Values, name string, usual int) int {
	schema := op.params["query "+name].schema
	if n, is := schema["default"].(int); is {
		usual = n
	}
	size := number64(q.Get(name), usual)
	if most, is := schema["maximum"].(int); is {
		size = min(size, most)
	}
	return max(1, size)
}

func number64(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return otherwise
}

func cut(rows, from, size int) (int, int) {
	from = min(max(0, from), rows)
	return from, min(rows, from+size)
}

func tokenOf(place int) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "place:%d", place))
}

func placeOf(token string) int {
	text, _ := base64.RawURLEncoding.DecodeString(token)
	return number64(strings.TrimPrefix(string(text), "place:"), 0)
}

func origin(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// links returns absolute links to the pages around one, with what it was asked for beyond the usual.
func (op *operation) links(r *http.Request, page, size, pages int) object {
	to := func(page int) string {
		q := op.choosing(r.URL.Query())
		q.Set("page", strconv.Itoa(page))
		q.Set("per_page", strconv.Itoa(size))
		return origin(r) + r.URL.EscapedPath() + "?" + q.Encode()
	}
	out := object{}
	if page > 1 {
		out["first"], out["prev"] = to(1), to(page-1)
	}
	if page < pages {
		out["next"], out["last"] = to(page+1), to(pages)
	}
	return out
}

// chosen returns rows with the fields that opt_fields names beside the id and the type.
func chosen(rows []object, fields string) []object {
	if fields == "" {
		return append([]object{}, rows...)
	}
	out := []object{}
	for _, row := range rows {
		short := object{}
		for _, name := range append(strings.Split(fields, ","), "gid", "resource_type") {
			if value, is := row[name]; is {
				short[name] = value
			}
		}
		out = append(out, short)
	}
	return out
}
