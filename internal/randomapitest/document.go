// Document: the API's OpenAPI document.

package randomapitest

import (
	"encoding/json"
	"slices"
)

type object = map[string]any

// Document is the API's OpenAPI 3 document, for the server at an address. It is nil where
// the API has none.
func (a *API) Document(server string) []byte {
	if a.Has(toldByAnswers) {
		return nil
	}
	row := a.rowSchema()
	answer := any(object{"type": "array", "items": row})
	if !a.Has(array) {
		answer = schemas(a.around(answer, a.besideSchemas()))
	}
	content := func(schema any) object {
		return object{"description": "OK", "content": object{"application/json": object{"schema": schema}}}
	}
	list := content(answer)
	list["headers"] = a.headers()
	v := "id"
	if a.Has(keyField) || a.Has(sharedKey) {
		v = "key"
	}
	doc := object{
		"openapi": "3.1.0", "info": object{"title": "Drawn", "version": "1"}, "servers": []object{{"url": server}},
		"paths": object{
			a.Path(): object{"get": object{"operationId": "list", "parameters": a.params(), "responses": object{"200": list}}},
			a.Path() + "/{" + v + "}": object{"get": object{"operationId": "get", "parameters": []object{{"name": v, "in": "path", "required": true,
				"schema": object{"type": "string"}}}, "responses": object{"200": content(row)}}},
		},
	}
	text, _ := json.Marshal(doc) // maps of texts always marshal
	return text
}

func (a *API) rowSchema() object {
	id := object{"type": "string"}
	if a.Has(numberID) {
		id = object{"type": "integer"}
	}
	text := object{"type": "string"}
	return object{"type": "object", "required": []string{a.idName()}, "properties": object{
		a.idName(): id, a.config.clock: object{"type": "string", "format": "date-time"}, "name": text, "status": text}}
}

// besideSchemas are the schemas of what stands beside the rows.
func (a *API) besideSchemas() object {
	out := object{}
	typed := func(of string) []string { return []string{of, "null"} }
	switch member := a.member(); {
	case member == "" || a.Has(wholeList) && !a.Has(nextIsNull):
	case member == "link":
		out[a.name(member)] = object{"type": typed("string"), "format": "uri", "description": "The next page."}
	case member == "token":
		out[a.name(member)] = object{"type": typed("string"), "description": "The cursor of the next page."}
	default:
		out[a.name(member)] = object{"type": typed("integer"), "description": "Where the next page begins."}
	}
	if spelling, ok := spellings[a.habits["end"]]; ok {
		schema := object{"type": "string", "enum": spelling}
		switch spelling[0].(type) {
		case bool:
			schema = object{"type": typed("boolean")}
		case int:
			schema = object{"type": "integer", "enum": spelling}
		}
		out[a.name("more")] = schema
	}
	switch total := a.habits["total"]; total {
	case noTotal, totalHeader:
	case totalPages:
		out[a.name("pages")] = object{"type": "integer"}
	case totalText:
		out[a.name("total")] = object{"type": "string", "description": "How many there are."}
	default:
		out[a.name("total")] = object{"type": "integer"}
	}
	return out
}

// schemas turns an object of schemas into the schema of an object.
func schemas(o object) object {
	props := object{}
	for name, value := range o {
		schema := value.(object)
		switch schema["type"].(type) {
		case string, []string:
		default:
			schema = schemas(schema)
		}
		props[name] = schema
	}
	return object{"type": "object", "properties": props}
}

// headers are those of the list's answer.
func (a *API) headers() object {
	out := object{}
	text := object{"schema": object{"type": "string"}}
	switch {
	case a.Has(linkHeader) || a.Has(linkHeaderToken):
		out["Link"] = text
	case a.Has(tokenInHeader):
		out["X-Next-Cursor"] = text
	case a.Has(nextPageHeader):
		out["X-Next-Page"] = text
	}
	if a.Has(totalHeader) {
		out["X-Total-Count"] = object{"schema": object{"type": "integer"}}
	}
	return out
}

// params are the list's query parameters.
func (a *API) params() []object {
	all := []object{}
	add := func(name, description string, schema object) {
		all = append(all, object{"name": name, "in": "query", "description": description, "schema": schema})
	}
	if a.Has(wholeList) {
		return all
	}
	size := object{"type": "integer", "default": a.config.full}
	if a.Has(sizeRefused) || a.Has(sizeIgnored) || a.Has(sizeRounded) || a.config.told {
		size["maximum"] = a.config.most
	}
	add(a.config.sizeParam, "How many records a page has.", size)
	switch {
	case a.Has(absoluteLinkToken) && !a.config.told:
	case slices.Contains(pagePagings, a.habits["paging"]):
		add(a.config.position, "The number of the page.", object{"type": "integer", "default": a.config.first})
	case a.config.position == "offset" || a.config.position == "skip" || a.config.position == "$skip":
		add(a.config.position, "How many records stand before the page.", object{"type": "integer", "default": 0})
	case a.Has(lastID):
		add(a.config.position, "The id of the last record of the page before.", object{"type": "string"})
	default:
		add(a.config.position, "The cursor of the page.", object{"type": "string"})
	}
	return all
}
