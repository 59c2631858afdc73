// Tests of templates, routes and changes from outside.

package table

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"understudy/internal/checktest"
)

func TestATemplateIsFilled(t *testing.T) {
	all := ParseAll(fstest.MapFS{
		"shapes/a.json": {Data: []byte(`{"id": "$id", "url": "{{here}}/a/{{name}}", "left?": "$left", "at": "$at", ` +
			`"in": "$in", "of": "$of", "end": 1}`)},
		"shapes/b.json": {Data: []byte("+a\n\"more\": \"$more\"}")},
	}, "shapes")
	v := Values{"id": int64(7), "name": "a\"b", "at": Stamp(0), "of": []Part{}, "more": map[string]string{"x": "y"}}
	v["in"] = Part{Template: all["a"], Values: Values{"left": true, "at": Stamp(60)}}
	got := string(all["b"].Append(nil, v, "http://h"))
	want := `{"id":7,"url":"http://h/a/a\"b","at":null,"in":{"id":null,"url":"http://h/a/","left":true,"at":"1970-01-01T00:01:00Z",` +
		`"in":null,"of":null,"end":1},"of":[],"end":1,"more":{"x":"y"}}`
	if got != want {
		t.Errorf("it is   %s\nnot %s", got, want)
	}
	if _, err := Parse(`{"a": "$a"`); err == nil {
		t.Error("a template that is no JSON is read")
	}
}

func TestRoutesDecodeWhatStandsForStars(t *testing.T) {
	all := Routes{{Pattern: "/a/*", List: true}, {Pattern: "/*/*/c"}}
	{
		at, vars := all.Find("/a/good%20first")
		checktest.Equal(t, at, &all[0], "at")
		checktest.MustEqual(t, len(vars), 1, "len(vars)")
		checktest.Equal(t, vars[0], "good first", "vars[0]")
	}
	if at, vars := all.Find("/x/y/c"); at != &all[1] || strings.Join(vars, " ") != "x y" {
		t.Errorf("%v %q", at, vars)
	}
	for _, none := range []string{"/a/", "/a", "/x/y/d", ""} {
		if at, _ := all.Find(none); at != nil {
			t.Errorf("%q is a route", none)
		}
	}
}

func TestAWorldIsChangedFromOutside(t *testing.T) {
	w := &World{Epoch: time.Unix(1000, 0), Now: time.Now}
	w.Begin("things")
	w.Creators["things"] = func(now int64) {
		w.Kinds["things"].Add("t"+string(rune('0'+len(w.Kinds["things"].Rows()))), Values{"created": now})
	}
	w.CheckEdit = func(_ string, _ *Row, set Values) (Values, error) { return set, nil }
	do := func(path, body, want string) {
		t.Helper()
		answer, err := w.Controls()[path]([]byte(body))
		got, _ := json.Marshal(answer)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), want) {
			t.Errorf("%s %s: %s, not %s", path, body, got, want)
		}
	}
	do("/-/advance", `{"things":3,"seconds":5}`, `"created":{"things":3}`)
	do("/-/advance", `{"others":3}`, "of records: things")
	do("/-/advance", `{"things":-1}`, "must be 0 to")
	do("/-/edit", `{"kind":"things","records":[{"id":"t1","set":{"name":"x"}},{"id":"t0","delete":true}]}`, `"changed":2`)
	do("/-/edit", `{"kind":"things","records":[{"id":"t0","delete":true}]}`, `there is no "t0"`)
	do("/-/edit", `{"kind":"none"}`, `there is things`)
	do("/-/limits", `{}`, "no /-/limits")
	rows := w.Kinds["things"].Select(func(*Row) bool { return true }, "", false)
	checktest.MustEqual(t, len(rows), 2, "len(rows)")
	checktest.Equal(t, rows[0].ID, "t2", "rows[0].ID")
	checktest.Equal(t, rows[1].Text("name"), "x", `rows[1].Text("name")`)
	checktest.Equal(t, rows[1].Number("created"), 1005, `rows[1].Number("created")`)
}
