// Docs: what the documents tell people to type works, and their links lead
// somewhere.

package operation

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
)

// elsewhere are commands that another test runs, or that are that test.
var elsewhere = map[string]string{
	"make run":  "TestRunComparison in e2e/operation/docs_test.go",
	"make test": "make test in .ci/run",

	"understudy ca > ca.pem": "TestGhPrintsWhatItPrintsDirectly in e2e/vendorsdk/gh_test.go",
	"export HTTPS_PROXY=http://127.0.0.1:4117 SSL_CERT_FILE=$PWD/ca.pem": "TestGhPrintsWhatItPrintsDirectly in e2e/vendorsdk/gh_test.go",
	"gh issue list -R acme/tracker":                                      "TestGhPrintsWhatItPrintsDirectly in e2e/vendorsdk/gh_test.go",
}

// documents are all pages, from the root of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) < 8 || !slices.Contains(all, "../../README.md") {
		t.Fatalf("found only %v", all)
	}
	return all
}

// commands are what a page tells people to type: everything in sh blocks, and
// the curl lines of others, which show answers too.
func commands(t *testing.T, page string) []string {
	t.Helper()
	var all []string
	for _, b := range rig.ReadBlocks(t, page) {
		for i := 0; i < len(b.Lines); i++ {
			line := b.Lines[i]
			for strings.HasSuffix(line, `\`) && i+1 < len(b.Lines) {
				i++
				line = strings.TrimSuffix(line, `\`) + strings.TrimSpace(b.Lines[i])
			}
			line, _, _ = strings.Cut(line, "   #")
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if b.Language == "sh" || strings.HasPrefix(line, "curl ") {
				all = append(all, line)
			}
		}
	}
	return all
}

func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	total := 0
	for _, page := range documents(t) {
		found := commands(t, page)
		if len(found) == 0 || page == tutorial { // TestOwnAPITutorial types that
			continue
		}
		total += len(found)
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			d := openDesk(t)
			d.writeFiles(page)
			for _, c := range found {
				d.run(c)
			}
		})
	}
	if total < 6 {
		t.Errorf("found only %d commands in the documents", total)
	}
}

// desk is where a reader of one page types: a folder with what the page tells
// them to write, and the demo running.
type desk struct {
	t    *testing.T
	dir  string
	demo *binary.Server
	api  string // the simulated API that the settings lead to
	mask string // the umask that the page set, as a command

	generic *binary.Server // before a server without a spec
	server  *binary.Server // with the settings of the page
}

// fileName is the first line of a block that the reader writes to a file: a comment with its name.
var fileName = regexp.MustCompile(`^# ([\w-]+\.(?:py|ya?ml))$`)

// openDesk makes a folder in which bin/understudy is the built program. The program is also on the PATH.
func openDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir()}
	bin := filepath.Join(d.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(rig.Program, filepath.Join(bin, "understudy")); err != nil {
		t.Fatal(err)
	}
	return d
}

// writeFiles writes the blocks of a page that begin with a file's name.
func (d *desk) writeFiles(page string) {
	d.t.Helper()
	for _, b := range rig.ReadBlocks(d.t, page) {
		if len(b.Lines) == 0 {
			continue
		}
		if name := fileName.FindStringSubmatch(b.Lines[0]); name != nil {
			if err := os.WriteFile(filepath.Join(d.dir, name[1]), []byte(strings.Join(b.Lines, "\n")+"\n"), 0o600); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

func (d *desk) run(command string) {
	d.t.Helper()
	args, ours := strings.CutPrefix(strings.TrimPrefix(command, "bin/"), "understudy ")
	switch where := elsewhere[command]; {
	case where != "":
		d.exists(command, where)
	case strings.HasPrefix(command, "curl "):
		d.curl(command)
	case strings.HasPrefix(command, "umask "):
		d.mask = command + "; "
	case strings.HasPrefix(command, "cat > "), strings.HasPrefix(command, "openssl rand "):
		d.shell(command)
	case strings.HasPrefix(command, "python3 "):
		d.python(command)
	case ours && (strings.HasPrefix(args, "serve") || args == "demo"):
		d.serve(strings.Fields(args))
	case ours && strings.HasPrefix(args, "slowapi"):
		rig.Start(d.t, d.dir, append(strings.Fields(args), "--listen", "127.0.0.1:0")...)
	case ours:
		d.settle()
		out := d.shell(strings.ReplaceAll(command, "http://127.0.0.1:4116", d.api))
		if args == "check" && strings.Contains(out, "warning: ") {
			d.t.Errorf("%s warns of what the page says:\n%s", command, out)
		}
	default:
		d.t.Errorf("no test runs %q: teach desk.run how, or say in elsewhere which test does", command)
	}
}

// exists checks that the place that runs a command is there: "NAME in FILE".
func (d *desk) exists(command, where string) {
	d.t.Helper()
	name, file, _ := strings.Cut(where, " in ")
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil || !strings.Contains(string(text), name) {
		d.t.Errorf("%s: %s is not there: %v", command, where, err)
	}
	target, isMake := strings.CutPrefix(command, "make ")
	if !isMake {
		return
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil || !regexp.MustCompile(`(?m)^`+target+`:`).Match(makefile) {
		d.t.Errorf("%s: the Makefile has no %s: %v", command, target, err)
	}
}

// curl runs a command against the demo, wherever its ports are. An answer of
// 400 and above is a failure.
func (d *desk) curl(command string) {
	d.t.Helper()
	if d.generic != nil {
		if out := d.shell(strings.ReplaceAll(command, "http://127.0.0.1:8006", d.generic.URL("generic"))); !strings.Contains(out, "Cache-Status: ") {
			d.t.Errorf("%s answers %s", command, out)
		}
		return
	}
	rc := "fail-with-body\nsilent\nshow-error\nmax-time = 20\n"
	if err := os.WriteFile(filepath.Join(d.dir, ".curlrc"), []byte(rc), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if out := d.shell(d.addresses().Replace(command)); len(out) == 0 {
		d.t.Errorf("%s answers nothing", command)
	}
}

// addresses replaces the usual addresses by those of the page's server, or of the demo, in one pass: the port that
// the viewer got may begin with 4115.
func (d *desk) addresses() *strings.Replacer {
	d.t.Helper()
	if d.server != nil {
		return strings.NewReplacer("http://127.0.0.1:4114", d.server.URL("viewer"), "http://127.0.0.1:4115", d.server.URL("twilio"))
	}
	if d.demo == nil {
		d.demo = rig.StartDemo(d.t, "--latency", "10ms", "--records", "200")
	}
	return strings.NewReplacer("http://127.0.0.1:4114", d.demo.URL("viewer"), "http://127.0.0.1:4115", d.demo.URL("twilio"),
		"http://127.0.0.1:4116", d.demo.URL("slowapi"))
}

// python runs a program of the page against the page's server. The program must print something.
func (d *desk) python(command string) {
	d.t.Helper()
	path := filepath.Join(d.dir, strings.Fields(command)[1])
	text := d.addresses().Replace(rig.ReadFile(d.t, path))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if out := d.shell(command); out == "" {
		d.t.Errorf("%s prints nothing", command)
	}
}

// shell runs a command in the folder; understudy and bin/understudy are the built program. A command that
// reads what is pasted gets the token of the API.
func (d *desk) shell(command string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), rig.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", d.mask+command)
	cmd.Stdin = strings.NewReader(rig.APIToken + "\n")
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "HOME="+d.dir, "PATH="+filepath.Join(d.dir, "bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Errorf("%s: %v\n%.600s", command, err, out)
	}
	return string(out)
}

// settle writes the settings of the page, or the README's, and the secrets they name where the page has
// not had them written. Their upstream is a simulated one: nothing may leave this machine.
func (d *desk) settle() {
	d.t.Helper()
	path := filepath.Join(d.dir, "understudy.yml")
	if d.api != "" {
		return
	}
	up := rig.StartAPI(d.t, "--latency", "10ms", "--records", "50").URL("slowapi")
	d.api = up
	text := ""
	for _, b := range rig.ReadBlocks(d.t, "../../README.md") {
		if b.Language == "yaml" {
			text = strings.Join(b.Lines, "\n") + "\n"
		}
	}
	if own, err := os.ReadFile(path); err == nil { // the page has its own
		text = string(own)
	}
	redirected := strings.Replace(text, "{spec: twilio, ", fmt.Sprintf("{spec: twilio, upstream: %q, ", up), 1)
	if redirected == text {
		d.t.Fatalf("the README's settings have no source to redirect:\n%s", text)
	}
	if err := os.WriteFile(path, []byte(redirected), 0o600); err != nil {
		d.t.Fatal(err)
	}
	for name, text := range map[string]string{"twilio.token": rig.APIToken, "reports.secret": "reportssecret1234"} {
		name = filepath.Join(d.dir, name)
		if _, err := os.Stat(name); err == nil {
			continue
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
}

// serve starts the server on free ports and reads something through it.
func (d *desk) serve(args []string) {
	d.t.Helper()
	if i := slices.Index(args, "--generic"); i >= 0 {
		api := rig.StartAPI(d.t, "--latency", "10ms", "--records", "50").URL("slowapi")
		d.generic = rig.Start(d.t, d.dir, "serve", "--generic", api, "--drop-in", "generic=127.0.0.1:0", "--viewer", "127.0.0.1:0")
		return
	}
	args = append(args, "--viewer", "127.0.0.1:0", "--drop-in", "twilio=127.0.0.1:0")
	user := rig.Account + ":" + rig.DemoToken
	var s *binary.Server
	if args[0] == "demo" {
		args = append(args, "--slowapi", "127.0.0.1:0")
	} else {
		d.settle()
		defer func() { d.server = s }()
		password, err := os.ReadFile(filepath.Join(d.dir, "reports.secret"))
		if err != nil {
			d.t.Fatal(err)
		}
		user = "reports:" + strings.TrimSpace(string(password))
	}
	s = rig.Start(d.t, d.dir, args...)
	if r := rig.Get(d.t, user, s.URL("twilio")+rig.Base+"/Calls.json?PageSize=5"); r.Status != 200 {
		d.t.Errorf("%v answers %d %s", args, r.Status, r.Body)
	}
	if r := rig.Get(d.t, "", s.URL("viewer")+"/twilio/calls"); r.Status != 200 {
		d.t.Errorf("%v: the viewer answers %d", args, r.Status)
	}
}

// Every settings file the documents show is one that `check` takes.
func TestDocumentedSettings(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, page := range documents(t) {
		if page == tutorial { // its settings name a spec that is drawn
			continue
		}
		for _, b := range rig.ReadBlocks(t, page) {
			text := strings.Join(b.Lines, "\n") + "\n"
			if b.Language != "yaml" || !strings.HasPrefix(text, "sources:") && !strings.Contains(text, "\nsources:") {
				continue
			}
			tried++
			d := openDesk(t)
			d.writeFiles(page)
			for _, m := range regexp.MustCompile(`file:([\w.-]+)`).FindAllStringSubmatch(text, -1) {
				if err := os.WriteFile(filepath.Join(d.dir, m[1]), []byte("a secret of some length"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(d.dir, "understudy.yml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text, "sign_in: users") { // the page has them added by a command
				if err := os.WriteFile(filepath.Join(d.dir, "users"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			d.shell("bin/understudy check")
		}
	}
	if tried < 2 {
		t.Errorf("found only %d settings files in the documents", tried)
	}
}

// What `make run` starts prints its comparison, measured.
func TestRunComparison(t *testing.T) {
	t.Parallel()
	for file, start := range map[string]string{"../../Makefile": "\t@tools/steps run\n", "../../tools/steps": "exec .cache/bin/demo bin/understudy --arrivals 6\n"} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), start) {
			t.Fatalf("make run starts something else than %s: %v", start, err)
		}
	}
	dir := t.TempDir()
	measured := filepath.Join(dir, "demo")
	build := exec.CommandContext(t.Context(), "go", "-C", "../../bench", "build", "-trimpath", "-o", measured, "./demo")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	demo, err := binary.Start(measured, dir, append([]string{rig.Program}, binary.Demo("--arrivals", "6", "--latency", "50ms")[1:]...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := demo.Stop(); err != nil {
			t.Errorf("make run: %v\n%s", err, demo.Stderr())
		}
	})
	// Five lines: direct and through, each a time and its upstream requests.
	row := regexp.MustCompile(`(?m)^ *\w.*?  +[\d.]+m?s +\d+ +[\d.]+[mµ]?s +\d+ +\d+$`)
	rig.Await(t, func() string {
		if rows := row.FindAllString(demo.Stdout(), -1); len(rows) != 5 {
			return fmt.Sprintf("%d rows, want 5, in:\n%s", len(rows), demo.Stdout())
		}
		return ""
	})
	// Then every record is fetched, and found.
	rig.Await(t, func() string {
		if out := demo.Stdout(); !strings.Contains(out, demo.URL("viewer")+"/search\n") {
			return "no word that every record was fetched, in:\n" + out
		}
		return ""
	})
	if r := rig.Get(t, "", demo.URL("viewer")+"/-/search?q=kind:messages+booking&facets=true"); !strings.Contains(string(r.Body), `"hits":[{`) {
		t.Errorf("found nothing: %s", r.Body)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	code    = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
)

// anchors are the names a page's headings can be linked by.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return all
}

func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") || strings.HasPrefix(path, "mailto:") {
				continue
			}
			checked++
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if anchor == "" {
				continue
			}
			data, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if names := anchors(string(data)); !names[anchor] {
				t.Errorf("%s links to %s, which has only %v", page, m[1], slices.Sorted(maps.Keys(names)))
			}
		}
	}
	if checked < 15 {
		t.Errorf("checked only %d links", checked)
	}
}
