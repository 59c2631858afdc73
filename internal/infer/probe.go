// This file finds the paging and filter parameters of a live list by trying the usual names.

package infer

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/openapi"
)

// probePaging finds the parameters for the next page and the page size if no link shows them. It sends requests with
// the usual parameters until a response has different rows.
func (l *liveList) probePaging(ctx context.Context, op *openapi.Operation, e *envelope, rows *openapi.Value) {
	c := findPaging(op, e)
	if c.rules.Style == "none" || c.guessed {
		if len(rows.Items) < 2 {
			return
		}
		if !l.findNextParam(ctx, op, e, rows) {
			l.probeShortPage(ctx, e, rows)
			return
		}
	} else if !l.hasNextPage(c) {
		return
	}
	l.findSizeParam(ctx, e, rows)
}

// probeShortPage fetches one row of a list that fits on a page. If that response leads to a next page, it replaces the
// list's response.
func (l *liveList) probeShortPage(ctx context.Context, e *envelope, rows *openapi.Value) {
	before, params := l.answer, slices.Clone(l.params)
	short := l.findSizeParam(ctx, e, rows)
	if short == nil || !replaceMember(&short.body, e.key, rows) {
		l.params = params
		return
	}
	l.params[len(l.params)-1].value = &openapi.Value{} // the size of a full page is unknown
	l.answer = short
	for _, link := range l.pageURLs(short) {
		l.noteParams(link)
	}
	l.findFirstPage()
	if op, err := l.readOperation(short); err == nil {
		longer, _ := findRows(op)
		if c := findPaging(op, &longer); c.rules.Style != "none" && !c.guessed || l.findNextParam(ctx, op, &longer, rows) {
			return
		}
	}
	l.answer, l.params = before, params
}

// replaceMember replaces the value at a dotted name, and reports whether the name exists.
func replaceMember(v **openapi.Value, dotted string, to *openapi.Value) bool {
	for more := dotted != ""; more; {
		var part string
		i := -1
		if *v != nil {
			i = slices.Index((*v).Keys, dotted) // the member's own name has dots, such as @odata.nextLink
		}
		if part, dotted, more = strings.Cut(dotted, "."); i >= 0 {
			more = false
		} else if *v != nil {
			i = slices.Index((*v).Keys, part)
		}
		if i < 0 {
			return false
		}
		v = &(*v).Items[i]
	}
	*v = to
	return true
}

// hasNextPage reports whether the response says that another page follows.
func (l *liveList) hasNextPage(c *pagination) bool {
	if c.rules.Style == "header" {
		return strings.Contains(l.answer.header.Get("Link"), "next")
	}
	place := cmp.Or(c.rules.More, c.rules.Next)
	if name, ok := strings.CutPrefix(place, "header:"); ok {
		return l.answer.header.Get(name) != ""
	}
	v := memberAt(l.answer.body, place)
	return v != nil && !isFalse(v)
}

// isFalse reports whether a value means "no": empty, 0, false, n or no.
func isFalse(v *openapi.Value) bool {
	no := []string{"", "0", "false", "n", "no"}
	return v.Kind != openapi.Object && v.Kind != openapi.Array && slices.Contains(no, strings.ToLower(v.Text))
}

// noteFalseEnd notes the members by which a page said that it was the last page, although another page follows.
func (l *liveList) noteFalseEnd(e *envelope, page *parsedAnswer) {
	if p := e.findMore(); p != nil {
		if v := memberAt(page.body, p.path); v != nil && isFalse(v) {
			l.memberNotes[p.path] = contradictedText
		}
	}
}

// findNextParam tries the usual parameters until a parameter leads to the next page. It reports whether it found one.
func (l *liveList) findNextParam(ctx context.Context, op *openapi.Operation, e *envelope, rows *openapi.Value) bool {
	var names []string
	value := ""
	token := cmp.Or(e.find("string", nextTokenNames...), e.find("integer", numericTokenNames...))
	last := rows.Items[len(rows.Items)-1]
	switch {
	case l.answer.header.Get(nextTokenHeader(op.Headers)) != "":
		names, value = tokenSpellings(tokenNames, l.params), l.answer.header.Get(nextTokenHeader(op.Headers))
	case token != nil && memberAt(l.answer.body, token.path).Text != "":
		names = append(tokenParamNames(lastPart(token.path)), tokenSpellings(tokenNames, l.params)...)
		value = memberAt(l.answer.body, token.path).Text
	case e.findMore() != nil && l.recordID(last) != "":
		names, value = []string{"starting_after", "after", "after_id", "startingAfter", "since_id"}, l.recordID(last)
	}
	for _, name := range names {
		if l.tryNextParam(ctx, e, rows, name, openapi.Text(value)) {
			return true
		}
	}
	before := strconv.Itoa(len(rows.Items))
	// If two pages are counted from 0, the second page is number 1, and page 2 is empty. So both numbers are tried.
	all := [][2]string{{"page", "2"}, {"page", "1"}, {"offset", before}, {"skip", before}, {"pageNumber", "2"}, {"pageNumber", "1"},
		{"$skip", before}}
	// The response often shows its position in a member with the name of the parameter. A member "from" may be a
	// row number.
	if p := e.find("integer", offsetNames...); p != nil && !isOneOf(lastPart(p.path), "from") {
		all = slices.Insert(all, 0, [2]string{lastPart(p.path), before})
	} else if p := e.find("integer", pageNumberNames...); p != nil {
		name := lastPart(p.path)
		all = slices.Insert(all, 0, [2]string{name, "2"}, [2]string{name, "1"})
	}
	return slices.ContainsFunc(slices.Compact(all), func(p [2]string) bool {
		return l.tryNextParam(ctx, e, rows, p[0], parseScalar(p[1]))
	})
}

// tokenParamNames returns the likely parameters for a token from the name of the response member. The token NextMarker
// may belong to the parameter NextMarker or Marker.
func tokenParamNames(member string) []string {
	if len(member) <= len("next") || !strings.EqualFold(member[:len("next")], "next") {
		return []string{member}
	}
	rest := strings.TrimLeft(member[len("next"):], "_-")
	if member[0] == 'n' && rest != "" {
		rest = strings.ToLower(rest[:1]) + rest[1:]
	}
	return []string{member, rest}
}

// tokenSpellings returns the usual names of a token parameter. Names that occur in the observed parameters come first.
func tokenSpellings(plainNames []string, params []liveParam) (all []string) {
	for _, p := range params {
		if slices.Contains(plainNames, foldName(p.name)) {
			all = append(all, p.name)
		}
	}
	return append(all, "cursor", "start_cursor", "pagination_token", "page_token", "pageToken", "next_token", "nextToken", "token", "after",
		"continuation_token", "starting_after", "marker", "page")
}

// tryNextParam fetches the list with one more parameter. If the rows differ from the first page, it adds the parameter
// and returns true.
func (l *liveList) tryNextParam(ctx context.Context, e *envelope, rows *openapi.Value, name string, value *openapi.Value) bool {
	if l.probes++; l.probes > maxProbes {
		return false
	}
	query := l.listURL.Query()
	query.Set(name, value.Text)
	to := *l.listURL
	to.RawQuery = query.Encode()
	next, err := l.fetchOK(ctx, &to)
	if err != nil {
		return false
	}
	others := memberAt(next.body, e.key)
	if others == nil || others.Kind != openapi.Array || !l.isOtherPage(ctx, e, others, rows) {
		return false
	}
	if len(others.Items) > 0 {
		l.noteFalseEnd(e, l.answer)
	}
	if p := e.find("integer", "count"); p != nil {
		n, _ := strconv.Atoi(memberAt(l.answer.body, p.path).Text)
		if same := memberAt(next.body, p.path); same != nil && same.Text == strconv.Itoa(n) && n > max(len(rows.Items), len(others.Items)) {
			l.memberNotes[p.path] = countsAllText
		}
	}
	first := ""
	if isOneOf(name, offsetNames...) && len(others.Items) > 0 && l.recordID(others.Items[0]) == l.recordID(rows.Items[len(rows.Items)-1]) {
		first = "1" // rows are counted from 1, because this offset returned the last row again
	}
	switch numbered := value.Kind == openapi.Number && isOneOf(name, pageNumberNames...); {
	case numbered && value.Text == "1":
		first = "0"
	case numbered && value.Text == "2":
		query.Set(name, "1")
		to.RawQuery, first = query.Encode(), "1"
		if one, err := l.fetchOK(ctx, &to); err == nil {
			if same := memberAt(one.body, e.key); same != nil && l.isOtherPage(ctx, e, same, rows) {
				first = "0"
			}
		}
	}
	l.params = append(l.params, liveParam{name: name, value: value, in: "query", firstPage: first})
	return true
}

// isOtherPage reports whether the rows got belong to a page other than the first page, whose rows are given. A page without
// rows is another page. Rows without distinct ids are compared as a whole, if the first page returns the same rows again.
func (l *liveList) isOtherPage(ctx context.Context, e *envelope, got, rows *openapi.Value) bool {
	if len(got.Items) == 0 {
		return true
	}
	ids := map[string]bool{"": true}
	for _, row := range rows.Items {
		id := l.recordID(row)
		if ids[id] {
			first, err := l.fetchOK(ctx, l.listURL)
			return err == nil && !reflect.DeepEqual(got, rows) && reflect.DeepEqual(memberAt(first.body, e.key), rows)
		}
		ids[id] = true
	}
	other := l.recordID(got.Items[0])
	return other != "" && other != l.recordID(rows.Items[0])
}

func parseScalar(value string) *openapi.Value {
	v := openapi.Text(value)
	if _, err := strconv.Atoi(value); err == nil {
		v.Kind = openapi.Number
	}
	return v
}

// findSizeParam finds the parameter for the page size; rows are a full page. It returns the response with one row
// that proved the parameter. It returns nil if the parameter was already known or was not found.
func (l *liveList) findSizeParam(ctx context.Context, e *envelope, rows *openapi.Value) (short *parsedAnswer) {
	seen := func(p liveParam) bool { return isOneOf(p.name, sizeNames...) }
	full := parseScalar(strconv.Itoa(len(rows.Items)))
	if i := slices.IndexFunc(l.params, seen); i >= 0 {
		l.params[i].value = full
		return nil
	}
	names := []string{"per_page", "limit", "page_size", "pageSize", "$top", "count"}
	if p := e.find("integer", sizeNames...); p != nil && memberAt(l.answer.body, p.path).Text == full.Text {
		names = slices.Insert(names, 0, lastPart(p.path))
	}
	for _, name := range names {
		if l.probes++; l.probes > maxProbes {
			return nil
		}
		query := l.listURL.Query()
		query.Set(name, "1")
		to := *l.listURL
		to.RawQuery = query.Encode()
		if got, err := l.fetchOK(ctx, &to); err == nil {
			if less := memberAt(got.body, e.key); less != nil && len(less.Items) == 1 && len(rows.Items) > 1 {
				l.noteFalseEnd(e, got)
				l.params = append(l.params, liveParam{name: name, value: full, in: "query"})
				return got
			}
		}
	}
	return nil
}

// maxFilterProbes is the maximum number of requests that find out by which fields a list can be filtered.
const maxFilterProbes = 3

// findFilters finds parameters that filter the list by a field with few values. It requests the rarest value of a field
// and checks that all returned rows have the value.
func (l *liveList) findFilters(ctx context.Context, e *envelope, rows *openapi.Value) {
	tried := 0
	names := slices.Clone(rows.Items[0].Keys)
	isBool := func(name string) int {
		if rows.Items[0].Get(name).Kind == openapi.Bool {
			return 1
		}
		return 0
	}
	// fields with strings come before fields with booleans
	slices.SortStableFunc(names, func(a, b string) int { return isBool(a) - isBool(b) })
	for _, name := range names {
		value := rarestValue(rows, name)
		known := func(p liveParam) bool { return p.name == name }
		if value == "" || slices.ContainsFunc(l.params, known) || isOneOf(name, sizeNames...) || isOneOf(name, tokenNames...) {
			continue
		}
		if tried++; tried > maxFilterProbes {
			return
		}
		query := l.listURL.Query()
		query.Set(name, value)
		to := *l.listURL
		to.RawQuery = query.Encode()
		got, err := l.fetchOK(ctx, &to)
		if err != nil {
			continue
		}
		isUnselected := func(row *openapi.Value) bool { return row.TextOf(name) != value }
		if some := memberAt(got.body, e.key); some != nil && len(some.Items) > 0 && !slices.ContainsFunc(some.Items, isUnselected) {
			l.params = append(l.params, liveParam{name: name, value: openapi.Text(value), in: "query"})
		}
	}
}

// rarestValue returns the least frequent value of a field that is a boolean or has few short values. It returns ""
// for other fields.
func rarestValue(rows *openapi.Value, name string) (value string) {
	const maxValues, maxBytes = 8, 30
	count := map[string]int{}
	for _, row := range rows.Items {
		v := row.Get(name)
		isWord := v != nil && (v.Kind == openapi.String || v.Kind == openapi.Bool)
		if !isWord || v.Text == "" || len(v.Text) > maxBytes || strings.ContainsAny(v.Text, " :/@") {
			return ""
		}
		count[v.Text]++
	}
	if len(count) < 2 || len(count) > maxValues || 2*len(count) > len(rows.Items) {
		return ""
	}
	for _, text := range slices.Sorted(maps.Keys(count)) {
		if value == "" || count[text] < count[value] {
			value = text
		}
	}
	return value
}
