// Rows made of records seen in another shape.

package compose

import (
	"encoding/json"
	"slices"
	"testing"

	"understudy/kit/jsonspan"
	"understudy/spec"
)

func known(name string) (string, bool) { return "<" + name + ">", name != "none" }

func TestRewrite(t *testing.T) {
	for _, c := range []struct{ body, without, with, want string }{
		{`{"a":1,"b":2,"c":3}`, "a", "", `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "b", "", `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "c", "", `{"a":1,"b":2}`},
		{`{"a":1}`, "a", "", `{}`},
		{`{"a":1}`, "x", "", `{"a":1}`},
		{"{\n  \"a\": 1,\n  \"b\": 2\n}", "a", "", "{\n  \"b\": 2\n}"},
		{"{\n  \"a\": 1,\n  \"b\": {\"c\":[1,{}]} ,\n  \"d\": \"}\"\n}", "b", "", "{\n  \"a\": 1 ,\n  \"d\": \"}\"\n}"},
		{`{"a":1,"uri":"/x","b":null}`, "a", "/p/{V}/q", `{"uri":"/p/<V>/q","b":null}`},
		{`{"\u0061":1,"uri":"/x"}`, "a", "/\"", `{"uri":"/\""}`},
		{`{"uri":"/x","b":1}`, "", "{none}", ""},
		{`{"uri":null,"b":1}`, "", "/p", ""},
		{`{"b":1}`, "", "/p", ""},
		{`[1]`, "a", "", ""},
	} {
		f := &spec.RowMapping{}
		if c.without != "" {
			f.Omit = []string{c.without}
		}
		if c.with != "" {
			f.Replace = map[string]string{"uri": c.with}
		}
		out, ok := rewrite(f, []byte(c.body), known)
		if !ok {
			out = nil
		}
		if string(out) != c.want {
			t.Errorf("%s without %q, with %q: %s, want %s", c.body, c.without, c.with, out, c.want)
		}
	}
}

// FuzzRewrite: what is left out is not there, what is put in is, and nothing
// else has changed.
func FuzzRewrite(f *testing.F) {
	for _, body := range []string{`{"a":1,"b":"x","c":{"a":[]}}`, `{ }`, `{"b":"x"}`, "{\"c\" : 0 ,\n\"a\":\"\\u0061\",\"d\":1}",
		`{"a":1,"a":2,"b":""}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := jsonspan.Parse(body)
		if err != nil || doc.Kind != jsonspan.Object {
			return
		}
		form := &spec.RowMapping{Omit: []string{"a", "c"}, Replace: map[string]string{"b": "{V}!"}}
		out, ok := rewrite(form, body, known)
		if !ok {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%q: no JSON: %q", body, out)
		}
		var want, got []string
		list := func(body []byte, into *[]string) {
			doc, err := jsonspan.Parse(body)
			if err != nil {
				t.Fatalf("%q: %v", body, err)
			}
			jsonspan.VisitMembers(body, doc, func(name []byte, v jsonspan.Value) bool {
				value := string(v.Bytes(body))
				if jsonspan.Name(name) == "b" {
					value = `"<V>!"`
				}
				if n := jsonspan.Name(name); n != "a" && n != "c" || &body[0] == &out[0] {
					*into = append(*into, jsonspan.Name(name)+value)
				}
				return true
			})
		}
		list(body, &want)
		list(out, &got)
		if !slices.Equal(got, want) {
			t.Fatalf("%q became %q", body, out)
		}
	})
}
