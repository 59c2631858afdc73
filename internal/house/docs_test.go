// Documents are read in parts: no paragraph is longer than a screen of a phone, and no table hides an essay.

package house

import (
	"go/ast"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// longestParagraph is in characters. What is longer becomes paragraphs, a list or a table.
const longestParagraph = 500

var (
	codeBlock = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```")
	blankLine = regexp.MustCompile(`\n\s*\n`)
	listItem  = regexp.MustCompile(`(?m)^\s*(?:[-*+]|\d+[.)]) `)
)

func TestParagraphsAreShort(t *testing.T) {
	pages, err := filepath.Glob("docs/*/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages in docs: %v", len(pages), err)
	}
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md", "docs/measuring.md", "CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blankLine.Split(codeBlock.ReplaceAllString(string(text), ""), -1) {
			for _, paragraph := range listItem.Split(block, -1) {
				paragraph = strings.TrimSpace(paragraph)
				table := strings.HasPrefix(paragraph, "|") || strings.Contains(paragraph, "\n|")
				if n := utf8.RuneCountInString(paragraph); n > longestParagraph && !table {
					t.Errorf("%s: a paragraph has %d characters, at most %d: %.60s", page, n, longestParagraph, paragraph)
				}
			}
		}
	}
}

// The most words of a table's cell, and of a section without a list or a table.
const (
	maxCellWords    = 30
	maxSectionWords = 300
)

// TestDocsAreEasyToScan allows short cells alone, and a list or a table in every long section.
func TestDocsAreEasyToScan(t *testing.T) {
	pages, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	heading, table := regexp.MustCompile(`(?m)^#+ `), regexp.MustCompile(`(?m)^\s*\|`)
	for _, page := range slices.Concat(pages, top, []string{"README.md"}) {
		text := codeBlock.ReplaceAllString(readFile(t, page), "")
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "|") {
				continue
			}
			for cell := range strings.SplitSeq(strings.ReplaceAll(line, `\|`, "/"), "|") {
				if n := len(strings.Fields(cell)); n > maxCellWords {
					t.Errorf("%s: a cell has %d words, at most %d: %.60s", page, n, maxCellWords, strings.TrimSpace(cell))
				}
			}
		}
		starts := heading.FindAllStringIndex(text, -1)
		for i, at := range starts {
			end := len(text)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			section := text[at[0]:end]
			if listItem.MatchString(section) || table.MatchString(section) {
				continue
			}
			if n := len(strings.Fields(section)); n > maxSectionWords {
				t.Errorf("%s: a section without a list has %d words, at most %d: %.60s", page, n, maxSectionWords, section)
			}
		}
	}
}

// TestHeadersAreDocumented compares the header fields that the product reads and writes with docs/reference/headers.md.
func TestHeadersAreDocumented(t *testing.T) {
	page := readFile(t, "docs/reference/headers.md")
	used := map[string]string{} // a file by the field's name
	constants := stringConstants(goFiles(t))
	for _, f := range goFiles(t) {
		if f.test || strings.HasSuffix(f.dir, "test") {
			continue
		}
		if strings.HasPrefix(f.dir, "internal/slowapi") || f.dir == "internal/infer" {
			continue // the simulated API, and fields of other APIs' documents
		}
		if strings.HasPrefix(f.dir, "cmd/") {
			continue // columns of tables on the terminal
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, name := range fieldNames(n, constants[f.dir]) {
				used[http.CanonicalHeaderKey(name)] = f.path
			}
			return true
		})
	}
	if len(used) < 40 {
		t.Fatalf("only %d header fields found", len(used))
	}
	for name, path := range used {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/reference/headers.md does not name `%s` of %s", name, path)
		}
	}
}

// stringConstants returns the literals of the constants and variables of each folder that consist of one text.
func stringConstants(files []file) map[string]map[string]*ast.BasicLit {
	all := map[string]map[string]*ast.BasicLit{}
	for _, f := range files {
		if all[f.dir] == nil {
			all[f.dir] = map[string]*ast.BasicLit{}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, e := range spec.Values {
					if lit, ok := e.(*ast.BasicLit); ok && i < len(spec.Names) {
						all[f.dir][spec.Names[i].Name] = lit
					}
				}
			}
			return true
		})
	}
	return all
}

// fieldNames returns the names of header fields at a node: the first argument of a method of http.Header, an index, or
// the keys of a literal. A name may be a text or one of the constants of the package.
func fieldNames(n ast.Node, constants map[string]*ast.BasicLit) (names []string) {
	add := func(e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if id, is := e.(*ast.Ident); is && constants[id.Name] != nil {
			lit, ok = constants[id.Name], true
		}
		if !ok || lit.Kind != token.STRING {
			return
		}
		name, err := strconv.Unquote(lit.Value)
		if err == nil && regexp.MustCompile(`^[A-Z][A-Za-z-]{2,}$`).MatchString(name) && strings.EqualFold(name, http.CanonicalHeaderKey(name)) {
			names = append(names, name)
		}
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		method, ok := n.Fun.(*ast.SelectorExpr)
		if ok && len(n.Args) > 0 && slices.Contains([]string{"Get", "Set", "Add", "Del", "Values"}, method.Sel.Name) {
			add(n.Args[0])
		}
	case *ast.IndexExpr:
		add(n.Index)
	case *ast.CompositeLit:
		if typ, ok := n.Type.(*ast.SelectorExpr); ok && typ.Sel.Name == "Header" {
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					add(kv.Key)
				}
			}
		}
	}
	return names
}

// jsonFiles are the files whose structs are answers or requests of the addresses under /-/, of webhooks and of agents.
// The figures of /-/stats have a test of their own.
var jsonFiles = []string{
	"follow/follow.go", "internal/access/explain.go", "internal/agents/describe.go", "internal/agents/readrecord.go",
	"internal/agents/searchtool.go", "internal/agents/sums.go", "internal/audit/entry.go", "internal/crawl/handler.go",
	"internal/diagnostics/credentials.go", "internal/diagnostics/handlers.go", "internal/diagnostics/profile/profile.go",
	"internal/diagnostics/profile/report.go", "internal/diagnostics/profile/ring.go", "internal/diagnostics/profiles.go",
	"internal/diagnostics/purge.go", "internal/diagnostics/receipts.go", "internal/diagnostics/reindex.go",
	"internal/diagnostics/reload.go", "internal/feed/hookserve.go", "internal/feed/rolegroup.go", "internal/forecast/estimate.go",
	"internal/forecast/handler.go", "internal/jobs/handler.go", "internal/jsonapi/jsonapi.go", "internal/proxy/batch.go",
	"internal/query/searchrequest.go", "internal/query/sum.go", "internal/search/json.go", "internal/viewer/conversation.go",
	"internal/viewer/home.go", "internal/viewer/list/complete.go", "internal/viewer/numberjson.go", "internal/watch/notification.go",
}

// TestJSONIsDocumented looks for every member of these structs in docs/reference/json.md.
func TestJSONIsDocumented(t *testing.T) {
	page, found := readFile(t, "docs/reference/json.md"), 0
	for _, path := range jsonFiles {
		i := slices.IndexFunc(goFiles(t), func(f file) bool { return f.path == path })
		if i < 0 {
			t.Errorf("%s is not there: jsonFiles names it", path)
			continue
		}
		ast.Inspect(goFiles(t)[i].ast, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || field.Tag == nil {
				return true
			}
			tag, _ := strconv.Unquote(field.Tag.Value)
			name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			if name == "" || name == "-" {
				return true
			}
			if found++; !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/reference/json.md does not name `%s` of %s", name, path)
			}
			return true
		})
	}
	if found < 150 {
		t.Errorf("only %d members found", found)
	}
}

// TestTheChangelogIsForUsers allows a section of at most 120 lines for each version, with the parts of
// https://keepachangelog.com, whose lines name no package.
func TestTheChangelogIsForUsers(t *testing.T) {
	parts := []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
	versions := strings.Split(readFile(t, "CHANGELOG.md"), "\n## ")[1:]
	if len(versions) == 0 {
		t.Error("CHANGELOG.md names no version")
	}
	for _, v := range versions {
		name, text, _ := strings.Cut(v, "\n")
		if n := strings.Count(text, "\n"); n > 120 {
			t.Errorf("CHANGELOG.md: %s has %d lines, at most 120", name, n)
		}
		for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(text, -1) {
			if !slices.Contains(parts, m[1]) {
				t.Errorf("CHANGELOG.md: %s has a part %q, which is none of %v", name, m[1], parts)
			}
		}
		if m := regexp.MustCompile(`(?m)^- ([a-z]+(?:/[a-z]+)*): |internal/`).FindString(text); m != "" {
			t.Errorf("CHANGELOG.md: %s names a package: %q", name, m)
		}
	}
}

// TestTheRootFolderIsShort allows at most 30 files beside the README.
func TestTheRootFolderIsShort(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.IsDir() || e.Name() == ".git" })
	if len(files) > 30 {
		t.Errorf("the root folder has %d files, at most 30: %v", len(files), files)
	}
}
