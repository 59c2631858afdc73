// Documents: what is read of the three versions, and what is refused.

package openapi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

const three = `{
  "openapi": "3.0.3", "info": {"title": "Shop"}, 
  "servers": [{"url": "https://{where}.example/v1/", "variables": {"where": {"default": "eu"}}}],
  "security": [{"b": []}],
  "paths": {
    "/items": {
      "parameters": [{"name": "X-Version", "in": "header", "required": true, "schema": {"enum": ["7"]}}],
      "get": {"operationId": "list", "parameters": [{"$ref": "#/components/parameters/page"}, {"name": "page", "in": "query"}],
        "responses": {"200": {"$ref": "#/components/responses/Items"}, "401": {},
        "429": {"$ref": "#/components/responses/Slow"}, "404": {"content": {"application/problem+json": {"schema":
        {"properties": {"title": {"type": "string"}}}}}}}},
      "post": {"parameters": [{"name": "idempotency-key", "in": "header"}], "responses": {"201": {}}}
    },
    "/picture": {"get": {"responses": {"200": {"content": {"image/png": {}}}}}}
  },
  "components": {
    "parameters": {"page": {"name": "page", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2}}},
    "responses": {"Items": {"headers": {"Link": {}, "x-left": {"description": "How many.", "schema": {"example": 7}}},
      "content": {"text/html": {}, "application/json; charset=utf-8": {
      "schema": {"type": "array", "items": {"$ref": "#/components/schemas/a~1b"}}, "examples": {"x": {"value": [{"id": "i1"}]}}}}},
      "Slow": {"description": "Too many", "headers": {"Retry-After": {"schema": {"type": "integer"}}},
        "content": {"application/json": {"example": {"e": 1}}}}},
    "schemas": {"a/b": {"allOf": [{"$ref": "#/components/schemas/c"}, {"properties": {"id": {"type": "string", "format": "uuid"}}}]},
      "c": {"properties": {"self": {"$ref": "#/components/schemas/a~1b"}, "kind": {"oneOf": [{"type": "null"}, {"enum": ["p", "q"]}]}}}},
    "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}, "b": {"type": "http", "scheme": "Basic"}}
  }
}`

const two = `
swagger: "2.0"
info: {title: Shop}
host: api.example
basePath: /v1
securityDefinitions: {k: {type: apiKey, in: header, name: Authorization}}
paths:
  /items:
    get:
      parameters: [{name: page, in: query, type: integer, minimum: 1, maximum: 9, default: 2}]
      responses:
        "200": {description: ok, headers: {Link: {type: string}}, schema: {type: array, items: {$ref: "#/definitions/item"}}}
definitions:
  item: {type: object, properties: {id: {type: string, format: uuid}}}
`

func TestRead(t *testing.T) {
	d, err := Read([]byte(three))
	if err != nil {
		t.Fatal(err)
	}
	checktest.MustEqual(t, d.Title, "Shop", "d.Title")
	checktest.MustEqual(t, len(d.Servers), 1, "len(d.Servers)")
	checktest.MustEqual(t, d.Servers[0], "https://eu.example", "d.Servers[0]")
	checktest.MustTrue(t, d.Has401, "d.Refuses is false")
	checktest.MustEqual(t, len(d.Reads), 1, "len(d.Reads)")
	if d.Schemes[0] != (Scheme{Type: "basic"}) || d.Schemes[1] != (Scheme{Type: "key", In: "header", Name: "X-Key"}) {
		t.Errorf("schemes %+v", d.Schemes)
	}
	{
		h := d.Headers.Requests["X-Version"]
		checktest.MustTrue(t, h != nil, "header: h is nil")
		checktest.Equal(t, h.Reads, 1, "header: h.Reads")
		checktest.Equal(t, h.Writes, 1, "header: h.Writes")
		checktest.Equal(t, h.Required, 2, "header: h.Required")
		checktest.MustEqual(t, len(h.Values), 1, "header: len(h.Values)")
		checktest.Equal(t, h.Values[0], "7", "header: h.Values[0]")
	}
	{
		h := d.Headers.Requests["Idempotency-Key"]
		checktest.MustTrue(t, h != nil, "header: h is nil")
		checktest.Equal(t, h.Writes, 1, "header: h.Writes")
		checktest.Equal(t, h.Required, 0, "header: h.Required")
	}
	told := d.Headers.Responses["X-Left"]
	checktest.MustTrue(t, told != nil, "told: told is nil")
	checktest.Equal(t, told.Name, "x-left", "told: told.Name")
	checktest.Equal(t, told.Answers, 1, "told: told.Answers")
	checktest.Equal(t, told.Text, "How many.", "told: told.Text")
	checktest.Equal(t, told.Example, "7", "told: told.Example")
	checktest.Equal(t, told.Statuses[0], "200", "told: told.Statuses[0]")
	r := d.Headers.Refusals["429"]
	checktest.MustTrue(t, r != nil, "refusals: r is nil")
	checktest.Equal(t, r.Answers, 1, "refusals: r.Answers")
	checktest.Equal(t, r.Texts[0], "Too many", "refusals: r.Texts[0]")
	checktest.Equal(t, r.Headers[0], "Retry-After", "refusals: r.Headers[0]")
	checktest.Equal(t, r.Examples[0].TextOf("e"), "1", `refusals: r.Examples[0].Of("e")`)
	checktest.MustTrue(t, d.Headers.Refusals["200"] == nil, `refusals: d.Headers.Refusals["200"] is %v`,
		d.Headers.Refusals["200"])
	checktest.Equal(t, d.OperationCount, 3, "refusals: d.All")
	op := d.Reads[0]
	checktest.Equal(t, op.Type, "application/json; charset=utf-8", "op.Type")
	checktest.Equal(t, op.Path, "/v1/items", "op.Path")
	checktest.Equal(t, op.ID, "list", "op.ID")
	checktest.Equal(t, op.Headers[0], "Link", "op.Headers[0]")
	checktest.Equal(t, op.ErrorType, "application/problem+json", "op.ErrorType")
	checktest.Equal(t, op.Errors.Property("title").Type(), "string", `op.Errors.Property("title").Type()`)
	checktest.Equal(t, op.Example.Items[0].TextOf("id"), "i1", `op.Example.Items[0].Of("id")`)
	row := op.Answer.Items()
	checktest.Equal(t, row.Name(), "a/b", "row: row.Name()")
	checktest.Equal(t, row.Type(), "object", "row: row.Type()")
	checktest.Equal(t, row.Property("id").Format(), "uuid", `row: row.Property("id").Format()`)
	checktest.Equal(t, len(row.Properties()), 3, "row: len(row.Properties())")
	if deep := row.Property("self").Property("self").Property("kind"); strings.Join(deep.Enum(), "") != "pq" || deep.Type() != "string" {
		t.Errorf("a schema in itself: %v", deep.Enum())
	}
	page(t, op)
}

// page checks the parameter page, which both documents describe alike.
func page(t *testing.T, op *Operation) {
	t.Helper()
	p := op.Params[0]
	least, most, ok, has := p.Schema.Bounds()
	checktest.Equal(t, p.Name, "page", "page: p.Name")
	checktest.Equal(t, p.Schema.Default(), "2", "page: p.Schema.Default()")
	checktest.Equal(t, least, 1, "page: least")
	checktest.Equal(t, most, 9, "page: most")
	checktest.MustTrue(t, ok, "page: ok is false")
	checktest.True(t, has, "page: has is false")
}

func TestReadSwagger(t *testing.T) {
	d, err := Read([]byte(two))
	if err != nil {
		t.Fatal(err)
	}
	op := d.Reads[0]
	checktest.MustEqual(t, d.Servers[0], "https://api.example", "d.Servers[0]")
	checktest.MustEqual(t, op.Path, "/v1/items", "op.Path")
	checktest.MustEqual(t, d.Schemes[0].Name, "Authorization", "d.Schemes[0].Name")
	checktest.MustEqual(t, op.Headers[0], "Link", "op.Headers[0]")
	if row := op.Answer.Items(); row.Name() != "item" || row.Property("id").Format() != "uuid" {
		t.Errorf("row %+v", row)
	}
	page(t, op)
}

func TestReadRefuses(t *testing.T) {
	deep := strings.Repeat(`{"a":`, maxDepth+2) + "1" + strings.Repeat("}", maxDepth+2)
	laughs := "a0: &a0 {x: 1, y: 2}\n"
	for i := range 7 {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	for text, want := range map[string]string{
		laughs:                    "its aliases write out more than 300000 values",
		"":                        "no documents",
		"a: 1":                    "it needs openapi: 3.x",
		"{":                       "not JSON at byte",
		"{} {}":                   "there is more behind the value",
		"a: [":                    "neither JSON nor YAML",
		"a: 1\n---\nb: 2\n":       "neither JSON nor YAML",
		"[1]":                     "no OpenAPI document",
		`{"openapi": "3.0.0"}`:    "no GET with an answer in JSON",
		deep:                      "deeper than",
		`{"a": "` + "\x01" + `"}`: "not JSON at byte",
		"a: &a [*a]\n":            "",
	} {
		_, err := Read([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// refersTo is a document whose list of things has items by a reference.
func refersTo(ref, schemas string) []byte {
	return []byte(`{"openapi":"3.1.0","paths":{"/things":{"get":{"responses":{"200":{"content":{"application/json":{"schema":
		{"type":"array","items":{"$ref":` + strconv.Quote(ref) + `}}}}}}}}},"components":{"schemas":{` + schemas + `}}}`)
}

// TestReferencesAreJSONPointers reads references with an array's index, with both escapes of RFC
// 6901 and with percent-escapes.
func TestReferencesAreJSONPointers(t *testing.T) {
	const tag = `"Tag":{"allOf":[{"properties":{"id":{"type":"string"}}}]}`
	for ref, schemas := range map[string]string{
		"#/components/schemas/Tag/allOf/0": tag,
		"#/components/schemas/a~1b":        `"a/b":{"properties":{"id":{"type":"string"}}}`,
		"#/components/schemas/a~01":        `"a~1":{"properties":{"id":{"type":"string"}}}`,
		"#/components/schemas/a%20b":       `"a b":{"properties":{"id":{"type":"string"}}}`,
		"#/components/schemas/a%7E1b":      `"a/b":{"properties":{"id":{"type":"string"}}}`,
		"#/components/schemas/":            `"":{"properties":{"id":{"type":"string"}}}`,
	} {
		d, err := Read(refersTo(ref, schemas))
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		if row := d.Reads[0].Answer.Items(); row.Property("id").Type() != "string" {
			t.Errorf("%s: id is %q, want string", ref, row.Property("id").Type())
		}
	}
	d, err := Read(refersTo("#/components/schemas/Tag/allOf/0", tag))
	if err != nil {
		t.Fatal(err)
	}
	if name := d.Reads[0].Answer.Items().Name(); name != "" {
		t.Errorf("a part of a schema is named %q", name)
	}
}

// TestMembersBesideAReferenceCount reads a schema whose reference stands beside members of its own.
func TestMembersBesideAReferenceCount(t *testing.T) {
	d, err := Read(refersTo("#/components/schemas/a", `"a":{"$ref":"#/components/schemas/b","properties":{"id":{"type":"string"}}},
		"b":{"properties":{"text":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(d.Reads[0].Answer.Items().Properties()); n != 2 {
		t.Errorf("%d properties, want 2", n)
	}
}

// TestReferencesThatLeadNowhereAreNamed refuses a document whose reference cannot be followed, and
// reads one whose reference stands where nothing is read.
func TestReferencesThatLeadNowhereAreNamed(t *testing.T) {
	const circle = `"a":{"$ref":"#/components/schemas/b"},"b":{"$ref":"#/components/schemas/a"}`
	for ref, schemas := range map[string]string{
		"#/components/schemas/a":                  circle,
		"#/nowhere":                               "",
		"#/components/schemas/c":                  `"a":{}`,
		"#/components/schemas/a/allOf/1":          `"a":{"allOf":[{}]}`,
		"#/components/schemas/a/allOf/00":         `"a":{"allOf":[{}]}`,
		"#anchor":                                 "",
		"other.yaml#/x":                           "",
		"https://elsewhere.example/schema.json#/": "",
	} {
		_, err := Read(refersTo(ref, schemas))
		if err == nil || !strings.Contains(err.Error(), ref) && !strings.Contains(err.Error(), "circle") {
			t.Errorf("%s: %v, want an error that names it", ref, err)
		}
	}
	if _, err := Read(refersTo("#/components/schemas/a", `"a":{"example":{"$ref":"#/nowhere"},"properties":{"$ref":{"type":"string"},
		"example":{"type":"string"}}},"never":{"$ref":"#/nowhere"}`)); err != nil {
		t.Errorf("a reference in an example: %v", err)
	}
	_, err := Read(refersTo("#/components/schemas/a", `"a":{"properties":{"example":{"$ref":"#/nowhere"}}}`))
	if err == nil || !strings.Contains(err.Error(), "#/nowhere") {
		t.Errorf("a property called example with a reference: %v", err)
	}
}

// TestFilesBesideADocumentAreRead follows references from file to file, back to the document, and
// knows a schema that two files refer to as one.
func TestFilesBesideADocumentAreRead(t *testing.T) {
	files := map[string]string{
		"api/paths/items.yaml": "get: {$ref: '../operations/list items.yaml'}\n",
		"api/operations/list items.yaml": "parameters: [{$ref: ../../api.yaml#/components/parameters/page}]\nresponses: {'200': " +
			"{content: {application/json: {schema: {type: array, items: {$ref: '../models/item.yaml'}}}}}}\n",
		"api/models/item.yaml": "properties: {id: {$ref: '#/definitions/id'}, label: {$ref: label.yaml#/Label}}\n" +
			"definitions: {id: {type: string}}\n",
		"api/models/label.yaml": "Label: {type: integer}\n",
	}
	const text = `{"openapi":"3.0.0","paths":{"/items":{"$ref":"./api/paths/items.yaml"},"/more":{"get":{"responses":{"200":{"content":
		{"application/json":{"schema":{"type":"array","items":{"$ref":"api/models/item.yaml"}}}}}}}}},
		"components":{"parameters":{"page":{"name":"page","in":"query"}}}}`
	open := func(name string) ([]byte, error) {
		if files[name] == "" {
			return nil, errors.New("there is no such file")
		}
		return []byte(files[name]), nil
	}
	d, err := ReadFiles([]byte(text), "api.yaml", open)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Reads) != 2 {
		t.Fatalf("%d operations, want 2", len(d.Reads))
	}
	one, two := d.Reads[0], d.Reads[1]
	if len(one.Params) != 1 || one.Params[0].Name != "page" {
		t.Errorf("parameters %+v", one.Params)
	}
	if a, b := one.Answer.Items(), two.Answer.Items(); a.Ref() != b.Ref() || a.Name() != "item" {
		t.Errorf("rows are %q and %q, named %q", a.Ref(), b.Ref(), a.Name())
	}
	if row := one.Answer.Items(); row.Property("id").Type() != "string" || row.Property("label").Type() != "integer" {
		t.Errorf("the row's id is %q, its label %q", row.Property("id").Type(), row.Property("label").Type())
	}
	delete(files, "api/models/label.yaml")
	if _, err := ReadFiles([]byte(text), "api.yaml", open); err == nil || !strings.Contains(err.Error(), "api/models/label.yaml#/Label") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// FuzzRead reads any document, and all that it says of its operations.
func FuzzRead(f *testing.F) {
	f.Add([]byte(three))
	f.Add([]byte(two))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add(refersTo("b/c.yaml#/components/schemas/a/allOf/0", `"a":{"allOf":[{"$ref":"a.yaml#/components"}]}`))
	f.Add(refersTo("b/.yaml", `"a":{"allOf":[{"$ref":"a.yaml#/components"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ReadFiles(data, "a.yaml", func(string) ([]byte, error) { return data, nil })
		if err != nil {
			return
		}
		var look func(s Schema, depth int)
		look = func(s Schema, depth int) {
			_, _, _, _ = s.Type(), s.Name(), s.Enum(), s.IsNullable()
			_, _, _, _ = s.Bounds()
			_, _ = s.Example(), s.Refs()
			props := s.Properties()
			for _, p := range props[:min(len(props), 5)] {
				if p.Schema != s.Property(p.Name) {
					t.Fatalf("%q is one schema in its object and another by its name", p.Name)
				}
				if depth < 4 {
					look(p.Schema, depth+1)
				}
			}
			if items := s.Items(); depth < 4 && items.IsKnown() {
				look(items, depth+1)
			}
		}
		for _, op := range d.Reads[:min(len(d.Reads), 20)] {
			look(op.Answer, 0)
			look(op.Errors, 0)
		}
	})
}
