// Lists: filters, cursors in both directions, searches, and the pages of version 2 of the API.

package stripe

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// The default and the maximum of limit, the number of records on a page.
const (
	defaultPageSize = 10
	maxPageSize     = 100
)

// readLimit returns the value of the parameter limit, or the default. If the value is not valid, it returns an error response.
func readLimit(q *table.Request) (int, *format.Answer) {
	text := q.Query.Get("limit")
	if text == "" {
		return defaultPageSize, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPageSize {
		return 0, new(refuse(http.StatusBadRequest, "invalid_request_error", "parameter_invalid_integer", "limit", "Invalid integer: "+text))
	}
	return n, nil
}

// list answers with a page of a kind's records, newest first.
func (a *API) list(k *kind, q *table.Request) format.Answer {
	limit, refused := readLimit(q)
	if refused != nil {
		return *refused
	}
	match, refused := k.filter(q)
	if refused != nil {
		return *refused
	}
	if k == subscriptionItems && q.Query.Get("subscription") == "" {
		return refuse(http.StatusBadRequest, "invalid_request_error", "parameter_missing", "subscription",
			"Missing required param: subscription.")
	}
	rows := a.world.Kinds[k.name].Select(match, "", false)
	after, before := q.Query.Get("starting_after"), q.Query.Get("ending_before")
	page, more := firstPage(rows, limit)
	if after != "" && before != "" {
		return refuse(http.StatusBadRequest, "invalid_request_error", "", "ending_before",
			"You may only specify one of these parameters: starting_after, ending_before.")
	}
	for param, id := range map[string]string{"starting_after": after, "ending_before": before} {
		if id == "" {
			continue
		}
		if a.find(q, k, id) == nil {
			return newMissingRecord(http.StatusBadRequest, k.object, id, param)
		}
		newer, older := a.splitAt(k, rows, id)
		if page, more = firstPage(older, limit); param == "ending_before" {
			page, more = newer[max(len(newer)-limit, 0):], len(newer) > limit
		}
	}
	return a.records(q, k, page, "list", table.Values{"more": more, "url": "/v1/" + k.name})
}

// firstPage returns the first limit rows, and whether there are more.
func firstPage(rows []*table.Row, limit int) ([]*table.Row, bool) {
	return rows[:min(limit, len(rows))], len(rows) > limit
}

// splitAt returns the rows that are newer and those that are older than a record. The record itself may be missing
// from the rows. The caller holds Mu.
func (a *API) splitAt(k *kind, rows []*table.Row, id string) (newer, older []*table.Row) {
	at := 0
	for _, r := range slices.Backward(a.world.Kinds[k.name].Rows()) {
		there := at < len(rows) && rows[at] == r
		if r.ID == id {
			older = rows[at:]
			if there {
				older = rows[at+1:]
			}
			return rows[:at], older
		}
		if there {
			at++
		}
	}
	return rows, nil
}

// records answers with a list of records. shape is the template of the list. If the request wants it, ids are
// replaced by records.
func (a *API) records(q *table.Request, k *kind, rows []*table.Row, shape string, v table.Values) format.Answer {
	v["data"] = table.Parts(rows, func(r *table.Row) table.Part { return a.part(k, r, q) })
	return a.expand(q, a.shapes[shape].Append(nil, v, q.BaseURL))
}

// part returns a record with its template, as in the API version of the request. In versions before 2022-11-15, a
// payment intent contains the list of its charges.
func (a *API) part(k *kind, r *table.Row, q *table.Request) table.Part {
	v := r.Values
	if k == paymentIntents && version(q.Header) < "2022-11-15" {
		var list []table.Part
		if c := a.world.Kinds["charges"].Find(r.Text("latest_charge")); c != nil {
			list = append(list, table.Part{Template: a.shapes["charge"], Values: c.Values})
		}
		v = v.With(table.Values{"charges": a.listOf(list, "/v1/charges?payment_intent="+r.ID, false)})
	}
	return table.Part{Template: a.shapes[k.object], Values: v}
}

// listOf returns a list that is part of a record.
func (a *API) listOf(rows []table.Part, url string, more bool) table.Part {
	return table.Part{Template: a.shapes["list"], Values: table.Values{"data": rows, "url": url, "more": more}}
}

// filter parses the filters of a list. It returns a function that reports whether a record matches them.
func (k *kind) filter(q *table.Request) (func(*table.Row) bool, *format.Answer) {
	account := q.Header.Get("Stripe-Account")
	tests := []func(*table.Row) bool{func(r *table.Row) bool { return r.Text("account") == account }}
	if k == subscriptions && q.Query.Get("status") == "" {
		tests = append(tests, func(r *table.Row) bool { return r.Text("status") != "canceled" })
	}
	for name, values := range q.Query {
		value := values[0]
		base, op, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
		switch {
		case slices.Contains([]string{"limit", "starting_after", "ending_before", "expand"}, base):
		case name == "status" && value == "all" && k == subscriptions:
		case slices.Contains(k.filters, name):
			tests = append(tests, func(r *table.Row) bool { return r.Text(name) == value })
		case k == prices && name == "lookup_keys[]":
			tests = append(tests, func(r *table.Row) bool { return slices.Contains(values, r.Text("lookup_key")) })
		case k == events && base == "types":
			tests = append(tests, func(r *table.Row) bool { return slices.Contains(values, r.Text("type")) })
		case base == "created" && k != subscriptionItems:
			n, err := strconv.ParseInt(value, 10, 64)
			compare, known := comparisons[op]
			if err != nil || !known {
				return nil, new(refuse(http.StatusBadRequest, "invalid_request_error", "parameter_invalid_integer", name, "Invalid integer: "+value))
			}
			tests = append(tests, func(r *table.Row) bool { return compare(r.Number("created"), n) })
		default:
			return nil, new(newUnknownParam(name))
		}
	}
	return func(r *table.Row) bool {
		return !slices.ContainsFunc(tests, func(test func(*table.Row) bool) bool { return !test(r) })
	}, nil
}

var comparisons = map[string]func(a, b int64) bool{
	"":    func(a, b int64) bool { return a == b },
	"gt":  func(a, b int64) bool { return a > b },
	"gte": func(a, b int64) bool { return a >= b },
	"lt":  func(a, b int64) bool { return a < b },
	"lte": func(a, b int64) bool { return a <= b },
}

// listInvoiceLines answers with the list of lines in an invoice.
func (a *API) listInvoiceLines(q *table.Request) format.Answer {
	limit, refused := readLimit(q)
	if refused != nil {
		return *refused
	}
	r := a.find(q, invoices, q.Vars[0])
	if r == nil {
		return newMissingRecord(http.StatusNotFound, invoices.object, q.Vars[0], "invoice")
	}
	rows, _ := r.Values["lines"].([]table.Part)
	named := func(id string) int {
		return slices.IndexFunc(rows, func(p table.Part) bool { return p.Values["id"] == id })
	}
	more := false
	if before := named(q.Query.Get("ending_before")); before >= 0 {
		rows, more = rows[max(before-limit, 0):before], before > limit
	} else {
		rows = rows[named(q.Query.Get("starting_after"))+1:]
		rows, more = rows[:min(limit, len(rows))], len(rows) > limit
	}
	return table.Show(a.listOf(rows, "/v1/invoices/"+r.ID+"/lines", more), q.BaseURL)
}

// pageToken returns the token of the page that begins after n records.
func pageToken(n int) string {
	return base64.RawURLEncoding.EncodeToString([]byte("at:" + strconv.Itoa(n)))
}

// readPageToken returns how many records come before the page of a token. For "" this is 0. It returns false if the
// token is not valid.
func readPageToken(text string) (int, bool) {
	if text == "" {
		return 0, true
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	digits, ok := strings.CutPrefix(string(raw), "at:")
	n, bad := strconv.Atoi(digits)
	return n, err == nil && ok && bad == nil && n >= 0
}

// search answers with a page of the records that match a search.
func (a *API) search(k *kind, q *table.Request) format.Answer {
	limit, refused := readLimit(q)
	if refused != nil {
		return *refused
	}
	at, ok := readPageToken(q.Query.Get("page"))
	if !ok {
		return refuse(http.StatusBadRequest, "invalid_request_error", "", "page", "Invalid page token.")
	}
	for name := range q.Query {
		if !slices.Contains([]string{"limit", "page", "query", "expand[]", "expand[0]", "expand[1]"}, name) {
			return newUnknownParam(name)
		}
	}
	match, refusal := readSearch(q.Query.Get("query"))
	if refusal != "" {
		return refuse(http.StatusBadRequest, "invalid_request_error", "", "query", refusal)
	}
	account := q.Header.Get("Stripe-Account")
	rows := a.world.Kinds[k.name].Select(func(r *table.Row) bool { return r.Text("account") == account && match(r) }, "", false)
	page, more := firstPage(rows[min(at, len(rows)):], limit)
	v := table.Values{"more": more, "url": "/v1/" + k.name + "/search"}
	if more {
		v["next"] = pageToken(at + limit)
	}
	return a.records(q, k, page, "search_result", v)
}

// listV2Events answers with a page of events as in version 2 of the API, which has links to the pages around it.
func (a *API) listV2Events(q *table.Request) format.Answer {
	limit, refused := readLimit(q)
	at, ok := readPageToken(q.Query.Get("page"))
	if refused != nil || !ok {
		return refuse(http.StatusBadRequest, "invalid_request_error", "", "page", "Invalid limit or page.")
	}
	account, of := q.Header.Get("Stripe-Account"), q.Query.Get("object_id")
	rows := a.world.Kinds["events"].Select(func(r *table.Row) bool {
		return r.Text("account") == account && (of == "" || r.Text("of_id") == of)
	}, "", false)
	page, more := firstPage(rows[min(at, len(rows)):], limit)
	show := func(r *table.Row) table.Part { return table.Part{Template: a.shapes["v2_event"], Values: r.Values} }
	v := table.Values{"data": table.Parts(page, show)}
	link := func(name string, there bool, n int) {
		if !there {
			return
		}
		query := url.Values{"limit": {strconv.Itoa(limit)}, "page": {pageToken(n)}}
		if of != "" {
			query.Set("object_id", of)
		}
		v[name] = "/v2/core/events?" + query.Encode()
	}
	link("next", more, at+limit)
	link("previous", at > 0, max(at-limit, 0))
	return table.Show(table.Part{Template: a.shapes["v2_list"], Values: v}, q.BaseURL)
}

func (a *API) showV2Event(q *table.Request) format.Answer {
	r := a.find(q, events, q.Vars[0])
	if r == nil {
		return newMissingRecord(http.StatusNotFound, events.object, q.Vars[0], "id")
	}
	return table.Show(table.Part{Template: a.shapes["v2_event"], Values: r.Values}, q.BaseURL)
}
