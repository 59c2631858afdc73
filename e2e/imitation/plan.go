// Plan: with which variables and parameters each operation is asked.

package imitation

import (
	"fmt"
	"net/url"
	"strings"
)

// Call is one GET with what fills it.
type Call struct {
	Path    string            `json:"path"` // of the document, below the prefix
	Vars    map[string]string `json:"vars"`
	Query   map[string]string `json:"query"`   // what the operation demands
	Headers map[string]string `json:"headers"` // what the operation demands
	List    bool              `json:"list"`
	Fields  bool              `json:"fields"` // its rows come with the fields that opt_fields names
}

// Plan returns a call of every GET operation. Its variables name records that are there.
func (a *API) Plan() []Call {
	var calls []Call
	for _, op := range a.all {
		if op.status == 0 {
			continue
		}
		call := Call{strings.TrimPrefix(op.path, a.vendor.Prefix), map[string]string{}, map[string]string{}, map[string]string{}, op.item != nil, op.has("opt_fields")}
		for i, segment := range op.segments {
			if isVariable(segment) {
				name := strings.Trim(segment, "{}")
				call.Vars[name] = a.name(op, i, call.Vars)
			}
		}
		for name, p := range op.params {
			place, name, _ := strings.Cut(name, " ")
			if !p.required || place == "path" {
				continue
			}
			value := fmt.Sprint(plain(p.sample(a, name)))
			switch {
			case place == "query":
				call.Query[name] = value
			case name != "Content-Type" && name != "Accept" && name != "From":
				call.Headers[name] = value
			}
		}
		calls = append(calls, call)
	}
	return calls
}

// sample returns a value that a parameter may have.
func (p param) sample(a *API, name string) any {
	if p.example != nil {
		return p.example
	}
	if p.schema == nil {
		return "one"
	}
	return a.value(p.schema, name, at{seed: name})
}

// name returns the value of the variable in a segment: the id of a record of the list above it.
func (a *API) name(op *operation, segment int, vars map[string]string) string {
	above := "/" + strings.Join(op.segments[:segment], "/")
	variable := strings.Trim(op.segments[segment], "{}")
	for _, list := range a.all {
		if list.path != above || list.item == nil {
			continue
		}
		if list.idField == "" {
			return "row-0"
		}
		own := map[string]string{}
		for name, value := range vars {
			if strings.Contains(above, "{"+name+"}") {
				own[name] = value
			}
		}
		rows := a.rowsOf(list, list.fill(own), own, url.Values{})
		return fmt.Sprint(rows[0][list.idField])
	}
	p := op.params["path "+variable]
	if p.schema != nil && (p.example != nil || p.schema["enum"] != nil || typeOf(p.schema) == "integer") {
		return fmt.Sprint(plain(p.sample(a, variable)))
	}
	return "one"
}
