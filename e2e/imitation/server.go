// Server: which operation a request means, and what it is answered.

package imitation

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Vendor is what a document does not say, or says in prose alone.
type Vendor struct {
	Prefix   string // of all paths: the path of the document's server
	Rows     int    // of a list that is not cut short by what it is asked for
	Secret   string
	Allows   func(*http.Request, string) bool // whether the request carries the secret
	Refusal  string                           // the body of a 401
	Missing  string                           // the body of a 404
	Mistake  string                           // the body of a 400
	ID       func(pool, index int) string     // the text that names a record; nil: by its format
	Answered http.Header                      // of every answer
	Other    string                           // the field by which paths name a record, too
}

// API is one imitated API. Off makes it fail like a dead host.
type API struct {
	Off      atomic.Bool
	Requests atomic.Int64

	doc    document
	vendor Vendor
	all    []*operation
	mu     sync.Mutex
	lists  map[string][]object
}

// New returns an imitation of the API that the document describes.
func New(path string, vendor Vendor) (*API, error) {
	doc, err := readDocument(path)
	if err != nil {
		return nil, err
	}
	return &API{doc: doc, vendor: vendor, all: doc.operations(vendor.Prefix), lists: map[string][]object{}}, nil
}

// ServeHTTP answers a GET.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.Off.Load() {
		panic(http.ErrAbortHandler)
	}
	a.Requests.Add(1)
	maps.Copy(w.Header(), a.vendor.Answered)
	op, vars := a.find(r.URL.EscapedPath())
	switch {
	case !a.vendor.Allows(r, a.vendor.Secret):
		write(w, http.StatusUnauthorized, a.vendor.Refusal)
	case op == nil, r.Method != http.MethodGet:
		write(w, http.StatusNotFound, a.vendor.Missing)
	case op.mistake(r) != "":
		write(w, http.StatusBadRequest, strings.ReplaceAll(a.vendor.Mistake, "{}", op.mistake(r)))
	default:
		a.answer(w, r, op, vars)
	}
}

func write(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// mistake names the parameter that the operation demands and the request lacks.
func (op *operation) mistake(r *http.Request) string {
	for name, p := range op.params {
		place, name, _ := strings.Cut(name, " ")
		switch {
		case !p.required, name == "Content-Type", name == "Authorization", name == "From":
		case place == "query" && !r.URL.Query().Has(name) && !r.URL.Query().Has(name+"[]"):
			return name
		case place == "header" && !p.takes(r.Header.Get(name)):
			return name
		}
	}
	return ""
}

// takes reports whether a demanded header may have the value.
func (p param) takes(value string) bool {
	if choices, _ := p.schema["enum"].([]any); len(choices) > 0 {
		return slices.Contains(choices, any(value))
	}
	if demanded, is := p.schema["default"].(string); is {
		return value == demanded
	}
	return value != ""
}

// find returns the operation of a path and its variables. A segment that is written out goes
// before a variable.
func (a *API) find(path string) (*operation, map[string]string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var best *operation
	for _, op := range a.all {
		if len(op.segments) == len(parts) && op.matches(parts) && (best == nil || strings.Count(op.path, "{") < strings.Count(best.path, "{")) {
			best = op
		}
	}
	if best == nil {
		return nil, nil
	}
	vars := map[string]string{}
	for i, segment := range best.segments {
		if isVariable(segment) {
			vars[strings.Trim(segment, "{}")], _ = url.PathUnescape(parts[i])
		}
	}
	return best, vars
}

func (op *operation) matches(parts []string) bool {
	for i, segment := range op.segments {
		if !isVariable(segment) && segment != parts[i] {
			return false
		}
	}
	return true
}

func (op *operation) fill(vars map[string]string) string {
	path := op.path
	for name, value := range vars {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	return path
}

// canonical puts the ids of records in the place of the other names by which a path has them.
func (a *API) canonical(op *operation, vars map[string]string) {
	for i, segment := range op.segments {
		if a.vendor.Other == "" || !isVariable(segment) || !strings.Contains(vars[strings.Trim(segment, "{}")], "/") {
			continue
		}
		for _, list := range a.all {
			if list.item == nil || list.path != "/"+strings.Join(op.segments[:i], "/") {
				continue
			}
			for _, row := range a.rowsOf(list, list.fill(vars), vars, nil) {
				if row[a.vendor.Other] == vars[strings.Trim(segment, "{}")] {
					vars[strings.Trim(segment, "{}")] = fmt.Sprint(row[list.idField])
				}
			}
		}
	}
}

func (a *API) answer(w http.ResponseWriter, r *http.Request, op *operation, vars map[string]string) {
	a.canonical(op, vars)
	path := op.fill(vars)
	var body any
	switch {
	case op.schema == nil:
		w.WriteHeader(op.status)
		return
	case op.media != "application/json":
		w.Header().Set("Content-Type", op.media)
		_, _ = fmt.Fprintf(w, "# %s of %s\n", op.media, path)
		return
	case op.item != nil:
		body = a.list(op, w.Header(), r, path, vars)
	case op.above != nil:
		if body = a.record(op, path, vars); body == nil {
			write(w, http.StatusNotFound, a.vendor.Missing)
			return
		}
	default:
		body = a.value(op.schema, "", at{seed: path + "?" + op.choosing(r.URL.Query()).Encode()})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(op.status)
	text, _ := json.Marshal(body)
	_, _ = w.Write(text)
}

// choosing returns the parameters that choose rows, without those of paging, and without those that say
// what the operation does by itself.
func (op *operation) choosing(q url.Values) url.Values {
	q = maps.Clone(q)
	for name := range q {
		if usual := op.params["query "+name].schema["default"]; usual != nil && fmt.Sprint(plain(usual)) == q.Get(name) {
			q.Del(name)
		}
	}
	for _, name := range []string{"page", "per_page", "limit", "offset", "cursor", "after", "before", "page_token", "page_size", "opt_fields", "opt_pretty", "count", "total", "pagination", "order_by", "sort",
		"id_after"} {
		q.Del(name)
	}
	return q
}

// rowsOf returns all rows of a list under a path. A list below a record shows some of the rows
// that the list of all shows, where there is one; else it has rows of its own.
func (a *API) rowsOf(op *operation, path string, vars map[string]string, q url.Values) []object {
	a.mu.Lock()
	defer a.mu.Unlock()
	query := op.choosing(q).Encode()
	key := path + "?" + query
	if rows, held := a.lists[key]; held {
		return rows
	}
	last := op.segments[len(op.segments)-1]
	pool, own := a.poolOf(op, path)
	rows := []object{}
	for i := range a.vendor.Rows {
		seed := fmt.Sprint(pool, "#", i)
		if (!own || query != "") && (at{seed: key + seed}).draw(3) == 0 {
			continue
		}
		row := a.value(op.item, last, at{seed: seed, index: i}).(object)
		if text, is := row[op.idField].(string); is {
			row[op.idField] = fmt.Sprintf("%s%03d", text[:max(0, len(text)-3)], i) // no two have one id
			if a.vendor.ID != nil && op.idField != "name" {
				row[op.idField] = a.vendor.ID(hashOf(pool), i)
			}
		} else if _, is := row[op.idField].(int); is {
			row[op.idField] = hashOf(pool)*1000 + i
		}
		if own {
			for name, value := range vars { // the row shows the record that it lies under
				if _, is := row[name].(string); is && name != op.idField {
					row[name] = value
				}
			}
		}
		for j, segment := range op.segments {
			if j > 0 && isVariable(segment) {
				name := strings.TrimSuffix(op.segments[j-1], "s") + "_id"
				if _, is := row[name].(int); is {
					row[name], _ = strconv.Atoi(vars[strings.Trim(segment, "{}")])
				}
			}
		}
		rows = append(rows, row)
	}
	a.lists[key] = rows
	return rows
}

// poolOf returns where the records of a list are from: the list of all, where there is one. own reports
// whether that is the list itself.
func (a *API) poolOf(op *operation, path string) (pool string, own bool) {
	last := op.segments[len(op.segments)-1]
	for _, other := range a.all {
		if other.item != nil && other.segments[len(other.segments)-1] == last && !strings.Contains(other.path, "{") {
			return other.path, other == op
		}
	}
	return path, true
}

func hashOf(text string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return int(h.Sum32() % 1_000_000)
}

// record returns a record of the list above, in the form of its own schema; nil when there is none.
func (a *API) record(op *operation, path string, vars map[string]string) any {
	list := op.above
	wanted := vars[strings.Trim(op.segments[len(op.segments)-1], "{}")]
	for i, row := range a.rowsOf(list, path[:strings.LastIndex(path, "/")], vars, nil) {
		if list.idField == "" && wanted != fmt.Sprintf("row-%d", i) || list.idField != "" && fmt.Sprint(row[list.idField]) != wanted {
			continue
		}
		pool, _ := a.poolOf(list, path[:strings.LastIndex(path, "/")])
		of := at{seed: fmt.Sprint(pool, "#", i), index: i} // at every path it is the same
		whole := a.value(op.schema, "", of).(object)
		if member := a.memberOf(op, list); member != "" {
			properties, _ := op.schema["properties"].(object)
			inner, _ := a.value(properties[member], "", of).(object)
			whole[member] = agree(inner, row)
			return whole
		}
		return agree(whole, row)
	}
	return nil
}

// memberOf returns the member of a record's answer that has the record; "" when the body is it.
func (a *API) memberOf(op, list *operation) string {
	properties, _ := op.schema["properties"].(object)
	if properties[list.idField] != nil {
		return ""
	}
	found := ""
	for name, of := range properties {
		inner := a.doc.merged(of, 0)
		members, _ := inner["properties"].(object)
		if typeOf(inner) == "object" && (members[list.idField] != nil || len(properties) == 1) && (found == "" || name < found) {
			found = name
		}
	}
	return found
}

// agree gives a record the values of its row, where it has these members.
func agree(record, row object) object {
	for name, value := range row {
		if _, there := record[name]; there {
			record[name] = value
		}
	}
	return record
}
