// GraphQL: what a request may change is said by the fields of its mutation.

package spec

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"understudy"
)

// tracker is an API whose reads are REST and whose writes are GraphQL.
func tracker(t testing.TB) *Spec {
	t.Helper()
	s := &Spec{
		Name: "tracker", Title: "Tracker", Hosts: []Host{{URL: "https://tracker.example"}}, Auth: Auth{Style: "none"}, GraphQL: "/graphql",
		Kinds: []*Kind{
			{
				Name: "issues", ID: []string{"id"}, Fields: []*Field{{Name: "id"}, {Name: "clone_token", Class: ClassSecret}},
				Lists: []*List{{Path: "/issues"}}, ChangingWrites: ChangingWrites{Mutations: []string{"createIssue", "closeIssue"}},
			},
			{Name: "labels", ID: []string{"id"}, Fields: []*Field{{Name: "id"}}, Lists: []*List{{Path: "/labels"}},
				ChangingWrites: ChangingWrites{Mutations: []string{"createIssue", "createLabel"}}},
			{Name: "users", ID: []string{"id"}, Fields: []*Field{{Name: "id"}}, Lists: []*List{{Path: "/users"}}},
		},
	}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	return s
}

func graphBody(t testing.TB, document, operation string) []byte {
	t.Helper()
	request := map[string]any{"query": document}
	if operation != "" {
		request["operationName"] = operation
	}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestMutationsCountByTheirFields(t *testing.T) {
	t.Parallel()
	s := tracker(t)
	const unread = "issues labels" // all kinds that name a mutation
	for _, c := range []struct{ situation, document, operation, changed string }{
		{"a name of the client's own", `mutation M($t: String!) { createIssue(input: {title: $t}) { issue { id } } }`, "", "issues labels"},
		{"anonymous", `mutation { closeIssue { id } }`, "", "issues"},
		{"an alias", `mutation { createLabel: closeIssue(a: "}") { id } }`, "", "issues"},
		{"an alias like a mutation", `mutation { closeIssue: other { id } }`, "", ""},
		{"an operation named like a mutation", `mutation closeIssue { other { closeIssue } }`, "", ""},
		{"two fields", "mutation { other { id } b: createLabel(x: [{y: 1}]) @include(if: $c) { id } }", "", "labels"},
		{"a fragment", `fragment F on Mutation { closeIssue { id } } mutation { ...F }`, "", "issues"},
		{"a fragment in a fragment", `mutation { ...F } fragment F on M { ...G } fragment G on M { createLabel { id } ...F }`, "", "labels"},
		{"an inline fragment", `mutation { ... on Mutation @skip(if: false) { ... { closeIssue { id } } } other { id } }`, "", "issues"},
		{"a fragment below the root", `mutation { other { ...F } } fragment F on M { closeIssue }`, "", ""},
		{"one of several operations", `mutation A { closeIssue { id } } mutation B { createLabel { id } } query C { users }`, "B", "labels"},
		{"the query of several operations", `mutation A { closeIssue { id } } query C { closeIssue }`, "C", ""},
		{"comments", "mutation { # { closeIssue }\n createLabel # \"\"\"\n { id } }", "", "labels"},
		{"strings", `mutation { other(a: "\" } closeIssue {", b: """ } \""" createLabel { """) { id } closeIssue }`, "", "issues"},
		{"a variable's default", `mutation M($a: In = {closeIssue: {f: "}"}}) @d(a: {b: 1}) { createLabel(a: $a) { id } }`, "", "labels"},
		{"a subscription", `subscription { closeIssue { id } }`, "", "issues"},
		{"a query", `query Q { createIssue { id } }`, "", ""},
		{"a short query", `{ createIssue { id } }`, "", ""},
		{"several operations without a choice", `mutation A { other } query B { users }`, "", unread},
		{"an operation that is not there", `query B { users }`, "A", unread},
		{"two operations of one name", `query A { users } mutation A { other }`, "A", unread},
		{"a fragment that is not there", `mutation { ...F }`, "", unread},
		{"two fragments of one name", `mutation { ...F } fragment F on M { a } fragment F on M { closeIssue }`, "", unread},
		{"no field", `mutation { }`, "", unread},
		{"a string without an end", `query { a(b: "x) }`, "", unread},
		{"braces that do not fit", `query { a `, "", unread},
		{"a type definition", `type A { b: C } query { a }`, "", unread},
		{"nothing", ``, "", unread},
	} {
		var changed []string
		for _, t := range s.ChangedTargets(understudy.Key{Source: "tracker", URI: "/graphql"}, graphBody(t, c.document, c.operation)) {
			changed = append(changed, t.Kind.Name)
		}
		if got := strings.Join(changed, " "); got != c.changed {
			t.Errorf("%s: %q changes %q, want %q", c.situation, c.document, got, c.changed)
		}
		post, err := s.ParsePost("tracker", "/graphql", "", "application/json", graphBody(t, c.document, c.operation))
		if err != nil {
			t.Errorf("%s: %v", c.situation, err)
			continue
		}
		if isQuery := strings.Contains(c.situation, "query"); (post.Purpose == PostQueries) != isQuery {
			t.Errorf("%s: %q is %v; a query: %v", c.situation, c.document, post.Purpose, isQuery)
		}
	}
}

// A body that is none of JSON, or an address with parameters, may hold another operation than
// the one that was read.
func TestGraphQLThatIsNotReadWholeIsAWrite(t *testing.T) {
	t.Parallel()
	s, query := tracker(t), string(graphBody(t, "{ users }", ""))
	for situation, c := range map[string]struct{ query, contentType, body string }{
		"a batch":                   {"", "application/json", "[" + query + "]"},
		"a persisted document":      {"", "application/json", `{"id":"7"}`},
		"another type":              {"", "application/graphql", query},
		"no type":                   {"", "", query},
		"a form":                    {"", "application/x-www-form-urlencoded", "query=%7Busers%7D"},
		"no body":                   {"", "application/json", ""},
		"parameters in the address": {"query=mutation%7BcloseIssue%7D", "application/json", query},
	} {
		post, err := s.ParsePost("tracker", "/graphql", c.query, c.contentType, []byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", situation, err)
			continue
		}
		if post.Purpose != PostWrites {
			t.Errorf("%s is %v, want a write", situation, post.Purpose)
		}
	}
	for _, uri := range []string{"/graphql", "/graphql?query=x"} {
		if all := s.ChangedTargets(understudy.Key{Source: "tracker", URI: uri}, []byte("["+query+"]")); len(all) != 2 {
			t.Errorf("a batch to %s changes %d kinds, want both that name mutations", uri, len(all))
		}
	}
	twice := []byte(`{"query":"mutation{x}","more":1,"query":"{ users }"}`)
	post, err := s.ParsePost("tracker", "/graphql", "", "application/json", twice)
	if err != nil || string(post.Body) != `{"query":"{ users }"}` {
		t.Errorf("what is sent of a body with two documents: %s, %v", post.Body, err)
	}
}

func TestGraphQLDoesNotAskForSecrets(t *testing.T) {
	t.Parallel()
	s := tracker(t)
	for _, document := range []string{"{ issue { cloneToken } }", "mutation { closeIssue { x: clone_token } }",
		"{ a { ...F } } fragment F on I { cloneToken }"} {
		_, err := s.ParsePost("tracker", "/graphql", "", "application/json", graphBody(t, document, ""))
		if !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("%s: %v, want that it is forbidden", document, err)
		}
	}
}

func TestPathsThatPass(t *testing.T) {
	t.Parallel()
	s := tracker(t)
	s.PassThrough = []string{"/", "/repos/{owner}/{repo}/readme"}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/": true, "/graphql": true, "/repos/a/b/readme": true, "/repos/a/readme": false,
		"/issues": false} {
		if got := s.IsPassThrough(path); got != want {
			t.Errorf("%s passes: %v, want %v", path, got, want)
		}
	}
	s.GraphQL = "/{a}"
	if err := s.Compile(); err == nil || !strings.Contains(err.Error(), "without variables") {
		t.Errorf("a GraphQL path with a variable: %v", err)
	}
}

// TestAliases: a path that begins with an alias means the path that the alias stands for. Others mean what they say.
func TestAliases(t *testing.T) {
	t.Parallel()
	s := tracker(t)
	s.Aliases = map[string]string{"/api/v3": "", "/api/v3/old": "/labels", "/api/graphql": "/graphql"}
	s.Limits.Path = "/rate"
	for path, want := range map[string]string{
		"/api/v3/issues": "/issues", "/issues": "/issues", "/api/v3": "/", "/api/v3/": "/", "/api/v3/old": "/labels", "/api/v3/older": "/older",
		"/api/v30/issues": "/api/v30/issues", "/issues/api/v3": "/issues/api/v3", "/api/graphql": "/graphql", "/api/v3/api/v3/x": "/api/v3/x",
		"/API/v3/issues": "/API/v3/issues",
	} {
		got, err := s.Resolve("tracker", path, "")
		if err != nil || got.Key.Path() != want {
			t.Errorf("%s means %v, want %s (%v)", path, got, want, err)
		}
	}
	if got, err := s.Resolve("tracker", "/api/v3/issues", ""); err != nil || got.Kind == nil || got.Kind.Name != "issues" {
		t.Errorf("the list has the kind %v (%v)", got.Kind, err)
	}
	if _, err := s.Resolve("tracker", "/api/v3/../issues", ""); err == nil {
		t.Error("dot segments behind an alias are not refused")
	}
	posted, err := s.ParsePost("tracker", "/api/graphql", "", "application/json", graphBody(t, `mutation { closeIssue { id } }`, ""))
	if err != nil || posted.Target.Key.Path() != "/graphql" {
		t.Errorf("a mutation by an alias: %+v (%v)", posted, err)
	}
	if !s.HasPostedRead("/api/graphql") {
		t.Error("a POST to an alias is not examined")
	}
	for path, want := range map[string]bool{"/rate": true, "/api/v3/rate": true, "/x/rate": false, "/api/v3/rate/": false} {
		if s.IsRatePath(path) != want {
			t.Errorf("%s is the path of the limits: %v", path, !want)
		}
	}
	for alias, path := range map[string]string{"api": "", "/api/": "", "": "/x", "/api": "x", "/{a}": "", "/a%2f": "", "/a?b": ""} {
		bad := tracker(t)
		bad.Aliases = map[string]string{alias: path}
		if err := bad.Compile(); err == nil || !strings.Contains(err.Error(), "is no beginning of paths") {
			t.Errorf("%q: %q: %v", alias, path, err)
		}
	}
}
