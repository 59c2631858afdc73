// Connect walks: the vendors' packages walk every list through tunnels to the vendors' own hosts,
// and find what they find at upstream itself.

package connect

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// The twilio packages and PyGithub are led by variables alone, the others by the lines of
// docs/reference/proxy.md, which stand in their scripts.
func TestPackagesWalkThroughTunnels(t *testing.T) {
	t.Parallel()
	more := []string{"--arrivals", "0"}
	if sample.IsFullRun() {
		more = append(more, "--records", "300")
	}
	s := rig.StartTunnels(t, "role: all", more...)
	variables := s.Lines(t, "env")
	about, err := json.Marshal(rig.FindParents(t, s.Upstreams["twilio"]))
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		source, dir, program, script string
		own                          string // the address of the vendor
		secret, does                 string
	}{
		"npm twilio":    {"twilio", nodeDir, "node", "walk.mjs", "", rig.Account, rig.APIToken},
		"PyPI twilio":   {"twilio", pythonDir, pythonProgram, "walk.py", "", rig.Account, rig.APIToken},
		"@octokit/rest": {"github", nodeDir, "node", "github.mjs", "https://api.github.com", rig.APIToken, "walk"},
		"PyGithub":      {"github", pythonDir, pythonProgram, "repositories.py", "https://api.github.com", rig.APIToken, "walk"},
		"npm stripe":    {"stripe", nodeDir, "node", "stripe.mjs", "https://api.stripe.com", "sk_test_" + rig.APIToken, "walk"},
		"PyPI stripe":   {"stripe", pythonDir, pythonProgram, "stripe_walk.py", "https://api.stripe.com", "sk_test_" + rig.APIToken, "walk"},
	} {
		if one.dir == pythonDir && one.source != "twilio" && !sample.IsFullRun() {
			continue // it takes ten seconds, most of it Python's own; TestZeroCode walks one list
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := s.Upstreams[one.source]
			walk := func(variables, address string) (f rig.Found) {
				t.Helper()
				args := []string{one.program, one.script, address, one.secret, one.does}
				if one.source == "twilio" {
					args = append(args, string(about))
				}
				if err := json.Unmarshal(s.Run(t, filepath.FromSlash(one.dir), variables, args...), &f); err != nil {
					t.Fatal(err)
				}
				return f
			}
			direct := walk("", up)
			for list, rows := range direct { // where upstream's own URLs lead
				text := string(rows)
				if one.source == "twilio" {
					text = strings.ReplaceAll(text, up+"/v1/", "https://monitor.twilio.com/v1/")
				}
				direct[list] = json.RawMessage(strings.ReplaceAll(text, up, "https://api."+one.source+".com"))
			}
			through := walk(variables, one.own)
			rig.Comparison{Empty: []string{"issues_labels"}}.Compare(t, "through a tunnel", direct, through, up, one.own)
			t.Logf("%d lists, %d records each way", len(direct), direct.Records())
		})
	}
}
