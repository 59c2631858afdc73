// Stripe: its spec beside its OpenAPI document, and its SDKs in front of stripe-mock, which
// is made of that document. Both are in the module stripe-mock.

package vendorsdk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stripe/stripe-mock/embedded"
	"github.com/stripe/stripe-mock/server"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/spec"
	"understudy/upstream"
)

// stripeDocument is what of the document the spec is compared with.
type stripeDocument struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Name, In string
			Schema   stripeSchema
		}
		Responses map[string]struct {
			Content map[string]struct{ Schema stripeSchema }
		}
	}
	Components struct{ Schemas map[string]stripeSchema }
}

type stripeSchema struct {
	Ref        string `json:"$ref"`
	Type       string
	Enum       []any
	Properties map[string]stripeSchema
	Items      *stripeSchema
	AnyOf      []stripeSchema
}

// resolve follows a reference; of several forms the first counts.
func (d *stripeDocument) resolve(s stripeSchema) stripeSchema {
	for range 8 {
		switch {
		case s.Ref != "":
			s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		case len(s.Properties) == 0 && len(s.AnyOf) > 0:
			s = s.AnyOf[0]
		default:
			return s
		}
	}
	return s
}

func (d *stripeDocument) answer(path string) stripeSchema {
	return d.resolve(d.Paths[path]["get"].Responses["200"].Content["application/json"].Schema)
}

// Every list, instance, filter and field of the spec is in the document, and no field of a
// record in the document is missing from the spec. The document has no v2.
func TestStripeSpecIsTheDocument(t *testing.T) {
	t.Parallel()
	var d stripeDocument
	if err := json.Unmarshal(embedded.OpenAPISpec, &d); err != nil {
		t.Fatal(err)
	}
	sp, err := upstream.ReadBuiltIn("stripe")
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for _, k := range sp.Kinds {
		if k.Name == "v2_events" {
			continue
		}
		for _, l := range k.Lists {
			lists++
			list := d.answer(l.Path)
			if list.Properties["data"].Items == nil {
				t.Errorf("%s is no list", l.Path)
				continue
			}
			compareFields(t, k, d.resolve(*list.Properties["data"].Items))
			compareParameters(t, &d, sp, l)
		}
		for _, in := range k.Instances {
			compareFields(t, k, d.answer(in.Path))
		}
	}
	if lists < 20 {
		t.Errorf("%d lists", lists)
	}
}

func compareFields(t *testing.T, k *spec.Kind, s stripeSchema) {
	t.Helper()
	for name := range s.Properties {
		if k.Field(name) == nil {
			t.Errorf("%s has no field %s", k.Name, name)
		}
	}
	for _, f := range k.Fields {
		if _, ok := s.Properties[f.Name]; !ok && f.Name != k.Deleted {
			t.Errorf("%s: the document has no field %s", k.Name, f.Name)
		}
	}
}

func compareParameters(t *testing.T, d *stripeDocument, sp *spec.Spec, l *spec.List) {
	t.Helper()
	p := sp.PagingOf(l)
	names := append([]string{p.Size}, p.Tokens...)
	for _, f := range l.Filters {
		name, _, _ := strings.Cut(f.Name, "[")
		names = append(names, name)
		for _, value := range append(f.Values, f.SelectAll...) {
			if !slices.ContainsFunc(d.Paths[l.Path]["get"].Parameters, func(p struct {
				Name, In string
				Schema   stripeSchema
			}) bool {
				return p.Name == f.Name && slices.Contains(p.Schema.Enum, any(value))
			}) {
				t.Errorf("%s: the document has no value %s of %s", l.Path, value, f.Name)
			}
		}
	}
	for _, name := range names {
		found := false
		for _, p := range d.Paths[l.Path]["get"].Parameters {
			found = found || p.In == "query" && p.Name == name
		}
		if !found {
			t.Errorf("%s: the document has no parameter %s", l.Path, name)
		}
	}
}

// stripeMock is stripe-mock over HTTP, with the headers that it was asked with.
type stripeMock struct {
	*server.StubServer
	mu      sync.Mutex
	headers []http.Header
}

func (m *stripeMock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.headers = append(m.headers, r.Header.Clone())
	m.mu.Unlock()
	m.HandleRequest(w, r)
}

// startStripe starts stripe-mock, and Understudy in front of it with the source's user and
// secret alone.
func startStripe(t *testing.T) (m *stripeMock, up, drop string) {
	t.Helper()
	document, err := server.LoadSpec(embedded.OpenAPISpec, "")
	if err != nil {
		t.Fatal(err)
	}
	fixtures, err := server.LoadFixtures(embedded.OpenAPIFixtures, "")
	if err != nil {
		t.Fatal(err)
	}
	stub, err := server.NewStubServer(fixtures, document, false, false)
	if err != nil {
		t.Fatal(err)
	}
	m = &stripeMock{StubServer: stub}
	api := httptest.NewServer(m)
	t.Cleanup(api.Close)
	dir := t.TempDir()
	for name, text := range map[string]string{"stripe.token": "sk_test_123", "till.secret": rig.StripeToken, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  stripe: {spec: stripe, user: acct_1, secret: "file:stripe.token", upstream: "` + api.URL + `", listen: "127.0.0.1:0"}
credentials:
  - {name: till, source: stripe, secret: "file:till.secret", role: all, allow: ["POST /v1/*", "POST /v1/*/*", "DELETE /v1/*/*"]}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return m, api.URL, rig.Start(t, dir, "serve").URL("stripe")
}

// What stripe-mock answers passes byte for byte, and is kept where it has records.
func TestStripeMockPassesThrough(t *testing.T) {
	t.Parallel()
	_, up, drop := startStripe(t)
	sp, err := upstream.ReadBuiltIn("stripe")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, k := range sp.Kinds {
		if k.Name == "v2_events" {
			continue
		}
		for _, l := range k.Lists {
			if path := l.Path; l.Filter("query") != nil {
				paths = append(paths, path+"?query=a")
			} else {
				paths = append(paths, path, path+"?limit=3")
			}
		}
		for _, in := range k.Instances {
			path, _ := in.Template().Fill(func(string) (string, bool) { return k.Name + "_1", true })
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		direct, err := rig.Ask(http.MethodGet, "", up+path, "", "Authorization", "Bearer sk_test_123")
		if err != nil {
			t.Fatal(err)
		}
		for _, outcome := range []string{"fwd=uri-miss", "hit"} {
			r, err := rig.Ask(http.MethodGet, rig.StripeToken+":", drop+path, "")
			checktest.MustNoError(t, err, "%s", path)
			checktest.Equal(t, r.Status, direct.Status, "%s: r.Status", path)
			checktest.True(t, sameJSON(r.Body, direct.Body) == nil, "%s: sameJSON(r.Body, direct.Body) != nil", path)
			if how := r.Header.Get("Cache-Status"); direct.Status == http.StatusOK && (!strings.Contains(how, outcome) || strings.Contains(how, "not stored")) {
				t.Errorf("%s: %s", path, how)
			}
		}
	}
}

// sameJSON compares two documents, less the ids and times that stripe-mock draws anew.
func sameJSON(a, b []byte) error {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return fmt.Errorf("no JSON: %.100s, %.100s", a, b)
	}
	if left, right := shapeOf(x), shapeOf(y); left != right {
		return fmt.Errorf("%.600s is not %.600s", left, right)
	}
	return nil
}

func shapeOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var all []string
		for name, of := range v {
			all = append(all, name+":"+shapeOf(of))
		}
		slices.Sort(all)
		return "{" + strings.Join(all, " ") + "}"
	case []any:
		var all []string
		for _, of := range v {
			all = append(all, shapeOf(of))
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	return fmt.Sprintf("%T", v)
}

// The lines that the spec gives each client run as they are.
func TestStripeConnectLines(t *testing.T) {
	t.Parallel()
	m, _, drop := startStripe(t)
	sp, err := upstream.ReadBuiltIn("stripe")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sp.Snippets {
		code := spec.Connection{Address: drop, Secret: rig.StripeToken, Account: "acct_1"}.Fill(s)
		out, err := rig.RunLines(t, s.Language, code)
		if err != nil || !strings.Contains(string(out), "cus_") {
			t.Errorf("%s: %v\n%s", s.Title, err, out)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.headers {
		if h.Get("Authorization") != "Bearer sk_test_123" || h.Get("X-Stripe-Client-User-Agent") != "" {
			t.Errorf("stripe-mock was asked with %v", h)
		}
	}
}
