package spec_test

import (
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/spec"
)

// kindWith is a spec of one kind with some actions.
func kindWith(actions ...*spec.Action) *spec.Spec {
	return &spec.Spec{Name: "x", Hosts: []spec.Host{{URL: "https://x.example"}}, Auth: spec.Auth{Style: "none"}, Kinds: []*spec.Kind{{
		Name: "things", ID: []string{"id"}, Lists: []*spec.List{{Path: "/things"}},
		Instances: []*spec.Instance{{Path: "/things/{id}", ID: []string{"id"}}},
		Fields:    []*spec.Field{{Name: "id"}, {Name: "to", Class: spec.ClassPhone}, {Name: "state"}}, Actions: actions,
	}}}
}

func TestWrongActionsAreNamed(t *testing.T) {
	for _, c := range []struct {
		action spec.Action
		want   string
	}{
		{spec.Action{}, `name "": a name has only lower-case letters`},
		{spec.Action{Name: "Send"}, `name "Send": a name has only lower-case letters`},
		{spec.Action{Name: "get", Method: "GET"}, `method "GET" is not known; write POST`},
		{spec.Action{Name: "make", Encoding: "xml"}, `encoding "xml" is not known; write form or json`},
		{spec.Action{Name: "make", Path: "/others"}, "path: /others is not the path of a list of the kind"},
		{spec.Action{Name: "make", Path: "/things", Method: "DELETE"}, "its method is POST or PUT"},
		{spec.Action{Name: "make", Path: "/things", Cases: []spec.ActionCase{{When: spec.State{Field: "state"}}}}, "no field can be tested"},
		{spec.Action{Name: "move", Fields: []*spec.ActionField{{Name: "To", Field: "where"}}}, `"where" is not among the kind's fields`},
		{spec.Action{Name: "move", Fields: []*spec.ActionField{{Name: "To", Field: "state", Own: true}}}, "state is not of class phone"},
		{spec.Action{Name: "move", Fields: []*spec.ActionField{{Name: "To", Field: "to"}, {Name: "To", Field: "to"}}}, "another field has it"},
		{spec.Action{Name: "stop", Cases: []spec.ActionCase{{When: spec.State{Field: "status"}}}}, `cases: "status" is not among`},
		{spec.Action{Name: "delete", Method: "DELETE", Cases: []spec.ActionCase{{Set: map[string]string{"a": "b"}}}}, "a DELETE has no body"},
	} {
		err := kindWith(&c.action).Compile()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.action, err, c.want)
		}
	}
	err := kindWith(&spec.Action{Name: "stop"}, &spec.Action{Name: "stop"}).Compile()
	if err == nil || !strings.Contains(err.Error(), "action stop appears twice") {
		t.Errorf("twice: %v", err)
	}
}

func TestActionsAreSentInTheirEncoding(t *testing.T) {
	fields := []*spec.ActionField{{Name: "To", Field: "to"}, {Name: "State", Field: "state", Optional: true}}
	s := kindWith(&spec.Action{Name: "make", Path: "/things", Fields: fields}, &spec.Action{Name: "move", Encoding: "json", Fields: fields},
		&spec.Action{Name: "drop", Method: "DELETE"})
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	k := s.Kind("things")
	filled := map[string]string{"To": "+1 & more", "State": "", "Other": "not asked for"}
	for _, c := range []struct{ name, body, contentType string }{
		{"make", "Set=1&To=%2B1+%26+more", "application/x-www-form-urlencoded"},
		{"move", `{"Set":"1","To":"+1 \u0026 more"}`, "application/json"},
		{"drop", "", ""},
	} {
		body, contentType := k.Action(c.name).Form(filled, map[string]string{"Set": "1"})
		if string(body) != c.body || contentType != c.contentType {
			t.Errorf("%s: %q as %q", c.name, body, contentType)
		}
	}
	checktest.MustTrue(t, k.Action("make").CreationList() != nil,
		`what makes a record, and what is about one: k.Action("make").CreationList() is nil`)
	checktest.MustTrue(t, k.Action("move").CreationList() == nil,
		`what makes a record, and what is about one: k.Action("move").CreationList() != nil`)
	checktest.True(t, k.Action("none") == nil, `what makes a record, and what is about one: k.Action("none") != nil`)
	checktest.Equal(t, k.Action("make").Title, "Make the thing", `defaults: k.Action("make").Title`)
	checktest.Equal(t, k.Action("make").Method, "POST", `defaults: k.Action("make").Method`)
	checktest.True(t, k.Action("make").Done != "", `defaults: k.Action("make").Done is empty`)
}
