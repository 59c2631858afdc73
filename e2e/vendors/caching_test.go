// Caching: the public tests of cache-tests.fyi, unmodified, against a generic source.

package vendors

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// cachingSample are the tests of a usual run: none needs a pause to be exact.
var cachingSample = []string{"freshness-max-age", "freshness-none", "cc-resp-no-store", "vary-match", "vary-no-match", "invalidate-POST",
	"conditional-etag-strong-respond", "partial-store-complete-reuse-partial", "other-authorization", "status-302-fresh",
	"query-args-different", "stale-sie-close", "stale-close"}

// With UNDERSTUDY_PROVE all tests are run. What fails is named in docs/limits.md.
func TestCaching(t *testing.T) {
	t.Parallel()
	all, chosen := sample.IsFullRun(), cachingSample
	if all {
		chosen = nil
	}
	s := rig.Start(t, t.TempDir(), "serve", "--generic", cachingOrigin(t), "--drop-in", "generic=127.0.0.1:0", "--viewer", "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--no-warnings", "caching.mjs", s.URL("generic"), strings.Join(chosen, ","))
	cmd.Dir, cmd.Stderr = "../sdks/node", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v (is it installed? `make setup`)", err)
	}
	var results map[string]struct{ Kind, Why string }
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("%v: %.300s", err, out)
	}
	limits := rig.ReadFile(t, "../../docs/limits.md")
	passed, of := map[string]int{}, map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(results)) {
		r := results[id]
		if of[r.Kind]++; r.Why == "" {
			passed[r.Kind]++
		} else if r.Kind != "check" && !strings.Contains(limits, "`"+id+"`") {
			t.Errorf("%s (%s): %s; and docs/limits.md does not name it", id, r.Kind, r.Why)
		}
	}
	for _, id := range []string{"stale-close", "stale-sie-close", "stale-sie-503"} {
		if r, ran := results[id]; r.Why != "" || all && !ran {
			t.Errorf("%s: %s", id, r.Why)
		}
	}
	t.Logf("passed: %d of %d required, %d of %d optimal, %d of %d checks", passed["required"], of["required"],
		passed["optimal"], of["optimal"], passed["check"], of["check"])
	if !all && len(results) != len(chosen) {
		t.Errorf("%d tests ran, want %d", len(results), len(chosen))
	}
	// Seven of the required ones want the opposite of RFC 9111, 5.1, one that of 4.3.4.
	if all && (of["required"] != 157 || of["optimal"] != 86 || passed["required"] < 142 || passed["optimal"] < 64) {
		t.Error("want 142 of 157 required and 64 of 86 optimal at least")
	}
}

// cachingOrigin starts the server that the tests bring, and gives its address.
func cachingOrigin(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../sdks/node/node_modules/http-cache-tests")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "server/server.mjs")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "npm_config_protocol=http", "npm_config_port=0", "npm_config_pidfile="+filepath.Join(t.TempDir(), "pid"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (is it installed? `make setup`)", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has no other end
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if i := strings.LastIndex(lines.Text(), ":"); strings.HasPrefix(lines.Text(), "Listening on ") {
			go func() {
				for lines.Scan() {
				}
			}()
			return "http://127.0.0.1:" + strings.TrimSuffix(lines.Text()[i+1:], "/")
		}
	}
	t.Fatal("the server of http-cache-tests did not begin")
	return ""
}
