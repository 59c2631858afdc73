// What prove finds, in which order it goes, and what it keeps.

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
)

// anyLine keeps the last line that holds anything.
var anyLine = regexp.MustCompile(`(?m)^.*\S.*$`)

// made is a module with one of everything.
func made(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                           "module made\n\ngo 1.26.0\n",
		"a/a.go":                           "package a\n",
		"a/a_test.go":                      "package a\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n\nfunc FuzzY(f *testing.F) { f.Add(1); f.Fuzz(func(*testing.T, int) {}) }\n",
		"b/b.go":                           "package b\n",
		"b/b_test.go":                      "package b\n\nimport \"testing\"\n\nfunc TestKillNine(t *testing.T) { t.Error(\"UNDERSTUDY_PROVE\") }\n\nfunc TestKilledChild(t *testing.T) {}\n",
		"none/none.go":                     "package none\n",
		"internal/randomapitest/a.go":      "package randomapitest\n",
		"internal/randomapitest/a_test.go": "package randomapitest\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Error(\"UNDERSTUDY_PROVE\") }\n",
		"bench/main.go":                    "package main\n\nfunc main() {}\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFind(t *testing.T) {
	parts, err := find(t.Context(), made(t))
	if err != nil {
		t.Fatal(err)
	}
	// wholeServer is compared with the tests of the e2e module below.
	want := []string{"kill b TestKillNine"}
	want = append(want, partNames(wholeServer("go"))...)
	want = append(want, "full b", "random APIs", "fuzz a FuzzY", "race a", "race b", "race internal/randomapitest", "bench reader", "soak answers")
	if got := partNames(parts); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func partNames(parts []part) []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

// TestEndToEndTestsWithFullCountsAreParts reads the e2e module: a test that does more with
// UNDERSTUDY_PROVE is a part, or nobody ever sees it do more.
func TestEndToEndTestsWithFullCountsAreParts(t *testing.T) {
	parts := map[string]bool{}
	for _, p := range wholeServer("go") {
		parts[p.command[len(p.command)-1]+p.name[strings.LastIndexByte(p.name, ' '):]] = true
	}
	body := regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{\n(.*?)^\}`)
	counted := 0
	files, err := filepath.Glob("../../e2e/*/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of tests in e2e, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Base(filepath.Dir(file))
		for _, m := range body.FindAllSubmatch(data, -1) {
			if !regexp.MustCompile(`sample\.(Whole|OneIn|Count)\(|"UNDERSTUDY_PROVE"`).Match(m[2]) {
				continue
			}
			if counted++; !parts["./"+folder+" "+string(m[1])] {
				t.Errorf("%s: %s has a full count and is no part of make prove: name it as %s/%s in wholeServer", file, m[1], folder, m[1])
			}
		}
	}
	if counted < 10 {
		t.Errorf("%d tests with full counts found in e2e, want 10 or more", counted)
	}
}

func TestSuitesOfRandomProperties(t *testing.T) {
	found := withRapid([]pkg{
		{ImportPath: "m/suite", Imports: []string{"pgregory.net/rapid"}},
		{ImportPath: "m/uses", XTestImports: []string{"m/suite"}},
		{ImportPath: "m/own", TestImports: []string{"pgregory.net/rapid"}},
		{ImportPath: "m/none", TestImports: []string{"testing"}},
	})
	checktest.True(t, found["m/uses"], `found: found["m/uses"] is false`)
	checktest.True(t, found["m/own"], `found: found["m/own"] is false`)
	checktest.True(t, !found["m/none"], `found: found["m/none"] is true`)
}

// A run keeps results; the next begins with what failed, then the oldest, and
// leaves out what would not fit.
func TestGoesOnWhereItStopped(t *testing.T) {
	root := made(t)
	k, err := openKeep(root)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := []part{{name: "second"}, {name: "first"}, {name: "failed"}, {name: "long"}}
	for name, r := range map[string]result{
		"second": {OK: true, Date: old.Add(time.Hour)},
		"first":  {OK: true, Date: old},
		"failed": {OK: false, Date: old.Add(2 * time.Hour)},
		"long":   {OK: true, Date: old.Add(-time.Hour), Took: 10 * time.Hour},
	} {
		r.Detail = "ok  with  spaces"
		if err := k.put(name, r, all); err != nil {
			t.Fatal(err)
		}
	}
	k, err = openKeep(root)
	checktest.MustNoError(t, err, "read back")
	checktest.MustEqual(t, len(k.Parts), len(all), "read back: len(k.Parts)")
	checktest.MustEqual(t, k.Parts["long"].Took, 10*time.Hour, `read back: k.Parts["long"].Took`)
	checktest.MustEqual(t, k.Parts["long"].Detail, "ok  with  spaces", `read back: k.Parts["long"].Detail`)
	log := filepath.Join(root, "log")
	var parts []part
	for _, name := range []string{"first", "second", "long", "failed", "new"} {
		parts = append(parts, part{name: name, command: []string{"sh", "-c", "echo " + name + " >>" + log + "; test " + name + " != second"}, limit: time.Minute, tell: anyLine})
	}
	s := session{dir: root, keep: k, all: parts, until: time.Now().Add(time.Hour)}
	if _, err := s.run(t.Context(), parts); err == nil || !strings.Contains(err.Error(), "second") {
		t.Errorf("the failed part is not named: %v", err)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(data)); strings.Join(got, " ") != "new failed first second" {
		t.Errorf("ran %v", got)
	}
	again, err := openKeep(root)
	if err != nil {
		t.Fatal(err)
	}
	checktest.True(t, again.Parts["failed"].OK, `kept: again.Parts["failed"].OK is false`)
	checktest.True(t, !again.Parts["second"].OK, `kept: again.Parts["second"].OK is true`)
	checktest.True(t, !again.Parts["new"].Date.IsZero(), `kept: again.Parts["new"].Date.IsZero() is true`)
	report, err := os.ReadFile(filepath.Join(root, "bench", "prove.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if !strings.Contains(string(report), "\n"+p.name+" ") {
			t.Errorf("the report leaves out %s:\n%s", p.name, report)
		}
	}
}

// A result speaks of the test package, what it imports and its test data:
// another of these makes it old, a document does not.
func TestHash(t *testing.T) {
	root := made(t)
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hash := func() string {
		t.Helper()
		parts := []part{{name: "race b", command: []string{"go", "test", "made/b"}, sources: []source{{module: ".", path: "made/b", test: true}}}}
		h := hasher{root: root, modules: map[string]map[string]listed{}, files: map[string][]byte{}}
		if err := h.hash(t.Context(), parts); err != nil {
			t.Fatal(err)
		}
		return parts[0].hash
	}
	write("b/b.go", "package b\n\nimport _ \"made/a\"\n")
	before := hash()
	for _, c := range []struct {
		name, text string
		old        bool
	}{
		{"README.md", "read me", false},
		{"bench/prove.txt", "part", false},
		{"none/none.go", "package none // not imported\n", false},
		{"a/a.go", "package a // imported\n", true},
		{"b/more_test.go", "package b\n", true},
		{"b/testdata/fuzz/FuzzY/1", "seed", true},
	} {
		write(c.name, c.text)
		now := hash()
		if old := now != before; old != c.old {
			t.Errorf("%s changed; the hash changed: %v, want %v", c.name, old, c.old)
		}
		before = now
	}
}

// With more time, what is current is run again, the least proved first, and
// adds up; what is current alone is left out.
func TestCurrentPartsAddUp(t *testing.T) {
	root := made(t)
	k, err := openKeep(root)
	if err != nil {
		t.Fatal(err)
	}
	parts := []part{
		{name: "much", hash: "1", command: []string{"true"}, limit: time.Minute, tell: anyLine},
		{name: "little", hash: "2", command: []string{"true"}, limit: time.Minute, tell: anyLine},
		{name: "changed", hash: "3", command: []string{"true"}, limit: time.Minute, tell: anyLine},
	}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, r := range map[string]result{
		"much":    {OK: true, Date: day, Took: time.Minute, Hash: "1"},
		"little":  {OK: true, Date: day, Took: time.Second, Hash: "2"},
		"changed": {OK: true, Date: day, Took: time.Hour, Hash: "other"},
	} {
		if err := k.put(name, r, parts); err != nil {
			t.Fatal(err)
		}
	}
	s := session{dir: root, keep: k, all: parts, until: time.Now().Add(time.Minute)}
	{
		ran, err := s.run(t.Context(), slices.Clone(parts))
		checktest.MustNoError(t, err, "")
		checktest.MustEqual(t, ran, 1, "ran")
		checktest.MustEqual(t, k.Parts["changed"].Runs, 1, `k.Parts["changed"].Runs`)
	}
	s.again, s.until = true, time.Now().Add(30*time.Second)
	if ran, err := s.run(t.Context(), slices.Clone(parts)); err != nil || ran != 2 {
		t.Fatalf("%d parts ran, %v", ran, err)
	}
	if r := k.Parts["little"]; r.Runs != 2 || r.InAll < time.Second {
		t.Errorf("little: %+v", r)
	}
	if r := k.Parts["much"]; r.Runs != 1 {
		t.Errorf("a minute does not fit into half of one: %+v", r)
	}
}

// What is run several times ends with the first round that fails, and begins
// none after its time.
func TestRounds(t *testing.T) {
	root := made(t)
	if _, err := openKeep(root); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(root, "log")
	count := func(fail string, within time.Duration) (result, int) {
		t.Helper()
		_ = os.Remove(log)
		p := part{name: "rounds", command: []string{"sh", "-c", "echo x >>" + log + "; echo seen; test $(wc -l <" + log + ") != " + fail}, limit: time.Minute, rounds: 4, within: within, tell: anyLine}
		r := runPart(t.Context(), root, p)
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return r, strings.Count(string(data), "x")
	}
	{
		r, n := count("9", time.Minute)
		checktest.True(t, r.OK, "%d rounds: r.OK is false", n)
		checktest.Equal(t, n, 4, "%d rounds: n", n)
		checktest.Equal(t, r.Detail, "round 4 of 4: seen", "%d rounds: r.Detail", n)
	}
	if r, n := count("2", time.Minute); r.OK || n != 2 {
		t.Errorf("the second failed; %d rounds: %+v", n, r)
	}
	if r, n := count("9", 0); !r.OK || n != 1 {
		t.Errorf("no time for a second; %d rounds: %+v", n, r)
	}
}

// A fuzzer whose time ended while its workers were busy has found nothing.
func TestFuzzersTimeEnds(t *testing.T) {
	root := made(t)
	if _, err := openKeep(root); err != nil {
		t.Fatal(err)
	}
	for says, ok := range map[string]bool{
		`--- FAIL: FuzzY (30.08s)\n    context deadline exceeded\nFAIL\n`:                                     true,
		`--- FAIL: FuzzY (3.08s)\n    --- FAIL: FuzzY (0.00s)\n    Failing input written to testdata\nFAIL\n`: false,
		`--- FAIL: FuzzY (30.08s)\n    context deadline exceeded\n    a_test.go:1: wrong\nFAIL\n`:             false,
		`panic\n`: false,
	} {
		p := part{name: "fuzz", command: []string{"sh", "-c", `printf '%b' '` + says + `'; exit 1`}, limit: time.Minute, tell: anyLine, ended: fuzzEnded}
		if r := runPart(t.Context(), root, p); r.OK != ok || ok != strings.HasPrefix(r.Detail, "deadline: ") {
			t.Errorf("%q: %+v", says, r)
		}
	}
}
