// Spec files: the built-in ones, and the errors of wrong ones.

package upstream

import (
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
)

// specFile reads a spec of testdata.
func specFile(t testing.TB, name string) *spec.Spec {
	t.Helper()
	file := "testdata/" + name + ".yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(data), "\n"); !strings.HasPrefix(first, "# made up for tests") {
		t.Fatalf("%s does not name its source", file)
	}
	s, err := ReadSpec(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var builtInOnce sync.Map // functions that read a built-in spec once, by its name

// builtInSpec returns a built-in spec, which is read once: all tests share it, and none may change it.
func builtInSpec(t testing.TB, name string) *spec.Spec {
	t.Helper()
	once, _ := builtInOnce.LoadOrStore(name, sync.OnceValues(func() (*spec.Spec, error) { return ReadBuiltIn(name) }))
	s, err := once.(func() (*spec.Spec, error))()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryBuiltInSpecCompiles(t *testing.T) {
	if len(Names()) == 0 {
		t.Fatal("nothing is built in")
	}
	ports := map[int]string{}
	for _, name := range Names() {
		s := builtInSpec(t, name)
		if s.Name != name {
			t.Errorf("%s is named %s in its file", name, s.Name)
		}
		if s.Port == 0 || ports[s.Port] != "" {
			t.Errorf("%s: port %d is missing or that of %s", name, s.Port, ports[s.Port])
		}
		ports[s.Port] = name
		for _, k := range s.Kinds {
			if len(k.Lists)+len(k.Instances) == 0 {
				t.Errorf("%s: kind %s has no path", name, k.Name)
			}
		}
		other, err := ReadBuiltIn(name)
		if err != nil {
			t.Fatal(err)
		}
		if other == s || other.Kinds[0] == s.Kinds[0] {
			t.Errorf("%s: two calls share a spec", name)
		}
	}
	if _, err := ReadBuiltIn("twilo"); err == nil || !strings.Contains(err.Error(), `did you mean "twilio"?`) {
		t.Errorf("a misspelt name: %v", err)
	}
	if _, err := ReadBuiltIn("../specs/twilio"); err == nil {
		t.Error("a path is taken for a name")
	}
}

// twoKinds is a spec of 12 lines.
const twoKinds = leastSpec + `pagings:
  pages: {style: header}
kinds:
  - name: a
    fields: [{name: id, link: b}]
  - name: b
    fields:
      - name: id
      - {name: born, type: iso8601}
`

const leastSpec = "name: x\nhosts: [{url: http://x}]\nauth: {style: none}\n"

func TestReadSpecIsStrict(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{leastSpec, ""},
		{"", "the file is empty"},
		{"---\n", "the file is empty"},
		{"null\n", "the file is empty"},
		{"a: [", "spec x.yaml: line 2: did not find"},
		{"a: b\nc: \x02", "spec x.yaml: line 2: a byte in this line is not valid text"},
		{strings.Repeat("# line\n", 5000) + "\x01", "spec x.yaml: line 5001: a byte in this line is not valid text"},
		{"a: b\nc: \xad", "spec x.yaml: line 2: a byte in this line is not valid text"},
		{leastSpec + "---\nname: y\n", "single document"},
		{"- 1\n", "x.yaml:1: the spec: write keys with values"},
		{leastSpec + "tittle: X\n", `x.yaml:4: unknown key "tittle" in the spec; did you mean "title"?`},
		{leastSpec + "zzzzzzzzz: X\n", `x.yaml:4: unknown key "zzzzzzzzz" in the spec`},
		{leastSpec + "name: y\n", `x.yaml:4: key "name" in the spec appears twice, first in line 1`},
		{leastSpec + "paging:\n  style: none\n  sise: 5\n", `x.yaml:6: unknown key "sise" in paging; did you mean "size"?`},
		{leastSpec + "paging:\n  default_size: many\n", `x.yaml:5: paging.default_size: write a whole number, not "many"`},
		{leastSpec + "port: 4.5\n", `x.yaml:4: port: write a whole number`},
		{leastSpec + "kinds: [{name: a, fields: [{name: b, absolute: yes}]}]\n",
			`x.yaml:4: kinds[0].fields[0].absolute: write true or false, not "yes"`},
		{leastSpec + "port: [1]\n", `x.yaml:4: port: write one value`},
		{leastSpec + "title:\n", `x.yaml:4: title is empty`},
		{leastSpec + "kinds: {a: b}\n", `x.yaml:4: kinds: write a list`},
		{leastSpec + "kinds:\n  - name: a\n    lists:\n      - {path: /a, kye: a}\n",
			`x.yaml:7: unknown key "kye" in kinds[0].lists[0]; did you mean "key"?`},
		{leastSpec + "vars: {a: b, a: c}\n", `x.yaml:4: key "a" in vars appears twice`},
		{leastSpec + "vars: {a: [b]}\n", `x.yaml:4: vars.a: write one value`},
		{leastSpec + "vars: {? [a] : b}\n", `x.yaml:4: vars: write a word as key`},
		{leastSpec + "<<: {title: x}\n", `x.yaml:4: unknown key "<<"`},
		{leastSpec + "paging: {style: bodyy}\n", "paging.style"},
		{leastSpec + "kinds:\n  - {name: a, id: [b]}\n", `x.yaml:5: kind a: id: "b" is not among its fields`},
		{leastSpec + "title: \"a\\\\b\"\nauth2: x\n", `x.yaml:5: unknown key "auth2"`},
		{"name: X\nhosts: [{url: http://x}]\nauth: {style: none}\n", `x.yaml:1: name "X": a name has only lower-case`},
		{"name: x\nhosts:\n  - url: http://x\n  - url: ftp://x\nauth: {style: none}\n", `x.yaml:4: hosts[1]: url "ftp://x"`},
		{"name: x\nhosts: [{url: http://x}]\nauth:\n  realm: x\n  style: baerer\n", `x.yaml:5: auth.style "baerer": the style is not known`},
		{"name: x\nhosts: [{url: http://x}]\nauth:\n  realm: x\n  style: baerer\n", `did you mean "bearer"?`},
		{leastSpec + "paging:\n  size: n\n  style: heder\n", `x.yaml:6: paging.style "heder" is not known`},
		{leastSpec + "paging:\n  size: n\n  style: heder\n", `did you mean "header"?`},
		{leastSpec + "pagings:\n  a: {style: none}\n  b: {style: body}\n", `x.yaml:6: pagings.b.next`},
		{leastSpec + "headers:\n  send:\n    Host: x\n", `x.yaml:6: headers.send: this server sets Host itself`},
		{twoKinds + "    clock: bron\n", `x.yaml:13: kind b: clock: "bron" is not among its fields; did you mean "born"?`},
		{twoKinds + "    order: bron\n", `x.yaml:13: kind b: order: "bron" is not among its fields; did you mean "born"?`},
		{twoKinds + "    columns:\n      - id\n      - di\n", `x.yaml:15: kind b: columns: "di" is not among its fields; did you mean "id"?`},
		{twoKinds + "    final:\n      - field: id\n        set: [brn]\n",
			`x.yaml:15: kind b: final: "brn" is not among its fields; did you mean "born"?`},
		{twoKinds + "    lists:\n      - path: /b\n        paging: pges\n",
			`x.yaml:15: kind b: list /b: paging "pges" is not among the spec's pagings; ` +
				`did you mean "pages"?`},
		{twoKinds + "    lists:\n      - path: /b\n      - path: b\n", `x.yaml:15: kind b: path "b" does not begin with a slash`},
		{twoKinds + "    lists:\n      - path: /b\n        filters:\n          - name: q\n            op: snice\n",
			`x.yaml:17: kind b: filter q: op "snice"`},
		{twoKinds + "    lists:\n      - path: /b\n        filters:\n          - {name: q}\n          - name: r\n            field: brn\n",
			`x.yaml:18: kind b: lists: "brn" is not among its fields; did you mean "born"?`},
		{twoKinds + "    instances:\n      - {path: /b/x, id: [id]}\n", `x.yaml:14: kind b: instance /b/x: id names 1 path`},
		{twoKinds + "    fields: [{name: x}]\n", `x.yaml:13: key "fields" in kinds[1] appears twice`},
		{strings.Replace(twoKinds, "iso8601", "iso8610", 1), `x.yaml:12: kind b: field born: unknown type "iso8610"; did you mean "iso8601"?`},
		{strings.Replace(twoKinds, "link: b", "link: bb", 1), `x.yaml:8: kind a: field id: link "bb" is not a kind; did you mean "b"?`},
		{leastSpec + "shown: {a: b}\n", `x.yaml:4: shown.a: no kind has a field "b"`},
		{twoKinds + "searches:\n  - name: s\n    kinds: [a, c]\n", `x.yaml:15: search s: there is no kind "c"; did you mean "a"?`},
		{strings.Repeat("#", MaxSpec+1), "longer than"},
		{leastSpec + bomb(), "this file is too large after its aliases are expanded"},
	} {
		_, err := ReadSpec("x.yaml", []byte(c.text))
		if c.want == "" {
			if err != nil {
				t.Errorf("%q: %v", understudy.Clip(c.text), err)
			}
			continue
		}
		checktest.MustTrue(t, err != nil, "%q: err is nil", understudy.Clip(c.text))
		checktest.Contains(t, err.Error(), c.want, "%q: err.Error()", understudy.Clip(c.text))
		checktest.True(t, strings.HasPrefix(err.Error(), "upstream: "), "%q: err.Error() is %q",
			understudy.Clip(c.text), err.Error())
	}
}

// bomb is a small file that aliases make large.
func bomb() string {
	values := strings.TrimSuffix(strings.Repeat("a,", 200), ",")
	filters := "&f [" + strings.TrimSuffix(strings.Repeat("{name: a, values: &v ["+values+"]},", 1)+strings.Repeat("{name: a, values: *v},",
		200), ",") + "]"
	lists := "&l [{path: /a, filters: " + filters + "}" + strings.Repeat(", {path: /a, filters: *f}", 200) + "]"
	return "kinds:\n  - {name: a, lists: " + lists + "}\n  - {name: b, lists: *l}\n"
}

// docs/reference/specs.md tells every key a spec file may have, each in a row of the
// table under its own part.
func TestEveryKeyIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../docs/reference/specs.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{} // by heading
	for part := range strings.SplitSeq(string(data), "\n## ") {
		heading, text, _ := strings.Cut(part, "\n")
		parts[heading] = text
	}
	for heading, example := range map[string]any{
		"The file": spec.Spec{}, "hosts": spec.Host{}, "auth": spec.Auth{}, "headers": spec.Headers{}, "paging": spec.Paging{},
		"errors": spec.Errors{}, "kinds": spec.Kind{}, "lists": spec.List{}, "filters": spec.Filter{},
		"instances": spec.Instance{}, "media": spec.Media{}, "fields and envelope": spec.Field{}, "final and failed": spec.State{},
		"forgets": spec.UpstreamRetention{}, "hook": spec.Hook{}, "connect": spec.Snippet{}, "odd": spec.Quirks{}, "rows": spec.RowMapping{},
		"actions": spec.Action{}, "fields of an action": spec.ActionField{}, "cases of an action": spec.ActionCase{},
		"limits": spec.Limits{}, "elapsed": spec.Elapsed{}, "searches": spec.Search{},
	} {
		text, ok := parts[heading]
		if !ok {
			t.Errorf("docs/reference/specs.md has no part %q", heading)
			continue
		}
		keys := keysOf(reflect.TypeOf(example))
		for _, k := range keys {
			if !strings.Contains(text, "\n| `"+k.name+"` |") {
				t.Errorf("docs/reference/specs.md, %s: key %s is not told", heading, k.name)
			}
		}
		if rows := strings.Count(text, "\n| `"); rows != len(keys) {
			t.Errorf("docs/reference/specs.md, %s: %d rows for %d keys", heading, rows, len(keys))
		}
	}
	for _, word := range []string{
		spec.TypeText, spec.TypeInt, spec.TypeDecimal, spec.TypeBool, spec.TypeRFC2822, spec.TypeISO,
		spec.TypeEpoch, spec.TypeDate, spec.TypeSelect, spec.TypeMap, spec.TypeCode, spec.TypeMedia, spec.ClassPhone, spec.ClassBody,
		spec.ClassPrice, spec.ClassURL, spec.ClassName, spec.ClassSecret,
		"body", "header", "cursor", "token", "number", "offset", "none", "basic", "bearer",
		spec.QuirkIgnored, spec.QuirkRefused, spec.QuirkDefault, spec.QuirkLargest, spec.QuirkCounts, spec.EncodingForm, spec.EncodingJSON,
	} {
		if !strings.Contains(string(data), "`"+word+"`") {
			t.Errorf("docs/reference/specs.md does not tell of %s", word)
		}
	}
}

// The example at the beginning of docs/reference/specs.md is a whole spec.
func TestTheExampleOfTheDocumentIsASpec(t *testing.T) {
	data, err := os.ReadFile("../docs/reference/specs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(data), "```yaml\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("docs/reference/specs.md has no example")
	}
	s, err := ReadSpec("specs.md", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Kinds) != 1 {
		t.Errorf("the example has %d kinds, want 1", len(s.Kinds))
	}
}

// Every struct a spec file is read into is one the documentation test knows.
func TestEverySpecStructHasKeys(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(typ reflect.Type)
	visit = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(typ.Elem())
		case reflect.Struct:
			if seen[typ] {
				return
			}
			seen[typ] = true
			for _, k := range keysOf(typ) {
				visit(typ.FieldByIndex(k.index).Type)
			}
		}
	}
	visit(reflect.TypeFor[spec.Spec]())
	if len(seen) != 25 {
		t.Errorf("%d structs, the documentation test knows 25", len(seen))
	}
}

func FuzzReadSpec(f *testing.F) {
	f.Add([]byte(leastSpec))
	f.Add([]byte("kinds: &a [*a]\n"))
	for _, file := range []string{"testdata/shelf.yaml", "testdata/links.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadSpec("fuzz.yaml", data)
		if err != nil {
			return
		}
		for _, k := range s.Kinds {
			newPlan(s, k)
			for _, l := range k.Lists {
				if target, err := s.Resolve("x", l.Path, ""); err == nil && target.Key.IsZero() {
					t.Fatalf("list %s has no key", l.Path)
				}
			}
		}
	})
}
