package infer_test

import (
	"strings"
	"testing"
)

// TestLinksBesideTheNextAreAddresses draws a list whose schema shows the links of its first page alone:
// those of later pages are addresses of the API, too.
func TestLinksBesideTheNextAreAddresses(t *testing.T) {
	document := strings.Replace(listing(`{"type":"object","properties":{"id":{"type":"string"}}}`, ""), `"properties":{"things"`,
		`"properties":{"links":{"type":"object","properties":{"pages":{"anyOf":[
		{"type":"object","properties":{"next":{"type":"string"},"last":{"type":"string"}}},
		{"type":"object","properties":{"first":{"type":"string"},"prev":{"type":"string"}}}]}}},"things"`, 1)
	drawn := drafted(t, document)
	if got := strings.Join(drawnSpec(t, drawn).Absolute, " "); got != "first last next prev previous" {
		t.Errorf("lists that do not name their links have %q rewritten", got)
	}
	draft := string(drawn.YAML)
	for _, name := range []string{"first", "prev", "next", "last"} {
		if !strings.Contains(draft, "{name: links.pages."+name+", absolute: true}") {
			t.Errorf("links.pages.%s is not rewritten:\n%s", name, draft)
		}
	}
}

// TestASwitchThatIsOffByDefaultIsKnown draws a parameter that adds to the answer when it is true: its
// default is the same request as none.
func TestASwitchThatIsOffByDefaultIsKnown(t *testing.T) {
	document := strings.Replace(listing(`{"type":"object","properties":{"id":{"type":"string"}}}`, ""), `"get":{`,
		`"get":{"parameters":[{"name":"total","in":"query","schema":{"type":"boolean","default":false}}],`, 1)
	sp := drawnSpec(t, drafted(t, document))
	for query, same := range map[string]bool{"total=false": true, "total=true": false} {
		target, err := sp.Target("x", "/things", query)
		if err != nil {
			t.Fatal(err)
		}
		if plain := target.Unnamed() == "" && !target.Widened(); plain != same {
			t.Errorf("%s: like none: %v, want %v", query, plain, same)
		}
	}
}
