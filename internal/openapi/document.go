// This file reads an OpenAPI document and its GET operations.

// Package openapi reads the requests and responses of an API from its OpenAPI document (3.0, 3.1, or Swagger 2).
// It does not validate the document. Parts that it does not understand are skipped.
package openapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Document is an OpenAPI document. Its methods and schemas fill caches, so only one goroutine may use it at a time.
type Document struct {
	Title   string
	DocsURL string   // the URL of the documentation for people
	Servers []string // the scheme and host of each server, without a path
	Schemes []Scheme // the authentication schemes; those in the security list of the document come first
	// Combined are the schemes that every request must use together, or nil if one scheme is enough.
	Combined       []Scheme
	Base           string // the path of the first server, or ""; the paths of all operations begin with it
	Reads          []*Operation
	NonJSONReads   []*Operation // the GET operations without a JSON response with a 2xx status
	OperationCount int          // the number of operations of all methods
	Has401         bool         // whether an operation has a response with status 401
	Headers        Headers

	tree tree
}

// tree contains the parsed files of a document, with caches of resolved references and schemas.
type tree struct {
	roots    map[string]*Value // the root values by file path; "" means the document itself
	resolved map[string]*Value // the values by the reference that leads to them
	// parts caches the results of Schema.parts, by the value of the schema. The field below does the same for
	// Schema.Variants.
	parts    map[*Value][]*Value
	variants map[*Value]variantList
}

// Headers contains summaries of the header fields in a document.
type Headers struct {
	Requests  map[string]*RequestHeader  // the request headers of all methods, by canonical name
	Responses map[string]*ResponseHeader // the response headers, by canonical name
	Refusals  map[string]*Refusal        // the error responses, by status as written, such as 404 or 4XX
}

// Scheme is an authentication scheme.
type Scheme struct {
	Type string // the type of the scheme: basic, bearer, key, oauth2, or another type as the document writes it
	In   string // where the request carries a key: header, query or cookie
	Name string // the name of the header or parameter that contains the key
	Text string // the description of the scheme
}

// Operation is a GET operation. Answer, Type, Example and Headers are set only if the operation has a JSON response.
type Operation struct {
	Path        string // the path, beginning with Document.Base, with {variables}
	ID          string // the operationId
	Description string // the description of the operation for people
	Params      []Param
	Answer      Schema   // the schema of the first JSON response with a 2xx status
	Type        string   // the media type of Answer
	Example     *Value   // an example of Answer, or nil
	Headers     []string // the names of the header fields of Answer, as written in the document
	Errors      Schema   // the schema of the first JSON response with status 4xx or "default"
	ErrorType   string   // the media type of Errors
}

// Param is a request parameter that is not in a header.
type Param struct {
	Name, In, Description string
	Required              bool
	Schema                Schema
}

// ErrNoDocument is the error for JSON or YAML that is not an OpenAPI document.
var ErrNoDocument = errors.New("no OpenAPI document")

// Read reads a document that does not refer to other files.
func Read(data []byte) (*Document, error) { return ReadFiles(data, "", nil) }

// ReadFiles reads a document and the files to which it refers. name is the file name of the document itself.
func ReadFiles(data []byte, name string, open OpenFunc) (*Document, error) {
	root, err := Parse(data)
	if err != nil {
		return nil, err
	}
	rewriteReferences(root, name)
	return readTree(root, name, open)
}

// New returns the document with a given root value, which must not refer to other files.
func New(root *Value) (*Document, error) { return readTree(root, "", nil) }

// readTree builds a document from its root value. It returns an error if the document is not OpenAPI,
// has a broken reference, or has no GET with a JSON response.
func readTree(root *Value, name string, open OpenFunc) (*Document, error) {
	version := root.TextOf("openapi") + root.TextOf("swagger")
	if !strings.HasPrefix(version, "3.") && !strings.HasPrefix(version, "2") {
		return nil, fmt.Errorf("%w: it needs openapi: 3.x or swagger: 2.0 at its beginning", ErrNoDocument)
	}
	d := &Document{Headers: Headers{map[string]*RequestHeader{}, map[string]*ResponseHeader{}, map[string]*Refusal{}}}
	d.tree = tree{map[string]*Value{"": root, name: root}, map[string]*Value{}, map[*Value][]*Value{}, map[*Value]variantList{}}
	if err := d.followReferences(open); err != nil {
		return nil, err
	}
	d.Title = root.Get("info").TextOf("title")
	d.DocsURL = root.Get("externalDocs").TextOf("url")
	d.Base = d.readServers()
	d.readSchemes()
	root.Get("paths").WalkPairs(func(path string, item *Value) {
		item = d.resolve(item)
		if strings.HasPrefix(path, "/") {
			item.WalkPairs(func(method string, op *Value) { d.readOperation(d.Base+path, method, op, item) })
		}
	})
	if len(d.Reads) == 0 {
		return nil, fmt.Errorf("the document has no GET with an answer in JSON")
	}
	return d, nil
}

// readServers sets d.Servers and returns the path of the first server.
func (d *Document) readServers() (base string) {
	var texts []string
	if host := d.root().TextOf("host"); host != "" { // the document is in the format of Swagger 2
		scheme := "https"
		if schemes := d.root().Get("schemes"); schemes != nil && len(schemes.Items) == 1 {
			scheme = schemes.Items[0].Text
		}
		texts = append(texts, scheme+"://"+host+d.root().TextOf("basePath"))
	} else if path := d.root().TextOf("basePath"); path != "" {
		base = strings.TrimSuffix(path, "/")
	}
	if servers := d.root().Get("servers"); servers != nil {
		for _, s := range servers.Items {
			text := s.TextOf("url")
			s.Get("variables").WalkPairs(func(name string, v *Value) { text = strings.ReplaceAll(text, "{"+name+"}", v.TextOf("default")) })
			texts = append(texts, text)
		}
	}
	for i, text := range texts {
		u, err := url.Parse(text)
		if err != nil {
			continue
		}
		if i == 0 {
			base = strings.TrimSuffix(u.Path, "/")
		}
		if host := u.Scheme + "://" + u.Host; u.Host != "" && strings.HasPrefix(u.Scheme, "http") && !slices.Contains(d.Servers, host) {
			d.Servers = append(d.Servers, host)
		}
	}
	if base != "" && !strings.HasPrefix(base, "/") {
		base = "/" + base
	}
	return base
}

// readSchemes sets d.Schemes and d.Combined. The schemes in the security list of the document come first.
func (d *Document) readSchemes() {
	known := d.root().Get("components").Get("securitySchemes")
	if known == nil {
		known = d.root().Get("securityDefinitions")
	}
	add := func(name string) Scheme {
		s := d.resolve(known.Get(name))
		scheme := Scheme{Type: s.TextOf("type"), In: s.TextOf("in"), Name: s.TextOf("name"), Text: clipText(s.TextOf("description"))}
		switch {
		case scheme.Type == "http":
			scheme.Type = strings.ToLower(s.TextOf("scheme"))
		case scheme.Type == "apiKey":
			scheme.Type = "key"
		}
		if scheme.Type != "" && !slices.Contains(d.Schemes, scheme) {
			d.Schemes = append(d.Schemes, scheme)
		}
		return scheme
	}
	if security := d.root().Get("security"); security != nil {
		ways := slices.Clone(security.Items) // alternatives with a single scheme come first
		slices.SortStableFunc(ways, func(a, b *Value) int { return min(len(a.Items), 2) - min(len(b.Items), 2) })
		for i, one := range ways {
			var all []Scheme
			one.WalkPairs(func(name string, _ *Value) { all = append(all, add(name)) })
			if i == 0 && len(security.Items) == 1 && len(all) > 1 {
				d.Combined = all
			}
		}
	}
	known.WalkPairs(func(name string, _ *Value) { add(name) })
}

// readOperation counts an operation of any method and its header fields. A GET is added to d.Reads if it has a JSON
// response, otherwise to d.NonJSONReads.
func (d *Document) readOperation(path, method string, op, item *Value) {
	method, op = strings.ToUpper(method), d.resolve(op)
	if op.Get("responses") == nil || !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method) {
		return
	}
	o := &Operation{Path: path, ID: op.TextOf("operationId"), Description: op.TextOf("description")}
	for _, list := range []*Value{op.Get("parameters"), item.Get("parameters")} {
		for i := 0; list != nil && i < len(list.Items); i++ {
			d.readParam(o, d.resolve(list.Items[i]), method)
		}
	}
	d.OperationCount++
	d.readResponseHeaders(op.Get("responses"))
	switch {
	case method != http.MethodGet:
	case d.readAnswers(o, op.Get("responses")):
		d.Reads = append(d.Reads, o)
	default:
		d.NonJSONReads = append(d.NonJSONReads, o)
	}
}

func (d *Document) readParam(o *Operation, v *Value, method string) {
	p := Param{Name: v.TextOf("name"), In: v.TextOf("in"), Description: v.TextOf("description"), Required: v.TextOf("required") == "true"}
	p.Schema = Schema{d: d, v: v} // in Swagger 2 the parameter itself has the keywords of its schema
	if schema := v.Get("schema"); schema != nil {
		p.Schema.v = schema
	}
	if p.Name == "" || slices.ContainsFunc(o.Params, func(q Param) bool { return q.Name == p.Name && q.In == p.In }) {
		return
	}
	if p.In == "header" {
		d.countRequestHeader(&p, v, method)
	} else {
		o.Params = append(o.Params, p)
	}
}

// readAnswers sets the response and error fields of o. It reports whether o has a JSON response with a 2xx status.
func (d *Document) readAnswers(o *Operation, responses *Value) bool {
	found := false
	d.Has401 = d.Has401 || responses.Get("401") != nil
	responses.WalkPairs(func(status string, answer *Value) {
		answer = d.resolve(answer)
		content, mediaType, example := d.jsonContent(answer)
		switch {
		case strings.HasPrefix(status, "2") && !found && content != nil:
			found = true
			o.Answer, o.Type, o.Example = Schema{d: d, v: content}, mediaType, example
			answer.Get("headers").WalkPairs(func(name string, _ *Value) { o.Headers = append(o.Headers, name) })
		case (strings.HasPrefix(status, "4") || status == "default") && o.Errors.v == nil && content != nil:
			o.Errors, o.ErrorType = Schema{d: d, v: content}, mediaType
		}
	})
	return found
}

// jsonContent returns the schema, media type and example of the JSON content of a response. If there is no JSON
// content, schema is nil.
func (d *Document) jsonContent(answer *Value) (schema *Value, mediaType string, example *Value) {
	answer.Get("content").WalkPairs(func(name string, media *Value) {
		typ := Schema{d: d, v: media.Get("schema")}.Type()
		if name == "*/*" && (typ == "object" || typ == "array") {
			name = "application/json" // some generators write */* for every JSON response
		}
		if schema != nil || !strings.Contains(strings.ToLower(name), "json") {
			return
		}
		schema, mediaType = media.Get("schema"), name
		if example = media.Get("example"); example != nil {
			return
		}
		media.Get("examples").WalkPairs(func(_ string, one *Value) {
			if example == nil {
				example = d.resolve(one).Get("value")
			}
		})
	})
	if schema == nil && answer.Get("schema") != nil { // the response is in the format of Swagger 2
		schema, mediaType = answer.Get("schema"), "application/json"
		produces := d.root().Get("produces")
		if produces != nil && len(produces.Items) == 1 && strings.Contains(produces.Items[0].Text, "json") {
			mediaType = produces.Items[0].Text
		}
		example = answer.Get("examples").Get(mediaType)
	}
	return schema, mediaType, example
}
