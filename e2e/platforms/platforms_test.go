// Platforms: the product is typed for every system it is promised for.

// Package platforms checks that the product has its types on every system.
package platforms

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"understudy/internal/sample"
)

// listedPackage is a package as `go list -json` tells it.
type listedPackage struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Standard        bool
}

// Windows did not compile (finding 6: syscall.Flock). The types of the whole
// product are checked from source, the bodies of our own functions alone: that
// costs seconds where a compiler takes minutes for the first build of SQLite.
func TestEveryPlatformHasItsTypes(t *testing.T) {
	platforms := []string{"windows/amd64"}
	if sample.IsFullRun() {
		platforms = append(platforms, "windows/arm64", "darwin/arm64", "freebsd/amd64", "linux/arm64")
	}
	for _, platform := range platforms {
		t.Run(platform, func(t *testing.T) {
			goos, goarch, _ := strings.Cut(platform, "/")
			checkTypes(t, goos, goarch)
		})
	}
}

func checkTypes(t *testing.T, goos, goarch string) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Standard", "./cmd/understudy")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	known := typed{"unsafe": types.Unsafe}
	own := 0
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		ours := !p.Standard && strings.HasPrefix(p.ImportPath, "understudy")
		if ours {
			own++
		}
		known[p.ImportPath] = known.check(t, p, goarch, ours)
	}
	if own < 20 {
		t.Errorf("only %d packages of ours were looked at", own)
	}
}

// typed are packages that have their types, by path.
type typed map[string]*types.Package

func (known typed) check(t *testing.T, p listedPackage, goarch string, ours bool) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	c := types.Config{
		Importer: mapped{known, p.ImportMap}, Sizes: types.SizesFor("gc", goarch), IgnoreFuncBodies: !ours,
		Error: func(err error) {
			if ours {
				t.Error(err)
			}
		},
	}
	pkg, _ := c.Check(p.ImportPath, fset, files, nil)
	return pkg
}

// mapped finds what a package imports, vendored names of the standard library included.
type mapped struct {
	known typed
	names map[string]string
}

func (m mapped) Import(path string) (*types.Package, error) {
	if name, ok := m.names[path]; ok {
		path = name
	}
	if p := m.known[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("no package " + path)
}
