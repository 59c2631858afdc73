// Tests of the registry of figures, and of the document that is written from it.

package diagnostics

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/request"
)

var update = flag.Bool("update", false, "write docs/reference/diagnostics.md from figures.txt")

// keyWords are the words of figures.txt for keys of objects, by the member that holds the object.
var keyWords = map[string]string{"sources": "SOURCE", "kinds": "KIND", "limits": "LIMIT", "faces": "PORT", "by_reason": "REASON",
	"retries": "REASON", "hedges": "REASON", "by_caller": "CALLER", "times": "FROM", "credentials": "CREDENTIAL", "requests": "OUTCOME",
	"certificates": "NAME"}

// leavesOf adds the figures below a type as figures.txt names them, with the type of each.
func leavesOf(t *testing.T, of reflect.Type, name string, out map[string]reflect.Type) {
	t.Helper()
	under := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case of == reflect.TypeFor[time.Time]():
		out[name] = of
	case of == reflect.TypeFor[request.ByReason]() || of.Kind() == reflect.Map:
		if keyWords[under] == "" {
			t.Fatalf("%s: no word stands for its keys", name)
		}
		leavesOf(t, of.Elem(), name+"."+keyWords[under], out)
	case of.Kind() == reflect.Pointer:
		leavesOf(t, of.Elem(), name, out)
	case of.Implements(reflect.TypeFor[json.Marshaler]()):
		t.Fatalf("%s: %v writes its own JSON, which this test does not know", name, of)
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
		leavesOf(t, of.Elem(), name+"[]", out)
	case of.Kind() == reflect.Struct:
		for field := range of.Fields() {
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case tag == "-":
			case field.Anonymous && tag == "":
				leavesOf(t, field.Type, name, out)
			case tag == "":
				t.Fatalf("%s: %s has no name in JSON", name, field.Name)
			default:
				leavesOf(t, field.Type, strings.TrimPrefix(name+"."+tag, "."), out)
			}
		}
	default:
		out[name] = of
	}
}

// TestFiguresAreThoseOfStats: every figure of /-/stats has one row, and every row is a figure or a limit.
func TestFiguresAreThoseOfStats(t *testing.T) {
	leaves, rows := map[string]reflect.Type{}, map[string]bool{}
	leavesOf(t, reflect.TypeFor[Snapshot](), "", leaves)
	for _, f := range Figures() {
		if rows[f.Name] {
			t.Errorf("figures.txt has %s twice", f.Name)
		}
		rows[f.Name] = true
		if f.Kind == "limit" {
			if parent, _, _ := strings.Cut(f.Name, "limits."); leaves[parent+"limits.LIMIT.now"] == nil || f.Unit == "" {
				t.Errorf("%s is no limit, or has no unit", f.Name)
			}
			continue
		}
		if leaves[f.Name] == nil {
			t.Errorf("figures.txt has %s, which is no figure of /-/stats", f.Name)
		} else if !slices.Contains(kindsOf(leaves[f.Name]), f.Kind) {
			t.Errorf("%s is a %v and cannot be a %s", f.Name, leaves[f.Name], f.Kind)
		}
	}
	for name := range leaves {
		if !rows[name] {
			t.Errorf("figures.txt does not have %s", name)
		}
	}
	if len(leaves) < 150 {
		t.Errorf("/-/stats has %d figures", len(leaves))
	}
}

// kindsOf returns the kinds that a figure of a type can have.
func kindsOf(of reflect.Type) []string {
	switch of.Kind() {
	case reflect.Int, reflect.Int64:
		return []string{"counter", "gauge"}
	case reflect.Float64:
		return []string{"gauge"}
	case reflect.Struct:
		return []string{"time", "label"}
	case reflect.String:
		return []string{"state", "label"}
	default:
		return []string{"state"}
	}
}

// TestFiguresHaveHelp: every row says what it is, and what is counted has a unit.
func TestFiguresHaveHelp(t *testing.T) {
	rows := strings.Count(figuresText[strings.Index(figuresText, "\n\n")+2:], "\n")
	helps := map[string]bool{}
	for _, f := range Figures() {
		helps[f.Help+f.Page+f.Unit] = true
		if f.Help == "" {
			t.Errorf("%s has no help", f.Name)
		}
		needsUnit := map[string]bool{"counter": true, "limit": true, "state": false, "time": false, "label": false}
		if needs, ok := needsUnit[f.Kind]; ok && needs != (f.Unit != "") {
			t.Errorf("%s: a %s with the unit %q", f.Name, f.Kind, f.Unit)
		}
	}
	if len(helps) > rows || len(helps) < rows-20 {
		t.Errorf("%d different helps in %d rows: a row cannot be read", len(helps), rows)
	}
}

// fill sets every field below a value, and puts one entry into every list and map.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Map:
		entry := reflect.New(v.Type().Elem()).Elem()
		fill(entry)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("some.name"), entry)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)))
			return
		}
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.String:
		v.SetString("some text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	default:
		v.SetInt(4711)
	}
}

// A snapshot in which nothing is left out has in its JSON exactly the figures of the registry.
func TestFiguresOfAFullSnapshot(t *testing.T) {
	var s Snapshot
	fill(reflect.ValueOf(&s).Elem())
	w := get((&fixture{caller: understudy.Caller{Grant: &understudy.Grant{Role: understudy.RoleAll}}, snapshot: s}).handler(), "/-/stats")
	var v any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	shown := map[string]any{}
	membersOf(v, "", shown)
	for _, f := range Figures() {
		value, ok := shown[f.Name]
		delete(shown, f.Name)
		switch number, isNumber := value.(float64); {
		case f.Kind == "limit":
		case !ok:
			t.Errorf("a full snapshot does not show %s", f.Name)
		case isNumber != (f.Kind == "counter" || f.Kind == "gauge"):
			t.Errorf("%s: a %s with the value %v", f.Name, f.Kind, value)
		case f.Kind == "counter" && number != 4711:
			t.Errorf("%s: a counter with the value %v, want 4711", f.Name, value)
		case f.Kind == "time" && value != "2026-06-01T12:00:00Z":
			t.Errorf("%s: a time with the value %v", f.Name, value)
		}
	}
	for name := range shown {
		t.Errorf("/-/stats shows %s, which is no figure", name)
	}
}

// membersOf adds the members of a JSON value as figures.txt names them.
func membersOf(v any, name string, out map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		word := keyWords[name[strings.LastIndexByte(name, '.')+1:]]
		for key, value := range v {
			if word != "" {
				key = word
			}
			membersOf(value, strings.TrimPrefix(name+"."+key, "."), out)
		}
	case []any:
		if _, isObject := v[0].(map[string]any); !isObject {
			out[name] = v
			return
		}
		for _, value := range v {
			membersOf(value, name+"[]", out)
		}
	default:
		out[name] = v
	}
}

// Callers that may read /-/stats get the registry, which names no source, no kind and no value; no others do.
func TestFiguresAreAnswered(t *testing.T) {
	var s Snapshot
	fill(reflect.ValueOf(&s).Elem())
	h := &fixture{snapshot: s, caller: understudy.Caller{Grant: &understudy.Grant{Role: "support"}}}
	w := get(h.handler(), "/-/stats/figures")
	var got struct{ Figures []Figure }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if !slices.Equal(got.Figures, Figures()) {
		t.Errorf("%d figures are not the registry", len(got.Figures))
	}
	for _, part := range []string{`{"figures":[{"name":"requests","kind":"counter","unit":"answers","help":"reads the mirror`,
		`{"name":"sources.SOURCE.kinds.KIND.records","kind":"gauge","unit":"records","help":"stored records"}`} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("%q is not in %.300s", part, w.Body)
		}
	}
	for _, secret := range []string{"4711", "some.name", "some text"} {
		if strings.Contains(w.Body.String(), secret) {
			t.Errorf("the registry tells %q, which the snapshot holds", secret)
		}
	}
	for _, c := range []struct {
		err    error
		status int
	}{{understudy.ErrUnauthorized, 401}, {understudy.ErrForbidden, 403}, {nil, 403}} {
		w := get((&fixture{callErr: c.err}).handler(), "/-/stats/figures")
		if w.Code != c.status {
			t.Errorf("%v: %d", c.err, w.Code)
		}
		if strings.Contains(w.Body.String(), "figures") {
			t.Errorf("%v: %s", c.err, w.Body)
		}
	}
	post := httptest.NewRecorder()
	h.handler().ServeHTTP(post, httptest.NewRequest("POST", "/-/stats/figures", nil))
	if post.Code != 405 {
		t.Errorf("POST: %d", post.Code)
	}
}

// TestFiguresDocument compares the table of docs/reference/diagnostics.md with figures.txt; -update writes it.
func TestFiguresDocument(t *testing.T) {
	const document, head = "../../docs/reference/diagnostics.md", "| name | kind | unit | what it is |\n|---|---|---|---|\n"
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), head)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatalf("%s has no table of figures", document)
	}
	want := before + head + documentRows() + "\n" + after
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(data) != want {
		t.Errorf("%s is not what figures.txt says: go test ./internal/diagnostics -run TestFiguresDocument -update", document)
	}
}

// documentRows returns the rows of the document's table. Names with the same help stand in one row.
func documentRows() string {
	var b strings.Builder
	all := Figures()
	for len(all) > 0 {
		f := all[0]
		names := ""
		for len(all) > 0 && all[0].Help == f.Help {
			names, all = names+", `"+all[0].Name+"`", all[1:]
		}
		if f.Page != "" {
			page, _, _ := strings.Cut(f.Page, "#")
			f.Help += " ([" + page + "](" + f.Page + "))"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", names[2:], f.Kind, f.Unit, f.Help)
	}
	return strings.ReplaceAll(b.String(), "|  |", "| |")
}
