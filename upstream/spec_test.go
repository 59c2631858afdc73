// Spec files: the built-in ones, and the errors of wrong ones.

package upstream

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"understudy"
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

func builtInSpec(t testing.TB, name string) *spec.Spec {
	t.Helper()
	s, err := BuiltIn(name)
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
		if other := builtInSpec(t, name); other == s || other.Kinds[0] == s.Kinds[0] {
			t.Errorf("%s: two calls share a spec", name)
		}
	}
	if _, err := BuiltIn("twilo"); err == nil || !strings.Contains(err.Error(), `did you mean "twilio"?`) {
		t.Errorf("a misspelt name: %v", err)
	}
	if _, err := BuiltIn("../specs/twilio"); err == nil {
		t.Error("a path is taken for a name")
	}
}

const leastSpec = "name: x\nhosts: [{url: http://x}]\nauth: {style: none}\n"

func TestReadSpecIsStrict(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{leastSpec, ""},
		{"", "no documents"},
		{"a: [", "did not find"},
		{leastSpec + "---\nname: y\n", "single document"},
		{"- 1\n", "x.yaml:1: the spec: want keys with values"},
		{leastSpec + "tittle: X\n", `x.yaml:4: unknown key "tittle" in the spec; did you mean "title"?`},
		{leastSpec + "zzzzzzzzz: X\n", `x.yaml:4: unknown key "zzzzzzzzz" in the spec`},
		{leastSpec + "name: y\n", `x.yaml:4: key "name" in the spec is there twice, first in line 1`},
		{leastSpec + "paging:\n  style: none\n  sise: 5\n", `x.yaml:6: unknown key "sise" in paging; did you mean "size"?`},
		{leastSpec + "paging:\n  default_size: many\n", `x.yaml:5: paging.default_size: want a whole number, not "many"`},
		{leastSpec + "port: 4.5\n", `x.yaml:4: port: want a whole number`},
		{leastSpec + "kinds: [{name: a, fields: [{name: b, absolute: yes}]}]\n",
			`x.yaml:4: kinds[0].fields[0].absolute: want true or false, not "yes"`},
		{leastSpec + "port: [1]\n", `x.yaml:4: port: want one value`},
		{leastSpec + "title:\n", `x.yaml:4: title is empty`},
		{leastSpec + "kinds: {a: b}\n", `x.yaml:4: kinds: want a list`},
		{leastSpec + "kinds:\n  - name: a\n    lists:\n      - {path: /a, kye: a}\n",
			`x.yaml:7: unknown key "kye" in kinds[0].lists[0]; did you mean "key"?`},
		{leastSpec + "vars: {a: b, a: c}\n", `x.yaml:4: key "a" in vars is there twice`},
		{leastSpec + "vars: {a: [b]}\n", `x.yaml:4: vars.a: want one value`},
		{leastSpec + "vars: {? [a] : b}\n", `x.yaml:4: vars: want a word as key`},
		{leastSpec + "<<: {title: x}\n", `x.yaml:4: unknown key "<<"`},
		{leastSpec + "paging: {style: bodyy}\n", "paging.style"},
		{leastSpec + "kinds:\n  - {name: a, id: [b]}\n", `kind a: "b" is not among its fields`},
		{strings.Repeat("#", maxSpec+1), "longer than"},
		{leastSpec + bomb(), "aliases make this file too large"},
	} {
		_, err := ReadSpec("x.yaml", []byte(c.text))
		if c.want == "" {
			if err != nil {
				t.Errorf("%q: %v", understudy.Clip(c.text), err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "upstream: ") {
			t.Errorf("%q: error %v, want %q", understudy.Clip(c.text), err, c.want)
		}
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

// docs/specs.md tells every key a spec file may have, each in a row of the
// table under its own part.
func TestEveryKeyIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../docs/specs.md")
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
		"elapsed": spec.Elapsed{}, "searches": spec.Search{},
	} {
		text, ok := parts[heading]
		if !ok {
			t.Errorf("docs/specs.md has no part %q", heading)
			continue
		}
		keys := keysOf(reflect.TypeOf(example))
		for _, k := range keys {
			if !strings.Contains(text, "\n| `"+k.name+"` |") {
				t.Errorf("docs/specs.md, %s: key %s is not told", heading, k.name)
			}
		}
		if rows := strings.Count(text, "\n| `"); rows != len(keys) {
			t.Errorf("docs/specs.md, %s: %d rows for %d keys", heading, rows, len(keys))
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
			t.Errorf("docs/specs.md does not tell of %s", word)
		}
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
	if len(seen) != 23 {
		t.Errorf("%d structs, the documentation test knows 23", len(seen))
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
				if target, err := s.Target("x", l.Path, ""); err == nil && target.Key.Zero() {
					t.Fatalf("list %s has no key", l.Path)
				}
			}
		}
	})
}
