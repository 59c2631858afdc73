// Walk: the provider's packages for Go, Node and Python, and the oldest other
// one for Go, walk every list directly and through the drop-in, and must find
// the same.

package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// found is what a package makes of every list: its records, or its error as a
// JSON string.
type found map[string]json.RawMessage

// walker is one package. It walks every list it knows at an address.
type walker struct {
	name string
	walk func(t *testing.T, address, token string, of parents) found
	// cannot are lists the package cannot read as the provider documents them;
	// both ways it must say the same.
	cannot []string
	empty  []string // lists that hold nothing
}

// parents are the records whose own lists are walked.
type parents struct {
	Call        string `json:"call"`    // with recordings
	Noticed     string `json:"noticed"` // a call with notifications
	Message     string `json:"message"` // with media
	Conference  string `json:"conference"`
	Recorded    string `json:"recorded"` // a conference with recordings
	Transcribed string `json:"transcribed"`
	Queue       string `json:"queue"`

	Filters *filters `json:"filters,omitempty"` // what lists are to be asked for; nil: no filters
}

func TestEveryPackageWalksEveryList(t *testing.T) {
	t.Parallel()
	records := strconv.Itoa(sample.Count(110, 300)) // more than two pages
	up := rig.StartAPI(t, "--records", records, "--latency", "1ms", "--arrivals", "0").URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up})
	through := house.URL("twilio")
	of := findParents(t, up)
	for _, w := range []walker{
		{name: "twilio-go", walk: walkWithTwilioGo},
		{name: "kevinburke/twilio-go", walk: walkWithKevinburke, cannot: []string{"available_local", "transcriptions"}}, // numbers it wants as strings
		{name: "npm twilio", walk: walkWithNode},
		{name: "PyPI twilio", walk: walkWithPython},
	} {
		t.Run(w.name, func(t *testing.T) {
			direct := w.walk(t, up, rig.APIToken, of)
			for _, round := range []string{"cold", "held"} {
				w.compare(t, round, direct, w.walk(t, through, rig.DemoToken, of), up, through)
			}
			t.Logf("%d lists, %d records each way", len(direct), direct.records())
		})
	}
}

// records counts what was found in all.
func (f found) records() int {
	n := 0
	for _, list := range f {
		var rows []json.RawMessage
		_ = json.Unmarshal(list, &rows)
		n += len(rows)
	}
	return n
}

// compare demands that both ways gave the same records, and some in every list.
func (w walker) compare(t *testing.T, round string, direct, through found, up, address string) {
	t.Helper()
	if len(direct) == 0 || len(direct) != len(through) {
		t.Fatalf("%s: %d lists directly, %d through", round, len(direct), len(through))
	}
	for _, name := range slices.Sorted(maps.Keys(direct)) {
		// An absolute URL names the server that answers.
		want := bytes.ReplaceAll(direct[name], []byte(up), []byte(address))
		want = rig.AuthToken.ReplaceAll(want, []byte(`$1""`))
		var rows []json.RawMessage
		if err := json.Unmarshal(want, &rows); (err != nil || len(rows) == 0 && !slices.Contains(w.empty, name)) && !slices.Contains(w.cannot, name) {
			t.Errorf("%s: directly it is %.200s", name, want)
			continue
		}
		if have := through[name]; !bytes.Equal(want, have) {
			t.Errorf("%s, %s: %s", name, round, rig.FirstDifference(want, have))
		}
	}
}

// findParents looks for records that have lists of their own.
func findParents(t *testing.T, up string) parents {
	t.Helper()
	row := func(list, key string, holds func(map[string]any) bool) map[string]any {
		for page := rig.Base + list; page != ""; {
			var body map[string]any
			r, err := rig.Ask(http.MethodGet, rig.Account+":"+rig.APIToken, up+page, "")
			checktest.MustNoError(t, err, "%s", page)
			checktest.MustTrue(t, json.Unmarshal(r.Body, &body) == nil, "%s: json.Unmarshal(r.Body, &body) is %v",
				page, json.Unmarshal(r.Body, &body))
			checktest.MustEqual(t, r.Status, http.StatusOK, "%s: r.Status", page)
			rows, _ := body[key].([]any)
			for _, r := range rows {
				if r, ok := r.(map[string]any); ok && holds(r) {
					return r
				}
			}
			page, _ = body["next_page_uri"].(string)
		}
		t.Fatalf("nothing in %s has what is looked for", list)
		return nil
	}
	text := func(r map[string]any, field string) string { s, _ := r[field].(string); return s }
	any1 := func(map[string]any) bool { return true }
	has := func(field string) func(map[string]any) bool {
		return func(r map[string]any) bool { return text(r, field) != "" }
	}
	var of parents
	of.Call = text(row("/Recordings.json?PageSize=1000", "recordings", func(r map[string]any) bool { return text(r, "conference_sid") == "" }), "call_sid")
	of.Recorded = text(row("/Recordings.json?PageSize=1000", "recordings", has("conference_sid")), "conference_sid")
	of.Noticed = text(row("/Notifications.json", "notifications", has("call_sid")), "call_sid")
	of.Message = text(row("/Messages.json?PageSize=1000", "messages", func(r map[string]any) bool { return text(r, "num_media") != "0" }), "sid")
	of.Conference = text(row("/Conferences.json?Status=in-progress", "conferences", any1), "sid")
	of.Transcribed = text(row("/Transcriptions.json", "transcriptions", any1), "recording_sid")
	of.Queue = text(row("/Queues.json", "queues", func(r map[string]any) bool { n, _ := r["current_size"].(float64); return n > 0 }), "sid")
	return of
}

func walkWithNode(t *testing.T, address, token string, of parents) found {
	return runScript(t, "../sdks/node", "node", "walk.mjs", address, token, of)
}

func walkWithPython(t *testing.T, address, token string, of parents) found {
	return runScript(t, "../sdks/python", filepath.Join(".venv", "bin", "python"), "walk.py", address, token, of)
}

// runScript runs a walk in another language. The packages it needs are put
// there by `make setup`.
func runScript(t *testing.T, dir, program, script, address, token string, of parents) found {
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
	f := found{}
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatalf("%s: %v: %.300s", script, err, out)
	}
	return f
}

// collect turns what a package returned into what found holds.
func collect[T any](records []T, err error) json.RawMessage {
	var v any = records
	if err != nil {
		v = err.Error()
	}
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(fmt.Sprint("cannot be written: ", err))
	}
	return b
}
