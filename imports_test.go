// The table of imports: which packages of the product know each other.

package understudy_test

import (
	"slices"
	"strings"
	"testing"
)

// imports says for each package what it imports of the product, tests apart. A
// new import is a new line here. Packages of kit import none.
var imports = map[string]string{
	".": "",
	"cmd/understudy": ". follow internal/access internal/callers internal/config internal/diagnostics internal/diagnostics/profile internal/feed " +
		"internal/jobs internal/proxy internal/search internal/slowapi internal/store internal/viewer internal/viewer/page internal/walk " +
		"kit/accesslog kit/dispatch kit/jsonspan kit/nearest kit/onlinestat kit/places kit/weigh mirror upstream",
	"follow":                       "",
	"internal/access":              ". kit/jsonspan kit/nearest kit/recent",
	"internal/access/accesstest":   ". internal/access",
	"internal/callers":             ". kit/accesslog",
	"internal/config":              ". internal/access internal/callers internal/feed kit/nearest mirror upstream",
	"internal/diagnostics":         ". internal/diagnostics/profile kit/accesslog kit/frame",
	"internal/diagnostics/profile": ".",
	"internal/feed":                ". internal/access kit/accesslog kit/frame kit/jsonspan kit/nearest kit/places kit/seal",
	"internal/jobs":                ". kit/accesslog kit/frame kit/weigh",
	"internal/proxy":               ". internal/access kit/accesslog kit/charset kit/content kit/header kit/nearest kit/places kit/recent",
	"internal/sample":              "",
	"internal/search":              ". kit/accesslog kit/frame kit/jsonspan kit/nearest kit/places kit/seal kit/words kit/xmldoc",
	"internal/slowapi":             "",
	"internal/store":               ". kit/jsonspan kit/words",
	"internal/store/storetest":     ". internal/store kit/words",
	"internal/viewer": ". internal/access internal/viewer/page internal/viewer/plan kit/accesslog kit/content kit/cycle " +
		"kit/jsonspan kit/places",
	"internal/viewer/page": ". internal/access internal/viewer/plan kit/accesslog kit/charset kit/header kit/jsonspan " +
		"kit/nearest kit/places kit/recent",
	"internal/viewer/plan":       ".",
	"internal/walk":              ". kit/accesslog kit/cycle kit/folder kit/frame kit/jsonspan kit/nearest",
	"mirror":                     ". kit/jsonspan kit/nearest mirror/compose",
	"mirror/compose":             ". kit/jsonspan",
	"mirror/compose/composetest": ". kit/jsonspan",
	"upstream":                   ". kit/charset kit/jsonspan kit/nearest kit/onlinestat kit/weigh",
}

func TestTheTableOfImports(t *testing.T) {
	found := map[string][]string{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		list := found[f.dir]
		for _, imp := range f.imports {
			own, ok := strings.CutPrefix(imp, "understudy/")
			if imp == "understudy" {
				own, ok = ".", true
			}
			if ok && !slices.Contains(list, own) {
				list = append(list, own)
			}
		}
		found[f.dir] = list
	}
	for dir, list := range found {
		want := strings.Fields(imports[dir])
		for _, own := range list {
			if !slices.Contains(want, own) {
				t.Errorf("%s imports %s: the table does not allow it", dir, own)
			}
		}
		for _, own := range want {
			if !slices.Contains(list, own) {
				t.Errorf("%s does not import %s: take it out of the table", dir, own)
			}
		}
		if _, ok := imports[dir]; !ok && !strings.HasPrefix(dir, "kit/") {
			t.Errorf("%s has no line in the table of imports", dir)
		}
	}
	for dir := range imports {
		if _, ok := found[dir]; !ok {
			t.Errorf("the table of imports names %s, which is not there", dir)
		}
	}
}
