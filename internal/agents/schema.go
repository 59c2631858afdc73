// This file makes the JSON Schemas of the tools' arguments and results.

package agents

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"understudy"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// builder adds the tools of a role to its offer.
type builder struct {
	srv    *Server
	caller understudy.Caller
	offer  *offer
}

// properties are the properties of a tool's arguments, in the order in which they were added.
type properties struct {
	names    []string
	schemas  map[string]*jsonschema.Schema
	required []string
}

func (p *properties) add(name string, s *jsonschema.Schema) *properties {
	if p.schemas == nil {
		p.schemas = map[string]*jsonschema.Schema{}
	}
	p.names = append(p.names, name)
	p.schemas[name] = s
	return p
}

// need adds a required property.
func (p *properties) need(name string, s *jsonschema.Schema) *properties {
	p.required = append(p.required, name)
	return p.add(name, s)
}

// object returns the schema of an object with these properties and no others.
func (p *properties) object(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Description: description, Properties: p.schemas, PropertyOrder: p.names, Required: p.required,
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
}

// text returns the schema of a string.
func text(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: description}
}

// enum returns the schema of a string with a fixed set of values.
func enum(description string, names []string) *jsonschema.Schema {
	s := text(description)
	for _, name := range names {
		s.Enum = append(s.Enum, name)
	}
	return s
}

// add adds a tool if the role sees a kind for which takes returns true. T is the type of the tool's result, and A is the type of its
// arguments.
func add[T, A any](b *builder, name, title, description string, takes func(*plan.Kind) bool, p *properties,
	run func(ctx context.Context, v *exchange, a A) (any, error)) {
	if len(b.offer.names(takes)) == 0 {
		return
	}
	out, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {}, // the schema of raw JSON allows any value
	}})
	if err != nil {
		panic(err) // cannot happen, because tests build the schemas of all types
	}
	var open bool // openWorldHint, always false: the tool reads only the configured sources
	b.offer.run[name] = func(ctx context.Context, v *exchange, arguments json.RawMessage) (any, error) {
		var a A
		if err := read(arguments, &a); err != nil {
			return nil, err
		}
		return run(ctx, v, a)
	}
	b.offer.tools = append(b.offer.tools, &mcp.Tool{
		Name: name, Title: title, Description: description, InputSchema: p.object(""), OutputSchema: out,
		Annotations: &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &open},
	})
}

// addSource adds the property that names a source, if there are several sources.
func (b *builder) addSource(p *properties) *properties {
	if len(b.offer.sources) > 1 {
		p.add("source", enum("the API; required if several have the kind", b.offer.sourceNames()))
	}
	return p
}

// addKind adds the property that names a kind.
func (b *builder) addKind(p *properties, takes func(*plan.Kind) bool) *properties {
	return b.addSource(p).need("kind", enum("the kind of record", b.offer.names(takes)))
}

// addID adds the argument with the id of a record to the arguments of a tool.
func (b *builder) addID(p *properties, needed bool, takes func(*plan.Kind) bool) *properties {
	s := text("the id of the record" + b.prefixes(takes))
	if needed {
		p.need("id", s)
	} else {
		p.add("id", s)
	}
	return p
}

// prefixes returns a text that says how ids begin.
func (b *builder) prefixes(takes func(*plan.Kind) bool) string {
	var all []string
	for _, s := range b.offer.sources {
		for _, k := range s.kinds {
			if takes(k) && len(k.Spec.Prefixes) > 0 && len(all) < 12 {
				all = append(all, k.Spec.Prefixes[0]+"… "+k.Spec.Name)
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

// addWithin adds the property for path variables other than the id.
func (b *builder) addWithin(p *properties, needs func(*plan.Kind) []string) *properties {
	inner := &properties{}
	for _, s := range b.offer.sources {
		for _, k := range s.kinds {
			for _, name := range needs(k) {
				if old := inner.schemas[name]; old != nil {
					if !strings.Contains(old.Description, k.Spec.Name) {
						old.Description += ", " + k.Spec.Name
					}
					continue
				}
				inner.add(name, text("for "+k.Spec.Name))
			}
		}
	}
	if len(inner.names) > 0 {
		p.add("within", inner.object("the record to which these belong, by the names in describe"))
	}
	return p
}

// listNeeds returns the path variables that the lists of a kind need.
func listNeeds(k *plan.Kind) []string {
	var all []string
	for _, l := range k.PlannedLists {
		all = append(all, l.Needs...)
	}
	return all
}

// recordNeeds returns the path variables that a record needs in addition to its id.
func recordNeeds(k *plan.Kind) []string {
	if len(k.PlannedInstances) == 0 {
		return nil
	}
	in := k.PlannedInstances[0]
	return slices.DeleteFunc(in.Params(), func(name string) bool { return strings.HasPrefix(name, understudy.OwnPrefix) })
}

// addFilters adds the property with the filters of all lists.
func (b *builder) addFilters(p *properties) *properties {
	inner := &properties{}
	for _, s := range b.offer.sources {
		for _, k := range s.kinds {
			for _, l := range k.PlannedLists {
				for i, f := range l.Spec.Filters {
					if b.srv.o.Gate.CheckRead(b.caller, l.Probes[i]) == nil {
						inner.addFilter(k, f)
					}
				}
			}
		}
	}
	if len(inner.names) > 0 {
		p.add("filters", inner.object("filters of the API's own lists; each names the kinds that accept it"))
	}
	return p
}

// addFilter adds one filter of a kind.
func (p *properties) addFilter(k *plan.Kind, f *spec.Filter) {
	key, meaning := keyOf(f), filterMeaning(f)
	old := p.schemas[key]
	switch {
	case old == nil:
		p.add(key, text(k.Spec.Name+": "+meaning))
	case strings.Contains(old.Description, k.Spec.Name+": "):
	case strings.HasSuffix(old.Description, ": "+meaning):
		old.Description = strings.TrimSuffix(old.Description, ": "+meaning) + ", " + k.Spec.Name + ": " + meaning
	default:
		old.Description += "; " + k.Spec.Name + ": " + meaning
	}
}

// addPage adds the properties limit and cursor.
func (b *builder) addPage(p *properties) *properties {
	most := float64(b.srv.o.Limits.Rows)
	least := 1.0
	p.add("limit", &jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: &most,
		Description: "the maximum number of records; default 20"})
	return p.add("cursor", text("next_cursor of the previous answer; all other arguments stay the same"))
}
