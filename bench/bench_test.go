// The bench's own tests: every part runs in small, so that none rots, and the
// instruments measure what they say.

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"understudy/internal/sample"
)

// TestMain lets the test binary stand in for the bench where a part starts the
// bench itself as a child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"bare", "loop", "follow", "echo", "rpc", "ingest", "imports"}, os.Args[1]) {
		main()
	}
	os.Exit(m.Run())
}

func TestEveryPartQuickly(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "understudy")
	build := exec.Command("go", "build", "-trimpath", "-o", bin, "./cmd/understudy")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the binary: %v\n%s", err, out)
	}
	run := sample.OneIn(t, 3)
	for _, p := range parts {
		if !run() {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			results := t.TempDir()
			var out bytes.Buffer
			err := bench(t.Context(), []string{"-quick", "-bin", bin, "-results", results, "-part", p.Name}, &out)
			if err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			kept, err := os.ReadFile(filepath.Join(results, p.Name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(string(kept)) != strings.TrimSpace(out.String()) {
				t.Error("the results are not what was printed")
			}
			if !strings.Contains(string(kept), "\nok     ") && !strings.Contains(string(kept), "\nmissed ") {
				t.Errorf("no target was judged:\n%s", kept)
			}
			// Counts hold in a smoke too; only times mean nothing there.
			for line := range strings.Lines(string(kept)) {
				if strings.HasPrefix(line, "missed") && strings.Contains(line, "target 1\n") {
					t.Errorf("%s", line)
				}
			}
		})
	}
}

func TestUnknownPart(t *testing.T) {
	err := bench(t.Context(), []string{"-part", "cold,warmth"}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), `"warmth"`) {
		t.Errorf("got %v", err)
	}
}
