// The contract: what programs, scripts and settings files rely on. A change of
// testdata/contract is a change for users.

package markers

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/e2e/rig"
	"understudy/upstream"
)

var updateContract = flag.Bool("contract", false, "write testdata/contract anew")

// golden compares text with a file of testdata/contract.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", "contract", name)
	if *updateContract {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	had, has := strings.Split(string(want), "\n"), strings.Split(text, "\n")
	for _, line := range had {
		if !slices.Contains(has, line) {
			t.Errorf("%s: gone: %s", name, line)
		}
	}
	for _, line := range has {
		if !slices.Contains(had, line) {
			t.Errorf("%s: new: %s", name, line)
		}
	}
	if text != string(want) {
		t.Errorf("%s differs; if users are to see this change: go test -run %s . -contract", path, t.Name())
	}
}

// commandLine is a command in the list of commands.
var commandLine = regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)?)  `)

func TestContractHelp(t *testing.T) {
	t.Parallel()
	help := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), rig.Program, append(args, "--help")...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	all := help()
	commands := commandLine.FindAllStringSubmatch(all, -1)
	if len(commands) < 35 {
		t.Fatalf("only %d commands in\n%s", len(commands), all)
	}
	for _, c := range commands {
		all += "\n== " + c[1] + "\n" + help(strings.Fields(c[1])...)
	}
	golden(t, "help.txt", all)
}

// Names and defaults; a test beside the settings compares the names with the code.
func TestContractSettings(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/reference/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for line := range strings.SplitSeq(string(doc), "\n") {
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| `") && len(cells) > 3 {
			fmt.Fprintf(&all, "%s = %s\n", strings.Trim(cells[1], " `"), strings.Trim(cells[2], " `"))
		}
	}
	golden(t, "settings.txt", all.String())
}

// Names, types, labels and help; a test beside the metrics compares the document with the code.
func TestContractMetrics(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for line := range strings.Lines(string(doc)) {
		if strings.HasPrefix(line, "| `understudy_") {
			all.WriteString(line)
		}
	}
	golden(t, "metrics.txt", all.String())
}

// headerSets gives each set of header names a letter, in the order in which they come.
type headerSets struct {
	sets []string
}

func (h *headerSets) letter(r rig.Reply) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(r.Header)), func(name string) bool {
		// A role that does not see everything has Server-Timing only where upstream was asked.
		return name == "Date" || name == "Content-Length" || name == "Transfer-Encoding" || name == "Server-Timing"
	})
	set := strings.Join(names, " ")
	i := slices.Index(h.sets, set)
	if i < 0 {
		i = len(h.sets)
		h.sets = append(h.sets, set)
	}
	return fmt.Sprint("h", i+1)
}

// contractTries bounds how often a route is asked as one caller.
const contractTries = 12

// ofCode finds words of the code in the error of an answer: a package at its beginning, and the
// errors of libraries.
var ofCode = regexp.MustCompile(`(?:^|"(?:error|message)":"|<h1>)(?:access|agents|callers|credentials|feed|forecast|jobs|mirror|proxy|search|signin|store|` +
	`viewer|walk|watch|invalid request): .*|(?:jsonhttp|json|yaml): .*|cannot (?:unmarshal|construct) .*`)

// Routes: each of every table, with the statuses and headers of its answers.
// Names: the members of what is answered about the server itself.
func TestContractRoutes(t *testing.T) {
	t.Parallel()
	spec, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	g, up := plant(t, spec)
	g.seed, g.few = 1, true // the same requests each time
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up, Secret: g.secret, Mirror: "{newest: 10m, older: 10m}\ntracing: {slow: 1us}\npush: {contact: \"mailto:desk@example.com\"}"})
	faces := facesOf(t, spec, house.URL("twilio"), house.URL("viewer"))
	callers := []struct{ name, user string }{{"all", rig.Account + ":" + rig.DemoToken}, {"support", rig.Account + ":" + rig.MaskedToken}, {"nobody", ""}}
	var lines strings.Builder
	var headers headerSets
	for _, f := range faces {
		for _, route := range f.routes {
			fmt.Fprintf(&lines, "%s %s", f.name, route)
			for _, caller := range callers {
				seen := map[string]bool{}
				tries := slices.DeleteFunc(g.triesOf(route), func(one try) bool { return len(one.headers) > 0 })
				for _, one := range tries[:min(len(tries), contractTries)] {
					r, err := rig.Ask(one.method, caller.user, f.url+one.path, one.body)
					if err != nil {
						t.Fatal(err)
					}
					if r.Status >= http.StatusBadRequest && r.Header.Get("Understudy-Error")+r.Header.Get("Cache-Status") == "" {
						t.Errorf("%s %s as %s: %d does not say whose answer it is", one.method, one.path, caller.name, r.Status)
					}
					if words := ofCode.FindString(r.Header.Get("Understudy-Error") + "\n" + string(r.Body)); words != "" && r.Status >= http.StatusBadRequest {
						t.Errorf("%s %s as %s: %d says %q", one.method, one.path, caller.name, r.Status, words)
					}
					seen[fmt.Sprint(r.Status, headers.letter(r))] = true
				}
				fmt.Fprintf(&lines, " | %s %s", caller.name, strings.Join(slices.Sorted(maps.Keys(seen)), " "))
			}
			lines.WriteString("\n")
		}
	}
	lines.WriteString("\n")
	for i, set := range headers.sets {
		fmt.Fprintf(&lines, "h%d: %s\n", i+1, set)
	}
	golden(t, "routes.txt", lines.String())

	names := map[string]bool{}
	for _, path := range []string{
		"/-/stats", "/-/health", "/-/feed.json?after=0&wait=0s", "/-/jobs", "/-/webhooks", "/-/erasures", "/-/search?q=has:sid", "/-/search/saved",
	} {
		r := rig.Get(t, rig.Account+":"+rig.DemoToken, house.URL("viewer")+path, "Accept", "application/json")
		var v any
		if err := json.Unmarshal(r.Body, &v); err != nil {
			t.Fatalf("%s answers %d %s: %v", path, r.Status, r.Body, err)
		}
		at, _, _ := strings.Cut(path, "?")
		members(names, at, v, func(name string) string {
			if spec.Kind(name) != nil {
				return "KIND"
			}
			return name
		})
	}
	// Which lists were compared with upstream goes by chance, and who had sent something when
	// the numbers were read; what a record holds is upstream's; and a queue tells its longest
	// wait only when a caller waited.
	maps.DeleteFunc(names, func(name string, _ bool) bool {
		return strings.Contains(name, " longest_ms:") || strings.Contains(name, " KIND lists []") || strings.Contains(name, " record ") ||
			strings.Contains(name, " spent []")
	})
	golden(t, "names.txt", strings.Join(slices.Sorted(maps.Keys(names)), "\n")+"\n")
}

// members adds the paths of all members of a JSON value.
func members(names map[string]bool, at string, v any, called func(name string) string) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			members(names, at+" "+called(name), value, called)
		}
	case []any:
		for _, value := range v {
			members(names, at+" []", value, called)
		}
	default:
		names[fmt.Sprintf("%s: %T", at, v)] = true
	}
}
