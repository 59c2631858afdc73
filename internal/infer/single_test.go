// Reads of one object that no list has: what is drawn of them, and what is left out.

package infer_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
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
		checktest.MustTrue(t, k != nil, "%s is no kind of its own: k is nil", path)
		checktest.MustEqual(t, len(k.Instances), 1, "%s is no kind of its own: len(k.Instances)", path)
		checktest.Equal(t, k.Instances[0].Path, path, "%s is no kind of its own: k.Instances[0].Path", path)
	}
	for _, path := range []string{"/things/{id}/credentials", "/things/{id}/test"} {
		if target, err := sp.Resolve("x", strings.ReplaceAll(path, "{id}", "a"), ""); err == nil && target.Instance != nil {
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
	target, err := sp.Resolve("x", "/things/a/policy", "")
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

// TestARecordWithTwoVariablesInASegmentIsLeftOut draws a record whose path no spec can have, as
// Azure Batch has one: it is named, its list is drawn, and none of the variables is taken for the id.
func TestARecordWithTwoVariablesInASegmentIsLeftOut(t *testing.T) {
	const row, path = `{"$ref":"#/components/schemas/Thing"}`, "/things(sort={sort},print={print})"
	document := strings.Replace(reading(listing(row, ""), row, path, path+"/parts"), `"paths":{`,
		`"components":{"schemas":{"Thing":{"type":"object","properties":{"sort":{"type":"string"},"print":{"type":"string"}}}}},"paths":{`, 1)
	draft := drafted(t, document)
	if things := drawnSpec(t, draft).Kind("things"); things == nil || len(things.ID) > 0 {
		t.Errorf("the list is not drawn, or with an id:\n%s", draft.YAML)
	}
	if !hasDoubt(draft, path+", ", path+"/parts: ", "more than one variable") {
		t.Errorf("no doubt names %s: %q", path, draft.Unsure)
	}
}

// TestWhatIsNoObjectPasses draws reads of a text and of nothing: they pass, but for those that show a
// credential by their name.
func TestWhatIsNoObjectPasses(t *testing.T) {
	const csv = `{"get":{"responses":{"200":{"content":{"text/csv":{}}}}}},`
	row := listing(`{"type":"object","properties":{"id":{"type":"string"}}}`, "")
	draft := drafted(t, strings.Replace(row, `"paths":{`, `"paths":{"/things/{id}/csv":`+csv+`"/keys.txt":`+csv+
		`"/abilities/{id}":{"get":{"responses":{"204":{}}}},`, 1))
	sp := drawnSpec(t, draft)
	for path, want := range map[string]bool{"/things/1/csv": true, "/abilities/sso": true, "/keys.txt": false} {
		if sp.IsPassThrough(path) != want {
			t.Errorf("%s passes: %v, want %v", path, !want, want)
		}
	}
	if !hasDoubt(draft, "/abilities/{id}", "the answer is not stored") {
		t.Errorf("no doubt names what passes: %q", draft.Unsure)
	}
}

// TestARecordOfAListIsNoCredentialByItsPath draws a record below a list of keys, which shows them too, and
// an object by a name that begins as that of a credential.
func TestARecordOfAListIsNoCredentialByItsPath(t *testing.T) {
	row := strings.Replace(listing(`{"type":"object","properties":{"id":{"type":"string"}}}`, ""), `"/things"`, `"/keys"`, 1)
	const answer = `{"type":"object","properties":{"limit":{"type":"integer"}}}`
	sp := drawnSpec(t, drafted(t, reading(row, answer, "/keys/{finger_print}", "/url_slugs/{url_slug}", "/download_url", "/secrets/{name}")))
	for path, want := range map[string]bool{"/keys/1": true, "/url_slugs/1": true, "/download_url": false, "/secrets/1": false} {
		target, err := sp.Resolve("x", path, "")
		if err != nil {
			t.Fatal(err)
		}
		if (target.Instance != nil) != want {
			t.Errorf("%s is drawn: %v, want %v", path, !want, want)
		}
	}
}

// TestAnAnswerOfPagesWithoutAListIsKeptByItself draws a read that takes a page and whose answer is a map.
func TestAnAnswerOfPagesWithoutAListIsKeptByItself(t *testing.T) {
	row := listing(`{"type":"object","properties":{"id":{"type":"string"}}}`, "")
	text := reading(row, `{"type":"object","properties":{"policies":{"type":"object"}}}`, "/policies")
	draft := drafted(t, strings.Replace(text, `"/policies":{"get":{`, `"/policies":{"get":{"parameters":[
		{"name":"page","in":"query","schema":{"type":"integer"}},{"name":"per_page","in":"query","schema":{"type":"integer"}}],`, 1))
	if k := drawnSpec(t, draft).Kind("policies"); k == nil || len(k.Instances) != 1 {
		t.Errorf("it is no kind of its own: %+v", k)
	}
	if !hasDoubt(draft, "/policies", "accepts a page number") {
		t.Errorf("no doubt names it: %q", draft.Unsure)
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

// TestARecordBesideWhatOnlyPagesHaveIsDrawn draws an answer with one record and the total of a list: no row answers for
// it. A path with a query is left out, and the doubt says so.
func TestARecordBesideWhatOnlyPagesHaveIsDrawn(t *testing.T) {
	row := `{"type":"object","properties":{"id":{"type":"string"}}}`
	draft := drafted(t, reading(listing(row, ""), `{"type":"object","properties":{"data":`+row+`,"meta":{"type":"object","properties":
		{"total_count":{"type":"integer"}}}}}`, "/things/{id}", "/things/new?form=short"))
	in := drawnSpec(t, draft).Kind("things").Instances
	checktest.MustEqual(t, len(in), 1, "instances: len(in)")
	checktest.Equal(t, in[0].Key, "data", "instances: in[0].Key")
	checktest.Equal(t, in[0].Shape, "things_alone", "instances: in[0].Shape")
	if !hasDoubt(draft, "/things/new?form=short", "a query") {
		t.Errorf("no doubt names the path with a query: %q", draft.Unsure)
	}
}

// TestAnActionIsNoRecord draws a read that may do something beside the path of a record: it is not asked for as a record.
func TestAnActionIsNoRecord(t *testing.T) {
	row := `{"type":"object","properties":{"id":{"type":"string"}}}`
	draft := drafted(t, reading(listing(row, ""), row, "/things/{id}", "/things/export", "/other/export"))
	if got := drawnSpec(t, draft).PassThrough; len(got) != 1 || got[0] != "/things/export" {
		t.Errorf("passes %v", got)
	}
	if !hasDoubt(draft, "/things/export", "looks like the path of a record") || !hasDoubt(draft, "/other/export", "left out") {
		t.Errorf("the doubts are %q", draft.Unsure)
	}
}
