// Headers: the header fields that a document names, of requests and of answers.

package openapi

import (
	"net/http"
	"slices"
	"strings"
)

// Header is a header field of requests.
type Header struct {
	Writes   int // how many operations other than GET take it
	Reads    int // how many GETs
	Required int // of how many of them it is required
	Values   []string
	Default  string         // the same of all that take it; "" = there is none
	Demanded map[string]int // how many operations require it with a value that is their only one or their default
	Example  string
	Text     string // how it is described, of the first operation that does
}

// Told is a header field of answers.
type Told struct {
	Name     string   // as written
	Answers  int      // how many answers have it
	Statuses []string // of which statuses
	Text     string   // how it is described
	Example  string
}

// Refusal is what a document says of the answers with one status from 400.
type Refusal struct {
	Answers  int
	Texts    []string // how they are described, each once
	Headers  []string // their fields, as written
	Examples []*Value // of their bodies
}

// Bounds of what is kept of a field, and of the answers of a status.
const (
	maxValuesOf = 30
	maxTexts    = 20
	maxText     = 2000 // bytes
)

// want counts a header field that an operation takes.
func (d *Document) want(p *Param, v *Value, method string) {
	name := http.CanonicalHeaderKey(p.Name)
	h := d.Headers.Wanted[name]
	if h == nil {
		h = &Header{Default: p.Schema.Default(), Demanded: map[string]int{}}
		d.Headers.Wanted[name] = h
	}
	if method == http.MethodGet {
		h.Reads++
	} else {
		h.Writes++
	}
	if p.Required {
		h.Required++
	}
	if h.Text == "" {
		h.Text = clipped(p.Description + " " + p.Schema.Description())
	}
	if h.Example = v.Of("example"); h.Example == "" && p.Schema.Example() != nil {
		h.Example = p.Schema.Example().Text
	}
	for _, value := range append(p.Schema.Enum(), p.Schema.Default()) {
		if value != "" && len(h.Values) < maxValuesOf && !slices.Contains(h.Values, value) {
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
		h.Demanded[value]++
	}
}

// readTold notes the header fields of an operation's answers, and what is said of its
// refusals.
func (d *Document) readTold(responses *Value) {
	responses.Each(func(status string, answer *Value) {
		answer = d.resolve(answer)
		r := &Refusal{}
		if strings.HasPrefix(status, "4") || strings.HasPrefix(status, "5") {
			if d.Headers.Refusals[status] == nil {
				d.Headers.Refusals[status] = r
			}
			r = d.Headers.Refusals[status]
			r.Answers++
			if text := clipped(answer.Of("description")); text != "" && len(r.Texts) < maxTexts && !slices.Contains(r.Texts, text) {
				r.Texts = append(r.Texts, text)
			}
			if _, _, example := d.content(answer); example != nil && len(r.Examples) < maxTexts {
				r.Examples = append(r.Examples, example)
			}
		}
		answer.Get("headers").Each(func(name string, v *Value) {
			d.tell(name, status, d.resolve(v))
			if !slices.Contains(r.Headers, name) && len(r.Headers) < maxTexts {
				r.Headers = append(r.Headers, name)
			}
		})
	})
}

// tell notes a header field of an answer.
func (d *Document) tell(name, status string, v *Value) {
	key := http.CanonicalHeaderKey(name)
	t := d.Headers.Told[key]
	if t == nil {
		t = &Told{Name: name}
		d.Headers.Told[key] = t
	}
	t.Answers++
	if !slices.Contains(t.Statuses, status) {
		t.Statuses = append(t.Statuses, status)
	}
	schema := Schema{d: d, v: v} // Swagger 2: the header is its own schema
	if inner := v.Get("schema"); inner != nil {
		schema.v = inner
	}
	if t.Text == "" {
		t.Text = clipped(strings.TrimSpace(v.Of("description") + " " + schema.Description()))
	}
	if t.Example = v.Of("example"); t.Example == "" {
		if x := schema.Example(); x != nil {
			t.Example = x.Text
		}
	}
	t.Example = clipped(t.Example)
}

// clipped is the beginning of a text.
func clipped(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxText)], "") }
