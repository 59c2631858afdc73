// Handlers for single records, for records inside other records, for the balance, and the search language.

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

// find returns the record with an id in the account of the request, or nil if there is none. The caller holds Mu.
func (a *API) find(q *table.Request, k *kind, id string) *table.Row {
	if r := a.world.Kinds[k.name].Find(id); r != nil && r.Text("account") == q.Header.Get("Stripe-Account") {
		return r
	}
	return nil
}

// retrieve answers with one record.
func (a *API) retrieve(k *kind, q *table.Request) format.Answer {
	for name := range q.Query {
		if !strings.HasPrefix(name, "expand[") && name != "expand" {
			return newUnknownParam(name)
		}
	}
	r := a.find(q, k, q.Vars[0])
	if r == nil {
		return newMissingRecord(http.StatusNotFound, k.object, q.Vars[0], "id")
	}
	return a.show(k, q, r)
}

// show answers with a record. Ids in the record are replaced by records if the request wants it. The caller holds Mu.
func (a *API) show(k *kind, q *table.Request, r *table.Row) format.Answer {
	p := a.part(k, r, q)
	return a.expand(q, p.Template.Append(nil, p.Values, q.BaseURL))
}

// expand answers with a body in which some ids are replaced by the records they name, as the request wants. The
// stored records do not change. The caller holds Mu.
func (a *API) expand(q *table.Request, body []byte) format.Answer {
	paths := expansions(q)
	if len(paths) == 0 {
		return format.Answer{Status: http.StatusOK, Body: body}
	}
	var whole any
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	if err := d.Decode(&whole); err != nil {
		return a.refusal(http.StatusInternalServerError)
	}
	for _, path := range paths {
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

// expansions returns the paths of the fields whose ids the request wants replaced by records. They are in its query and form.
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

// expandAt replaces the id at a path by the record it names. It returns false if the path does not exist or has no id.
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
		_ = d.Decode(at) // an error is not possible, because the template writes valid JSON
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

// balance answers with the sum of all captured charges minus all refunds.
func (a *API) balance(q *table.Request) format.Answer {
	sum := int64(0)
	for _, r := range a.world.Kinds["charges"].Rows() {
		if r.Text("account") == q.Header.Get("Stripe-Account") {
			sum += r.Number("amount_captured") - r.Number("amount_refunded")
		}
	}
	return table.Show(table.Part{Template: a.shapes["balance"], Values: table.Values{"sum": sum}}, q.BaseURL)
}

// clausePattern matches one condition of a search, such as field:"text", field~"part", created>123 or
// metadata["key"]:"value". A minus before it negates the condition.
var clausePattern = regexp.MustCompile(`^(-?)([a-z_0-9]+|metadata\["[^"]+"\])(:|~|>=|<=|>|<)` +
	`("[^"]*"|'[^']*'|[0-9]+|null)(\s+(?i:and)\s+|\s*$|\s+)`)

// readSearch parses a search, whose conditions are joined by AND. match reports whether a record meets all of them.
// refusal is Stripe's message if the search is not valid, otherwise "".
func readSearch(text string) (match func(*table.Row) bool, refusal string) {
	if strings.TrimSpace(text) == "" {
		return nil, "We need a query to search for."
	}
	var tests []func(*table.Row) bool
	for rest := strings.TrimSpace(text); rest != ""; {
		m := clausePattern.FindStringSubmatch(rest)
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

// condition returns a function that reports whether a record meets one condition of a search.
func condition(not bool, field, op, want string) func(*table.Row) bool {
	return func(r *table.Row) bool {
		have := r.Text(field)
		if key, ok := strings.CutPrefix(field, `metadata["`); ok {
			metadata, _ := r.Values["metadata"].(map[string]string)
			have = metadata[strings.TrimSuffix(key, `"]`)]
		}
		met := strings.EqualFold(have, want)
		if op == "~" {
			met = strings.Contains(strings.ToLower(have), strings.ToLower(want))
		} else if compare, numeric := comparisons[map[string]string{">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}[op]]; numeric && op != ":" {
			n, err := strconv.ParseInt(want, 10, 64)
			met = err == nil && compare(r.Number(field), n)
		}
		return met != not
	}
}
