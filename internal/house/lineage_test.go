// Lineage: docs/lineage.md names all systems that the product descends from, and what it names exists.

package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	lineagePath    = "docs/lineage.md"
	lineageSystems = 38
)

// TestLineageNamesWhatExists looks for every system in the page, and for every file, folder and test of its row. A test
// must be in one of the folders or files that stand before it in its cell.
func TestLineageNamesWhatExists(t *testing.T) {
	code, link := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`\]\(([^)#]+)`)
	system := 0
	for line := range strings.Lines(readFile(t, lineagePath)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 8 {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue
		}
		if system++; n != system {
			t.Fatalf("row %d is about system %d", system, n)
		}
		state, lives, shown := strings.TrimSpace(cells[3]), cells[5], cells[6]
		if state == "not yet" {
			continue
		}
		if state != "works" && state != "in part" {
			t.Errorf("system %d: the state is %q", n, state)
		}
		if !code.MatchString(lives) || !link.MatchString(lives) {
			t.Errorf("system %d names no code or no document", n)
		}
		for _, m := range code.FindAllStringSubmatch(lives, -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("system %d: %v", n, err)
			}
		}
		for _, m := range link.FindAllStringSubmatch(lives, -1) {
			if _, err := os.Stat(filepath.Join("docs", m[1])); err != nil {
				t.Errorf("system %d: %v", n, err)
			}
		}
		place, tests := "", 0
		for _, m := range code.FindAllStringSubmatch(shown, -1) {
			if !strings.HasPrefix(m[1], "Test") {
				place = m[1]
				continue
			}
			if tests++; !slices.Contains(readTestNames(t, place), m[1]) {
				t.Errorf("system %d: %s has no %s", n, place, m[1])
			}
		}
		if tests == 0 {
			t.Errorf("system %d: no test shows it", n)
		}
	}
	if system != lineageSystems {
		t.Errorf("%s has %d systems, not %d", lineagePath, system, lineageSystems)
	}
}

// readTestNames returns the tests of a file, or of the files of a folder.
func readTestNames(t *testing.T, place string) (names []string) {
	t.Helper()
	paths := []string{place}
	if !strings.HasSuffix(place, ".go") {
		entries, err := fs.Glob(os.DirFS(place), "*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		paths = nil
		for _, name := range entries {
			paths = append(paths, filepath.Join(place, name))
		}
	}
	for _, path := range paths {
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(readFile(t, path), -1) {
			names = append(names, m[1])
		}
	}
	return names
}
