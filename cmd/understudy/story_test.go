// Stories: the command line and the frontends as a user meets them, one txtar file
// each in testdata.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// TestMain runs the command line in the place of the tests when a story asks for it. With the race
// detector a program waits a second before it ends, unless it is told otherwise: stories start hundreds.
func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" {
		if err := os.Setenv("GORACE", "atexit_sleep_ms=10"); err != nil {
			panic(err)
		}
	}
	if os.Getenv(commandsVariable) != "" {
		if err := runCommands(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	testscript.Main(m, map[string]func(){"understudy": main})
}

func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files:               chooseStories(t),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			const account = "AC00000000000000000000000000000001"
			env.Setenv("AC", account)
			env.Setenv("demo", account+":understudydemotoken")
			env.Setenv("masked", account+":understudymaskedtoken")
			env.Setenv("direct", account+":slowapitoken")
			env.Setenv("reports", "reports:reportssecret1234")
			env.Values[serversKey{}] = map[string]*server{}
			env.Values[commanderKey{}] = &commander{}
			env.Defer(func() {
				for _, s := range env.Values[serversKey{}].(map[string]*server) {
					s.kill()
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"run":        cmdRun,
			"value":      cmdValue,
			"world":      cmdWorld,
			"serve":      cmdServe,
			"demo":       cmdDemo,
			"end":        cmdEnd,
			"reload":     cmdReload,
			"http":       cmdHTTP,
			"await":      cmdAwait,
			"count":      cmdCount,
			"awaitcount": cmdAwaitCount,
			"next":       cmdNext,
			"first":      cmdFirst,
			"breakoff":   cmdBreakOff,
			"damage":     cmdDamage,
			"library":    cmdLibrary,
			"playable":   cmdPlayable,
		},
	})
}

// chooseStories returns the stories to run: all of them, or in make test the half that the seed chooses.
func chooseStories(t *testing.T) []string {
	all, err := filepath.Glob("testdata/*.txtar")
	checktest.MustNoError(t, err, "stories")
	if sample.IsFullRun() || os.Getenv("UNDERSTUDY_SEED") == "" {
		return all
	}
	var chosen, left []string
	for _, file := range all {
		if sample.ChooseByName(file, 2) {
			chosen = append(chosen, file)
		} else {
			left = append(left, filepath.Base(file))
		}
	}
	t.Logf("left to other seeds and to make prove: %v", left)
	return chosen
}

// patience bounds everything a story waits for.
const patience = 30 * time.Second

type serversKey struct{}

// server is one `understudy serve` of a story.
type server struct {
	cmd    *exec.Cmd
	config string // its settings; "": it is a demo
	out    *strings.Builder
	exited chan error
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// cmdServe starts a server and waits until it says how to end it:
//
//	serve NAME ARGS…
//
// The addresses it prints become variables: $viewer, $slowapi, each source by its name, and all of them again behind NAME_.
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serve NAME ARGS…")
	}
	start(ts, args[0], append([]string{"serve"}, args[1:]...))
}

// cmdDemo starts a demo on free ports, as serve does:
//
//	demo NAME ARGS…
func cmdDemo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: demo NAME ARGS…")
	}
	ports := []string{"demo", "--viewer", "127.0.0.1:0", "--drop-in", "twilio=127.0.0.1:0", "--slowapi", "127.0.0.1:0"}
	start(ts, args[0], append(ports, args[1:]...))
}

// serverProgram returns the program of a story's servers. `make test` names one that was built without the race detector in
// UNDERSTUDY_PROGRAM; two stories in three use it.
func serverProgram(ts *testscript.TestScript) string {
	if path := os.Getenv("UNDERSTUDY_PROGRAM"); path != "" && !sample.ChooseByName(ts.Name(), 3) {
		return path
	}
	path, err := exec.LookPath("understudy")
	ts.Check(err)
	return path
}

// start starts a server under a name.
func start(ts *testscript.TestScript, name string, args []string) {
	config := ""
	if i := slices.Index(args, "--config"); i >= 0 {
		config = ts.MkAbs(args[i+1])
	}
	lane(ts, config)
	cmd := exec.Command(serverProgram(ts), args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "TMPDIR="+ts.Getenv("TMPDIR"))
	logFile, err := os.Create(ts.MkAbs(name + ".log"))
	ts.Check(err)
	cmd.Stderr = logFile
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	s := &server{cmd: cmd, config: config, out: &strings.Builder{}, exited: make(chan error, 1)}
	ready := make(chan error, 1)
	go func() {
		ready <- readAddresses(ts, name, stdout, s.out)
		_, _ = io.Copy(io.Discard, stdout)
		err := cmd.Wait()
		_ = logFile.Close()
		s.exited <- err
		close(s.exited)
	}()
	select {
	case err := <-ready:
		if err != nil {
			<-s.exited
			log, _ := os.ReadFile(ts.MkAbs(name + ".log"))
			ts.Fatalf("serve %s: %v\n%s%s", name, err, s.out, log)
		}
	case <-time.After(patience):
		s.kill()
		ts.Fatalf("serve %s: not ready after %v", name, patience)
	}
	ts.Value(serversKey{}).(map[string]*server)[name] = s
}

// lane takes the express lane out of settings in some of the stories.
func lane(ts *testscript.TestScript, config string) {
	if config == "" {
		return
	}
	on, err := sample.ChooseLane(ts.Name(), config)
	ts.Check(err)
	if !on {
		ts.Logf("no express lane")
	}
}

// answering is the first line of every server.
var answering = regexp.MustCompile(`^answering after \d+ ms$`)

func readAddresses(ts *testscript.TestScript, name string, r io.Reader, out *strings.Builder) error {
	began := false
	line := regexp.MustCompile(`^(\w[\w-]*) +(http://\S+)`)
	in := bufio.NewScanner(r)
	for in.Scan() {
		if !began && !answering.MatchString(in.Text()) {
			return fmt.Errorf("the first line is %q", in.Text())
		}
		began = true
		fmt.Fprintln(out, in.Text())
		if m := line.FindStringSubmatch(in.Text()); m != nil {
			ts.Setenv(m[1], m[2])
			ts.Setenv(name+"_"+m[1], m[2])
		}
		if strings.Contains(in.Text(), "Ctrl-C") {
			return nil
		}
	}
	return fmt.Errorf("it ended before it was ready")
}

// cmdEnd ends a server in order; it must exit 0. With -kill it ends at once:
//
//	end [-kill] NAME
func cmdEnd(ts *testscript.TestScript, neg bool, args []string) {
	servers := ts.Value(serversKey{}).(map[string]*server)
	hard := len(args) == 2 && args[0] == "-kill"
	name := args[len(args)-1]
	s := servers[name]
	if neg || s == nil {
		ts.Fatalf("end: want one of %v", slices.Sorted(maps.Keys(servers)))
	}
	delete(servers, name)
	if hard {
		s.kill()
		return
	}
	ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-s.exited:
		if err != nil {
			log, _ := os.ReadFile(ts.MkAbs(name + ".log"))
			ts.Fatalf("end %s: %v\n%s", name, err, log)
		}
	case <-time.After(patience):
		s.kill()
		ts.Fatalf("end %s: still running after %v", name, patience)
	}
}

// cmdReload tells a server to read its settings again:
//
//	reload NAME
func cmdReload(ts *testscript.TestScript, neg bool, args []string) {
	servers := ts.Value(serversKey{}).(map[string]*server)
	if neg || len(args) != 1 || servers[args[0]] == nil {
		ts.Fatalf("reload: want one of %v", slices.Sorted(maps.Keys(servers)))
	}
	lane(ts, servers[args[0]].config)
	ts.Check(servers[args[0]].cmd.Process.Signal(syscall.SIGHUP))
}

// ask is one request of a story: http [-u USER:PASSWORD] [-X METHOD] [-d BODY]
// [-H HEADER] [-o FILE] [-c COOKIE-FILE] URL.
type ask struct {
	user, method, body, url, out string
	cookies                      string // the file with the cookies of the last answer that set some
	headers                      []string
}

func parseAsk(ts *testscript.TestScript, args []string) ask {
	a := ask{method: "GET"}
	for len(args) > 1 {
		switch args[0] {
		case "-u":
			a.user = args[1]
		case "-X":
			a.method = args[1]
		case "-d":
			a.body, a.method = args[1], "POST"
		case "-H":
			a.headers = append(a.headers, args[1])
		case "-o":
			a.out = args[1]
		case "-c":
			a.cookies = ts.MkAbs(args[1])
		default:
			ts.Fatalf("http: unknown flag %s", args[0])
		}
		args = args[2:]
	}
	if len(args) != 1 {
		ts.Fatalf("http: want one URL, have %q", args)
	}
	a.url = args[0]
	return a
}

// do sends it and gives status line, headers and body as text.
func (a ask) do() (text string, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, a.method, a.url, strings.NewReader(a.body))
	if err != nil {
		return "", nil, err
	}
	if user, password, ok := strings.Cut(a.user, ":"); ok {
		req.SetBasicAuth(user, password)
	}
	if a.body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range a.headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	if kept, err := os.ReadFile(a.cookies); err == nil {
		req.Header.Set("Cookie", string(kept))
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	var set []string
	for _, c := range resp.Cookies() {
		set = append(set, c.Name+"="+c.Value)
	}
	if len(set) > 0 && a.cookies != "" {
		if err := os.WriteFile(a.cookies, []byte(strings.Join(set, "; ")), 0o600); err != nil {
			return "", nil, err
		}
	}
	body, err = io.ReadAll(resp.Body)
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", resp.Status)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(resp.Header[name], ", "))
	}
	fmt.Fprintf(&b, "\n%s\n", body)
	return b.String(), body, nil
}

// cmdHTTP sends one request; what came is matched by the stdout command.
func cmdHTTP(ts *testscript.TestScript, neg bool, args []string) {
	a := parseAsk(ts, args)
	text, body, err := a.do()
	if (err != nil) != neg {
		ts.Fatalf("http %s: %v", a.url, err)
	}
	fmt.Fprint(ts.Stdout(), text)
	if a.out != "" {
		ts.Check(os.WriteFile(ts.MkAbs(a.out), body, 0o600))
	}
}

// cmdAwait repeats a request until a pattern is in the answer:
//
//	await PATTERN http-arguments…
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await PATTERN URL")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	a := parseAsk(ts, args[1:])
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for {
		text, _, err := a.do()
		if err == nil && pattern.MatchString(text) {
			fmt.Fprint(ts.Stdout(), text)
			return
		}
		if err == nil {
			last = text
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("await %s: not after %v; last answer:\n%s", args[0], patience, last)
		}
	}
}

// asked is how often upstream was asked for targets that match a pattern.
func asked(ts *testscript.TestScript, pattern string) int {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	_, body, err := ask{method: "GET", url: ts.Getenv("slowapi") + "/-/stats"}.do()
	ts.Check(err)
	var stats struct {
		ByTarget map[string]int `json:"by_target"`
	}
	ts.Check(json.Unmarshal(body, &stats))
	n := 0
	for target, times := range stats.ByTarget {
		if re.MatchString(target) {
			n += times
		}
	}
	return n
}

// cmdCount compares how often upstream was asked for targets that match:
//
//	count PATTERN N
func cmdCount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: count PATTERN N")
	}
	if n := asked(ts, args[0]); fmt.Sprint(n) != args[1] {
		ts.Fatalf("upstream was asked %d times for %s, want %s", n, args[0], args[1])
	}
}

// cmdAwaitCount waits until upstream was asked that often:
//
//	awaitcount PATTERN N
func cmdAwaitCount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: awaitcount PATTERN N")
	}
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		n := asked(ts, args[0])
		if fmt.Sprint(n) == args[1] {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("upstream was asked %d times for %s, want %s", n, args[0], args[1])
		}
	}
}

// cmdNext sets $next to the next_page_uri of a saved answer:
//
//	next FILE
func cmdNext(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: next FILE")
	}
	var page struct {
		Next string `json:"next_page_uri"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &page))
	if page.Next == "" {
		ts.Fatalf("%s has no next page", args[0])
	}
	ts.Setenv("next", page.Next)
}

// cmdFirst sets $first to the sid, or another field, of the first call of a saved list:
//
//	first FILE [FIELD]
func cmdFirst(ts *testscript.TestScript, neg bool, args []string) {
	if n := len(args); neg || n != 1 && n != 2 {
		ts.Fatalf("usage: first FILE [FIELD]")
	}
	var page struct {
		Calls []map[string]any `json:"calls"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &page))
	if len(page.Calls) == 0 {
		ts.Fatalf("%s shows no calls", args[0])
	}
	value, _ := page.Calls[0][append(args, "sid")[1]].(string)
	ts.Setenv("first", value)
}
