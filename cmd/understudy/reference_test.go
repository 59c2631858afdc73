// Tests of what is made from the model of the command line: completions and man pages.

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"understudy/cmd/understudy/reference"
)

// describeCommands returns the command line, as completion and man read it.
func describeCommands(t *testing.T) reference.Command {
	t.Helper()
	var cli commands
	parser, err := newParser(&cli, io.Discard, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return reference.Describe(parser.Model)
}

// completionScript writes the script of a shell to a file.
func completionScript(t *testing.T, shell string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "understudy."+shell)
	if err := os.WriteFile(path, []byte(reference.Scripts[shell]), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCompletionScriptsParse(t *testing.T) {
	for shell, check := range map[string]string{"bash": "-n", "zsh": "-n", "fish": "--no-execute"} {
		if _, err := exec.LookPath(shell); err != nil {
			t.Fatalf("%s is not installed; on Debian: apt-get install %s", shell, shell)
		}
		if out, err := exec.CommandContext(t.Context(), shell, check, completionScript(t, shell)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

// completed are command lines, the last word of which is completed, and what they are completed to.
var completed = map[string]string{
	"st":       "status stop store",
	"store ":   "stats rebuild verify advise shrink locks move",
	"store ve": "verify",
	"help ": "serve demo slowapi status stop reload restart check settings search tail sync purge erase forecast users credentials " +
		"explain audit ca cert spec doctor bugreport store backup restore resume webhooks tables profile help completion man version",
	"help store ve":                   "verify",
	"store verify --d":                "--data",
	"-q store verify --j":             "--json",
	"slowapi --shape ":                "twilio github stripe",
	"slowapi --shape gi":              "github",
	"audit tail -n ":                  "",
	"profile ":                        "allocs cpu list stop",
	"completion ":                     "bash zsh fish",
	"check --config und":              "understudy.yml",
	"store stats --data fol":          "folder",
	"spec try und":                    "understudy.yml",
	"search --source ":                "",
	"store stats --data folder --con": "--config",
}

// folderOfFiles returns a folder with a file and a folder to complete.
func folderOfFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "understudy.yml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBashCompletes(t *testing.T) {
	script, dir := completionScript(t, "bash"), folderOfFiles(t)
	complete := func(words ...string) string {
		t.Helper()
		// compopt works during a completion alone, and changes only how bash shows the result.
		line := `compopt() { :; }; source "$1"; shift; COMP_WORDS=(understudy "$@"); COMP_CWORD=$#; _understudy; echo "${COMPREPLY[*]}"`
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-c", line, "bash", script}, words...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for line, want := range completed {
		if got := complete(strings.Split(line, " ")...); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	// Bash splits at the equals sign.
	for want, words := range map[string][]string{
		"":                     {"search", "--source", "="},
		"twilio github stripe": {"slowapi", "--shape", "="}, "github": {"slowapi", "--shape", "=", "gi"},
		"folder": {"store", "stats", "--data", "=", "f"},
	} {
		if got := complete(words...); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

func TestFishCompletes(t *testing.T) {
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Fatal("fish is not installed; on Debian: apt-get install fish")
	}
	script, dir := completionScript(t, "fish"), folderOfFiles(t)
	for line, want := range completed {
		cmd := exec.CommandContext(t.Context(), fish, "--no-config", "-c", `source $argv[1]; complete -C "$argv[2]"`, script, "understudy "+line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "TERM=dumb")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", line, err, out)
		}
		got := map[string]bool{}
		for found := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(found), "\t")
			got[strings.TrimSuffix(word, "/")] = true
		}
		for word := range strings.FieldsSeq(want) {
			if !got[word] {
				t.Errorf("%q: %q is missing in %q", line, word, out)
			}
			delete(got, word)
		}
		if len(got) > 0 {
			t.Errorf("%q: also completed to %v", line, got)
		}
	}
}

func TestManPages(t *testing.T) {
	root, dir := describeCommands(t), filepath.Join(t.TempDir(), "man1")
	n, err := reference.WriteManPages(root, "1.0", dir)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "understudy*.1"))
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) != n {
		t.Errorf("%d pages, want %d", len(pages), n)
	}
	if n < 40 {
		t.Errorf("only %d pages", n)
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{".TH UNDERSTUDY", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH OPTIONS\n", `\-\-help`} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q", path, part)
			}
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Fatal("groff is not installed; on Debian: apt-get install groff-base")
	}
	out, err := exec.CommandContext(t.Context(), groff, append([]string{"-man", "-ww", "-z", "-Tutf8"}, pages...)...).CombinedOutput()
	if err != nil {
		t.Errorf("groff: %v", err)
	}
	if len(out) > 0 {
		t.Errorf("groff warns: %s", out)
	}
	out, err = exec.CommandContext(t.Context(), groff, "-man", "-Tascii", "-P-c", filepath.Join(dir, "understudy-store-verify.1")).Output()
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer("\b", "").Replace(string(out))
	if !strings.Contains(plain, "understudy store verify [flags]") {
		t.Errorf("the page shows no synopsis:\n%s", out)
	}
}
