// Targets: requests that must get the same bytes have the same key; what is refused.

package spec

import (
	"errors"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec/paging"
)

const calls = "/1/AC1/Calls.json"

// exampleSpec is made up for tests.
func exampleSpec(t testing.TB) *Spec {
	t.Helper()
	filters := []*Filter{{Name: "To", Field: "to"}, {Name: "Start", Field: "start", Op: "day"}, {Name: "Start<", Field: "start"},
		{Name: "Start>", Field: "start"}}
	s := &Spec{
		Name: "example",
		Hosts: []Host{{URL: "https://api.example.com", Prefixes: []string{"/1"}},
			{URL: "https://monitor.example.com/", Prefixes: []string{"/v1/", "/v2"}}},
		Auth: Auth{Style: "basic"},
		Paging: Paging{Rules: paging.Rules{Style: "body", Next: "next", Size: "PageSize", Default: 50, Max: 1000, Page: "Page",
			Tokens: []string{"PageToken"}}},
		Kinds: []*Kind{{
			Name: "calls", ID: []string{"sid"}, Prefixes: []string{"CA"},
			Fields: []*Field{{Name: "sid"}, {Name: "to", Class: ClassPhone}, {Name: "to_formatted", DerivedFrom: "to"},
				{Name: "start", Type: TypeRFC2822}},
			Lists: []*List{{Path: "/1/{Account}/Calls.json", Key: "calls", Filters: filters},
				{Path: "/1/{Account}/Calls/Local.json", Key: "calls"}},
			Instances: []*Instance{
				{Path: "/1/{Account}/Calls/{Sid}.json", ID: []string{"Sid"}},
			},
		}, {
			Name: "participants", ID: []string{"conference", "call"}, Fields: []*Field{{Name: "conference"}, {Name: "call", Link: "calls"}},
			Lists: []*List{{Path: "/1/{Account}/Conferences/{Conference}/Participants.json", Key: "participants"}},
			Instances: []*Instance{{Path: "/1/{Account}/Conferences/{Conference}/Participants/{Call}.json", ID: []string{"Conference", "Call"},
				Shape: "participant"}},
		}},
	}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	return s
}

// A filter's default is left out of the key, and a list is whole when nothing narrows it.
func TestFilterDefaults(t *testing.T) {
	s := &Spec{Name: "x", Hosts: []Host{{URL: "http://x"}}, Auth: Auth{Style: "none"}, CompleteLists: new(true), Kinds: []*Kind{{
		Name: "tickets", ID: []string{"id"}, Fields: []*Field{{Name: "id"}, {Name: "state"}, {Name: "owner"}},
		Lists: []*List{{Path: "/t", Filters: []*Filter{
			{Name: "state", Field: "state", Meaning: Meaning{Default: "open", SelectAll: []string{"all"}}}, {Name: "owner", Field: "owner"},
			{Name: "sort", Op: "order", Meaning: Meaning{Default: "created"}},
		}}, {Path: "/mine", Filters: []*Filter{{Name: "owner", Field: "owner", Meaning: Meaning{Default: "me"}}}},
			{Path: "/found", Filters: []*Filter{{Name: "query", Meaning: Meaning{Required: true}}}}},
	}}}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		query, key       string
		whole, reordered bool
	}{
		{"", "/t", false, false}, {"state=open", "/t", false, false}, {"state=all", "/t?state=all", true, false},
		{"sort=created&state=all", "/t?state=all", true, false}, {"sort=updated&state=all", "/t?state=all&sort=updated", false, true},
		{"state=all&owner=a", "/t?state=all&owner=a", false, false}, {"state=open&state=all", "/t?state=open&state=all", false, false},
	} {
		got, err := s.Resolve("x", "/t", c.query)
		checktest.MustNoError(t, err, "%s", c.query)
		checktest.Equal(t, got.Key.URI, c.key, "%s: got.Key.URI", c.query)
		checktest.Equal(t, got.IsWholeList(), c.whole, "%s: got.IsWholeList()", c.query)
		checktest.Equal(t, got.IsReordered(), c.reordered, "%s: got.IsReordered()", c.query)
	}
	if mine, err := s.Resolve("x", "/mine", "owner=me"); err != nil || mine.Key.URI != "/mine?owner=me" {
		t.Errorf("a default that no value takes away: %v, asked for %s", err, mine.Key.URI)
	}
	polled, err := (&Source{Name: "x", Spec: s}).ResolvePoll("tickets")
	checktest.MustNoError(t, err, "polled")
	checktest.True(t, polled.IsWholeList(), "polled: polled.IsWholeList() is false")
	checktest.Equal(t, polled.Key.URI, "/t?state=all", "polled: polled.Key.URI")
	found, err := s.Resolve("x", "/found", "")
	checktest.MustNoError(t, err, "a list that wants a filter")
	checktest.True(t, !found.IsWholeList(), "a list that wants a filter: found.IsWholeList() is true")
	checktest.True(t, !found.List.IsComplete(), "a list that wants a filter: found.List.IsComplete() is true")
	checktest.True(t, found.List.HasRequiredFilter(),
		"a list that wants a filter: found.List.HasRequiredFilter() is false")
	if paths := (&Source{Name: "x", Spec: s}).PollPaths(); len(paths) != 2 {
		t.Errorf("polled are %v", paths)
	}
	if lists := s.Kinds[0].Lists; !lists[0].IsComplete() || lists[1].IsComplete() {
		t.Errorf("whole: %v, and %v where nothing takes the default away", lists[0].IsComplete(), lists[1].IsComplete())
	}
	whole := true
	s.Kinds[0].Lists[1].Complete = &whole
	if err := s.Compile(); err == nil || !strings.Contains(err.Error(), "list /mine: whole") {
		t.Errorf("%v", err)
	}
}

func TestOneKey(t *testing.T) {
	s := exampleSpec(t)
	for _, c := range []struct {
		name, path string
		queries    []string
		want       string
	}{
		{"nothing asked", calls, []string{"", "&", "PageSize=50", "Page=0", "Page=0&PageSize=50", "%50age=0", "understudy.x=1", "PageSize=%350"},
			calls + "?PageSize=50"},
		{"order", calls, []string{"To=1&Start=2&PageSize=5", "PageSize=5&Start=2&To=1", "Start=2&PageSize=5&Page=0&To=1"}, calls +
			"?To=1&Start=2&PageSize=5"},
		{"encodings of a name", calls, []string{"Start>=2024", "Start%3E=2024", "Start%3e=2024", "%53tart%3E=%32024"}, calls +
			"?Start%3E=2024&PageSize=50"},
		{"encodings of a value", calls, []string{"To=%2B1 2", "To=%2b1+2", "To=%2B1%202"}, calls + "?To=%2B1+2&PageSize=50"},
		{"what the spec does not name, by name", calls, []string{"Zoo=1&Beta=2&To=1", "Beta=2&To=1&Zoo=1"}, calls +
			"?To=1&Beta=2&Zoo=1&PageSize=50"},
		{"tokens go last", calls, []string{"PageToken=PA1&Page=1", "Page=1&PageToken=PA1&PageSize=50"}, calls +
			"?PageSize=50&Page=1&PageToken=PA1"},
		{"a page and another keep both", calls, []string{"Page=2&Page=0", "PageSize=50&Page=2&Page=0"}, calls + "?PageSize=50&Page=2&Page=0"},
		{"twice keeps its order", calls, []string{"To=2&To=1", "To=2&Page=0&To=1"}, calls + "?To=2&To=1&PageSize=50"},
		{"encodings of a path", "/1/A%43%31/C%61lls.json", []string{""}, calls + "?PageSize=50"},
		{"an instance has no size", "/1/AC1/Calls/CA1.json", []string{"", "understudy.view=x"}, "/1/AC1/Calls/CA1.json"},
		{"an unknown path is only sorted", "/1/x", []string{"b=1&a=2", "a=2&b=1"}, "/1/x?a=2&b=1"},
	} {
		for _, q := range c.queries {
			got, err := s.Resolve("s", c.path, q)
			if err != nil {
				t.Errorf("%s: %s: %v", c.name, q, err)
				continue
			}
			if got.Key.URI != c.want || got.Key.Source != "s" {
				t.Errorf("%s: %q is %q, want %q", c.name, q, got.Key.URI, c.want)
			}
			if got.Key.Path()+"?"+got.Key.Query() != c.want && got.Key.Path() != c.want {
				t.Errorf("%s: path %q and query %q", c.name, got.Key.Path(), got.Key.Query())
			}
		}
	}
}

// What upstream echoes differently are different keys.
func TestKeysApart(t *testing.T) {
	s := exampleSpec(t)
	seen := map[understudy.Key]string{}
	for _, q := range []string{
		"", "To", "To=", "To=1", "to=1", "To=1&To=1", "To=1&To=2", "To=2&To=1", "To=%201", "To=1+",
		"Start=2024-01-01", "Start=2024-01-01T00:00:00Z", "Start%3E=2024-01-01", "Start%3C=2024-01-01",
		"PageSize=5", "PageSize=05", "PageSize", "PageSize=", "Page=1", "Page=00", "Page=0&PageToken=PB1", "PageToken=PB1",
		"Page=1&PageToken=PA1",
	} {
		target, err := s.Resolve("s", calls, q)
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[target.Key]; twice {
			t.Errorf("%q and %q are one key: %s", q, other, target.Key)
		}
		seen[target.Key] = q
	}
	for _, path := range []string{"/1/AC2/Calls.json", "/1/AC1/Calls.json/", "//1/AC1/Calls.json", "/1/AC1/calls.json"} {
		target, err := s.Resolve("s", path, "")
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[target.Key]; twice {
			t.Errorf("%q and %q are one key", path, other)
		}
	}
}

func TestTarget(t *testing.T) {
	s := exampleSpec(t)
	for _, c := range []struct {
		path, query      string
		kind, shape, id  string
		list, first      bool
		size             int
		variable, filled string
	}{
		{calls, "", "calls", "calls", "", true, true, 50, "Account", "AC1"},
		{calls, "PageSize=7&To=1", "calls", "calls", "", true, true, 7, "", ""},
		{calls, "PageSize=many", "calls", "calls", "", true, true, 0, "", ""},
		{calls, "Page=1", "calls", "calls", "", true, false, 50, "", ""},
		{calls, "PageToken=x", "calls", "calls", "", true, false, 50, "", ""},
		{calls, "Page=0&PageToken=x", "calls", "calls", "", true, false, 50, "", ""},
		{"/1/AC1/Calls/Local.json", "", "calls", "calls", "", true, true, 50, "", ""},
		{"/1/AC1/Calls/CA1.json", "", "calls", "calls", "CA1", false, false, 0, "Sid", "CA1"},
		{"/1/AC1/Calls/.json", "", "", "", "", false, false, 0, "", ""},
		{"/1/AC1/Conferences/CF1/Participants/CA2.json", "", "participants", "participant", "CF1~CA2", false, false, 0, "Conference", "CF1"},
		{"/1/AC1/Conferences/CF1~x/Participants/CA2.json", "", "", "", "", false, false, 0, "", ""}, // could be CF1 and x~CA2
		{"/1/AC1/Calls/CA1~2.json", "", "calls", "calls", "CA1~2", false, false, 0, "", ""},
		{"/1/AC1", "", "", "", "", false, false, 0, "", ""},
		{"/", "", "", "", "", false, false, 0, "Account", ""},
	} {
		got, err := s.Resolve("s", c.path, c.query)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		kind := ""
		if got.Kind != nil {
			kind = got.Kind.Name
		}
		checktest.Equal(t, kind, c.kind, "%s?%s: kind; got %+v", c.path, c.query, got)
		checktest.Equal(t, got.Shape(), c.shape, "%s?%s: got.Shape()", c.path, c.query)
		checktest.Equal(t, got.ID, c.id, "%s?%s: got.ID", c.path, c.query)
		checktest.Equal(t, (got.List != nil), c.list, "%s?%s: (got.List != nil)", c.path, c.query)
		checktest.Equal(t, got.First, c.first, "%s?%s: got.First", c.path, c.query)
		checktest.Equal(t, got.PageSize, c.size, "%s?%s: got.PageSize", c.path, c.query)
		checktest.Equal(t, got.Var(c.variable), c.filled, "%s?%s: got.Var(c.variable)", c.path, c.query)
	}
	own, err := s.Resolve("s", calls, "understudy.role=x&To=1&understudy.max")
	checktest.MustNoError(t, err, "own parameters")
	checktest.Equal(t, own.OwnParams.String(), "understudy.role=x&understudy.max",
		"own parameters: own.OwnParams.String()")
	checktest.Lacks(t, own.Key.URI, "understudy", "own parameters: own.Key.URI")
}

func TestTargetRefuses(t *testing.T) {
	s := exampleSpec(t)
	for _, path := range []string{"", "x", "/../x", "/a/./b", "/a/%2e%2e/b", "/a%2Fb", "/a%5cb", "/a\\b", "/a%00", "/a%0a", "/a%7f", "/%",
		"/%4", "/" + strings.Repeat("a", MaxURI)} {
		if _, err := s.Resolve("s", path, ""); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", understudy.Clip(path), err)
		}
	}
	if _, err := s.Resolve("s", "/", "a=%"); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("a broken query: %v", err)
	}
}

// The key of a path with an escaped slash has it escaped, and leads to the same target.
func TestEscapedSlashStaysInTheKey(t *testing.T) {
	s := exampleSpec(t)
	for _, path := range []string{"/1/a%2fb/Calls.json", "/1/AC1/Calls/a%2Fb.json"} {
		aim, err := s.Resolve("s", path, "")
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		again, err := s.ResolveKey(aim.Key)
		checktest.MustNoError(t, err, "%s", path)
		checktest.Equal(t, again.Key, aim.Key, "%s: again.Key", path)
		checktest.Contains(t, aim.Key.URI, "%2F", "%s: aim.Key.URI", path)
	}
}

// What could be read as another path is refused as one that is not there; what
// is all but a path of the spec is marked.
func TestPathsThatLookLikeOthers(t *testing.T) {
	s := exampleSpec(t)
	for _, path := range []string{"/..", "/a/%2e%2E/b", "/./a", "/a/..;x/b", "/a/.;/b", "/a%2Fb", "/a%5cb", "/a%00"} {
		if _, err := s.Resolve("s", path, ""); !errors.Is(err, understudy.ErrInvalid) || !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("%s: %v, want ErrInvalid and ErrNotFound", path, err)
		}
	}
	if _, err := s.Resolve("s", "/%zz", ""); errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("a broken escape: %v", err)
	}
	for path, want := range map[string]bool{
		calls: false, "/1/AC1/calls.json": true, "/1/AC1/CALLS.JSON": true, calls + "/": true, "/" + calls: true, "/1//AC1/Calls.json": true,
		"/1//Calls.json":     true,
		"/1/AC1/Calls/.json": true, "/1/AC1/Calls.json;x": true, "/1/AC1/Calls;x=1.json": true, "/1;x/AC1/Calls.json": true,
		"/1/AC1//calls;x/CA1.JSON/": true,
		"/1/AC1":                    false, "/": false, "//": false, "/1/AC1/Calls": false, "/1/AC1/Callz.json": false,
		"/1/AC1/Calls.json/x": false,
		"/2/AC1/Calls.json":   false, "/1/AC1/;Calls.json": false,
	} {
		target, err := s.Resolve("s", path, "")
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if target.NearMiss != want || want && target.Kind != nil {
			t.Errorf("%s: misspelt %v, want %v", path, target.NearMiss, want)
		}
	}
}

func TestFollow(t *testing.T) {
	s := exampleSpec(t)
	for link, want := range map[string]string{
		calls + "?Page=1&PageSize=50":               calls + "?PageSize=50&Page=1",
		"https://other.example" + calls + "?To=1#x": calls + "?To=1&PageSize=50",
		"https://other.example":                     "",
		"Calls.json":                                "",
		"":                                          "",
	} {
		got, err := s.ResolveLink("s", link)
		if want == "" {
			if !errors.Is(err, understudy.ErrInvalid) {
				t.Errorf("%q: %v, want ErrInvalid", link, err)
			}
			continue
		}
		if err != nil || got.Key.URI != want {
			t.Errorf("%q: %v %v, want %q", link, got, err, want)
		}
	}
}

// The target of a key's own URI has the same key, and means the same.
func FuzzTarget(f *testing.F) {
	s := exampleSpec(f)
	for _, c := range [][2]string{
		{calls, ""}, {calls, "PageSize=5&To=%2B1&Page=0"}, {calls, "Page=0&Page=1&PageToken=x&PageToken"}, {"/1/AC%201/Calls/CA1.json", "x&y="},
		{"/%2e", ""}, {"/://", "0"}, {"//", "&=&"}, {"/1/a/Conferences/b~c/Participants/d.json", "understudy.x&PageSize&PageSize=7"},
		{"/1/{Account}/Calls.json", "Page=00"},
	} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, path, query string) {
		a, err := s.Resolve("s", path, query)
		if err != nil {
			if !errors.Is(err, understudy.ErrInvalid) {
				t.Fatalf("%v is not ErrInvalid", err)
			}
			return
		}
		b, err := s.Resolve("s", a.Key.Path(), a.Key.Query())
		if err != nil {
			t.Fatalf("the key %q cannot be asked for: %v", a.Key.URI, err)
		}
		checktest.MustEqual(t, b.Key, a.Key, "b.Key")
		checktest.MustEqual(t, b.ID, a.ID, "b.ID")
		checktest.MustEqual(t, b.Kind, a.Kind, "b.Kind")
		checktest.MustEqual(t, b.List, a.List, "b.List")
		checktest.MustEqual(t, b.Instance, a.Instance, "b.Instance")
		checktest.MustEqual(t, b.First, a.First, "b.First")
		checktest.MustEqual(t, b.PageSize, a.PageSize, "b.PageSize")
		checktest.MustEqual(t, b.Query.String(), a.Query.String(), "b.Query.String()")
		c, err := s.ResolveLink("s", a.Key.URI)
		if err != nil || c.Key != a.Key {
			t.Fatalf("followed to %v: %v", c, err)
		}
	})
}
