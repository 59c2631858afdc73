// Document: an OpenAPI document and its operations that read.

// Package openapi reads what an API's OpenAPI document (3.0, 3.1, or Swagger 2) says of its
// requests and answers. It does not validate: what it does not understand it leaves out.
package openapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Document is an OpenAPI document. It remembers what it was asked, and is for one goroutine at a time.
type Document struct {
	Title   string
	Docs    string   // a link to people's documentation
	Servers []string // absolute URLs, without a slash at the end
	Schemes []Scheme // how callers name themselves, those that every request may use first
	// Together are the schemes that every request uses at once: more than one, or none.
	Together []Scheme
	Base     string // the path of the first server, with which the paths of Reads begin; "" = none
	Reads    []*Operation
	Others   []*Operation // GETs whose good answer is no JSON
	All      int          // how many operations there are
	Refuses  bool         // an operation has an answer 401
	Headers  Headers

	tree tree
}

// tree is what a document is made of, and what was asked of it.
type tree struct {
	roots map[string]*Value // by file, "" being the document
	found map[string]*Value // where references lead
	// Of schemas.
	parts    map[*Value][]*Value
	variants map[*Value]variants
}

// Headers are the header fields that a document names.
type Headers struct {
	// Wanted are those that operations of any method take, by name.
	Wanted map[string]*Header
	// Told are those that answers have, Refusals what is said of answers with a status from
	// 400, by it.
	Told     map[string]*Told
	Refusals map[string]*Refusal
}

// Scheme is one way in which a request names its caller.
type Scheme struct {
	Type string // basic, bearer, key, oauth2, or the document's own word
	In   string // of a key: header, query, cookie
	Name string // of the header or parameter with the key
	Text string // how it is described
}

// Operation is one GET with an answer in JSON.
type Operation struct {
	Path string // with the path of the document's server, and {Variables}
	ID   string // operationId
	// Description is what it says of the operation for people.
	Description string
	Params      []Param
	Answer      Schema   // of the first status 2xx
	Type        string   // its media type
	Example     *Value   // such an answer; nil: the document has none
	Headers     []string // of the answer, as written
	Errors      Schema   // of a 4xx, or of the default answer
	// ErrorType is the media type of such an error.
	ErrorType string
}

// Param is a parameter of a path or query.
type Param struct {
	Name, In, Description string
	Required              bool
	Schema                Schema
}

// ErrNoDocument is what is JSON or YAML, and no OpenAPI document.
var ErrNoDocument = errors.New("no OpenAPI document")

// Read reads a document that refers to no other file. The error says what is wrong with it.
func Read(data []byte) (*Document, error) { return ReadFiles(data, "", nil) }

// ReadFiles reads a document with the files that it refers to. name is its own file.
func ReadFiles(data []byte, name string, open Open) (*Document, error) {
	root, err := Parse(data)
	if err != nil {
		return nil, err
	}
	rebase(root, name)
	return read(root, name, open)
}

// New makes a document of a tree.
func New(root *Value) (*Document, error) { return read(root, "", nil) }

func read(root *Value, name string, open Open) (*Document, error) {
	version := root.Of("openapi") + root.Of("swagger")
	if !strings.HasPrefix(version, "3.") && !strings.HasPrefix(version, "2") {
		return nil, fmt.Errorf("%w: want openapi: 3.x or swagger: 2.0 at its beginning", ErrNoDocument)
	}
	d := &Document{Headers: Headers{map[string]*Header{}, map[string]*Told{}, map[string]*Refusal{}}}
	d.tree = tree{map[string]*Value{"": root, name: root}, map[string]*Value{}, map[*Value][]*Value{}, map[*Value]variants{}}
	if err := d.follow(open); err != nil {
		return nil, err
	}
	d.Title = root.Get("info").Of("title")
	d.Docs = root.Get("externalDocs").Of("url")
	d.Base = d.readServers()
	d.readSchemes()
	root.Get("paths").Each(func(path string, item *Value) {
		item = d.resolve(item)
		if strings.HasPrefix(path, "/") {
			item.Each(func(method string, op *Value) { d.readOperation(d.Base+path, method, op, item) })
		}
	})
	if len(d.Reads) == 0 {
		return nil, fmt.Errorf("the document has no GET with an answer in JSON")
	}
	return d, nil
}

// readServers gives the path of the first server.
func (d *Document) readServers() (base string) {
	var texts []string
	if host := d.root().Of("host"); host != "" { // Swagger 2
		scheme := "https"
		if schemes := d.root().Get("schemes"); schemes != nil && len(schemes.Items) == 1 {
			scheme = schemes.Items[0].Text
		}
		texts = append(texts, scheme+"://"+host+d.root().Of("basePath"))
	} else if path := d.root().Of("basePath"); path != "" {
		base = strings.TrimSuffix(path, "/")
	}
	if servers := d.root().Get("servers"); servers != nil {
		for _, s := range servers.Items {
			text := s.Of("url")
			s.Get("variables").Each(func(name string, v *Value) { text = strings.ReplaceAll(text, "{"+name+"}", v.Of("default")) })
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

// readSchemes lists the security schemes, those of the document's own security first.
func (d *Document) readSchemes() {
	known := d.root().Get("components").Get("securitySchemes")
	if known == nil {
		known = d.root().Get("securityDefinitions")
	}
	add := func(name string) Scheme {
		s := d.resolve(known.Get(name))
		scheme := Scheme{Type: s.Of("type"), In: s.Of("in"), Name: s.Of("name"), Text: clipped(s.Of("description"))}
		switch {
		case scheme.Type == "http":
			scheme.Type = strings.ToLower(s.Of("scheme"))
		case scheme.Type == "apiKey":
			scheme.Type = "key"
		}
		if scheme.Type != "" && !slices.Contains(d.Schemes, scheme) {
			d.Schemes = append(d.Schemes, scheme)
		}
		return scheme
	}
	if security := d.root().Get("security"); security != nil {
		ways := slices.Clone(security.Items) // those that need one credential go first
		slices.SortStableFunc(ways, func(a, b *Value) int { return min(len(a.Items), 2) - min(len(b.Items), 2) })
		for i, one := range ways {
			var all []Scheme
			one.Each(func(name string, _ *Value) { all = append(all, add(name)) })
			if i == 0 && len(security.Items) == 1 && len(all) > 1 {
				d.Together = all
			}
		}
	}
	known.Each(func(name string, _ *Value) { add(name) })
}

// readOperation adds an operation with an answer in JSON, and counts the header fields that
// an operation of any method takes.
func (d *Document) readOperation(path, method string, op, item *Value) {
	method, op = strings.ToUpper(method), d.resolve(op)
	if op.Get("responses") == nil || !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method) {
		return
	}
	o := &Operation{Path: path, ID: op.Of("operationId"), Description: op.Of("description")}
	for _, list := range []*Value{op.Get("parameters"), item.Get("parameters")} {
		for i := 0; list != nil && i < len(list.Items); i++ {
			d.readParam(o, d.resolve(list.Items[i]), method)
		}
	}
	d.All++
	d.readTold(op.Get("responses"))
	switch {
	case method != http.MethodGet:
	case d.readAnswers(o, op.Get("responses")):
		d.Reads = append(d.Reads, o)
	default:
		d.Others = append(d.Others, o)
	}
}

func (d *Document) readParam(o *Operation, v *Value, method string) {
	p := Param{Name: v.Of("name"), In: v.Of("in"), Description: v.Of("description"), Required: v.Of("required") == "true"}
	p.Schema = Schema{d: d, v: v} // Swagger 2: the parameter is its own schema
	if schema := v.Get("schema"); schema != nil {
		p.Schema.v = schema
	}
	if p.Name == "" || slices.ContainsFunc(o.Params, func(q Param) bool { return q.Name == p.Name && q.In == p.In }) {
		return
	}
	if p.In == "header" {
		d.want(&p, v, method)
	} else {
		o.Params = append(o.Params, p)
	}
}

// readAnswers finds the good answer, and an error. It reports whether there is a good one
// in JSON.
func (d *Document) readAnswers(o *Operation, responses *Value) bool {
	found := false
	d.Refuses = d.Refuses || responses.Get("401") != nil
	responses.Each(func(status string, answer *Value) {
		answer = d.resolve(answer)
		content, mediaType, example := d.content(answer)
		switch {
		case strings.HasPrefix(status, "2") && !found && content != nil:
			found = true
			o.Answer, o.Type, o.Example = Schema{d: d, v: content}, mediaType, example
			answer.Get("headers").Each(func(name string, _ *Value) { o.Headers = append(o.Headers, name) })
		case (strings.HasPrefix(status, "4") || status == "default") && o.Errors.v == nil && content != nil:
			o.Errors, o.ErrorType = Schema{d: d, v: content}, mediaType
		}
	})
	return found
}

// content is the schema of an answer in JSON, and an example of it.
func (d *Document) content(answer *Value) (schema *Value, mediaType string, example *Value) {
	answer.Get("content").Each(func(name string, media *Value) {
		typ := Schema{d: d, v: media.Get("schema")}.Type()
		if name == "*/*" && (typ == "object" || typ == "array") {
			name = "application/json" // some generators write no other type
		}
		if schema != nil || !strings.Contains(strings.ToLower(name), "json") {
			return
		}
		schema, mediaType = media.Get("schema"), name
		if example = media.Get("example"); example != nil {
			return
		}
		media.Get("examples").Each(func(_ string, one *Value) {
			if example == nil {
				example = d.resolve(one).Get("value")
			}
		})
	})
	if schema == nil && answer.Get("schema") != nil { // Swagger 2
		schema, mediaType = answer.Get("schema"), "application/json"
		produces := d.root().Get("produces")
		if produces != nil && len(produces.Items) == 1 && strings.Contains(produces.Items[0].Text, "json") {
			mediaType = produces.Items[0].Text
		}
		example = answer.Get("examples").Get(mediaType)
	}
	return schema, mediaType, example
}
