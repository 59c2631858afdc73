// Tests of the snapshot that /-/stats shows.

package app

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"understudy/internal/diagnostics"
)

// Every figure and every limit that a server shows is in the registry, and counters are whole numbers.
func TestSnapshotHasRegisteredFiguresAlone(t *testing.T) {
	a := openExporting(t).h
	s, err := a.newFigures(t.Context(), a.enforcer, a.enforcer.feed).readSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	registry, seen := map[string]diagnostics.Figure{}, map[string]bool{}
	for _, f := range diagnostics.Figures() {
		registry[f.Name] = f
	}
	figuresIn(v, "", func(name string, value any) {
		seen[name] = true
		f, ok := registry[name]
		if !ok {
			t.Errorf("figures.txt does not have %s", name)
		}
		if number, isNumber := value.(json.Number); isNumber && f.Kind == "counter" && strings.ContainsAny(number.String(), ".e") {
			t.Errorf("%s: a counter with the value %v", name, number)
		}
	})
	for name, f := range registry {
		if f.Kind == "limit" && !seen[name] && !strings.HasSuffix(name, ".WINDOW") {
			t.Errorf("figures.txt has %s, which a server does not show", name)
		}
	}
	if len(seen) < 80 {
		t.Errorf("the snapshot shows %d figures", len(seen))
	}
}

// figuresIn calls visit for every figure and every limit in a JSON value, with its name in the registry.
func figuresIn(v any, name string, visit func(name string, value any)) {
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch v := v.(type) {
	case map[string]any:
		word := map[string]string{"sources": "SOURCE", "kinds": "KIND", "limits": "LIMIT", "faces": "PORT", "by_reason": "REASON",
			"retries": "REASON", "hedges": "REASON", "by_caller": "CALLER", "times": "FROM", "credentials": "CREDENTIAL",
			"requests": "OUTCOME"}[last]
		for key, value := range v {
			if word == "LIMIT" {
				visit(name+"."+key, nil)
			}
			if word != "" {
				key = word
			}
			figuresIn(value, strings.TrimPrefix(name+"."+key, "."), visit)
		}
	case []any:
		for _, value := range v {
			figuresIn(value, name+"[]", visit)
		}
	default:
		visit(name, v)
	}
}

// While the store cannot be read, the snapshot still has what is counted in memory, and no records.
func TestSnapshotWithoutTheStoreHasWhatIsInMemory(t *testing.T) {
	a := openExporting(t).h
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := a.newFigures(t.Context(), a.enforcer, a.enforcer.feed).readSnapshot(ctx)
	if err == nil {
		t.Fatal("the store was read after the end of the context")
	}
	if len(s.Sources) == 0 {
		t.Fatal("the snapshot has no sources")
	}
	for name, src := range s.Sources {
		if src.Kinds != nil || src.Use == nil || len(src.Limits) == 0 || src.State == "" {
			t.Errorf("source %s is %+v", name, src)
		}
	}
}
