package spec_test

import (
	"errors"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
	"understudy/upstream"
)

func TestPollTarget(t *testing.T) {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	s := &spec.Source{Name: "twilio", Spec: sp, User: "AC00000000000000000000000000000001"}
	const p = "/2010-04-01/Accounts/AC00000000000000000000000000000001"
	for entry, want := range map[string]string{
		"calls":                                  p + "/Calls.json?PageSize=50",
		"/Calls.json":                            p + "/Calls.json?PageSize=50",
		p + "/Calls.json":                        p + "/Calls.json?PageSize=50",
		"/Calls.json?Status=failed":              p + "/Calls.json?Status=failed&PageSize=50",
		"/Calls.json?PageSize=20&Status=failed":  p + "/Calls.json?Status=failed&PageSize=20",
		"/Alerts":                                "/v1/Alerts?PageSize=50",
		"participants":                           `every list of "participants" needs the id of a record`,
		"cals":                                   `spec twilio has no list of "cals"`,
		"/Cals.json":                             `spec twilio has no list "/Cals.json"`,
		"/Calls.json?Stat=failed":                `the list has no filter "Stat"; it has To, From, ParentCallSid, Status, `,
		"/Calls.json?Page=2":                     "is not the newest page",
		"/Calls.json?understudy.q=x":             "upstream does not have the parameter",
		"/json":                                  `no list "/json"`,
		"/Calls.json?%zz":                        "invalid request",
		"/Conferences/CF1/Participants.json":     "no list",
		"/2010-04-01/Accounts/AC9/Calls.json":    "no list",
		p + "/Conferences/CF1/Participants.json": p + "/Conferences/CF1/Participants.json?PageSize=50",
	} {
		target, err := s.ResolvePoll(entry)
		switch {
		case strings.HasPrefix(want, "/"):
			checktest.MustNoError(t, err, "%s", entry)
			checktest.Equal(t, target.Key.URI, want, "%s: target.Key.URI", entry)
			checktest.True(t, target.IsWholeList() != strings.Contains(want, "Status"),
				`%s: target.IsWholeList() == strings.Contains(want, "Status")`, entry)
		case !errors.Is(err, understudy.ErrInvalid) || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %s", entry, err, want)
		}
	}
}

// A record lies under the root that its address names, or a field; a source reaches the roots
// that it covers.
func TestRoots(t *testing.T) {
	github, err := upstream.ReadBuiltIn("github")
	if err != nil {
		t.Fatal(err)
	}
	field, id := spec.ParseParentRule(github.Kind("labels").ParentRule())
	for address, want := range map[string]string{
		"https://api.github.com/repos/acme/tracker/labels/bug":  "acme~tracker",
		"http://127.0.0.1:4118/repos/a%20b/tracker.js/issues/7": "a b~tracker.js",
		"/repos/acme/tracker":                                     "acme~tracker",
		"https://api.github.com/repos/acme":                       "",
		"https://api.github.com/repos/ac~me/tracker/labels/bug":   "",
		"https://api.github.com/repos//tracker/labels/bug":        "",
		"https://api.github.com/users/acme/tracker":               "",
		"https://api.github.com":                                  "",
		"":                                                        "",
		"https://api.github.com/repos/acme/%zz/labels/bug":        "",
		"https://api.github.com/repositories/530000000/labels/ui": "",
	} {
		if got := id(address); got != want || field != "url" {
			t.Errorf("%s: %q of %s, want %q", address, got, field, want)
		}
	}
	labels, repos := github.Kind("labels"), github.Kind("repos")
	f := labels.Field("repository")
	checktest.MustTrue(t, f != nil, "the field of the root: f is nil")
	checktest.Equal(t, f.DerivedFrom, "url", "the field of the root: f.DerivedFrom")
	checktest.Equal(t, f.Link, "repos", "the field of the root: f.Link")
	checktest.Equal(t, repos.ParentRule(), "", "the field of the root: repos.ParentRule()")
	checktest.Equal(t, spec.RootFromURL(f.RootPath(), "https://api.github.com/repos/acme/tracker/labels/bug"),
		"acme/tracker", `the field of the root: spec.RootFromURL(f.RootPath(), "https://api.github.com/repos…`)
	checktest.Equal(t, spec.RootFromURL(repos.Field("repository").RootPath(), "/repos/acme/tracker"), "acme/tracker",
		`the field of the root: spec.RootFromURL(repos.Field("repository").RootPath(), "/rep…`)
	checktest.Equal(t, labels.Field("url").RootPath(), "", `the field of the root: labels.Field("url").RootPath()`)
	checktest.Equal(t, spec.RootFromURL(f.RootPath(), "/repos/acme%2Ftracker/x/labels/bug"), "",
		`the field of the root: spec.RootFromURL(f.RootPath(), "/repos/acme%%2Ftracker/x/labels/bug")`)
	checktest.Equal(t, github.RootField(labels), "repository", "the field of the root: github.RootField(labels)")
	if field, id := spec.ParseParentRule("conference_sid"); field != "conference_sid" || id("CF1") != "CF1" {
		t.Error("a parent that a field names is its value")
	}
	twilio, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		source spec.Source
		path   string
		want   bool
	}{
		{spec.Source{Spec: twilio, User: "AC1"}, "/2010-04-01/Accounts/AC1/Calls.json", true},
		{spec.Source{Spec: twilio, User: "AC1"}, "/2010-04-01/Accounts/AC2/Calls.json", false},
		{spec.Source{Spec: twilio, User: "AC1", Roots: []string{"AC2"}}, "/2010-04-01/Accounts/AC2/Calls.json", true},
		{spec.Source{Spec: twilio, User: "AC1", Roots: []string{"AC2"}}, "/2010-04-01/Accounts/AC3/Calls.json", false},
		{spec.Source{Spec: twilio, User: "AC1", Roots: []string{spec.RequestedRoots}}, "/2010-04-01/Accounts/AC3/Calls.json", true},
		{spec.Source{Spec: twilio, User: "AC1"}, "/2010-04-01/Accounts.json", true},
		{spec.Source{Spec: github}, "/repos/acme/tracker/issues", true},
		{spec.Source{Spec: twilio, User: "AC1", Roots: []string{spec.RequestedRoots}}, "/2010-04-01/Accounts/AC2~AC3/Calls.json", false},
	} {
		target, err := one.source.Spec.Resolve("s", one.path, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := one.source.CanReach(target); got != one.want {
			t.Errorf("%v %s: reached %v", one.source.Roots, one.path, got)
		}
	}
}

// A root is read from any address, and its name is one that people can write.
func FuzzRootAt(f *testing.F) {
	for _, address := range []string{"https://api.github.com/repos/acme/tracker/issues/7", "/repos/a%2Fb/c", "http://x/repos/%7E/~",
		"repos//", "://"} {
		f.Add("/repos/{owner}/{repo}", address)
	}
	f.Fuzz(func(t *testing.T, path, address string) {
		root := spec.RootFromURL(path, address)
		if root == "" {
			return
		}
		if id := spec.ParseRoot(root); strings.Contains(root, spec.IDSeparator) || spec.FormatRoot(id) != root {
			t.Errorf("%q at %q: %q is no name of %q", address, path, root, id)
		}
		if strings.Count(root, "/") >= max(strings.Count(path, "{"), 1) {
			t.Errorf("%q at %q: %q has more parts than the path has variables", address, path, root)
		}
	})
}
