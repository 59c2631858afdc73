// This file describes reads that are sent as POST, with their parameters in the body.

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

// Posted says that a read is sent as POST, with the parameters in the body. In keys and everywhere else in
// Understudy, the parameters are the query of the path.
type Posted struct {
	// Post is the encoding of the body: form, json (an object) or graphql. If it is empty, the read is sent as GET.
	Post string `yaml:"post"`
	// Document, with graphql, is the text of the one query of this read. Its variables are the parameters
	// variables.NAME. Its name distinguishes it from other queries with the same path.
	Document string `yaml:"document"`

	operation string
	text      string   // the tokens of the document in normal form
	moved     []string // the parameters that are segments of the key's path
}

// The encodings of a body.
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

// check checks the settings and parses the document.
func (p *Posted) check(path string) error {
	if p.Post == postGraphQL {
		op, err := graphql.Find(p.Document, "")
		switch {
		case err != nil:
			return fmt.Errorf("%s: document: %w", path, err)
		case op.Kind != "query" || op.Name == "":
			return fmt.Errorf("%s: document: write one query with a name", path)
		}
		p.operation, p.text = op.Name, op.Text
		return nil
	}
	switch {
	case p.Document != "":
		return fmt.Errorf("%s: document has no effect without post: graphql", path)
	case p.Post != "" && p.Post != postForm && p.Post != postJSON:
		return fmt.Errorf("%s: post %q is not known; write form, json or graphql", path, p.Post)
	}
	return nil
}

// postedRead returns how a list or an instance is read by POST, or nil if it is read by GET.
func postedRead(l *List, in *Instance) *Posted {
	switch {
	case l != nil && l.Post != "":
		return &l.Posted
	case in != nil && in.Post != "":
		return &in.Posted
	}
	return nil
}

func (t *Target) postRule() *Posted { return postedRead(t.List, t.Instance) }

func (r *route) postRule() *Posted { return postedRead(r.list, r.instance) }

// UpstreamRequest returns the request to send: method, URI with the header fields of the key, body and its type.
func (t *Target) UpstreamRequest() (method, uri string, body []byte, contentType string) {
	p := t.postRule()
	if p == nil {
		return "GET", t.Key.URI, nil, ""
	}
	path, params := t.Key.Path(), t.Query
	for i := range p.moved { // moves the parameters from the path back to the body
		name := p.moved[len(p.moved)-1-i]
		path = path[:strings.LastIndexByte(path, '/')]
		params = append(understudy.Query{{Name: name, Value: t.Var(name)}}, params...)
	}
	if p.operation != "" {
		path = path[:strings.LastIndexByte(path, '/')]
	}
	uri = understudy.Key{URI: path}.WithHeader(t.Key.Header()).URI
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
			variables[name] = encodeParam(q.Value)
		} else if p.operation == "" {
			object[q.Name] = encodeParam(q.Value)
		}
	}
	if p.operation != "" {
		object[graphDocument], _ = json.Marshal(p.Document)
		object[graphOperationName], _ = json.Marshal(p.operation)
		object[graphVariables], _ = json.Marshal(variables)
	}
	body, _ = json.Marshal(object) // no error is possible, because every member is valid JSON
	return "POST", uri, body, jsonType
}

// encodeParam returns the JSON value of a parameter: the parameter itself if it is valid JSON, otherwise a JSON string.
// decodeParam does the reverse.
func encodeParam(value string) json.RawMessage {
	if value != "" && strings.TrimSpace(value) == value && json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	text, _ := json.Marshal(value)
	return text
}

func decodeParam(value json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(value, &text) == nil && value[0] == '"' && !json.Valid([]byte(text)) {
		return text, nil // a text such as "12" stays quoted, so that it does not become a number
	}
	var plain bytes.Buffer
	if err := json.Compact(&plain, value); err != nil {
		return "", err
	}
	return plain.String(), nil
}

// HasPostedRead reports whether a POST to a path may be a read, so that its body must be examined.
func (s *Spec) HasPostedRead(path string) bool {
	path = s.replaceAlias(path)
	return s.IsGraphQLPath(path) || s.routes.findPosted(path) != nil
}

// findPosted returns the first posted read of a path, or nil.
func (all routes) findPosted(path string) *Posted {
	var segments []string
	for i := range all {
		r := &all[i]
		if r.postRule() == nil {
			continue
		}
		if segments == nil {
			var err error
			if segments, err = understudy.SplitPath(path); err != nil {
				return nil
			}
		}
		if _, ok := r.base.match(segments); ok {
			return r.postRule()
		}
	}
	return nil
}

// addPosted adds the route of a posted read. In keys, the operation and the parameters that form the record's
// id become segments at the end of the path.
func (all *routes) addPosted(path string, r route) (t Template, err error) {
	p := r.postRule()
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

// movePosted moves the operation of a posted read, and the parameters that form its record's id, from the query
// to the path.
func (all routes) movePosted(segments []string, q understudy.Query) ([]string, understudy.Query) {
	for i := range all {
		r := &all[i]
		p := r.postRule()
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
			return append(slices.Clone(segments), behind...), q.Remove(func(x understudy.Param) bool {
				return slices.Contains(p.moved, x.Name) || p.operation != "" && x.Name == graphOperationName
			})
		}
	}
	return segments, q
}

// isSegment reports whether a text can be a path segment.
func isSegment(text string) bool {
	segments, err := understudy.SplitPath("/" + string(understudy.AppendPathSegment(nil, text)))
	return err == nil && len(segments) == 1 && segments[0] == text && text != ""
}

// Purpose says what a POST to the path of a posted read does.
type Purpose uint8

// What a POST to the path of a posted read does.
const (
	PostWrites Purpose = iota // the request may change something
	PostReads                 // the request reads a list or an instance of the spec
	// The request is a GraphQL query that the spec does not contain: it changes nothing, and the content of its answer is
	// not known
	PostQueries
)

// Post is the meaning of a POST to the path of a posted read.
type Post struct {
	Target  *Target
	Purpose Purpose
	Body    []byte // the parsed parts of the request's body, set only with PostQueries
}

// ParsePost returns what a POST to a path means. Parameters may be in the query or in the body. A GraphQL
// request that cannot be parsed counts as a write. Any other body that cannot be parsed is ErrInvalid. A
// GraphQL request for a secret is ErrForbidden.
func (s *Spec) ParsePost(source, path, rawQuery, contentType string, body []byte) (Post, error) {
	given, err := understudy.ParseQuery(rawQuery)
	if err != nil {
		return Post{}, err
	}
	path = s.replaceAlias(path)
	kind, _, err := mime.ParseMediaType(contentType)
	if s.IsGraphQLPath(path) && (err != nil || kind != formType) {
		return parseGraphQLPost(s, source, path, rawQuery, kind, body)
	}
	params, err := s.parsePostedBody(kind, err, body)
	if err != nil {
		return Post{}, err
	}
	t, err := s.Resolve(source, path, append(given, params...).String())
	if err != nil {
		return Post{}, err
	}
	if t.postRule() != nil {
		return Post{Target: t, Purpose: PostReads}, nil
	}
	return Post{Target: t}, nil
}

// Media types of bodies.
const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// parsePostedBody returns the parameters in a body. kindErr is the error of parsing its media type.
func (s *Spec) parsePostedBody(kind string, kindErr error, body []byte) (understudy.Query, error) {
	switch {
	case len(body) == 0:
		return nil, nil
	case kindErr != nil:
		return nil, fmt.Errorf("%w: the Content-Type of the body cannot be read", understudy.ErrInvalid)
	case kind == formType:
		return understudy.ParseQuery(string(body))
	case kind != jsonType:
		return nil, fmt.Errorf("%w: the body of a read by POST has another Content-Type than %s or %s", understudy.ErrInvalid, jsonType, formType)
	}
	object, err := parseObject(body)
	if err != nil {
		return nil, err
	}
	return collectParams("", object)
}

func parseObject(body []byte) (object map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(body, &object); err != nil || object == nil {
		return nil, fmt.Errorf("%w: the body is not a JSON object", understudy.ErrInvalid)
	}
	return object, nil
}

func textOf(object map[string]json.RawMessage, name string) (text string, ok bool) {
	return text, json.Unmarshal(object[name], &text) == nil && text != ""
}

// collectParams returns the members of an object as parameters, sorted by name.
func collectParams(prefix string, object map[string]json.RawMessage) (q understudy.Query, err error) {
	for name, value := range object {
		text, err := decodeParam(value)
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

// parseGraphQLPost returns what a GraphQL request means. A query that the spec contains word for word is a
// read. A mutation is a write to the kinds that name its fields.
func parseGraphQLPost(s *Spec, source, path, rawQuery, contentType string, body []byte) (Post, error) {
	plain, err := s.Resolve(source, path, rawQuery)
	if err != nil {
		return Post{}, err
	}
	t := *plain
	t.Kind, t.List, t.Instance, t.ID, t.NearMiss = nil, nil, nil, "", false
	document, op, request, err := parseGraphQLOperation(body)
	if secret, asks := findSecret(s, document); asks {
		return Post{}, fmt.Errorf("%w: %s is a secret, and this server shows it to nobody; remove it from the document", understudy.ErrForbidden,
			understudy.Clip(secret))
	}
	if err != nil || op.Kind != "query" || contentType != jsonType || len(plain.Query) > 0 {
		if changed := mutatedKinds(s, body, len(plain.Query) > 0); len(changed) > 0 {
			t.Kind = changed[0]
		}
		return Post{Target: &t}, nil
	}
	if named, err := resolveDocument(s, source, path, op, request); named != nil || err != nil {
		return Post{Target: named, Purpose: PostReads}, err
	}
	sent, err := json.Marshal(request)
	return Post{Target: &t, Purpose: PostQueries, Body: sent}, err
}

// resolveDocument returns the target of a query that the spec contains word for word, or nil for any other query.
func resolveDocument(s *Spec, source, path string, op graphql.Operation, request map[string]json.RawMessage) (*Target, error) {
	var variables map[string]json.RawMessage
	if given := request[graphVariables]; len(given) > 0 && json.Unmarshal(given, &variables) != nil {
		return nil, fmt.Errorf("%w: the variables are not a JSON object", understudy.ErrInvalid)
	}
	params, err := collectParams(graphVariable, variables)
	if err != nil {
		return nil, err
	}
	params = append(params, understudy.Param{Name: graphOperationName, Value: op.Name})
	named, err := s.Resolve(source, path, params.String())
	if err != nil {
		return nil, err
	}
	if p := named.postRule(); p == nil || p.text != op.Text {
		return nil, nil
	}
	return named, nil
}

// MatchBody reports whether the body of an answer with a good status is an error.
func (e *Errors) MatchBody(body []byte, doc jsonspan.Value) bool {
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
