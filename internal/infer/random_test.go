// Random APIs: a document and a server drawn from a seed, and whether the spec drawn from
// the document walks what the server has.

package infer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/infer"
	"understudy/internal/openapi"
	"understudy/internal/sample"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// seeds returns how many APIs are drawn.
func seeds() uint64 { return uint64(sample.Count(200, 1000)) }

type object = map[string]any

// drawnAPI is an API drawn from a seed.
type drawnAPI struct {
	*rand.Rand
	server   string // its own URL
	base     string // path before all others
	style    string
	page     string // the parameter that says where a page stands
	size     string // the parameter of its size
	full     int    // rows of a page without it
	most     int
	first    int // of page numbers
	key      string
	next     string // where the answer leads on; "" = not at all
	more     string
	total    string
	absolute bool // links
	id       string
	idForm   string
	clock    string
	epoch    bool
	kind     string
	auth     string
	shown    bool // the size is in the schema, not in the description
	refs     bool
	rows     []object
	version  string // "" = no header is demanded
	told     told
}

func (a *drawnAPI) one(of ...string) string { return of[a.IntN(len(of))] }

func draw(seed uint64) *drawnAPI {
	a := &drawnAPI{Rand: rand.New(rand.NewPCG(seed, 7))}
	a.base = a.one("", "/v1", "/api/v2", "/rest")
	a.style = a.one("header", "body", "cursor", "token", "tokenheader", "number", "offset", "none")
	a.kind = a.one("orders", "tickets", "companies", "boxes", "time_entries", "lineItems", "shipments")
	a.size = a.one("per_page", "limit", "page_size", "pageSize", "page[size]", "max_results")
	a.full, a.most = 3+a.IntN(20), 30+a.IntN(70)
	a.key = a.one("data", "items", "results", a.kind, "data.items", "response.records", "value")
	a.idForm = a.one("prefix", "number", "uuid")
	a.id = a.one("id", "sid", "uuid", singularOf(a.kind)+"_id", "id")
	a.clock = a.one("created_at", "createdAt", "created", "date_created", "creation_time", "timestamp")
	a.epoch = a.IntN(3) == 0
	a.auth = a.one("basic", "bearer", "none", "header X-Api-Key", "query api_key", "bearer + header X-App")
	a.shown, a.refs, a.absolute = a.IntN(2) == 0, a.IntN(2) == 0, a.IntN(2) == 0
	switch a.style {
	case "header":
		a.page, a.first = a.one("page", "page_number"), 1
		a.key = a.one("", "", a.key)
	case "body":
		a.page, a.first = a.one("page", "pageNumber"), a.IntN(2)
		a.next = a.one("next", "next_page_uri", "links.next", "meta.next_url", "_links.next.href", "paging.next_link")
	case "cursor":
		a.page, a.more = a.one("starting_after", "after", "after_id"), a.one("has_more", "hasMore", "meta.has_next_page")
	case "token":
		a.page = a.one("cursor", "page_token", "pageToken", "continuation_token")
		a.next = a.one("next_cursor", "nextPageToken", "meta.next_token", "response_metadata.next_cursor", "continuation_token")
		if a.IntN(3) == 0 {
			a.more = "has_more"
		}
	case "tokenheader":
		a.page, a.next = a.one("cursor", "page_token"), "header:X-Next-Cursor"
		a.key = a.one("", a.key)
	case "number", "offset":
		a.page, a.first = a.one("page", "pageNumber", "page[number]"), a.IntN(2)
		if a.style == "offset" {
			a.page, a.first = a.one("offset", "skip", "start"), 0
		}
		switch a.IntN(4) {
		case 0:
			a.total = a.one("total", "total_count", "meta.totalResults")
		case 1:
			a.more = a.one("has_more", "hasNext")
		case 2:
			a.total = "header:X-Total-Count"
			a.key = a.one("", a.key)
		}
	}
	if a.IntN(4) == 0 {
		a.version = "2024-0" + strconv.Itoa(1+a.IntN(9)) + "-01"
	}
	a.drawTold()
	for i := range a.IntN(70) {
		a.rows = append(a.rows, a.row(i))
	}
	if a.style == "none" {
		a.rows = a.rows[:min(len(a.rows), 25)]
	}
	return a
}

func singularOf(kind string) string {
	return map[string]string{"orders": "order", "tickets": "ticket", "companies": "company", "boxes": "box", "time_entries": "time_entry",
		"lineItems": "lineItem", "shipments": "shipment"}[kind]
}

func (a *drawnAPI) row(i int) object {
	var id any
	switch a.idForm {
	case "prefix":
		id = fmt.Sprintf("ob_%012x", a.Uint64()>>16)
	case "number":
		id = 1000 + i
	default:
		id = fmt.Sprintf("%08x-0000-4000-8000-%012x", i, a.Uint64()>>16)
	}
	at := 1700000000 - 60*i
	var clock any = at
	if !a.epoch {
		clock = fmt.Sprintf("2023-11-14T%02d:%02d:20Z", 23-i/60, 59-i%60)
	}
	return object{
		a.id: id, a.clock: clock, "name": fmt.Sprint("Name ", i), "email": fmt.Sprintf("p%d@example.com", i), "phone_number": "+15005550006",
		"status": a.one("open", "closed"), "amount": float64(a.IntN(1000)) / 4, "password": "hunter2", "active": i%2 == 0,
		"home_url": "https://example.com/x", "tags": []string{"a"}, "address": object{"city": "Berlin", "api_key": "hunter3"},
	}
}

// schema is that of a row.
func (a *drawnAPI) schema() object {
	text := object{"type": "string"}
	id, clock := object{"type": "string"}, object{"type": "string", "format": "date-time"}
	if a.idForm == "number" {
		id = object{"type": "integer"}
	}
	if a.epoch {
		clock = object{"type": "integer", "description": "Unix time of creation, in seconds."}
	}
	return object{"type": "object", "required": []string{a.id}, "properties": object{
		a.id: id, a.clock: clock, "name": text, "email": object{"type": "string", "format": "email"}, "phone_number": text,
		"status": object{"type": "string", "enum": []string{"open", "closed"}}, "amount": object{"type": "number"}, "password": text,
		"active": object{"type": "boolean"}, "home_url": object{"type": "string", "format": "uri"},
		"tags":    object{"type": "array", "items": text},
		"address": object{"type": "object", "properties": object{"city": text, "api_key": text}},
	}}
}

// put sets a value at a dotted name.
func put(o object, dotted string, value any) {
	for {
		name, rest, deeper := strings.Cut(dotted, ".")
		if !deeper {
			o[name] = value
			return
		}
		inner, _ := o[name].(object)
		if inner == nil {
			inner = object{}
			o[name] = inner
		}
		o, dotted = inner, rest
	}
}

// properties are the schema of an object of schemas.
func properties(o object) object {
	out := object{}
	for name, v := range o {
		v := v.(object)
		if _, leaf := v["type"].(string); !leaf && v["$ref"] == nil {
			v = properties(v)
		}
		out[name] = v
	}
	return object{"type": "object", "properties": out}
}

// document is the API's OpenAPI document.
func (a *drawnAPI) document(t testing.TB) []byte {
	row := a.schema()
	answer := any(nil)
	swagger := a.IntN(3) == 0
	ref := object{"$ref": "#/components/schemas/" + singularOf(a.kind)}
	if swagger {
		ref["$ref"] = "#/definitions/" + singularOf(a.kind)
	}
	if !a.refs {
		ref = row
	}
	list := object{"type": "array", "items": ref}
	if a.key == "" {
		answer = list
	} else {
		envelope := object{}
		put(envelope, a.key, list)
		if a.next != "" && !strings.HasPrefix(a.next, "header:") {
			next := object{"type": "string"}
			if a.style == "body" && strings.HasSuffix(a.next, "next") {
				next["format"] = "uri"
			}
			put(envelope, a.next, next)
		}
		if a.more != "" {
			put(envelope, a.more, object{"type": "boolean"})
		}
		if a.total != "" && !strings.HasPrefix(a.total, "header:") {
			put(envelope, a.total, object{"type": "integer"})
		}
		if a.told.good != "" {
			put(envelope, a.told.good, a.goodSchema())
		}
		if a.told.object {
			put(envelope, "object", object{"type": "string", "enum": []string{"list"}})
		}
		answer = properties(envelope)
	}
	headers := a.toldHeaders(swagger)
	for _, place := range []string{a.next, a.total} {
		if name, ok := strings.CutPrefix(place, "header:"); ok {
			headers[name] = object{"schema": object{"type": "string"}}
		}
	}
	if a.style == "header" {
		headers["Link"] = object{"schema": object{"type": "string"}}
	}
	param := func(name, in, description string, required bool, schema object) object {
		p := object{"name": name, "in": in, "description": description, "required": required, "schema": schema}
		if swagger {
			delete(p, "schema")
			for key, value := range schema {
				p[key] = value
			}
		}
		return p
	}
	var params []object
	if a.version != "" {
		params = append(params, param("X-Api-Version", "header", "", true, object{"type": "string", "enum": []string{a.version}}))
	}
	if a.told.account {
		params = append(params, param("X-Account", "header", "Whose they are.", false, object{"type": "string"}))
	}
	of := append(slices.Clone(params), param("status", "query", "Only these.", false, object{"type": "string", "enum": []string{"open",
		"closed"}}))
	if a.page != "" {
		schema := object{"type": "string"}
		if a.style == "number" || a.style == "offset" || a.style == "header" || a.style == "body" {
			schema = object{"type": "integer", "default": a.first}
		}
		of = append(of, param(a.page, "query", "Where it goes on.", false, schema))
		size, text := object{"type": "integer"}, fmt.Sprintf("How many. Can range between 1 and %d, and the default is %d.", a.most, a.full)
		if a.shown {
			size, text = object{"type": "integer", "default": a.full, "maximum": a.most}, "How many."
		}
		of = append(of, param(a.size, "query", text, false, size))
	}
	content := func(schema any) object {
		if swagger {
			return object{"description": "ok", "schema": schema, "headers": headers}
		}
		return object{"description": "ok", "headers": headers, "content": object{a.told.media: object{"schema": schema}}}
	}
	v := a.one("id", singularOf(a.kind)+"_id", singularOf(a.kind)+"Id", a.id)
	paths := object{
		"/" + a.kind: object{
			"get": object{"operationId": "list", "parameters": of, "responses": a.refusals(object{"200": content(answer)}, swagger)},
			"post": object{"parameters": append(slices.Clone(params), param("Idempotency-Key", "header", "", false, object{"type": "string"})),
				"responses": object{"201": content(ref)}},
		},
		"/" + a.kind + "/{" + v + "}": object{
			"get": object{"parameters": append(slices.Clone(params), param(v, "path", "", true, object{"type": "string"})),
				"responses": a.refusals(object{"200": content(ref)}, swagger)},
		},
		"/me": object{"get": object{"parameters": params, "responses": object{"200": content(object{"type": "object",
			"properties": object{"id": object{"type": "string"}}})}}},
	}
	doc := object{"openapi": a.one("3.0.3", "3.1.0"), "info": object{"title": "Drawn", "version": "1"}, "servers": []object{{"url": a.server +
		a.base}},
		"paths": paths, "components": object{"schemas": object{singularOf(a.kind): row}}}
	schemes := object{}
	for one := range strings.SplitSeq(a.auth, " + ") {
		if in, name, key := strings.Cut(one, " "); key {
			schemes[in] = object{"type": "apiKey", "in": in, "name": name}
		} else if swagger && one == "bearer" {
			schemes[one] = object{"type": "apiKey", "in": "header", "name": "Authorization"}
		} else if swagger {
			schemes[one] = object{"type": one}
		} else if one != "none" {
			schemes[one] = object{"type": "http", "scheme": one}
		}
	}
	if swagger {
		host := strings.TrimPrefix(a.server, "http://")
		doc = object{"swagger": "2.0", "info": doc["info"], "host": host, "schemes": []string{"http"}, "paths": paths,
			"produces": []string{a.told.media}, "definitions": object{singularOf(a.kind): row}}
		if a.base != "" {
			doc["basePath"] = a.base
		}
	}
	if a.auth != "none" {
		all := object{}
		for name := range schemes {
			all[name] = []string{}
		}
		doc["security"] = []object{all}
		if swagger {
			doc["securityDefinitions"] = schemes
		} else {
			doc["components"].(object)["securitySchemes"] = schemes
		}
	}
	var text []byte
	var err error
	if a.IntN(3) == 0 {
		text, err = yaml.Marshal(doc)
	} else {
		text, err = json.Marshal(doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// client speaks to the API by a spec.
func (a *drawnAPI) client(t *testing.T, sp *spec.Spec) *upstream.Client {
	c, err := upstream.New(upstream.Options{Source: &spec.Source{Name: "x", Spec: sp, User: "me"}, Base: a.server,
		Secret: understudy.NewSecret("secret1"), Rate: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// walk gives the ids and clocks of a list, page by page.
func walk(t *testing.T, c *upstream.Client, sp *spec.Spec, path string) (ids []string, clocks []int64, first *understudy.Page) {
	target, err := sp.Resolve("x", path, "")
	for pages := 0; ; pages++ {
		if err != nil || pages > 100 {
			t.Fatalf("page %d: %v", pages, err)
		}
		page, err := c.Fetch(context.Background(), request.Fetch{Target: target})
		checktest.MustNoError(t, err, "page %d of %s", pages, path)
		checktest.MustEqual(t, page.Status, 200, "page %d of %s: page.Status", pages, path)
		checktest.MustEqual(t, page.NotStored, "", "page %d of %s: page.NotStored", pages, path)
		if first == nil {
			first = page
		}
		for _, row := range page.Rows {
			ids, clocks = append(ids, row.ID), append(clocks, row.Clock)
		}
		if page.Next.IsZero() {
			return ids, clocks, first
		}
		if target, err = sp.ResolveLink("x", page.Next.URI); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSpecsOfRandomAPIs(t *testing.T) {
	styles := map[string]int{}
	for seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			a := draw(seed)
			srv := httptest.NewServer(a)
			defer srv.Close()
			a.server = srv.URL
			text := a.document(t)
			doc, err := openapi.Read(text)
			if err != nil {
				t.Fatal(err)
			}
			draft, err := infer.DrawFromDocument(doc, "drawn")
			if err != nil {
				t.Fatal(err)
			}
			styles[a.style]++
			a.check(t, draft)
			a.checkTold(t, draft)
			if t.Failed() {
				t.Logf("style %s, next %q more %q total %q page %q size %q key %q id %q\n%s\n%s", a.style, a.next, a.more, a.total, a.page, a.size,
					a.key, a.id,
					draft.YAML, strings.Join(draft.Unsure, "\n"))
			}
		})
	}
	t.Logf("styles %v, lists made from records %v", styles, composed)
	checktest.MustEqual(t, len(styles), 8, "not every style was drawn: len(styles)")
	checktest.True(t, composed["cursor"] != 0, `not every style was drawn: composed["cursor"] is 0`)
	checktest.True(t, composed["none"] != 0, `not every style was drawn: composed["none"] is 0`)
	checktest.True(t, composed["number"] != 0, `not every style was drawn: composed["number"] is 0`)
}

// check compares a spec's walk with what the API has, and its fields with what they are.
func (a *drawnAPI) check(t *testing.T, draft *infer.Draft) {
	sp, err := upstream.ReadSpec("draft.yaml", draft.YAML)
	if err != nil {
		t.Fatalf("%v\n%s", err, draft.YAML)
	}
	c := a.client(t, sp)
	checktest.MustEqual(t, len(sp.Kinds), 2, "auth %s, kinds: len(sp.Kinds)", sp.Auth.Style)
	checktest.MustEqual(t, len(sp.Kinds[0].Lists), 1, "auth %s, kinds: len(sp.Kinds[0].Lists)", sp.Auth.Style)
	checktest.MustEqual(t, len(sp.Kinds[0].Instances), 1, "auth %s, kinds: len(sp.Kinds[0].Instances)",
		sp.Auth.Style)
	checktest.MustEqual(t, sp.Auth.Style, a.auth, "auth %s, kinds: sp.Auth.Style", sp.Auth.Style)
	k := sp.Kinds[0]
	ids, clocks, first := walk(t, c, sp, k.Lists[0].Path)
	var want []string
	for _, row := range a.rows {
		want = append(want, fmt.Sprint(row[a.id]))
	}
	if !slices.Equal(ids, want) {
		t.Errorf("walked %d rows %v, want %d", len(ids), ids, len(want))
	}
	if slices.Contains(clocks, 0) || !slices.IsSortedFunc(clocks, func(x, y int64) int { return int(y - x) }) {
		t.Errorf("clock %q: %v", k.Clock, clocks)
	}
	if bytes.Contains(first.Body, []byte("hunter")) {
		t.Errorf("a secret is shown: %s", first.Body)
	}
	for name, class := range map[string]string{"email": spec.ClassName, "phone_number": spec.ClassPhone, "password": spec.ClassSecret,
		"address.api_key": spec.ClassSecret, "home_url": spec.ClassURL, "amount": spec.ClassPrice, "status": ""} {
		if f := k.Field(name); f == nil || f.Class != class {
			t.Errorf("field %s: %+v, want class %q", name, f, class)
		}
	}
	if f := k.Lists[0].Filter("status"); f == nil || f.Field != "status" {
		t.Errorf("filter status: %+v", f)
	}
	if len(want) == 0 {
		return
	}
	target, err := sp.Resolve("x", strings.ReplaceAll(k.Instances[0].Path, "{"+k.Instances[0].ID[0]+"}", want[0]), "")
	if err != nil || target.Instance == nil {
		t.Fatalf("%v %+v", err, target)
	}
	{
		one, err := c.Fetch(context.Background(), request.Fetch{Target: target})
		checktest.MustNoError(t, err, "instance")
		checktest.Equal(t, one.ID, want[0], "instance: one.ID")
		checktest.Equal(t, len(one.Rows), 1, "instance: len(one.Rows)")
	}
}
