// Reads of one object that no list has: what is drawn of them, and what is left out.

package infer_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"understudy"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// reading adds GETs with an answer to a document.
func reading(document, schema string, paths ...string) string {
	var all strings.Builder
	for _, path := range paths {
		fmt.Fprintf(&all, `%q:{"get":{"responses":{"200":{"content":{"application/json":{"schema":%s}}}}}},`, path, schema)
	}
	return strings.Replace(document, `"paths":{`, `"paths":{`+all.String(), 1)
}

// TestAnObjectThatNoListHasIsKept draws reads of one object, also below a record, and fetches one: it
// is kept as a whole page. Reads that may do something or show a credential are left out.
func TestAnObjectThatNoListHasIsKept(t *testing.T) {
	row := listing(`{"type":"object","properties":{"id":{"type":"string"}}}`, "")
	draft := drafted(t, reading(row, `{"type":"object","properties":{"limit":{"type":"integer"}}}`, "/account", "/things/{id}/policy",
		"/things/{id}/credentials", "/things/{id}/test", "/other/{number}"))
	sp := drawnSpec(t, draft)
	for name, path := range map[string]string{"account": "/account", "policy": "/things/{id}/policy", "other": "/other/{number}"} {
		k := sp.Kind(name)
		if k == nil || len(k.Instances) != 1 || k.Instances[0].Path != path {
			t.Errorf("%s is no kind of its own: %+v", path, k)
		}
	}
	for _, path := range []string{"/things/{id}/credentials", "/things/{id}/test"} {
		if target, err := sp.Target("x", strings.ReplaceAll(path, "{id}", "a"), ""); err == nil && target.Instance != nil {
			t.Errorf("%s is drawn", path)
		}
		if !hasDoubt(draft, path, "left out") {
			t.Errorf("no doubt names %s: %q", path, draft.Unsure)
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"limit":7}`) }))
	defer srv.Close()
	c, err := upstream.New(upstream.Options{Source: &spec.Source{Name: "x", Spec: sp}, Base: srv.URL, Secret: understudy.NewSecret("s"),
		Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	target, err := sp.Target("x", "/things/a/policy", "")
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.Fetch(t.Context(), request.Fetch{Target: target})
	if err != nil {
		t.Fatal(err)
	}
	if page.NotStored != "" || string(page.Body) != `{"limit":7}` {
		t.Errorf("the answer is %s, not stored: %s", page.Body, page.NotStored)
	}
}

// TestARecordAtAPathOfItsOwnBelongsToItsList draws lists below projects, and one record at a path of
// its own. Where two kinds are called so, it is none of either.
func TestARecordAtAPathOfItsOwnBelongsToItsList(t *testing.T) {
	row := listing(`{"type":"object","properties":{"id":{"type":"string"}}}`, "")
	row = strings.Replace(row, `"/things"`, `"/projects/{project_id}/things"`, 1)
	const answer = `{"type":"object","properties":{"data":{"type":"object","properties":{"id":{"type":"string"},"text":{"type":"string"}}}}}`
	k := drawnSpec(t, drafted(t, reading(row, answer, "/things/{thing_id}"))).Kind("things")
	if len(k.Instances) != 1 || k.Instances[0].Key != "data" {
		t.Fatalf("the instances are %+v", k.Instances)
	}
	if k.Instances[0].Shape == k.Lists[0].Shape {
		t.Error("a row answers for a record that has more members")
	}
	if k := drawnSpec(t, drafted(t, reading(row, answer, "/deploy/things/{thing_id}"))).Kind("things"); len(k.Instances) != 0 {
		t.Errorf("a record elsewhere is taken for one of the list: %+v", k.Instances[0])
	}
}
