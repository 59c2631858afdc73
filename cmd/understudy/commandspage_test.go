// Tests of the page of commands in the documentation, which is made from the model of the command line.

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/cmd/understudy/reference"
)

var writeCommands = flag.Bool("write-commands", false, "write docs/reference/commands.md anew")

func TestThePageOfCommandsIsCurrent(t *testing.T) {
	const path = "../../docs/reference/commands.md"
	text := commandsPage(describeCommands(t))
	if *writeCommands {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != text {
		t.Errorf("%s differs from the command line; write it anew: go test ./cmd/understudy -run PageOfCommands -write-commands", path)
	}
}

// TestTheDocumentsNameCommandsThatExist reads the commands in the sentences and tables of the documents: the program has
// each of them with the flags that it is given, and the Makefile has each target.
func TestTheDocumentsNameCommandsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	root, found := describeCommands(t), 0
	all := map[string]reference.Command{}
	for _, c := range root.All() {
		all[c.Path] = c
	}
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile("`(?:bin/)?(understudy|make) ([^`]+)`").FindAllStringSubmatch(string(text), -1) {
				words := strings.Fields(m[2])
				found++
				if m[1] == "make" {
					if !strings.Contains(string(makefile), "\n"+words[0]+":") {
						t.Errorf("%s: the Makefile has no %s", page, m[0])
					}
					continue
				}
				c := root
				for len(words) > 0 && all[strings.TrimSpace(c.Path+" "+words[0])].Path != "" {
					c, words = all[strings.TrimSpace(c.Path+" "+words[0])], words[1:]
				}
				if c.Path == "" && !strings.HasPrefix(m[2], "-") {
					t.Errorf("%s: there is no command %s", page, m[0])
				}
				for _, w := range words {
					name, _, _ := strings.Cut(w, "=")
					known := func(f reference.Flag) bool { return name == f.Name || name == f.Short }
					if strings.HasPrefix(w, "-") && !slices.ContainsFunc(slices.Concat(root.Flags, c.Flags), known) {
						t.Errorf("%s: %s has no flag %s", page, m[0], name)
					}
				}
			}
		}
	}
	if found < 60 {
		t.Errorf("found only %d commands in the documents", found)
	}
}

func TestThePageOfCommandsEscapesTexts(t *testing.T) {
	for text, want := range map[string]string{
		"A person's <file>: a\\b.":                "A person's &lt;file>: a\\b.",
		"See docs/reference/search.md; a | or *.": `See [reference/search.md](../reference/search.md); a \| or \*.`,
	} {
		if got := markdown(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// document matches the path of a page of the documentation.
var document = regexp.MustCompile(`docs/([a-z-]+/[a-z-]+\.md)`)

// markdown returns a text for Markdown, with links to the pages that it names.
func markdown(text string) string {
	text = strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(text)
	return document.ReplaceAllString(text, "[$1](../$1)")
}

// commandsPage returns the page of commands in the documentation. It has the commands, and not the groups of commands.
func commandsPage(root reference.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nEach command has a help page: `understudy help store verify`. " +
		"`understudy man` prints the same as a man page, " +
		"and `understudy completion bash` a script that completes commands and flags (also for `zsh` and `fish`).\n\n" +
		"All commands take `--help` (`-h`), `--version`, and `--quiet` (`-q`), which shows no progress. Long work shows a bar on a terminal, " +
		"and elsewhere a line every 10 seconds on standard error.\n\n" +
		"The exit code is 0 after success, 1 after a failure, and 2 after a mistake in the command line.\n\n" +
		"With `--json` a command prints one object of JSON for other programs.\n")
	for _, c := range root.All()[1:] {
		if len(c.Commands) > 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```text\n%s\n```\n", c.Path, c.Summary, c.Usage)
		if c.Detail != "" {
			fmt.Fprintf(&b, "\n%s\n", markdown(c.Detail))
		}
		var rows strings.Builder
		for _, a := range c.Arguments {
			fmt.Fprintf(&rows, "| `%s` | %s |\n", strings.ReplaceAll(a.Name, "|", `\|`), markdown(a.Help))
		}
		for _, f := range c.Flags[len(root.Flags):] {
			name := f.Name
			if f.Value != "" {
				name += " " + f.Value
			}
			if f.Short != "" {
				name = f.Short + ", " + name
			}
			fmt.Fprintf(&rows, "| `%s` | %s |\n", name, markdown(f.Help))
		}
		if rows.Len() > 0 {
			fmt.Fprintf(&b, "\n| argument or flag | means |\n|---|---|\n%s", rows.String())
		}
	}
	return b.String()
}
