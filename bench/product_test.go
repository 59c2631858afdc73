// Product: nothing that the bench asks for or sends stands in the product.

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy/bench/rig"
)

// sentTexts are what the bench sends: paths, keys, fields of headers and secrets, from the rig and
// from the literals of its parts.
func sentTexts(t *testing.T) []string {
	t.Helper()
	aim := rig.Aim(rig.Calls, "gzip", 1, 0)
	all := append([]string{aim.URL, rig.Account, rig.ApiToken, rig.OurToken, rig.SupportToken, "wrk"}, aim.Headers...)
	for _, field := range aim.Headers {
		if _, value, _ := strings.Cut(field, ": "); len(value) > len("identity") {
			all = append(all, value)
		}
	}
	sent := regexp.MustCompile(`^[A-Z][A-Za-z-]+: [\w-]+$|\bPageSize=\d{2,}|^/\w[\w/-]*/[\w/.-]*\.json`)
	for _, pattern := range []string{"rig/*.go", "parts/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			for _, text := range literals(t, name) {
				if m := sent.FindString(text); m != "" {
					all = append(all, m)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// literals are the string literals of a Go file.
func literals(t *testing.T, name string) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value)
			all = append(all, text)
		}
		return true
	})
	return all
}

// The simulated API has an account and a secret of its own, which the demo and the test worlds
// know too.
var (
	ofTheAPI = []string{rig.Account, rig.ApiToken}
	theAPI   = []string{"internal/slowapi", "internal/store/storetest", "internal/access/accesstest", "cmd/understudy/demo.yml"}
)

// knows says which of the texts stand in a file of the product.
func knows(path string, said, texts []string) (found []string) {
	api := slices.ContainsFunc(theAPI, func(dir string) bool { return strings.HasPrefix(path, dir) })
	for _, text := range texts {
		if api && slices.Contains(ofTheAPI, text) {
			continue
		}
		if slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, text) }) {
			found = append(found, fmt.Sprintf("%s: %q", path, text))
		}
	}
	return found
}

// TestTheProductDoesNotKnowTheBench: no path, key, field of a header or secret of the bench
// stands in code or data of the product.
func TestTheProductDoesNotKnowTheBench(t *testing.T) {
	texts := sentTexts(t)
	for _, want := range []string{rig.Calls, "PageSize=50", "Accept-Encoding: gzip", "benchsecret"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not among what is looked for", want)
		}
		if planted := []string{"x", "as " + want + " says"}; len(knows("internal/proxy/x.go", planted, texts)) == 0 {
			t.Errorf("%q is not found", want)
		}
	}
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel("..", path)
		_, merr := os.Stat(filepath.Join(path, "go.mod"))
		switch {
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "docs" || merr == nil):
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(filepath.Dir(name), "test"): // packages for tests
			return nil
		}
		var said []string
		switch filepath.Ext(name) {
		case ".go":
			said = literals(t, path)
		case ".yml", ".yaml", ".sql", ".html", ".js", ".json", ".txt":
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			said = []string{string(data)}
		}
		files++
		for _, found := range knows(name, said, texts) {
			t.Error(found)
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Fatalf("%d files, %v", files, err)
	}
}
