// The shapes of GitHub and Stripe: every answer is checked against the providers'
// own documents and recordings, which come as packages.

package vendors

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stripe/stripe-mock/embedded"

	"understudy/internal/slowapi"
)

// vendor is a slowapi in another shape beside that provider's document.
type vendor struct {
	*testing.T
	document *openapi3.T
	web      *httptest.Server
	header   http.Header
	checked  map[string]int // good answers, by method and path of the document
}

// startVendor serves a shape and reads the document.
func startVendor(t *testing.T, shape string, raw []byte, header http.Header) *vendor {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &vendor{T: t, document: document, web: serveShape(t, shape), header: header, checked: map[string]int{}}
}

func serveShape(t *testing.T, shape string) *httptest.Server {
	t.Helper()
	api, err := slowapi.New(slowapi.Options{Shape: shape, Records: 120})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(api)
	t.Cleanup(func() {
		web.Close()
		if err := api.Close(); err != nil {
			t.Error(err)
		}
	})
	return web
}

// ask sends a request and gives back status and body.
func (v *vendor) ask(method, target, body string) (int, any) {
	v.Helper()
	req, err := http.NewRequest(method, v.web.URL+target, strings.NewReader(body))
	if err != nil {
		v.Fatal(err)
	}
	maps.Copy(req.Header, v.header)
	resp, err := v.web.Client().Do(req)
	if err != nil {
		v.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		v.Fatal(err)
	}
	if len(raw) == 0 {
		return resp.StatusCode, nil
	}
	var whole any
	if err := json.Unmarshal(raw, &whole); err != nil {
		v.Fatalf("%s %s: %v: %.200s", method, target, err, raw)
	}
	return resp.StatusCode, whole
}

// check asks what an operation of the document describes, and compares the answer
// with the schema of its status, member by member.
func (v *vendor) check(method, operation, target, body string, want int) any {
	v.Helper()
	status, whole := v.ask(method, target, body)
	if status != want {
		v.Fatalf("%s %s: %d, not %d: %.300v", method, target, status, want, whole)
	}
	item := v.document.Paths.Value(operation)
	if item == nil || item.GetOperation(method) == nil {
		v.Fatalf("the document has no %s %s", method, operation)
	}
	responses := item.GetOperation(method).Responses
	answer := responses.Value(fmt.Sprint(status))
	if answer == nil {
		answer = responses.Default()
	}
	if answer == nil {
		v.Fatalf("%s %s: the document has no answer %d", method, operation, status)
	}
	v.checked[method+" "+operation]++
	if want == http.StatusNoContent || want == http.StatusNotModified {
		return nil
	}
	schema := answer.Value.Content.Get("application/json").Schema.Value
	if err := schema.VisitJSON(whole, openapi3.MultiErrors(), openapi3.VisitAsResponse()); err != nil {
		v.Errorf("%s %s: %.1500v", method, target, err)
	}
	for path := range strange([]*openapi3.Schema{schema}, whole, "") {
		v.Errorf("%s %s: the document does not name %s", method, target, path)
	}
	return whole
}

// namesOf are the properties of a schema and of those it is made of; open tells
// that it may have any others.
func namesOf(s *openapi3.Schema, depth int) (all map[string][]*openapi3.Schema, items []*openapi3.Schema, open bool) {
	all = map[string][]*openapi3.Schema{}
	for name, p := range s.Properties {
		all[name] = append(all[name], p.Value)
	}
	if s.Items != nil {
		items = append(items, s.Items.Value)
	}
	open = len(s.Properties) == 0 && s.Type.Is("object") || s.AdditionalProperties.Schema != nil
	if depth > 4 {
		return all, items, open
	}
	for _, group := range []openapi3.SchemaRefs{s.AllOf, s.AnyOf, s.OneOf} {
		for _, one := range group {
			more, rows, any := namesOf(one.Value, depth+1)
			for name, p := range more {
				all[name] = append(all[name], p...)
			}
			items, open = append(items, rows...), open || any && len(one.Value.Properties) == 0
		}
	}
	return all, items, open
}

// strange are the members of a value that no schema names.
func strange(schemas []*openapi3.Schema, value any, path string) map[string]bool {
	found, known, open := map[string]bool{}, map[string][]*openapi3.Schema{}, false
	var items []*openapi3.Schema
	for _, s := range schemas {
		all, rows, any := namesOf(s, 0)
		for name, p := range all {
			known[name] = append(known[name], p...)
		}
		items, open = append(items, rows...), open || any
	}
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			maps.Copy(found, strange(items, one, path+"[]"))
		}
	case map[string]any:
		for name, one := range value {
			switch inner := known[name]; {
			case len(inner) > 0:
				maps.Copy(found, strange(inner, one, path+"."+name))
			case !open:
				found[path+"."+name] = true
			}
		}
	}
	return found
}

// text is a member of a record on the way down a path of names and numbers.
func text(value any, path ...any) string {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				return ""
			}
			value = list[step]
		}
	}
	if n, isNumber := value.(float64); isNumber {
		return fmt.Sprintf("%.0f", n)
	}
	s, _ := value.(string)
	return s
}

// nodePackage is a file of an npm package that set-up installs.
func nodePackage(t *testing.T, path ...string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(append([]string{"..", "sdks", "node", "node_modules"}, path...)...))
	if err != nil {
		t.Fatalf("%v (is it installed? `make setup`)", err)
	}
	return raw
}

func githubHeader() http.Header { return http.Header{"Authorization": {"token slowapitoken"}} }

func TestGitHubsShapeIsAsPublished(t *testing.T) {
	t.Parallel()
	v := startVendor(t, "github", nodePackage(t, "@octokit", "openapi", "generated", "api.github.com.json"), githubHeader())
	for _, name := range []string{"pull-request", "pull-request-simple"} {
		// A label's own schema allows null, and that is what is recorded.
		labels := v.document.Components.Schemas[name].Value.Properties["labels"].Value
		labels.Items.Value.Properties["description"].Value.Nullable = true
	}
	repo := "/repos/acme/tracker"
	const base = "/repos/{owner}/{repo}"
	v.check("GET", "/user", "/user", "", 200)
	v.check("GET", "/users/{username}", "/users/ana-dev", "", 200)
	v.check("GET", "/user/repos", "/user/repos", "", 200)
	v.check("GET", "/orgs/{org}/repos", "/orgs/acme/repos", "", 200)
	v.check("GET", "/users/{username}/repos", "/users/robin/repos", "", 200)
	v.check("GET", base, repo, "", 200)
	v.check("GET", base, "/repos/robin/notes", "", 200)
	v.check("GET", "/rate_limit", "/rate_limit", "", 200)
	issues := v.check("GET", base+"/issues", repo+"/issues?state=all&per_page=100", "", 200)
	for _, row := range issues.([]any)[:20] {
		v.check("GET", base+"/issues/{issue_number}", repo+"/issues/"+text(row, "number"), "", 200)
	}
	comments := v.check("GET", base+"/issues/comments", repo+"/issues/comments", "", 200)
	v.check("GET", base+"/issues/comments/{comment_id}", repo+"/issues/comments/"+text(comments, 0, "id"), "", 200)
	of := text(comments, 0, "issue_url")
	of = of[strings.LastIndex(of, "/"):]
	v.check("GET", base+"/issues/{issue_number}/comments", repo+"/issues"+of+"/comments", "", 200)
	v.check("GET", base+"/issues/{issue_number}/labels", repo+"/issues"+of+"/labels", "", 200)
	v.check("GET", base+"/labels", repo+"/labels", "", 200)
	v.check("GET", base+"/labels/{name}", repo+"/labels/good%20first%20issue", "", 200)
	pulls := v.check("GET", base+"/pulls", repo+"/pulls?state=all&per_page=100", "", 200)
	for _, row := range pulls.([]any)[:10] {
		v.check("GET", base+"/pulls/{pull_number}", repo+"/pulls/"+text(row, "number"), "", 200)
	}
	commits := v.check("GET", base+"/commits", repo+"/commits?per_page=100", "", 200)
	v.check("GET", base+"/commits/{ref}", repo+"/commits/"+text(commits, 0, "sha"), "", 200)
	releases := v.check("GET", base+"/releases", repo+"/releases", "", 200)
	v.check("GET", base+"/releases/{release_id}", repo+"/releases/"+text(releases, 0, "id"), "", 200)
	v.check("GET", base+"/releases/latest", repo+"/releases/latest", "", 200)
	v.check("GET", base+"/stats/contributors", repo+"/stats/contributors", "", 202)
	v.check("GET", base+"/stats/contributors", repo+"/stats/contributors", "", 200)
	v.check("GET", "/search/issues", "/search/issues?q=is:pr+repo:acme/tracker", "", 200)

	made := v.check("POST", base+"/issues", repo+"/issues", `{"title":"New","body":"x","labels":["bug"],"assignees":["ana-dev"]}`, 201)
	n := text(made, "number")
	v.check("PATCH", base+"/issues/{issue_number}", repo+"/issues/"+n, `{"state":"closed"}`, 200)
	comment := v.check("POST", base+"/issues/{issue_number}/comments", repo+"/issues/"+n+"/comments", `{"body":"x"}`, 201)
	v.check("PATCH", base+"/issues/comments/{comment_id}", repo+"/issues/comments/"+text(comment, "id"), `{"body":"y"}`, 200)
	v.check("DELETE", base+"/issues/comments/{comment_id}", repo+"/issues/comments/"+text(comment, "id"), "", 204)
	v.check("POST", base+"/issues/{issue_number}/labels", repo+"/issues/"+n+"/labels", `{"labels":["ui"]}`, 200)
	v.check("POST", base+"/labels", repo+"/labels", `{"name":"new","color":"00ff00"}`, 201)
	v.check("DELETE", base+"/labels/{name}", repo+"/labels/new", "", 204)

	v.check("GET", base, "/repos/acme/nothing", "", 404)
	v.check("GET", base+"/issues", repo+"/issues?state=odd", "", 422)
	v.check("POST", base+"/labels", repo+"/labels", `{"name":"x","color":"?"}`, 422)
	if len(v.checked) < 30 {
		t.Errorf("only %d operations were checked", len(v.checked))
	}
}

// Recordings of the real API: whatever member a recorded answer has, that of
// slowapi has too, and of the same sort.
func TestGitHubsShapeIsAsRecorded(t *testing.T) {
	t.Parallel()
	v := &vendor{T: t, web: serveShape(t, "github"), header: githubHeader()}
	repo := "/repos/acme/tracker"
	_, list := v.ask("GET", repo+"/issues?state=all&per_page=100", "")
	issue := list.([]any)[slices.IndexFunc(list.([]any), func(row any) bool { return row.(map[string]any)["pull_request"] == nil })]
	_, label := v.ask("GET", repo+"/labels/bug", "")
	_, whole := v.ask("GET", repo, "")
	_, search := v.ask("GET", "/search/issues?q=repo:acme/tracker", "")
	_, refused := v.ask("POST", repo+"/labels", `{"name":"x","color":"?"}`)
	compared := 0
	for _, one := range []struct {
		scenario string
		at       int
		row      bool // the first of a list
		ours     any
	}{
		{"paginate-issues", 0, true, issue}, {"labels", 0, true, label}, {"get-repository", 0, false, whole},
		{"search-issues", 0, false, search}, {"errors", 0, false, refused}, {"add-labels-to-issue", 0, false, issue},
	} {
		var recorded []struct{ Response any }
		raw := nodePackage(t, "@octokit", "fixtures", "scenarios", "api.github.com", one.scenario, "normalized-fixture.json")
		if err := json.Unmarshal(raw, &recorded); err != nil {
			t.Fatal(err)
		}
		theirs := recorded[one.at].Response
		if one.row {
			theirs = theirs.([]any)[0]
		}
		compared += sameSort(t, one.scenario, theirs, one.ours)
	}
	if compared < 200 {
		t.Errorf("only %d members were compared", compared)
	}
}

// sameSort compares what was recorded with ours: names, and what sort of value
// stands there; null stands for any. It gives back how many members it compared.
func sameSort(t *testing.T, path string, theirs, ours any) int {
	t.Helper()
	if theirs == nil || ours == nil {
		return 1
	}
	if fmt.Sprintf("%T", theirs) != fmt.Sprintf("%T", ours) {
		t.Errorf("%s is recorded as %T, ours is %T", path, theirs, ours)
		return 1
	}
	n := 1
	switch theirs := theirs.(type) {
	case map[string]any:
		for name, value := range theirs {
			mine, there := ours.(map[string]any)[name]
			if !there && !onlyRecorded[name] {
				t.Errorf("%s.%s is recorded, and missing in ours", path, name)
				continue
			}
			n += sameSort(t, path+"."+name, value, mine)
		}
	case []any:
		if len(theirs) > 0 && len(ours.([]any)) > 0 {
			n += sameSort(t, path+"[]", theirs[0], ours.([]any)[0])
		}
	}
	return n
}

// onlyRecorded are members of the time of the recordings that the document of
// today has no more, and those of an issue that only its single form has.
var onlyRecorded = map[string]bool{"closed_by": true}

func TestStripesShapeIsAsPublished(t *testing.T) {
	t.Parallel()
	v := startVendor(t, "stripe", embedded.OpenAPISpec, http.Header{"Authorization": {"Bearer sk_test_slowapitoken"}})
	for _, kind := range []string{"customers", "charges", "payment_intents", "refunds", "products", "prices", "subscriptions", "invoices", "events"} {
		list := v.check("GET", "/v1/"+kind, "/v1/"+kind+"?limit=100", "", 200)
		id := text(list, "data", 0, "id")
		name := slices.IndexFunc(slices.Collect(maps.Keys(v.document.Paths.Map())), func(p string) bool { return p == "/v1/"+kind })
		if id == "" || name < 0 {
			t.Fatalf("%s: nothing in %.200v", kind, list)
		}
		v.check("GET", v.single("/v1/"+kind), "/v1/"+kind+"/"+id, "", 200)
		v.check("GET", v.single("/v1/"+kind), "/v1/"+kind+"/none", "", 404)
		if kind != "refunds" && kind != "events" {
			v.check("GET", "/v1/"+kind+"/search", "/v1/"+kind+"/search?query=created%3E0&limit=3", "", 200)
			v.check("POST", v.single("/v1/"+kind), "/v1/"+kind+"/"+id, "metadata[order]=7", 200)
		}
	}
	_, invoices := v.ask("GET", "/v1/invoices", "")
	v.check("GET", "/v1/invoices/{invoice}/lines", "/v1/invoices/"+text(invoices, "data", 0, "id")+"/lines", "", 200)
	_, subs := v.ask("GET", "/v1/subscriptions", "")
	items := v.check("GET", "/v1/subscription_items", "/v1/subscription_items?subscription="+text(subs, "data", 0, "id"), "", 200)
	v.check("GET", v.single("/v1/subscription_items"), "/v1/subscription_items/"+text(items, "data", 0, "id"), "", 200)
	v.check("GET", "/v1/balance", "/v1/balance", "", 200)
	v.check("GET", "/v1/charges", "/v1/charges?expand[]=data.customer&expand[]=data.payment_intent.latest_charge", "", 200)

	made := v.check("POST", "/v1/customers", "/v1/customers", "name=Ada&metadata[a]=b&address[city]=Bern", 200)
	_, prices := v.ask("GET", "/v1/prices", "")
	form := "customer=" + text(made, "id") + "&items[0][price]=" + text(prices, "data", 0, "id")
	sub := v.check("POST", "/v1/subscriptions", "/v1/subscriptions", form, 200)
	v.check("DELETE", v.single("/v1/subscriptions"), "/v1/subscriptions/"+text(sub, "id"), "", 200)
	_, charges := v.ask("GET", "/v1/charges/search?query=status:'succeeded'%20amount_refunded%3C1", "")
	v.check("POST", "/v1/refunds", "/v1/refunds", "charge="+text(charges, "data", 0, "id")+"&amount=100", 200)
	v.check("DELETE", "/v1/customers/{customer}", "/v1/customers/"+text(made, "id"), "", 200)
	v.check("POST", "/v1/customers", "/v1/customers", "nme=x", 400)
	if len(v.checked) < 38 {
		t.Errorf("only %d operations were checked", len(v.checked))
	}
}

// single is the document's path of one record of a list.
func (v *vendor) single(list string) string {
	v.Helper()
	for path := range v.document.Paths.Map() {
		rest, below := strings.CutPrefix(path, list+"/{")
		if below && strings.HasSuffix(rest, "}") && !strings.Contains(rest, "/") {
			return path
		}
	}
	v.Fatalf("the document has no record below %s", list)
	return ""
}
