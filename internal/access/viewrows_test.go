// Rows: what people are shown of a record.

package access

import (
	"testing"

	"understudy/internal/checktest"
	"understudy/spec"
)

func TestRows(t *testing.T) {
	g := gate(t, Roles{"support": {"twilio": support["twilio"], "forge": {"*": "see", "phone": "last4", "people.profile": "hide",
		"people.age": "last4"}}, "noids": {"twilio": {"*": "see", "messages.sid": "hide"}}})
	body := `{"messages":[{"sid":"SM1","from":"+14155551234","to":null,"body":"h\u00e9","price":null,"new":"x",` +
		`"subresource_uris":{"media":"\/m","other":1},"capabilities":{}},{"sid":"SM2"}],"page":0}`
	p := page("twilio", "messages", true, 200, body)
	for _, test := range []struct {
		role, field string
		want        Value
	}{
		{"support", "sid", Value{Text: "SM1", State: Seen}},
		{"support", "from", Value{Text: "********1234", State: Masked, Level: Last4}},
		{"support", "to", Value{State: Null}},
		{"support", "body", Value{State: Hidden}},
		{"support", "price", Value{State: Hidden}},
		{"support", "new", Value{State: Hidden}},
		{"support", "subresource_uris.media", Value{Text: "/m", State: Seen}},
		{"support", "subresource_uris.other", Value{State: Hidden}},
		{"support", "subresource_uris.feedback", Value{State: Absent}},
		{"support", "error_code", Value{State: Absent}},
		{"all", "body", Value{Text: "hé", State: Seen}},
		{"all", "new", Value{Text: "x", State: Seen}},
		{"all", "price", Value{State: Null}},
		{"all", "subresource_uris.other", Value{Text: "1", State: Seen}},
	} {
		v, err := g.MakeView(as(test.role), p)
		if err != nil {
			t.Fatal(err)
		}
		rows := v.Rows()
		checktest.MustEqual(t, len(rows), 2, "rows are: len(rows)")
		checktest.MustEqual(t, rows[0].ID, "SM1", "rows are: rows[0].ID")
		checktest.MustEqual(t, rows[1].ID, "SM2", "rows are: rows[1].ID")
		checktest.MustEqual(t, string(rows[1].JSON()), `{"sid":"SM2"}`, "rows are: string(rows[1].JSON())")
		test.want.Name, test.want.Field = test.field, twilioField(g, "messages", test.field)
		if got := rows[0].Field(test.field); got != test.want {
			t.Errorf("%s %s: %+v, want %+v", test.role, test.field, got, test.want)
		}
	}
	v, _ := g.MakeView(as("noids"), p)
	{
		rows := v.Rows()
		checktest.MustEqual(t, len(rows), 2, "hidden ids: len(rows)")
		checktest.Equal(t, rows[0].ID, "", "hidden ids: rows[0].ID")
		checktest.Equal(t, rows[0].Field("sid").State, Hidden, `hidden ids: rows[0].Field("sid").State`)
	}
}

func twilioField(g *Gate, kind, name string) *spec.Field {
	return g.specs["twilio"].Kind(kind).Field(name)
}

func TestFieldsComeInOrderUnderDottedNames(t *testing.T) {
	g := gate(t, Roles{"r": {"forge": {"*": "see", "phone": "last4", "people.profile": "hide", "people.age": "last4"}}})
	p := page("forge", "people", false, 200, `{"room":"r","sid":"1","profile":{"first":"Ada"},"links":{"self":"/x"},"tags":{},`+
		`"aliases":["a","b"],"age":7,"phone":"14155551234","what":1}`)
	v, err := g.MakeView(as("r"), p)
	if err != nil {
		t.Fatal(err)
	}
	rows := v.Rows()
	if len(rows) != 1 || rows[0].ID != "r~1" {
		t.Fatalf("rows %+v", rows)
	}
	want := []Value{
		{Name: "room", Text: "r", State: Seen}, {Name: "sid", Text: "1", State: Seen}, {Name: "profile", State: Hidden},
		{Name: "links.self", Text: "********", State: Masked, Level: Last4}, {Name: "tags", Text: "{}", State: Seen},
		{Name: "aliases", Text: `["a","b"]`, State: Seen}, {Name: "age", State: Hidden},
		{Name: "phone", Text: "********1234", State: Masked, Level: Last4},
		{Name: "what", State: Hidden},
	}
	got := rows[0].Fields()
	if len(got) != len(want) {
		t.Fatalf("fields %+v", got)
	}
	for i, w := range want {
		w.Field = g.specs["forge"].Kind("people").Field(w.Name)
		if got[i] != w {
			t.Errorf("%+v, want %+v", got[i], w)
		}
	}
	if f := rows[0].Field("profile.first"); f.State != Hidden {
		t.Errorf("inside a hidden object: %+v", f)
	}
}
