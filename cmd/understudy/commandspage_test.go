// Tests of the page of commands in the documentation, which is made from the model of the command line.

package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
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
