// Records: single ones, what is expanded in them, the balance, and what a search
// asks for.

package stripe

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// find is a record of the account that is asked; nil for none. The caller holds Mu.
func (a *API) find(q *table.Request, k *kind, id string) *table.Row {
	if r := a.world.Kinds[k.name].Find(id); r != nil && r.Text("account") == q.Header.Get("Stripe-Account") {
		return r
	}
	return nil
}

// retrieve shows one record.
func (a *API) retrieve(k *kind, q *table.Request) format.Answer {
	for name := range q.Query {
		if !strings.HasPrefix(name, "expand[") && name != "expand" {
			return unknown(name)
		}
	}
	r := a.find(q, k, q.Vars[0])
	if r == nil {
		return missing(http.StatusNotFound, k.one, q.Vars[0], "id")
	}
	return a.show(k, q, r)
}

// show is the answer of one record. The caller holds Mu.
func (a *API) show(k *kind, q *table.Request, r *table.Row) format.Answer {
	p := a.part(k, r, q)
	return a.expand(q, p.Template.Append(nil, p.Values, q.BaseURL))
}

// expand puts records in place of their ids where the request wants it. The
// stored record never changes. The caller holds Mu.
func (a *API) expand(q *table.Request, body []byte) format.Answer {
	asked := expansions(q)
	if len(asked) == 0 {
		return format.Answer{Status: http.StatusOK, Body: body}
	}
	var whole any
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	if err := d.Decode(&whole); err != nil {
		return a.refusal(http.StatusInternalServerError)
	}
	for _, path := range asked {
		if !a.expandAt(q, &whole, strings.Split(path, ".")) {
			return refuse(http.StatusBadRequest, "invalid_request_error", "", "expand", "This property cannot be expanded ("+path+").")
		}
	}
	raw, err := json.Marshal(whole)
	if err != nil {
		return a.refusal(http.StatusInternalServerError)
	}
	return format.Answer{Status: http.StatusOK, Body: raw}
}

// expansions are the paths that a request wants expanded, in its query or form.
func expansions(q *table.Request) []string {
	all := maps.Clone(q.Query)
	if form, err := url.ParseQuery(string(q.Body)); err == nil {
		maps.Copy(all, form)
	}
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(name, "expand[") {
			paths = append(paths, all[name]...)
		}
	}
	return paths
}

// expandAt goes along a path; false where nothing has such a member.
func (a *API) expandAt(q *table.Request, at *any, path []string) bool {
	if id, isText := (*at).(string); isText {
		k := kindOf(id)
		if k == nil {
			return false
		}
		r := a.find(q, k, id)
		if r == nil {
			return true
		}
		p := a.part(k, r, q)
		d := json.NewDecoder(strings.NewReader(string(p.Template.Append(nil, p.Values, q.BaseURL))))
		d.UseNumber()
		_ = d.Decode(at) // it was written here
	}
	if len(path) == 0 {
		return true
	}
	switch value := (*at).(type) {
	case []any:
		for i := range value {
			if !a.expandAt(q, &value[i], path) {
				return false
			}
		}
		return true
	case map[string]any:
		inner, there := value[path[0]]
		if !there {
			return false
		}
		ok := a.expandAt(q, &inner, path[1:])
		value[path[0]] = inner
		return ok
	}
	return *at == nil
}

// balance adds up the charges and what was given back.
func (a *API) balance(q *table.Request) format.Answer {
	sum := int64(0)
	for _, r := range a.world.Kinds["charges"].Rows() {
		if r.Text("account") == q.Header.Get("Stripe-Account") {
			sum += r.Number("amount_captured") - r.Number("amount_refunded")
		}
	}
	return table.Show(table.Part{Template: a.shapes["balance"], Values: table.Values{"sum": sum}}, q.BaseURL)
}

// clause is one condition of a search: field:"text", field~"part", created>123,
// metadata["key"]:"value", with a minus in front for its opposite.
var clause = regexp.MustCompile(`^(-?)([a-z_0-9]+|metadata\["[^"]+"\])(:|~|>=|<=|>|<)` +
	`("[^"]*"|'[^']*'|[0-9]+|null)(\s+(?i:and)\s+|\s*$|\s+)`)

// readSearch reads a search; its conditions are joined by AND. refusal is Stripe's text for
// one that cannot be read; "": it was.
func readSearch(text string) (finds func(*table.Row) bool, refusal string) {
	if strings.TrimSpace(text) == "" {
		return nil, "We need a query to search for."
	}
	var tests []func(*table.Row) bool
	for rest := strings.TrimSpace(text); rest != ""; {
		m := clause.FindStringSubmatch(rest)
		if m == nil {
			return nil, "We were unable to parse your search query. Try using the format `metadata[\"key\"]:\"value\"`"
		}
		rest = rest[len(m[0]):]
		tests = append(tests, condition(m[1] == "-", m[2], m[3], strings.Trim(m[4], `"'`)))
	}
	return func(r *table.Row) bool {
		return !slices.ContainsFunc(tests, func(t func(*table.Row) bool) bool { return !t(r) })
	}, ""
}

// condition is one condition of a search.
func condition(not bool, field, op, want string) func(*table.Row) bool {
	return func(r *table.Row) bool {
		have := r.Text(field)
		if key, ok := strings.CutPrefix(field, `metadata["`); ok {
			metadata, _ := r.Values["metadata"].(map[string]string)
			have = metadata[strings.TrimSuffix(key, `"]`)]
		}
		holds := strings.EqualFold(have, want)
		if op == "~" {
			holds = strings.Contains(strings.ToLower(have), strings.ToLower(want))
		} else if compare, numeric := comparisons[map[string]string{">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}[op]]; numeric && op != ":" {
			n, err := strconv.ParseInt(want, 10, 64)
			holds = err == nil && compare(r.Number(field), n)
		}
		return holds != not
	}
}
