// Kinds: what is taken for the id of a record, and what is not.

package infer_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/infer"
)

// listing is a document with a list of things whose rows have a schema, and more schemas.
func listing(row, schemas string) string {
	return `{"openapi":"3.1.0","servers":[{"url":"https://api.desk.example"}],"paths":{"/things":{"get":{"responses":{"200":{"content":
		{"application/json":{"schema":{"type":"object","properties":{"things":{"type":"array","items":` + row + `}}}}}}}}}},
		"components":{"schemas":{` + schemas + `}}}`
}

// TestAnIDBehindAnArrayIndexIsFound draws a row whose id stands in a part of another schema, beside a
// key that repeats.
func TestAnIDBehindAnArrayIndexIsFound(t *testing.T) {
	draft := drafted(t, listing(`{"allOf":[{"$ref":"#/components/schemas/Tag/allOf/0"},
		{"properties":{"thing_key":{"type":"string"},"key":{"type":"string"}}}]}`,
		`"Tag":{"allOf":[{"type":"object","properties":{"id":{"type":"string"}}}]}`))
	if !strings.Contains(string(draft.YAML), "id: [id]") {
		t.Errorf("the draft has another id:\n%s", draft.YAML)
	}
}

// TestKeysAreNoIDs draws rows with fields that are no name of a record: a key, and an id that may be
// null where nothing else may.
func TestKeysAreNoIDs(t *testing.T) {
	for _, row := range []string{
		`{"type":"object","properties":{"thing_key":{"type":"string"},"text":{"type":"string"}}}`,
		`{"type":"object","properties":{"key":{"type":"string"},"value":{"type":"string"}}}`,
		`{"type":"object","properties":{"id":{"type":["string","null"]},"text":{"type":"string"},"more":{"type":"string"}}}`,
	} {
		draft := drafted(t, listing(row, ""))
		if strings.Contains(string(draft.YAML), " id: [") {
			t.Errorf("%s: the draft has an id:\n%s", row, draft.YAML)
		}
		if doubts := strings.Join(draft.Unsure, "\n"); !strings.Contains(doubts, "stored as whole pages") {
			t.Errorf("%s: no doubt says that no records are kept: %s", row, doubts)
		}
	}
}

// TestAnIDThatMayBeNullIsDrawnWithADoubt draws rows most of whose fields may be null by the document.
// A field that may not be is taken before the id; else the id is taken, and a doubt names it.
func TestAnIDThatMayBeNullIsDrawnWithADoubt(t *testing.T) {
	const others = `,"text":{"type":["string","null"]},"more":{"type":"string","nullable":true}}}`
	const doubt, null = "id may be null according to the document", `{"oneOf":[{"type":"string"},{"type":"null"}]}`
	for id, want := range map[string]struct{ id, doubt string }{
		`"id":{"type":"string"}`:                                                  {"id: [id]", ""},
		`"id":{"type":["string","null"]}`:                                         {"id: [id]", doubt},
		`"id":{"type":"string","nullable":true}`:                                  {"id: [id]", doubt},
		`"id":` + null:                                                            {"id: [id]", doubt},
		`"id":{"anyOf":[{"type":"null"},{"type":"string"}]}`:                      {"id: [id]", doubt},
		`"id":{"oneOf":[{"type":"string"},{"$ref":"#/components/schemas/Null"}]}`: {"id: [id]", doubt},
		`"id":{"type":["string","null"]},"uuid":{"type":"string"}`:                {"id: [uuid]", ""},
		`"id":` + null + `,"thing_id":{"type":"string"}`:                          {"id: [thing_id]", ""},
		`"id":` + null + `,"a":{"type":"string"},"b":{},"c":{},"d":{}`:            {"", "id may be null or repeats"},
	} {
		draft := drafted(t, listing(`{"type":"object","properties":{`+id+others, `"Null":{"type":"null"}`))
		if drawn := string(draft.YAML); !strings.Contains(drawn, want.id) || want.id == "" && strings.Contains(drawn, " id: [") {
			t.Errorf("%s: want %q in\n%s", id, want.id, drawn)
		}
		doubts := strings.Join(draft.Unsure, "\n")
		if !strings.Contains(doubts, want.doubt) {
			t.Errorf("%s: want the doubt %q: %s", id, want.doubt, doubts)
		}
		if want.doubt == "" && strings.Contains(doubts, "may be null") {
			t.Errorf("%s: a doubt without a reason: %s", id, doubts)
		}
	}
}

// TestIDsThatRepeatOrAreNullAreRefused draws from pages on which the id repeats or is null.
func TestIDsThatRepeatOrAreNullAreRefused(t *testing.T) {
	for rows, want := range map[string]bool{
		`{"id":"a"},{"id":"b"}`:      true,
		`{"id":"a"},{"id":"a"}`:      false,
		`{"id":"a"},{"id":null}`:     false,
		`{"id":"a"},{"text":"none"}`: false,
		`{"id":"a"},{"id":""}`:       false,
	} {
		ask := func(context.Context, string) (*infer.Answer, error) {
			return &infer.Answer{Status: http.StatusOK, Body: fmt.Appendf(nil, `{"data":[%s]}`, rows)}, nil
		}
		draft, err := infer.DrawFromAnswers(t.Context(), []string{"https://api.desk.example/things"}, infer.LiveAPI{Ask: ask, Auth: "none"})
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(string(draft.YAML), " id: ["); has != want {
			t.Errorf("%s: the draft has an id: %v, want %v", rows, has, want)
		}
		if refused := strings.Contains(strings.Join(draft.Unsure, "\n"), "id may be null or repeats"); refused == want {
			t.Errorf("%s: a doubt refuses the id: %v, want %v", rows, refused, !want)
		}
	}
}

// TestAVariableOfTheListsPathIsNoID draws lists below a record whose id the rows have, too: it is no id of theirs, and names
// no kind, but with another field where a path shows one record so.
func TestAVariableOfTheListsPathIsNoID(t *testing.T) {
	for _, one := range []struct{ path, members, record, kind, id string }{
		{"/webhooks/incoming/user/{userId}", "webhookId userId name", "", "incoming", "[]"},
		{"/departures/route_type/{route_type}/stop/{stop_id}", "stop_id route_id", "", "departures", "[]"},
		{"/departures/stop/{stop_id}", "stop_id departure_id", "", "departures", "[departure_id]"},
		{"/departures/stop/{stop_id}", "stop_id id", "", "departures", "[id]"},
		{"/users/{user_id}/user", "userId text", "", "user", "[userId]"},
		{"/folders/{folder_id}/folders", "folder_id text", "", "folders", "[folder_id]"},
		{"/v1/user/{userId}", "userId text", "", "user", "[]"},
		{"/user/{userId}", "text more", "", "user", "[]"},
		{"/projects/{id}/branches", "id text", "", "branches", "[id]"},
		{"/projects/{name}/branches", "name text", "/projects/{name}/branches/{branch}", "branches", "[]"},
		{"/devices/{device_sid}/configs", "device_sid key", "/devices/{device_sid}/configs/{key}", "configs", "[device_sid key]"},
		{"/devices/{device_sid}/configs", "device_sid key", "", "configs", "[]"},
		{"/files/{path}", "path text", "/file/{path}", "files", "[]"},
	} {
		row := `{"type":"object","properties":{"` + strings.ReplaceAll(one.members, " ", `":{"type":"string"},"`) + `":{"type":"string"}}}`
		read := func(path, schema string) string {
			return `"` + path + `":{"get":{"responses":{"200":{"content":{"application/json":{"schema":` + schema + `}}}}}}`
		}
		paths := read(one.path, `{"type":"array","items":`+row+`}`)
		if one.record != "" {
			paths += "," + read(one.record, row)
		}
		k := drawnSpec(t, drafted(t, `{"openapi":"3.0.3","servers":[{"url":"https://api.desk.example"}],"paths":{`+paths+`}}`)).Kinds[0]
		if k.Name != one.kind {
			t.Errorf("%s: the kind is %s, want %s", one.path, k.Name, one.kind)
		}
		if id := fmt.Sprint(k.ID); id != one.id {
			t.Errorf("%s of %s: the id is %s, want %s", one.path, one.members, id, one.id)
		}
	}
}

// wrapped is a document with a list of droplets and a read of one, whose answer has members.
func wrapped(members, example string) string {
	return `{"openapi":"3.0.3","servers":[{"url":"https://api.desk.example"}],"paths":{
		"/droplets":{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"type":"object","properties":{"droplets":
			{"type":"array","items":{"$ref":"#/components/schemas/Droplet"}}}}}}}}}},
		"/droplets/{droplet_id}":{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"type":"object","properties":{` +
		members + `}},"example":` + example + `}}}}}}},
		"components":{"schemas":{"Droplet":{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}}},
			"Part":{"type":"object","properties":{"id":{"type":"integer"}}}}}}`
}

// TestARecordInAnEnvelopeIsDrawn draws reads whose answers have the record in a member. A row of the
// list answers for the record only where all that is around it is known.
func TestARecordInAnEnvelopeIsDrawn(t *testing.T) {
	const droplet = `{"$ref":"#/components/schemas/Droplet"}`
	for name, one := range map[string]struct {
		members, key, answer string
		rowAnswers           bool
	}{
		"alone":                 {`"droplet":` + droplet, "droplet", `{"droplet":{record}}`, true},
		"under data":            {`"data":` + droplet, "data", `{"data":{record}}`, true},
		"beside a good word":    {`"ok":{"type":"boolean"},"droplet":` + droplet, "droplet", `{"ok":true,"droplet":{record}}`, true},
		"beside what may be":    {`"droplet":` + droplet + `,"links":{"type":"object"}`, "droplet", `{"droplet":{record}}`, false},
		"beside another object": {`"part":{"$ref":"#/components/schemas/Part"},"droplet":` + droplet, "droplet", `{"droplet":{record}}`, false},
		"in itself":             {`"id":{"type":"integer"},"name":{"type":"string"}`, "", "{record}", true},
	} {
		k := drawnSpec(t, drafted(t, wrapped(one.members, "{}"))).Kind("droplets")
		if len(k.Instances) != 1 {
			t.Errorf("%s: %d instances, want 1", name, len(k.Instances))
			continue
		}
		in := k.Instances[0]
		if in.Key != one.key {
			t.Errorf("%s: the key is %q, want %q", name, in.Key, one.key)
		}
		if in.Answer != one.answer {
			t.Errorf("%s: the answer is %s, want %s", name, in.Answer, one.answer)
		}
		if answers := in.Shape == k.Lists[0].Shape; answers != one.rowAnswers && name != "in itself" {
			t.Errorf("%s: a row answers for the record: %v, want %v", name, answers, one.rowAnswers)
		}
	}
	draft := drafted(t, wrapped(`"part":{"$ref":"#/components/schemas/Part"},"other":{"$ref":"#/components/schemas/Part"}`, "{}"))
	if n := len(drawnSpec(t, draft).Kind("droplets").Instances); n != 0 {
		t.Errorf("%d instances of an answer with several objects, want none", n)
	}
	if !hasDoubt(draft, "/droplets/{droplet_id}", "several objects with id", "never answered from a row of a list") {
		t.Errorf("no doubt names the path: %q", draft.Unsure)
	}
}

// TestAClockInsideAnObjectIsFound draws rows whose time of creation stands in an object.
func TestAClockInsideAnObjectIsFound(t *testing.T) {
	for object, want := range map[string]string{"attributes": "attributes.created_at", "owner": ""} {
		sp := drawnSpec(t, drafted(t, listing(`{"type":"object","properties":{"id":{"type":"string"},"`+object+`":{"type":"object",
			"properties":{"created_at":{"type":"string","format":"date-time"}}}}}`, "")))
		if got := sp.Kind("things").Clock; got != want {
			t.Errorf("%s: the clock is %q, want %q", object, got, want)
		}
	}
}

// TestWhatADraftIsCalled draws a document and an address: both propose a name, a title and a port.
func TestWhatADraftIsCalled(t *testing.T) {
	row := `{"type":"object","properties":{"id":{"type":"string"}}}`
	sp := drawnSpec(t, drafted(t, listing(row, "")))
	if sp.Name != "desk" || sp.Title != "Desk" {
		t.Errorf("a document without a title is %q, %q", sp.Name, sp.Title)
	}
	if sp.Port < 1024 || sp.Port > 65535 {
		t.Errorf("the port is %d", sp.Port)
	}
	ask := func(context.Context, string) (*infer.Answer, error) {
		return &infer.Answer{Status: http.StatusOK, Body: []byte(`{"tickets":[{"id":1},{"id":2}]}`)}, nil
	}
	draft, err := infer.DrawFromAnswers(t.Context(), []string{"http://127.0.0.1:25650/v1/tickets"}, infer.LiveAPI{Ask: ask, Auth: "none"})
	if err != nil {
		t.Fatal(err)
	}
	{
		sp := drawnSpec(t, draft)
		checktest.Equal(t, sp.Name, "tickets", "an address is called: sp.Name")
		checktest.Equal(t, sp.Title, "Tickets", "an address is called: sp.Title")
		checktest.True(t, sp.Port != 0, "an address is called: sp.Port is 0")
	}
}

// TestARecordInAnEnvelopeIsSeen draws from answers of which that of one record has it in a member.
func TestARecordInAnEnvelopeIsSeen(t *testing.T) {
	ask := func(_ context.Context, address string) (*infer.Answer, error) {
		body, status := `{"droplets":[{"id":11,"name":"a"},{"id":12,"name":"b"}]}`, http.StatusOK
		switch {
		case strings.HasSuffix(address, "/droplets/11"):
			body = `{"droplet":{"id":11,"name":"a"}}`
		case strings.Contains(address, "/droplets/"):
			body, status = `{"message":"There is none"}`, http.StatusNotFound
		}
		return &infer.Answer{Status: status, Body: []byte(body)}, nil
	}
	draft, err := infer.DrawFromAnswers(t.Context(), []string{"https://api.desk.example/droplets"}, infer.LiveAPI{Ask: ask, Auth: "none"})
	if err != nil {
		t.Fatal(err)
	}
	k := drawnSpec(t, draft).Kinds[0]
	if len(k.Instances) != 1 || k.Instances[0].Key != "droplet" {
		t.Fatalf("the instances are %+v", k.Instances)
	}
	if k.Instances[0].Shape != k.Lists[0].Shape {
		t.Error("no row answers for the record, which has the same members")
	}
}

// TestRowsAreFoundBesideOtherArrays draws lists whose rows have no usual name, or one array more inside what stands
// beside them, and of which a part says what the rows are.
func TestRowsAreFoundBesideOtherArrays(t *testing.T) {
	const rows = `{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"}}}}`
	const sorted = `"sort":{"type":"object","properties":{"clauses":{"type":"array","items":{"properties":{"name":{"type":"string"}}}}}}`
	const object = `{"type":"object","properties":`
	for answer, want := range map[string]string{
		object + `{"things":` + rows + `,` + sorted + `}}`:                                          "things",
		object + `{"result":` + rows + `,"a":{"type":"array"},` + sorted + `}}`:                     "result",
		`{"allOf":[` + object + `{"data":{"type":"array"}}},{"properties":{"data":` + rows + `}}]}`: "data",
	} {
		draft := drafted(t, `{"openapi":"3.0.3","servers":[{"url":"https://api.desk.example"}],"paths":{
			"/things/search":{"get":{"parameters":[`+parameter("pageSize", "integer")+`],
			"responses":{"200":{"content":{"*/*":{"schema":`+answer+`}}}}}}}}`)
		k := drawnSpec(t, draft).Kinds[0]
		checktest.MustEqual(t, len(k.Lists), 1, "%s: len(k.Lists)", answer)
		checktest.Equal(t, k.Lists[0].Key, want, "%s: k.Lists[0].Key", answer)
		checktest.Equal(t, len(k.ID), 1, "%s: len(k.ID)", answer)
	}
}

// TestAListBelowARecordHasAParent draws items below boxes: rows that name their box are synced box by box. A doubt says
// where they are not: nothing names the box, or not surely, or the path takes another name of it.
func TestAListBelowARecordHasAParent(t *testing.T) {
	for _, c := range []struct{ path, field, parent string }{
		{"/boxes/{box_id}/items", `"box_id":{"type":"integer"}`, "box_id"},
		{"/boxes/{id}/items", `"boxId":{"type":"string"}`, "boxId"},
		{"/boxes/{box_id}/items", `"box":{"type":"integer"}`, ""},
		{"/boxes/{box_id}/items", `"box_id":{"type":"integer","nullable":true}`, ""},
		{"/boxes/{name}/items", `"box_id":{"type":"integer"}`, ""},
		{"/halls/{hall_id}/boxes/{box_id}/items", `"box_id":{"type":"integer"}`, ""},
		{"/shelves/{shelf_id}/items", `"box_id":{"type":"integer"}`, ""},
	} {
		list := func(path, fields string) string {
			return fmt.Sprintf(`%q:{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"type":"array","items":
				{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"},%s}}}}}}}}}`, path, fields)
		}
		draft := drafted(t, `{"openapi":"3.0.3","servers":[{"url":"https://api.desk.example"}],"paths":{`+
			list("/boxes", `"color":{"type":"string"}`)+","+list(c.path, c.field)+`}}`)
		if got := drawnSpec(t, draft).Kind("items").Parent; got != c.parent {
			t.Errorf("%s with %s: the parent is %q, want %q", c.path, c.field, got, c.parent)
		}
		if said := hasDoubt(draft, "kind items", "(parent)"); said != (c.parent == "") {
			t.Errorf("%s with %s: a doubt says that nothing names the parent: %v: %q", c.path, c.field, said, draft.Unsure)
		}
	}
}
