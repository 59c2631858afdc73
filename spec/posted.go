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
	"understudy/internal/graphql"
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
	graphDocument      = "query"
	graphOperationName = "operationName"
	graphVariables     = "variables"
	graphVariable      = "variables."
)

// check completes it.
func (p *Posted) check(path string) error {
	if p.Post == postGraphQL {
		op, err := graphql.Find(p.Document, "")
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

// postedOf returns how a list or an instance is asked by POST; nil: by GET.
func postedOf(l *List, in *Instance) *Posted {
	switch {
	case l != nil && l.Post != "":
		return &l.Posted
	case in != nil && in.Post != "":
		return &in.Posted
	}
	return nil
}

func (t *Target) posted() *Posted { return postedOf(t.List, t.Instance) }

func (r *route) posted() *Posted { return postedOf(r.list, r.instance) }

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
		return "POST", uri, []byte(form.Encode()), formType
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
		object[graphOperationName], _ = json.Marshal(p.operation)
		object[graphVariables], _ = json.Marshal(variables)
	}
	body, _ = json.Marshal(object) // every member is valid
	return "POST", uri, body, jsonType
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
func (s *Spec) Posts(path string) bool { return s.GraphQLAt(path) || s.routes.postedAs(path) != nil }

// postedAs is how the first read by POST of a path is asked; nil: there is none.
func (all routes) postedAs(path string) *Posted {
	var segments []string
	for i := range all {
		r := &all[i]
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

// addPosted adds the route of a path that is read by POST. In keys the operation, and the
// parameters that name the record, are segments behind it.
func (all *routes) addPosted(path string, r route) (t Template, err error) {
	p := r.posted()
	if p == nil {
		return all.add(path, r)
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
	return all.add(path, r)
}

// move puts the parameters of a posted read that name its record, and its operation, into
// the path.
func (all routes) move(segments []string, q understudy.Query) ([]string, understudy.Query) {
	for i := range all {
		r := &all[i]
		p := r.posted()
		if p == nil || p.operation == "" && len(p.moved) == 0 {
			continue
		}
		if _, ok := r.base.match(segments); !ok {
			continue
		}
		var behind []string
		if op, _ := q.Get(graphOperationName); p.operation != "" {
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
				return slices.Contains(p.moved, x.Name) || p.operation != "" && x.Name == graphOperationName
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

// Purpose says what a POST to a path that is read by POST does.
type Purpose uint8

// The purposes.
const (
	PostWrites  Purpose = iota // it may change something
	PostReads                  // it reads a list or an instance of the spec
	PostQueries                // it is another GraphQL query: it changes nothing, and what it shows is not known
)

// Post is what a POST to a path that is read by POST means.
type Post struct {
	Target  *Target
	Purpose Purpose
	Body    []byte // with PostQueries: what was read of the body, and nothing else
}

// PostTarget returns what a POST to a path means. The query's parameters and the body's are
// one. A GraphQL request that cannot be read is a write. ErrInvalid: another body cannot be
// read. ErrForbidden: a GraphQL request asks for a secret.
func (s *Spec) PostTarget(source, path, rawQuery, contentType string, body []byte) (Post, error) {
	given, err := understudy.ParseQuery(rawQuery)
	if err != nil {
		return Post{}, err
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if s.GraphQLAt(path) && (err != nil || kind != formType) {
		return graphPost(s, source, path, rawQuery, kind, body)
	}
	params, err := s.postedBody(kind, err, body)
	if err != nil {
		return Post{}, err
	}
	t, err := s.Target(source, path, append(given, params...).String())
	if err != nil {
		return Post{}, err
	}
	if t.posted() != nil {
		return Post{Target: t, Purpose: PostReads}, nil
	}
	return Post{Target: t}, nil
}

// The types of bodies.
const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// postedBody reads the parameters in a body; kindErr is why its type cannot be read.
func (s *Spec) postedBody(kind string, kindErr error, body []byte) (understudy.Query, error) {
	switch {
	case len(body) == 0:
		return nil, nil
	case kindErr != nil:
		return nil, fmt.Errorf("%w: the body's Content-Type cannot be read", understudy.ErrInvalid)
	case kind == formType:
		return understudy.ParseQuery(string(body))
	case kind != jsonType:
		return nil, fmt.Errorf("%w: a read by POST has a body of %s or %s", understudy.ErrInvalid, jsonType, formType)
	}
	object, err := members(body)
	if err != nil {
		return nil, err
	}
	return paramsOf("", object)
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

// graphPost returns what a GraphQL request means: a read when it is a query that the spec
// names, word for word. A mutation is a write to the kinds that name its fields.
func graphPost(s *Spec, source, path, rawQuery, contentType string, body []byte) (Post, error) {
	plain, err := s.Target(source, path, rawQuery)
	if err != nil {
		return Post{}, err
	}
	t := *plain
	t.Kind, t.List, t.Instance, t.ID, t.NearMiss = nil, nil, nil, "", false
	document, op, request, err := graphOperation(body)
	if secret, asks := asksSecret(s, document); asks {
		return Post{}, fmt.Errorf("%w: %s is a secret that nobody sees here; leave it out of the document", understudy.ErrForbidden,
			understudy.Clip(secret))
	}
	if err != nil || op.Kind != "query" || contentType != jsonType || len(plain.Query) > 0 {
		if changed := mutated(s, body, len(plain.Query) > 0); len(changed) > 0 {
			t.Kind = changed[0]
		}
		return Post{Target: &t}, nil
	}
	if named, err := documentTarget(s, source, path, op, request); named != nil || err != nil {
		return Post{Target: named, Purpose: PostReads}, err
	}
	sent, err := json.Marshal(request)
	return Post{Target: &t, Purpose: PostQueries, Body: sent}, err
}

// documentTarget returns the target of a query that the spec names word for word; nil: it is
// another one.
func documentTarget(s *Spec, source, path string, op graphql.Operation, request map[string]json.RawMessage) (*Target, error) {
	var variables map[string]json.RawMessage
	if given := request[graphVariables]; len(given) > 0 && json.Unmarshal(given, &variables) != nil {
		return nil, fmt.Errorf("%w: the variables are no JSON object", understudy.ErrInvalid)
	}
	params, err := paramsOf(graphVariable, variables)
	if err != nil {
		return nil, err
	}
	params = append(params, understudy.Param{Name: graphOperationName, Value: op.Name})
	named, err := s.Target(source, path, params.String())
	if err != nil {
		return nil, err
	}
	if p := named.posted(); p == nil || p.text != op.Text {
		return nil, nil
	}
	return named, nil
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
