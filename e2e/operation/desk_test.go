// Desk: where a reader of one page of the documents types.

package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
)

// desk is a folder with what a page tells its reader to write, and the servers that the page has started.
type desk struct {
	t     *testing.T
	page  string
	dir   string
	demo  *binary.Server
	api   string // the simulated API that the settings lead to
	mask  string // the umask that the page set, as a command
	shown bool   // whether the page shows what the command prints

	generic *binary.Server // before a server without a spec
	server  *binary.Server // with the settings of the page
	slowapi *binary.Server // that the page started alone
}

// fileName is the first line of a block that the reader writes to a file: a comment with its name.
var fileName = regexp.MustCompile(`^# ([\w-]+\.(?:py|sh|ya?ml))$`)

// secretFile is a setting that names the file of a secret.
var secretFile = regexp.MustCompile(`file:([\w.-]+)`)

// fileOf returns the name of the file that a block is for, or "".
func fileOf(b rig.Block) string {
	if len(b.Lines) == 0 || !fileName.MatchString(b.Lines[0]) {
		return ""
	}
	return b.Lines[0][len("# "):]
}

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

// write writes a file into the folder that only its owner may read.
func (d *desk) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// has reports whether the folder has a file.
func (d *desk) has(name string) bool {
	_, err := os.Stat(filepath.Join(d.dir, name))
	return err == nil
}

// open begins a page: it writes the blocks that begin with a file's name.
func (d *desk) open(page string) {
	d.t.Helper()
	d.page = page
	for _, b := range rig.ReadBlocks(d.t, page) {
		if name := fileOf(b); name != "" {
			d.write(name, b.Text())
		}
	}
}

// writeSecrets writes each file with a secret that a text names and the folder does not have. The secret of a webhook
// has a form of its own.
func (d *desk) writeSecrets(text string) {
	d.t.Helper()
	for _, m := range secretFile.FindAllStringSubmatch(text, -1) {
		if !d.has(m[1]) {
			d.write(m[1], map[bool]string{true: rig.APIToken, false: "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"}[m[1] == "twilio.token"])
		}
	}
}

// take types a step. What it prints must be what the page shows, except for long hexadecimal numbers and for what the
// page leaves out with an ellipsis.
func (d *desk) take(s step) {
	d.t.Helper()
	d.shown = len(s.prints) > 0
	out := strings.TrimSpace(d.run(s.command))
	if !d.shown {
		return
	}
	want := regexp.QuoteMeta(strings.TrimSpace(strings.Join(s.prints, "\n")))
	want = regexp.MustCompile(`[0-9a-f]{16,}`).ReplaceAllString(want, `[0-9a-f]+`)
	want = regexp.MustCompile(`(?m)^…$`).ReplaceAllString(want, `(?s:.*)`)
	if !regexp.MustCompile(`^` + strings.ReplaceAll(want, "…", ".*") + `$`).MatchString(out) {
		d.t.Errorf("%s shows of %s\n%s\nand it prints\n%s", d.page, s.command, strings.Join(s.prints, "\n"), out)
	}
}

// run types a command and returns what it prints. A server that it starts prints nothing here.
func (d *desk) run(command string) string {
	d.t.Helper()
	args, ours := strings.CutPrefix(strings.TrimPrefix(command, "bin/"), "understudy ")
	switch where := elsewhere[command]; {
	case where != "":
		d.exists(command, where)
	case strings.HasPrefix(command, "curl "):
		return d.curl(command)
	case strings.HasPrefix(command, "umask "):
		d.mask = command + "; "
	case strings.HasPrefix(command, "cat > "), strings.HasPrefix(command, "openssl rand "):
		return d.shell(command)
	case strings.HasPrefix(command, "cp "):
		d.run("understudy store stats") // of a data folder
		return d.shell(command)
	case strings.HasPrefix(command, "python3 "):
		return d.python(command)
	case ours && (strings.HasPrefix(args, "serve") || args == "demo"):
		d.serve(strings.Fields(args))
	case ours && strings.HasPrefix(args, "slowapi"):
		d.slowapi = rig.Start(d.t, d.dir, append(strings.Fields(args), "--listen", "127.0.0.1:0", "--latency", "10ms")...)
	case ours:
		return d.understudy(command, args)
	default:
		d.t.Errorf("no test runs %q: teach desk.run how, or say in elsewhere which test does", command)
	}
	return ""
}

// needsServer matches the commands that ask a running server, or read what it has written.
var needsServer = regexp.MustCompile(`^(webhooks|profile|audit|credentials|purge|erase|store|backup) |^search [^-]`)

// madeCredential is what the program prints of a credential that it makes.
var madeCredential = regexp.MustCompile(`(?m)^user +(\S+)\nsecret +(\S+)`)

// password is what a command that asks for one gets.
const password = "four odd words for both"

// endless matches the commands that run until Ctrl-C.
var endless = regexp.MustCompile(`tail (--follow|--json)$`)

// understudy runs a command of the program with the settings of the page. A profile takes a moment, not a minute.
func (d *desk) understudy(command, args string) string {
	d.t.Helper()
	d.settle()
	if needsServer.MatchString(args) && d.server == nil {
		d.serve([]string{"serve"})
	}
	command = regexp.MustCompile(`--for \d+s`).ReplaceAllString(command, "--for 100ms")
	if endless.MatchString(command) { // Ctrl-C may come before a slow start is done
		command = "for s in 1 3 9 20; do timeout --preserve-status --signal INT $s " + command + " && exit; done; exit 1"
	}
	out := d.shell(strings.ReplaceAll(command, "http://127.0.0.1:4116", d.api))
	if args == "check" && strings.Contains(out, "warning: ") {
		d.t.Errorf("%s warns of what the page says:\n%s", command, out)
	}
	if made := madeCredential.FindStringSubmatch(out); made != nil {
		d.askAsAgent(made[1] + ":" + made[2])
	}
	return out
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
	target, _, _ = strings.Cut(target, " ") // variables follow
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil || !regexp.MustCompile(`(?m)^`+target+`:`).Match(makefile) {
		d.t.Errorf("%s: the Makefile has no %s: %v", command, target, err)
	}
}

// curl runs a command against the servers of the page, or the demo, wherever their ports are. An answer of 400 and above
// is a failure, unless the page shows it.
func (d *desk) curl(command string) string {
	d.t.Helper()
	if d.generic != nil {
		out := d.shell(strings.ReplaceAll(command, "http://127.0.0.1:8006", d.generic.URL("generic")))
		if !strings.Contains(out, "Cache-Status: ") {
			d.t.Errorf("%s answers %s", command, out)
		}
		return out
	}
	d.write(".curlrc", "silent\nmax-time = 20\n"+map[bool]string{false: "fail-with-body\nshow-error\n"}[d.shown])
	out := d.shell(d.addresses().Replace(command))
	if out == "" {
		d.t.Errorf("%s answers nothing", command)
	}
	return out
}

// addresses replaces the usual addresses by those of the page's servers, or of the demo, in one pass: the port that
// the viewer got may begin with 4115.
func (d *desk) addresses() *strings.Replacer {
	d.t.Helper()
	switch {
	case d.slowapi != nil:
		return strings.NewReplacer("http://127.0.0.1:4116", d.slowapi.URL("slowapi"))
	case d.server != nil:
		return strings.NewReplacer("http://127.0.0.1:4114", d.server.URL("viewer"), "http://127.0.0.1:4115", d.server.URL("twilio"))
	case d.demo == nil:
		d.demo = rig.StartDemo(d.t, "--latency", "10ms", "--records", "200")
	}
	return strings.NewReplacer("http://127.0.0.1:4114", d.demo.URL("viewer"), "http://127.0.0.1:4115", d.demo.URL("twilio"),
		"http://127.0.0.1:4116", d.demo.URL("slowapi"))
}

// python runs a program of the page against the page's server. The program must print something.
func (d *desk) python(command string) string {
	d.t.Helper()
	name := strings.Fields(command)[1]
	d.write(name, d.addresses().Replace(rig.ReadFile(d.t, filepath.Join(d.dir, name))))
	out := d.shell(command)
	if out == "" {
		d.t.Errorf("%s prints nothing", command)
	}
	return out
}

// shell runs a command in the folder; understudy and bin/understudy are the built program. A command that reads what
// is pasted gets the token of the API, and one that asks for a password gets one. The command must succeed, unless the
// page shows that it is refused.
func (d *desk) shell(command string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), rig.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", d.mask+command)
	cmd.Stdin = strings.NewReader(rig.APIToken + "\n")
	if strings.Contains(command, "understudy users ") {
		cmd.Stdin = strings.NewReader(password + "\n")
	}
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "HOME="+d.dir, "PATH="+filepath.Join(d.dir, "bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil && !d.shown {
		d.t.Errorf("%s: %v\n%.600s", command, err, out)
	}
	return string(out)
}

// settle writes the settings of the page, and the secrets they name where the page has not had them written. What the
// page leaves out is as in the README. Their upstream is a simulated one, and so is what gets changes: nothing may leave
// this machine.
func (d *desk) settle() {
	d.t.Helper()
	if d.api != "" {
		return
	}
	up := rig.StartAPI(d.t, "--latency", "10ms", "--records", "200").URL("slowapi")
	d.api = up
	text := ""
	if d.has("understudy.yml") {
		text = rig.ReadFile(d.t, filepath.Join(d.dir, "understudy.yml"))
	} else {
		for _, b := range rig.ReadBlocks(d.t, d.page) {
			if b.Language == "yaml" && fileOf(b) == "" && !strings.HasPrefix(b.Text(), "sources:") {
				text = addSections(text, b.Text())
			}
		}
		text = addSections(text, readmeSettings(d.t))
	}
	redirected := strings.Replace(text, "{spec: twilio, ", fmt.Sprintf("{spec: twilio, upstream: %q, ", up), 1)
	if redirected == text {
		d.t.Fatalf("the settings of %s have no source to redirect:\n%s", d.page, text)
	}
	if strings.Contains(text, hookURL) {
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
		d.t.Cleanup(receiver.Close)
		redirected = strings.Replace(redirected, hookURL, fmt.Sprintf("url: %q\n    allow_private: true", receiver.URL), 1)
	}
	d.write("understudy.yml", redirected)
	d.writeSecrets(redirected)
}

// hookURL is where the webhook of a page sends changes.
const hookURL = "url: https://crm.example.com/changes"

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
		first := firstCredential.FindStringSubmatch(rig.ReadFile(d.t, filepath.Join(d.dir, "understudy.yml")))
		if first == nil {
			d.t.Fatalf("the settings of %s have no credential", d.page)
		}
		user = first[1] + ":" + strings.TrimSpace(rig.ReadFile(d.t, filepath.Join(d.dir, first[2])))
	}
	s = rig.Start(d.t, d.dir, args...)
	if r := rig.Get(d.t, user, s.URL("twilio")+rig.Base+"/Calls.json?PageSize=5"); r.Status != 200 {
		d.t.Errorf("%v answers %d %s", args, r.Status, r.Body)
	}
	if r := rig.Get(d.t, "", s.URL("viewer")+"/twilio/calls"); r.Status != 200 {
		d.t.Errorf("%v: the viewer answers %d", args, r.Status)
	}
}

// firstCredential is the first credential of a settings file: its user, and the file of its secret.
var firstCredential = regexp.MustCompile(`(?s)credentials:.*?user: ([^,\s]+).*?secret: "file:([\w.-]+)"`)

// askAsAgent asks as a client that reads the JSON of the page, with a credential that the page has made.
func (d *desk) askAsAgent(credential string) {
	d.t.Helper()
	for _, b := range rig.ReadBlocks(d.t, d.page) {
		var file struct {
			Servers map[string]struct {
				URL     string
				Headers map[string]string
			} `json:"mcpServers"`
		}
		if b.Language != "json" {
			continue
		}
		if err := json.Unmarshal([]byte(d.addresses().Replace(b.Text())), &file); err != nil {
			d.t.Error(err)
		}
		for name, s := range file.Servers {
			said := strings.Replace(s.Headers["Authorization"], "USER:SECRET", credential, 1)
			r, err := rig.Ask(http.MethodPost, "", s.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", said,
				"Content-Type", "application/json", "Accept", "application/json, text/event-stream")
			if err != nil || !strings.Contains(string(r.Body), `"search"`) {
				d.t.Errorf("the client %s gets %d %.300s: %v", name, r.Status, r.Body, err)
			}
		}
	}
}
