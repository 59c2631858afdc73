// Reads by POST: their keys, and what upstream is asked.

package spec

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/kit/jsonspan"
	"understudy/spec/paging"
)

const issuesQuery = `query Issues($first: Int = 50, $after: String) {
  # the newest first
  repository(owner: "o", name: "r") { issues(first: $first, after: $after) { nodes { id title } pageInfo { endCursor hasNextPage } } }
}`

// chat is an API whose reads are POSTs.
func chat(t testing.TB) *Spec {
	t.Helper()
	s := &Spec{
		Name: "chat", Hosts: []Host{{URL: "https://chat.example"}}, Auth: Auth{Style: "none"},
		Errors: Errors{Bodies: []State{{Field: "ok", In: []string{"false"}}, {Field: "errors"}}},
		Kinds: []*Kind{
			{
				Name: "channels", ID: []string{"id"}, Fields: []*Field{{Name: "id"}},
				Lists: []*List{{Path: "/api/channels.list", Key: "channels", Posted: Posted{Post: "form"},
					Filters: []*Filter{{Name: "types"}, {Name: "archived", Type: "bool"}}}},
				Instances:      []*Instance{{Path: "/api/channels.info", ID: []string{"channel"}, Posted: Posted{Post: "json"}}},
				ChangingWrites: ChangingWrites{Writes: []string{"/api/channels.rename"}},
			},
			{
				Name: "issues", ID: []string{"id"}, Fields: []*Field{{Name: "id"}, {Name: "title"}},
				Lists: []*List{{Path: "/graphql", Key: "data.repository.issues.nodes", Posted: Posted{Post: "graphql", Document: issuesQuery},
					Paging: "graph"}},
				ChangingWrites: ChangingWrites{Mutations: []string{"closeIssue"}},
			},
		},
		Pagings: map[string]*Paging{"graph": {Rules: paging.Rules{Style: "none", Size: "variables.first", Default: 50}}},
	}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadsByPost(t *testing.T) {
	s := chat(t)
	graph := func(document, variables string) string {
		text, _ := json.Marshal(document)
		return `{"query":` + string(text) + `,"variables":` + variables + `}`
	}
	const form, object = "application/x-www-form-urlencoded", "application/json; charset=utf-8"
	for _, c := range []struct {
		path, contentType, body string
		read                    bool
		key, id, asked, says    string
	}{
		{"/api/channels.list", form, "types=a%2Cb&limit=5", true, "/api/channels.list?types=a%2Cb&limit=5", "", "limit=5&types=a%2Cb", ""},
		{"/api/channels.list?types=c", form, "", true, "/api/channels.list?types=c", "", "types=c", ""},
		{"/api/channels.list", object, `{"types":"12","archived":true}`, true, "/api/channels.list?types=%2212%22&archived=true", "",
			"archived=true&types=%2212%22", ""},
		{"/api/channels.info", object, `{"channel":"C1"}`, true, "/api/channels.info/C1", "C1", `{"channel":"C1"}`, ""},
		{"/api/channels.info", object, `{"channel":"C1","deep":{"a": [1, 2]},"n":7}`, true,
			"/api/channels.info/C1?deep=%7B%22a%22%3A%5B1%2C2%5D%7D&n=7",
			"C1", `{"channel":"C1","deep":{"a":[1,2]},"n":7}`, ""},
		{"/api/channels.info", object, `{}`, false, "/api/channels.info", "", "", ""},
		{"/api/channels.info", object, `[]`, false, "", "", "", "not a JSON object"},
		{"/api/channels.info", "text/plain", `x`, false, "", "", "", "has another Content-Type than"},
		{"/api/channels.info", "", `x`, false, "", "", "", "Content-Type"},
		{"/graphql", object, graph(issuesQuery, `{"after":"x","first":20}`), true,
			"/graphql/Issues?variables.after=x&variables.first=20", "",
			graph(strings.Join(strings.Fields(issuesQuery), " "), `{"after":"x","first":20}`), ""},
		{"/graphql", object, graph(strings.ReplaceAll(issuesQuery, "\n", "  "), `null`), false, "/graphql", "", "", ""}, // all comment
		{"/graphql", object, graph(strings.ReplaceAll(issuesQuery, "title", "title body"), `{}`), false, "/graphql", "", "", ""},
		{"/graphql", object, graph("mutation Any { closeIssue { id } }", `{}`), false, "/graphql", "", "", ""},
		{"/graphql", object, graph("query {", `{}`), false, "/graphql", "", "", ""},
	} {
		path, query, _ := strings.Cut(c.path, "?")
		if !s.HasPostedRead(path) {
			t.Fatalf("%s is not read by POST", path)
		}
		post, err := s.ParsePost("chat", path, query, c.contentType, []byte(c.body))
		got, read := post.Target, post.Purpose == PostReads
		if c.says != "" {
			if !errors.Is(err, understudy.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s %s: %v, want %q", c.path, c.body, err, c.says)
			}
			continue
		}
		checktest.MustNoError(t, err, "%s %s; got %v", c.path, c.body, got)
		checktest.MustEqual(t, read, c.read, "%s %s: read; got %v", c.path, c.body, got)
		checktest.MustEqual(t, got.Key.URI, c.key, "%s %s: got.Key.URI", c.path, c.body)
		checktest.MustEqual(t, got.ID, c.id, "%s %s: got.ID", c.path, c.body)
		if !read {
			continue
		}
		method, uri, body, _ := got.UpstreamRequest()
		var is, want any
		if json.Unmarshal(body, &is) == nil && json.Unmarshal([]byte(c.asked), &want) == nil {
			if m, ok := is.(map[string]any); ok && m["query"] != nil {
				m["query"] = strings.Join(strings.Fields(m["query"].(string)), " ")
				delete(m, "operationName")
			}
			if !reflect.DeepEqual(is, want) {
				t.Errorf("%s: upstream is asked %s, want %s", c.body, body, c.asked)
			}
		} else if string(body) != c.asked {
			t.Errorf("%s: upstream is asked %s, want %s", c.body, body, c.asked)
		}
		if method != "POST" || uri != path {
			t.Errorf("%s %s: asked %s %s", c.path, c.body, method, uri)
		}
		again, err := s.ResolveKey(got.Key) // a key says all there is
		checktest.MustNoError(t, err, "%s again", got.Key)
		checktest.Equal(t, again.Key, got.Key, "%s again: again.Key", got.Key)
		checktest.Equal(t, again.ID, got.ID, "%s again: again.ID", got.Key)
	}
	all := s.ChangedTargets(understudy.Key{URI: "/api/channels.rename"}, nil)
	checktest.MustEqual(t, len(all), 1, "a rename changes: len(all)")
	checktest.Equal(t, all[0].Kind.Name, "channels", "a rename changes: all[0].Kind.Name")
	checktest.True(t, s.ChangedTargets(understudy.Key{URI: "/api/channels.list"}, nil) == nil,
		`a rename changes: s.ChangedTargets(understudy.Key{URI: "/api/channels.list"}, nil) != nil`)
	for body, bad := range map[string]bool{`{"ok":false}`: true, `{"ok":true}`: false, `{}`: false, `{"errors":[]}`: true,
		`{"errors":null}`: false} {
		if got := s.Errors.MatchBody([]byte(body), mustDocument(t, body)); got != bad {
			t.Errorf("%s is an error: %v", body, got)
		}
	}
}

func TestPostedThatCannotBe(t *testing.T) {
	for says, l := range map[string]List{
		"write form, json or graphql":         {Path: "/a", Posted: Posted{Post: "xml"}},
		"has no effect without post: graphql": {Path: "/a", Posted: Posted{Post: "form", Document: "{a}"}},
		"write one query with a name":         {Path: "/a", Posted: Posted{Post: "graphql", Document: "{a}"}},
		"no operation":                        {Path: "/a", Posted: Posted{Post: "graphql"}},
		"cannot be read":                      {Path: "/a", Posted: Posted{Post: "graphql", Document: "query A { a "}},
	} {
		s := one(Headers{})
		s.Kinds = []*Kind{{Name: "a", Lists: []*List{&l}}}
		if err := s.Compile(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", l, err, says)
		}
	}
}

// FuzzPosted: whatever a body says, upstream is asked for what its key says, and a key is
// read as it was written.
func FuzzPosted(f *testing.F) {
	s := chat(f)
	for _, body := range []string{`{"channel":"C1"}`, `{"query":"query Issues{a}","variables":{"a":1}}`, "a=b&c=%22x",
		`{"channel":"1"}`, `{"a":" 1"}`,
		`{"query":"mutation CloseIssue{a(b:\"{\")}"}`, `{"channel":"a/b?c d"}`} {
		for _, path := range []string{"/api/channels.list", "/api/channels.info", "/graphql"} {
			f.Add(path, "application/json", []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, path, contentType string, body []byte) {
		post, err := s.ParsePost("chat", path, "", contentType, body)
		if err != nil || post.Purpose != PostReads {
			return
		}
		got := post.Target
		again, err := s.ResolveKey(got.Key)
		checktest.MustNoError(t, err, "%s", got.Key)
		checktest.MustEqual(t, again.Key, got.Key, "%s: again.Key", got.Key)
		checktest.MustEqual(t, again.ID, got.ID, "%s: again.ID", got.Key)
		_, uri, sent, contentType := got.UpstreamRequest()
		twice, err := s.ParsePost("chat", uri, "", contentType, sent)
		checktest.MustNoError(t, err, "%s sent as %s", got.Key, sent)
		checktest.MustEqual(t, twice.Purpose, PostReads, "%s sent as %s: twice.Purpose", got.Key, sent)
		checktest.MustEqual(t, twice.Target.Key, got.Key, "%s sent as %s: twice.Target.Key", got.Key, sent)
	})
}

func mustDocument(t *testing.T, body string) jsonspan.Value {
	t.Helper()
	doc, err := jsonspan.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
