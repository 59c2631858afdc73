// Walk: the provider's packages for Go, Node and Python, and the oldest other
// one for Go, walk every list directly and through the drop-in, and must find
// the same.

package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// walker is one package. It walks every list it knows at an address.
type walker struct {
	name string
	walk func(t *testing.T, address, token string, of parents) rig.Found
	rig.Comparison
}

// parents are the records whose own lists are walked.
type parents struct {
	rig.Parents
	Filters *filters `json:"filters,omitempty"` // the filters of the lists, or nil
}

func TestEveryPackageWalksEveryList(t *testing.T) {
	t.Parallel()
	records := strconv.Itoa(sample.Count(110, 300)) // more than two pages
	up := rig.StartAPI(t, "--records", records, "--latency", "1ms", "--arrivals", "0").URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up})
	through := house.URL("twilio")
	of := parents{Parents: rig.FindParents(t, up)}
	for _, w := range []walker{
		{name: "twilio-go", walk: walkWithTwilioGo},
		{name: "kevinburke/twilio-go", walk: walkWithKevinburke, Comparison: rig.Comparison{Unreadable: []string{"available_local", "transcriptions"}}}, // numbers it wants as strings
		{name: "npm twilio", walk: walkWithNode},
		{name: "PyPI twilio", walk: walkWithPython},
	} {
		t.Run(w.name, func(t *testing.T) {
			direct := w.walk(t, up, rig.APIToken, of)
			for _, round := range []string{"cold", "held"} {
				w.Compare(t, round, direct, w.walk(t, through, rig.DemoToken, of), up, through)
			}
			t.Logf("%d lists, %d records each way", len(direct), direct.Records())
		})
	}
}

func walkWithNode(t *testing.T, address, token string, of parents) rig.Found {
	return runScript(t, "../sdks/node", "node", "walk.mjs", address, token, of)
}

func walkWithPython(t *testing.T, address, token string, of parents) rig.Found {
	return runScript(t, "../sdks/python", filepath.Join(".venv", "bin", "python"), "walk.py", address, token, of)
}

// runScript runs a walk in another language. The packages it needs are put
// there by `make setup`.
func runScript(t *testing.T, dir, program, script, address, token string, of parents) rig.Found {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(program, filepath.Separator) {
		program = filepath.Join(dir, program)
	}
	about, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, script, address, rig.Account, token, string(about))
	cmd.Dir, cmd.Env = dir, rig.WithoutProxies(os.Environ())
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v (is it installed? `make setup`)\n%s", program, script, err, complaints.String())
	}
	f := rig.Found{}
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatalf("%s: %v: %.300s", script, err, out)
	}
	return f
}
