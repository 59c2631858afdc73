// Posted: requests that read and are sent as a POST, with their parameters in the body.

package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// Posted says that upstream is asked by POST, with the parameters in the body. In keys,
// and to everybody here, they are the query of the path.
type Posted struct {
	// Post is how the body is written: form, json (an object), graphql; "": it is a GET.
	Post string `yaml:"post"`
	// Document, with graphql, is the text of the one query that the path is asked with. Its
	// variables are the parameters variables.NAME. Its name sets it apart from others of the
	// path.
	Document string `yaml:"document"`

	operation string
	text      string   // of the document, its tokens alone
	moved     []string // the parameters that are segments of the key's path
}

// How a body is written.
const (
	postForm    = "form"
	postJSON    = "json"
	postGraphQL = "graphql"
)

// The parameters of a GraphQL request (GraphQL over HTTP, 5.3).
const (
	graphDocument  = "query"
	graphOperation = "operationName"
	graphVariable  = "variables."
)

// check completes it.
func (p *Posted) check(path string) error {
	if p.Post == postGraphQL {
		op, err := Operation(p.Document, "")
		switch {
		case err != nil:
			return fmt.Errorf("%s: document: %w", path, err)
		case op.Kind != "query" || op.Name == "":
			return fmt.Errorf("%s: document: want one query with a name", path)
		}
		p.operation, p.text = op.Name, op.Text
		return nil
	}
	switch {
	case p.Document != "":
		return fmt.Errorf("%s: document: it is for post: graphql", path)
	case p.Post != "" && p.Post != postForm && p.Post != postJSON:
		return fmt.Errorf("%s: post %q: want form, json or graphql", path, p.Post)
	}
	return nil
}

// posted is how a target is asked by POST; nil: by GET.
func (t *Target) posted() *Posted {
	switch {
	case t.List != nil && t.List.Post != "":
		return &t.List.Posted
	case t.Instance != nil && t.Instance.Post != "":
		return &t.Instance.Posted
	}
	return nil
}

// Request is what upstream is asked: the method, the URI with the header fields of the
// key, and the body with its type.
func (t *Target) Request() (method, uri string, body []byte, contentType string) {
	p := t.posted()
	if p == nil {
		return "GET", t.Key.URI, nil, ""
	}
	path, params := t.Key.Path(), t.Query
	for i := range p.moved { // back from the path
		name := p.moved[len(p.moved)-1-i]
		path = path[:strings.LastIndexByte(path, '/')]
		params = append(understudy.Query{{Name: name, Value: t.Var(name)}}, params...)
	}
	if p.operation != "" {
		path = path[:strings.LastIndexByte(path, '/')]
	}
	uri = understudy.Key{URI: path}.With(t.Key.Header()).URI
	if p.Post == postForm {
		form := url.Values{}
		for _, q := range params {
			form.Add(q.Name, q.Value)
		}
		return "POST", uri, []byte(form.Encode()), "application/x-www-form-urlencoded"
	}
	object, variables := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, q := range params {
		if name, ok := strings.CutPrefix(q.Name, graphVariable); ok && p.operation != "" {
			variables[name] = asJSON(q.Value)
		} else if p.operation == "" {
			object[q.Name] = asJSON(q.Value)
		}
	}
	if p.operation != "" {
		object[graphDocument], _ = json.Marshal(p.Document)
		object[graphOperation], _ = json.Marshal(p.operation)
		object["variables"], _ = json.Marshal(variables)
	}
	body, _ = json.Marshal(object) // every member is valid
	return "POST", uri, body, "application/json"
}

// asJSON is the JSON value that a parameter stands for: itself when it is one, else the
// text. asParam is its inverse.
func asJSON(value string) json.RawMessage {
	if value != "" && strings.TrimSpace(value) == value && json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	text, _ := json.Marshal(value)
	return text
}

func asParam(value json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(value, &text) == nil && value[0] == '"' && !json.Valid([]byte(text)) {
		return text, nil // unlike "12", which is no number
	}
	var plain bytes.Buffer
	if err := json.Compact(&plain, value); err != nil {
		return "", err
	}
	return plain.String(), nil
}

// Posts reports whether a POST to a path may be a read, so that its body has to be looked
// at.
func (s *Spec) Posts(path string) bool { return s.postedAs(path) != nil }

func (s *Spec) graphQL(path string) bool {
	p := s.postedAs(path)
	return p != nil && p.Post == postGraphQL
}

// postedAs is how the first read by POST of a path is asked; nil: there is none.
func (s *Spec) postedAs(path string) *Posted {
	var segments []string
	for i := range s.routes {
		r := &s.routes[i]
		if r.posted() == nil {
			continue
		}
		if segments == nil {
			var err error
			if segments, err = understudy.SplitPath(path); err != nil {
				return nil
			}
		}
		if _, ok := r.base.match(segments); ok {
			return r.posted()
		}
	}
	return nil
}

func (r *route) posted() *Posted {
	switch {
	case r.list != nil && r.list.Post != "":
		return &r.list.Posted
	case r.instance != nil && r.instance.Post != "":
		return &r.instance.Posted
	}
	return nil
}

// addPosted adds the route of a path that is read by POST. In keys the operation, and the
// parameters that name the record, are segments behind it.
func (s *Spec) addPosted(path string, r route) (t Template, err error) {
	p := r.posted()
	if p == nil {
		return s.addRoute(path, r)
	}
	if r.base, err = ParseTemplate(path); err != nil {
		return t, err
	}
	p.moved = nil
	if p.operation != "" {
		path += "/" + p.operation
	}
	for _, name := range r.ids() {
		if !r.base.Has(name) {
			path += "/{" + name + "}"
			p.moved = append(p.moved, name)
		}
	}
	return s.addRoute(path, r)
}

// move puts the parameters of a posted read that name its record, and its operation, into
// the path.
func (s *Spec) move(segments []string, q understudy.Query) ([]string, understudy.Query) {
	for i := range s.routes {
		r := &s.routes[i]
		p := r.posted()
		if p == nil || p.operation == "" && len(p.moved) == 0 {
			continue
		}
		if _, ok := r.base.match(segments); !ok {
			continue
		}
		var behind []string
		if op, _ := q.Get(graphOperation); p.operation != "" {
			if op != p.operation {
				continue
			}
			behind = append(behind, op)
		}
		for _, name := range p.moved {
			if value, _ := q.Get(name); isSegment(value) {
				behind = append(behind, value)
			}
		}
		if moves := len(p.moved) + min(len(p.operation), 1); len(behind) == moves {
			return append(slices.Clone(segments), behind...), q.Without(func(x understudy.Param) bool {
				return slices.Contains(p.moved, x.Name) || p.operation != "" && x.Name == graphOperation
			})
		}
	}
	return segments, q
}

// isSegment reports whether a text can be a segment of a path.
func isSegment(text string) bool {
	segments, err := understudy.SplitPath("/" + string(understudy.AppendPathSegment(nil, text)))
	return err == nil && len(segments) == 1 && segments[0] == text && text != ""
}

// PostTarget is what a POST to a path means: a read, or a write (read is false) of which
// the kind may be known. The query's parameters and the body's are one. ErrInvalid: the
// body cannot be read.
func (s *Spec) PostTarget(source, path, rawQuery, contentType string, body []byte) (t *Target, read bool, err error) {
	given, err := understudy.ParseQuery(rawQuery)
	if err != nil {
		return nil, false, err
	}
	params, op, err := s.postedBody(path, contentType, body)
	if err != nil {
		return nil, false, err
	}
	if op != nil {
		return s.operation(source, path, rawQuery, params, op)
	}
	if t, err = s.Target(source, path, append(given, params...).String()); err != nil {
		return nil, false, err
	}
	return t, t.posted() != nil, nil
}

// postedBody reads a body. op is the operation of a GraphQL request.
func (s *Spec) postedBody(path, contentType string, body []byte) (params understudy.Query, op *GraphOperation, err error) {
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case len(body) == 0:
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("%w: the body's Content-Type cannot be read", understudy.ErrInvalid)
	case kind == "application/x-www-form-urlencoded":
		params, err = understudy.ParseQuery(string(body))
		return params, nil, err
	case kind != "application/json":
		return nil, nil, fmt.Errorf("%w: a read by POST has a body of application/json or application/x-www-form-urlencoded",
			understudy.ErrInvalid)
	}
	object, err := members(body)
	if err != nil {
		return nil, nil, err
	}
	if s.graphQL(path) {
		document, _ := textOf(object, graphDocument)
		name, _ := textOf(object, graphOperation)
		one, err := Operation(document, name)
		if err != nil {
			return nil, nil, err
		}
		variables, err := members(cmpOr(object["variables"], "{}"))
		if err != nil {
			return nil, nil, err
		}
		params, err = paramsOf(graphVariable, variables)
		return params, &one, err
	}
	params, err = paramsOf("", object)
	return params, nil, err
}

func cmpOr(value json.RawMessage, or string) json.RawMessage {
	if len(value) == 0 || string(value) == "null" {
		return json.RawMessage(or)
	}
	return value
}

func members(body []byte) (object map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(body, &object); err != nil || object == nil {
		return nil, fmt.Errorf("%w: the body is no JSON object", understudy.ErrInvalid)
	}
	return object, nil
}

func textOf(object map[string]json.RawMessage, name string) (text string, ok bool) {
	return text, json.Unmarshal(object[name], &text) == nil && text != ""
}

// paramsOf are the members of an object as parameters, by name.
func paramsOf(prefix string, object map[string]json.RawMessage) (q understudy.Query, err error) {
	for name, value := range object {
		text, err := asParam(value)
		if err != nil {
			return nil, fmt.Errorf("%w: %s in the body cannot be read", understudy.ErrInvalid, understudy.Clip(name))
		}
		q = append(q, understudy.Param{Name: prefix + name, Value: text})
	}
	if len(q) > understudy.MaxParams {
		return nil, fmt.Errorf("%w: more than %d parameters", understudy.ErrInvalid, understudy.MaxParams)
	}
	slices.SortFunc(q, func(a, b understudy.Param) int { return strings.Compare(a.Name, b.Name) })
	return q, nil
}

// operation is what a GraphQL request means: a read when it is a query that the spec
// names, word for word. A mutation is a write to the kind that names it.
func (s *Spec) operation(source, path, rawQuery string, params understudy.Query, op *GraphOperation) (*Target, bool, error) {
	plain, err := s.Target(source, path, rawQuery)
	if err != nil {
		return nil, false, err
	}
	t := *plain
	t.Kind, t.List, t.Instance, t.ID, t.NearMiss = nil, nil, nil, "", false
	if op.Kind != "query" {
		for _, k := range s.Kinds {
			if slices.Contains(k.Mutations, op.Name) {
				t.Kind = k
			}
		}
		return &t, false, nil
	}
	params = append(params, understudy.Param{Name: graphOperation, Value: op.Name})
	named, err := s.Target(source, path, params.String())
	if err != nil {
		return nil, false, err
	}
	if p := named.posted(); p == nil || p.text != op.Text {
		return &t, false, nil // what another query shows nobody knows
	}
	return named, true, nil
}

// In reports whether the body of an answer with a good status is an error.
func (e *Errors) In(body []byte, doc jsonspan.Value) bool {
	return slices.ContainsFunc(e.Bodies, func(s State) bool {
		given := func(name string) (string, bool) {
			v, ok := jsonspan.Find(body, doc, name)
			return jsonspan.Text(body, v), ok && v.Kind != jsonspan.Null
		}
		text, there := given(s.Field)
		holds := len(s.In) == 0 && text != "" || slices.Contains(s.In, text)
		return there && holds && !slices.ContainsFunc(s.Set, func(name string) bool {
			_, set := given(name)
			return !set
		})
	})
}
