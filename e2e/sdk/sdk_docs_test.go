// SDK docs: the lines that point each SDK at a drop-in port, as the page has them.

package sdk

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"understudy/e2e/rig"
)

// The page had no word on any SDK (D10). Its programs run as they are, but for
// the port, and print the same five calls.
func TestDocumentedSDKLines(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "10ms", "--records", "200")
	programs := map[string]string{}
	for _, b := range rig.ReadBlocks(t, "../../docs/reference/proxy.md") {
		text := strings.Join(b.Lines, "\n") + "\n"
		host := strings.TrimPrefix(demo.URL("twilio"), "http://")
		programs[b.Language] = strings.ReplaceAll(text, "127.0.0.1:4115", host)
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(programs["go"]), 0o600); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, c := range []struct {
		language, dir string
		args          []string
	}{
		{"python", "../sdks/python", []string{filepath.Join(".venv", "bin", "python"), "-c", programs["python"]}},
		{"js", "../sdks/node", []string{"node", "--input-type=module", "-e", programs["js"]}},
		{"go", ".", []string{"go", "run", file}},
	} {
		if programs[c.language] == "" {
			t.Fatalf("docs/reference/proxy.md has no program in %s", c.language)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*rig.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
		cmd.Dir, cmd.Env = c.dir, rig.WithoutProxies(os.Environ())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v (is its package installed? `make setup`)\n%s", c.language, err, out)
		}
		if n := len(regexp.MustCompile(`(?m)^CA[0-9a-f]{32}$`).FindAll(out, -1)); n != 5 || want != "" && string(out) != want {
			t.Errorf("%s prints %d calls:\n%s", c.language, n, out)
		}
		want = string(out)
	}
}
