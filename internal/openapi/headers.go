// This file summarises the header fields of requests and responses in a document.

package openapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// RequestHeader is the summary of a request header over all operations.
type RequestHeader struct {
	Writes         int // the number of operations other than GET that accept the header
	Reads          int // the number of GET operations that accept the header
	Required       int // the number of operations that require the header
	Values         []string
	Default        string         // the default value if all operations have the same default, otherwise ""
	RequiredValues map[string]int // the number of operations that require the header, by its only permitted value or its default
	Example        string
	Text           string // the description in the first operation that has one
}

// ResponseHeader is the summary of a response header over all operations.
type ResponseHeader struct {
	Name     string   // the name as written in the document
	Answers  int      // the number of responses with the header
	Statuses []string // the statuses of the responses with the header
	Text     string   // the description of the header
	Example  string
}

// Refusal is the summary of all error responses (4xx or 5xx) with the same status.
type Refusal struct {
	Answers  int      // the number of responses with this status
	Texts    []string // the distinct descriptions of the responses
	Headers  []string // the distinct header names, as written in the document
	Examples []*Value // examples of the response bodies
}

// Limits for the summary of a header, and of the responses with the same status.
const (
	maxHeaderValues = 30
	maxTexts        = 20
	maxTextBytes    = 2000 // the maximum length of a description or example, in bytes
)

// countRequestHeader adds the header parameter p of an operation to d.Headers.Requests.
func (d *Document) countRequestHeader(p *Param, v *Value, method string) {
	name := http.CanonicalHeaderKey(p.Name)
	h := d.Headers.Requests[name]
	if h == nil {
		h = &RequestHeader{Default: p.Schema.Default(), RequiredValues: map[string]int{}}
		d.Headers.Requests[name] = h
	}
	if method == http.MethodGet {
		h.Reads++
	} else {
		h.Writes++
	}
	if p.Required {
		h.Required++
	}
	h.Text = cmp.Or(h.Text, clipText(p.Description+" "+p.Schema.Description()))
	if h.Example = v.TextOf("example"); h.Example == "" && p.Schema.Example() != nil {
		h.Example = p.Schema.Example().Text
	}
	for _, value := range append(p.Schema.Enum(), p.Schema.Default()) {
		if value != "" && len(h.Values) < maxHeaderValues && !slices.Contains(h.Values, value) {
			h.Values = append(h.Values, value)
		}
	}
	value := p.Schema.Default()
	if h.Default != value {
		h.Default = ""
	}
	if enum := p.Schema.Enum(); len(enum) == 1 {
		value = enum[0]
	}
	if p.Required && value != "" {
		h.RequiredValues[value]++
	}
}

// readResponseHeaders adds the responses of an operation to d.Headers.Responses and d.Headers.Refusals.
func (d *Document) readResponseHeaders(responses *Value) {
	responses.WalkPairs(func(status string, answer *Value) {
		answer = d.resolve(answer)
		r := &Refusal{}
		if strings.HasPrefix(status, "4") || strings.HasPrefix(status, "5") {
			if d.Headers.Refusals[status] == nil {
				d.Headers.Refusals[status] = r
			}
			r = d.Headers.Refusals[status]
			r.Answers++
			if text := clipText(answer.TextOf("description")); text != "" && len(r.Texts) < maxTexts && !slices.Contains(r.Texts, text) {
				r.Texts = append(r.Texts, text)
			}
			if _, _, example := d.jsonContent(answer); example != nil && len(r.Examples) < maxTexts {
				r.Examples = append(r.Examples, example)
			}
		}
		answer.Get("headers").WalkPairs(func(name string, v *Value) {
			d.addResponseHeader(name, status, d.resolve(v))
			if !slices.Contains(r.Headers, name) && len(r.Headers) < maxTexts {
				r.Headers = append(r.Headers, name)
			}
		})
	})
}

// addResponseHeader adds a header of a response with the given status to d.Headers.Responses.
func (d *Document) addResponseHeader(name, status string, v *Value) {
	key := http.CanonicalHeaderKey(name)
	t := d.Headers.Responses[key]
	if t == nil {
		t = &ResponseHeader{Name: name}
		d.Headers.Responses[key] = t
	}
	t.Answers++
	if !slices.Contains(t.Statuses, status) {
		t.Statuses = append(t.Statuses, status)
	}
	schema := Schema{d: d, v: v} // in Swagger 2 the header itself has the keywords of its schema
	if inner := v.Get("schema"); inner != nil {
		schema.v = inner
	}
	t.Text = cmp.Or(t.Text, clipText(strings.TrimSpace(v.TextOf("description")+" "+schema.Description())))
	if t.Example = v.TextOf("example"); t.Example == "" {
		if x := schema.Example(); x != nil {
			t.Example = x.Text
		}
	}
	t.Example = clipText(t.Example)
}

// clipText returns at most the first maxTextBytes bytes of a text, as valid UTF-8.
func clipText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxTextBytes)], "")
}
