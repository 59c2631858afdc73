// Singer's tap for GitHub, through the proxy and directly.

package vendorsdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"understudy/e2e/rig"
)

// The tap finds the same streams and brings the same records in the same order, cold and warm.
// It refuses answers without X-RateLimit-Remaining.
func TestSingerTapSyncsWhatItSyncsDirectly(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--shape", "github", "--latency", "0s", "--records", "120", "--arrivals", "0").URL("slowapi")
	through := startGitHub(t, up).URL("github")
	var directly, cold []byte
	t.Run("", func(t *testing.T) {
		t.Run("directly", func(t *testing.T) { t.Parallel(); directly = singerTap(t, up, rig.APIToken, "--discover") })
		t.Run("cold", func(t *testing.T) { t.Parallel(); cold = singerTap(t, through, rig.ProgramSecret, "--discover") })
	})
	if !bytes.Equal(directly, cold) {
		t.Fatalf("discovered %.600s\ndirectly %.600s", cold, directly)
	}
	streams := []string{"comments", "commits", "issue_labels", "issues", "releases"}
	catalog := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(catalog, selectStreams(t, directly, streams), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("", func(t *testing.T) {
		t.Run("directly", func(t *testing.T) { t.Parallel(); directly = singerTap(t, up, rig.APIToken, "--properties", catalog) })
		t.Run("cold", func(t *testing.T) {
			t.Parallel()
			cold = singerTap(t, through, rig.ProgramSecret, "--properties", catalog)
		})
	})
	want := singerRecords(t, directly, up)
	for _, stream := range streams {
		if len(want[stream]) == 0 {
			t.Errorf("directly there are no %s", stream)
		}
	}
	warm := singerTap(t, through, rig.ProgramSecret, "--properties", catalog)
	for state, out := range map[string][]byte{"cold": cold, "warm": warm} {
		got := singerRecords(t, out, through)
		for _, stream := range streams {
			if !slices.Equal(got[stream], want[stream]) {
				t.Errorf("%s, %s: %d records, directly %d: %.300v\ndirectly %.300v", state, stream, len(got[stream]), len(want[stream]), got[stream],
					want[stream])
			}
		}
	}
}

// singerTap runs the tap against an address and returns what it prints.
func singerTap(t *testing.T, address, secret string, args ...string) []byte {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.json")
	text := fmt.Sprintf(`{"access_token":%q,"repository":"acme/tracker","start_date":"2020-01-01T00:00:00Z","base_url":%q}`, secret, address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "../sdks/singer/.venv/bin/tap-github", append([]string{"--config", config}, args...)...)
	cmd.Env = rig.WithoutProxies(os.Environ())
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tap-github %v: %v (is it installed? `make setup`)\n%.2000s", args, err, said.String()[max(0, said.Len()-2000):])
	}
	return out
}

// selectStreams returns a catalog with some of its streams selected.
func selectStreams(t *testing.T, catalog []byte, names []string) []byte {
	t.Helper()
	var all map[string][]map[string]any
	if err := json.Unmarshal(catalog, &all); err != nil {
		t.Fatalf("%v: %.600s", err, catalog)
	}
	for _, stream := range all["streams"] {
		for _, one := range stream["metadata"].([]any) {
			if m := one.(map[string]any); len(m["breadcrumb"].([]any)) == 0 {
				m["metadata"].(map[string]any)["selected"] = slices.Contains(names, stream["stream"].(string))
			}
		}
	}
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// singerRecords returns the records that a tap prints, by stream, less the address they were asked at.
func singerRecords(t *testing.T, out []byte, address string) map[string][]string {
	t.Helper()
	records := map[string][]string{}
	for line := range bytes.Lines(out) {
		var m struct {
			Type, Stream string
			Record       json.RawMessage
		}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if m.Type == "RECORD" {
			records[m.Stream] = append(records[m.Stream], strings.ReplaceAll(string(m.Record), address, ""))
		}
	}
	return records
}
