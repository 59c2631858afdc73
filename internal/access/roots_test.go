// Roots: rules by the repository that a record's address names.

package access

import (
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
	"understudy/upstream"
)

func githubGate(t *testing.T, sees map[string]string, rules RowRules, held shelf) *Gate {
	t.Helper()
	github, err := upstream.ReadBuiltIn("github")
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewWith(Options{Specs: map[string]*spec.Spec{"github": github}, Roles: Roles{"r": {"github": sees}},
		Rows: map[string]map[string]RowRules{"r": {"github": rules}}, NewestVersion: held.newest})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A record is found by the repository that its address names, whatever its kind, and under a
// repository that may not be found nothing is.
func TestRootsInRowRules(t *testing.T) {
	at := func(path string) string { return `{"url":"https://api.github.com` + path + `"}` }
	tracker := RowRule{Where: map[string]Match{"repository": {In: []string{"acme/tracker"}}}}
	common := RowRules{Everything: tracker}
	open := RowRules{"repos": {Where: map[string]Match{"private": {In: []string{"false"}}}}}
	both := RowRules{"repos": open["repos"], "issues": tracker, "labels": {Word: FindAll}}
	some := RowRules{"issues": {Where: map[string]Match{"state": {In: []string{"open"}}}}, "labels": {Word: FindAll}}
	owner := RowRules{Everything: {Where: map[string]Match{"repository": {Prefix: "acme/"}}}}
	held := shelf{{"repos", "acme~tracker"}: `{"private":false}`, {"repos", "acme~secret"}: `{"private":true}`}
	for name, test := range map[string]struct {
		rules      RowRules
		kind, body string
		want       bool
	}{
		"issue":                       {common, "issues", at("/repos/acme/tracker/issues/7"), true},
		"label":                       {common, "labels", at("/repos/acme/tracker/labels/bug"), true},
		"issue of another":            {common, "issues", at("/repos/acme/trackers/issues/7"), false},
		"the repository":              {common, "repos", at("/repos/acme/tracker"), true},
		"another repository":          {common, "repos", at("/repos/acme/secret"), false},
		"an address by number":        {common, "issues", at("/repositories/1/issues/7"), false},
		"two in one":                  {common, "issues", at("/repos/acme%2Ftracker/x/issues/7"), false},
		"no address":                  {common, "issues", `{"repository":"acme/tracker"}`, false},
		"a member of that name":       {common, "issues", `{"repository":"acme/tracker","url":"/repos/acme/secret/issues/7"}`, false},
		"escaped":                     {common, "issues", `{"url":"\/repos\/acme\/track\u0065r\/issues\/7"}`, true},
		"a prefix":                    {owner, "pulls", at("/repos/acme/x/pulls/1"), true},
		"another prefix":              {owner, "pulls", at("/repos/acmeister/x/pulls/1"), false},
		"no repository at all":        {common, "users", at("/users/robin"), false},
		"of one kind alone":           {RowRules{"issues": tracker}, "pulls", at("/repos/acme/secret/pulls/1"), true},
		"under a repository it finds": {open, "issues", at("/repos/acme/tracker/issues/7"), true},
		"under a hidden one":          {open, "issues", at("/repos/acme/secret/issues/7"), false},
		"under one that is not held":  {open, "issues", at("/repos/acme/new/issues/7"), false},
		"its own rule and that":       {both, "issues", at("/repos/acme/secret/issues/7"), false},
		"opened again":                {both, "labels", at("/repos/acme/secret/labels/bug"), true},
		"as whole pages":              {common, "contributors", `[]`, false},
		"a comment":                   {common, "comments", at("/repos/acme/tracker/issues/comments/1"), true},
		"a comment of another":        {common, "comments", at("/repos/acme/secret/issues/comments/1"), false},
		"a comment on what issue":     {some, "comments", at("/repos/acme/tracker/issues/comments/1"), false},
		"all comments":                {some, "labels", at("/repos/acme/tracker/labels/bug"), true},
		"by the root of its issue":    {RowRules{"issues": tracker}, "comments", at("/repos/acme/tracker/issues/comments/1"), true},
		"not by that":                 {RowRules{"issues": tracker}, "comments", at("/repos/acme/secret/issues/comments/1"), false},
		"no issues":                   {RowRules{"issues": {Word: FindNone}}, "comments", at("/repos/acme/tracker/issues/comments/1"), false},
	} {
		g := githubGate(t, map[string]string{"*": "see"}, test.rules, held)
		only := g.RecordFilter(as("r"), "github", test.kind)
		if got := only == nil || only(&understudy.Record{Source: "github", Kind: test.kind, Body: []byte(test.body)}); got != test.want {
			t.Errorf("%s: found %v, want %v", name, got, test.want)
		}
	}
	words := strings.Join(githubGate(t, map[string]string{"*": "see"}, common, nil).DescribeRules("r", "github"), "\n")
	for _, want := range []string{"repos: repository is acme/tracker",
		"issues: repository is acme/tracker, not below a hidden repository", "users: none",
		"contributors: below a visible repository"} {
		if !strings.Contains(words+"\n", want+"\n") {
			t.Errorf("in words it lacks %q:\n%s", want, words)
		}
	}
}

// The repository is shown as far as the address is that it is read from, and a member of the
// same name is not.
func TestRootsInViews(t *testing.T) {
	const body = `{"id":1,"url":"https://api.github.com/repos/acme/tracker/issues/7","repository":{"name":"MARK"}}`
	for name, test := range map[string]struct {
		sees map[string]string
		want Value
	}{
		"all":            {map[string]string{"*": "see"}, Value{Text: "acme/tracker", State: Seen}},
		"no address":     {map[string]string{"*": "see", "url": "hide"}, Value{State: Hidden}},
		"a mask":         {map[string]string{"*": "see", "issues.url": "last4"}, Value{State: Hidden}},
		"not it":         {map[string]string{"*": "see", "issues.repository": "hide"}, Value{State: Hidden}},
		"a mask of it":   {map[string]string{"*": "see", "issues.repository": "last4"}, Value{State: Hidden}},
		"a hash of it":   {map[string]string{"*": "see", "issues.repository": "hash"}, Value{State: Hidden}},
		"it without url": {map[string]string{"issues.id": "see", "issues.repository": "see"}, Value{State: Hidden}},
	} {
		g := githubGate(t, test.sees, nil, nil)
		page := &understudy.Page{Key: understudy.Key{Source: "github"}, Kind: "issues", Shape: "row", Status: 200, Body: []byte(body)}
		v, err := g.MakeView(as("r"), page)
		if err != nil {
			t.Fatal(err)
		}
		row := v.Rows()[0]
		got := row.Field("repository")
		checktest.Equal(t, got.State, test.want.State, "%s: got.State", name)
		checktest.Equal(t, got.Text, test.want.Text, "%s: got.Text", name)
		checktest.Lacks(t, string(v.Body), "MARK", "%s: string(v.Body); got %+v", name, got)
		all := row.Fields()
		if last := all[len(all)-1]; last.Name != "repository" || last.State != got.State {
			t.Errorf("%s: the last of all fields is %+v", name, last)
		}
		if level := g.Level(as("r"), "github", "issues", "repository"); (level == See) != (test.want.State == Seen) {
			t.Errorf("%s: level %v", name, level)
		}
	}
}
