// Commands of a story run in one process a story, without one each: with the race detector the start of the
// program takes longer than most commands do.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// commandsVariable makes the tests' program run the commands it reads from its standard input.
const commandsVariable = "UNDERSTUDY_STORY_COMMANDS"

// commandLine is a command as a user types it in a folder.
type commandLine struct {
	Folder string
	Args   []string
}

// commandResult is what a command leaves.
type commandResult struct {
	Code           int
	Stdout, Stderr []byte
}

// runCommands runs each command it reads and writes its result, until the input ends.
func runCommands(in io.Reader, out io.Writer) error {
	lines, results := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var line commandLine
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := os.Chdir(line.Folder); err != nil {
			return err
		}
		var stdout, stderr commandOutput
		code := run(process{
			startedAt: time.Now(), args: line.Args, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, env: os.LookupEnv,
		})
		if err := results.Encode(commandResult{code, stdout.take(), stderr.take()}); err != nil {
			return err
		}
	}
}

// commandOutput is a buffer that several goroutines may write to, as they may to a file.
type commandOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *commandOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *commandOutput) take() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.text.Bytes())
}

type commanderKey struct{}

// commander is the process that runs a story's commands. It starts with the first of them.
type commander struct {
	process *exec.Cmd
	lines   *json.Encoder
	input   io.Closer
	results *json.Decoder
	stderr  strings.Builder // also the detector's reports
}

// start starts the process with the environment of a story.
func (c *commander) start(ts *testscript.TestScript) {
	path, err := os.Executable()
	ts.Check(err)
	c.process = exec.Command(path)
	c.process.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "TMPDIR="+ts.Getenv("TMPDIR"), commandsVariable+"=1")
	c.process.Stderr = &c.stderr
	in, err := c.process.StdinPipe()
	ts.Check(err)
	out, err := c.process.StdoutPipe()
	ts.Check(err)
	ts.Check(c.process.Start())
	c.lines, c.input, c.results = json.NewEncoder(in), in, json.NewDecoder(out)
	ts.Defer(func() {
		if err := c.end(); err != nil {
			ts.Fatalf("the process of commands: %v", err)
		}
	})
}

// end ends the process, which fails when the race detector has found something.
func (c *commander) end() error {
	err := errors.Join(c.input.Close(), c.process.Wait())
	if err != nil {
		return fmt.Errorf("%w\n%s", err, c.stderr.String())
	}
	return nil
}

// run runs one command.
func (c *commander) run(folder string, args []string) (result commandResult, err error) {
	if err = c.lines.Encode(commandLine{folder, args}); err == nil {
		err = c.results.Decode(&result)
	}
	return result, err
}

// cmdRun runs a command of Understudy. Its output is matched by the commands stdout and stderr:
//
//	run [-exit CODE] ARGS…
func cmdRun(ts *testscript.TestScript, neg bool, args []string) {
	want := -1
	if len(args) > 1 && args[0] == "-exit" {
		code, err := strconv.Atoi(args[1])
		ts.Check(err)
		want, args = code, args[2:]
	}
	if len(args) == 0 || neg && want >= 0 {
		ts.Fatalf("usage: run [-exit CODE] ARGS…")
	}
	c := ts.Value(commanderKey{}).(*commander)
	if c.process == nil {
		c.start(ts)
	}
	result, err := c.run(ts.MkAbs("."), args)
	if err != nil {
		ts.Fatalf("run %s: %v", args[0], err)
	}
	_, _ = ts.Stdout().Write(result.Stdout)
	_, _ = ts.Stderr().Write(result.Stderr)
	switch {
	case neg && result.Code == 0:
		ts.Fatalf("run %s: it succeeded", args[0])
	case want >= 0 && result.Code != want:
		ts.Fatalf("run %s: exit code %d, want %d", args[0], result.Code, want)
	case !neg && want < 0 && result.Code != 0:
		ts.Fatalf("run %s: exit code %d", args[0], result.Code)
	}
}

// cmdValue sets a variable to what a file holds, without the space around it:
//
//	value NAME FILE
func cmdValue(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: value NAME FILE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}
