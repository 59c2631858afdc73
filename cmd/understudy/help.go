// Help: help and man pages, completions, and what is printed after a mistake in the command line.

package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"understudy/cmd/understudy/reference"
	"understudy/kit/suggest"
)

// maxHelpColumns is the width of help pages, also on a wider terminal.
const maxHelpColumns = 80

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command, such as store verify (default: all commands)."`
}

// Run prints the help of a command, or the list of all commands.
func (c *helpCmd) Run(p *process) error {
	if _, err := p.parser.Parse(append(slices.Clone(c.Command), "--help")); err != nil && !p.hasExited() {
		return usageError{errors.New(explainParseError(err))}
	}
	return nil
}

type completionCmd struct {
	Shell string   `arg:"" enum:"${shells}" help:"The shell: bash, zsh or fish."`
	Words []string `arg:"" optional:"" help:"After --: the words of a command line. Prints what the last one may be, for the script."`
}

// Help returns what --help prints below the summary.
func (c *completionCmd) Help() string {
	return "Write the script where the shell reads completions, or read it at the start of the shell:\n\n" +
		"    source <(understudy completion bash)\n    source <(understudy completion zsh)\n    understudy completion fish | source"
}

// Run prints the script for a shell. With words it prints the candidates for the last word.
func (c *completionCmd) Run(p *process) error {
	text := reference.Scripts[c.Shell]
	if len(c.Words) > 0 {
		text = strings.Join(append(reference.Complete(reference.Describe(p.parser.Model), c.Shell, c.Words), ""), "\n")
	}
	_, err := io.WriteString(p.stdout, text)
	return err
}

type manCmd struct {
	Command []string `arg:"" optional:"" help:"The command, such as store verify (default: the overview)."`
	Dir     string   `placeholder:"DIR" help:"Write the pages of all commands to this folder."`
}

// Help returns what --help prints below the summary.
func (c *manCmd) Help() string {
	return "To read a page: understudy man store verify | man -l -\n\nTo install all pages: understudy man --dir /usr/local/share/man/man1"
}

// Run prints the man page of a command, or writes all man pages.
func (c *manCmd) Run(p *process) error {
	root := reference.Describe(p.parser.Model)
	if c.Dir != "" {
		n, err := reference.WriteManPages(root, version(), c.Dir)
		if err == nil {
			_, err = fmt.Fprintf(p.stdout, "wrote %s to %s\n", formatCount(n, "page"), c.Dir)
		}
		return err
	}
	path := strings.Join(c.Command, " ")
	var paths []string
	for _, command := range root.All() {
		if command.Path == path {
			_, err := io.WriteString(p.stdout, reference.ManPage(command, version()))
			return err
		}
		paths = append(paths, command.Path)
	}
	return usageError{fmt.Errorf("unknown command %q%s", path, suggest.Hint(path, paths))}
}

// printHelp prints the help of the selected command. The last line of the overview names the help command.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	var page strings.Builder
	stdout := ctx.Stdout
	ctx.Stdout = &page
	err := kong.DefaultHelpPrinter(options, ctx)
	ctx.Stdout = stdout
	if err != nil {
		return err
	}
	text := strings.Replace(page.String(), `Run "understudy <command> --help" for more information on a command.`,
		`Run "understudy help COMMAND" for the arguments and flags of a command.`, 1)
	_, err = io.WriteString(stdout, text)
	return err
}

// printUsageError prints a mistake in the command line, and which help page to read. It returns the exit code.
func printUsageError(stderr io.Writer, text string, command *kong.Node) int {
	help := "understudy help"
	if command != nil && command.Path() != "" && command.Path() != "help" {
		help += " " + command.Path()
	}
	fmt.Fprintf(stderr, "understudy: %s\nRun \"%s\" to see what it takes.\n", text, help)
	return exitUsage
}

// selectedNode returns the command that a parse error is about, or nil if no command was recognized.
func selectedNode(err error) *kong.Node {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return nil
	}
	return parse.Context.Selected()
}

// unknownWord matches the errors for a flag or an argument that a command does not have.
var unknownWord = regexp.MustCompile(`^(unknown flag|unexpected argument) (\S+?)(, did you mean .*)?$`)

// renamedFlags are the flags of earlier versions, and the commands that replace them.
var renamedFlags = map[string]string{
	"serve --demo": "understudy demo", "serve --slowapi": "understudy demo --slowapi", "webhooks list --pause": "understudy webhooks pause",
	"webhooks --pause": "understudy webhooks pause", "webhooks --after": "understudy webhooks resume NAME --after",
	"webhooks list --after": "understudy webhooks resume NAME --after",
}

// explainParseError returns what is wrong with a command line, with the nearest command or flag for a misspelt one.
func explainParseError(err error) string {
	text, node := err.Error(), selectedNode(err)
	var parse *kong.ParseError
	if node == nil && errors.As(err, &parse) && parse.Context != nil {
		node = parse.Context.Model.Node
	}
	if node == nil {
		return text
	}
	var commands, flags []string
	for _, child := range node.Children {
		commands = append(commands, child.Name)
	}
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			flags = append(flags, "--"+flag.Name)
		}
	}
	m := unknownWord.FindStringSubmatch(text)
	switch {
	case m == nil && strings.HasPrefix(text, "expected one of") && len(commands) > 0:
		return fmt.Sprintf("%s needs one of its commands: %s", node.FullPath(), strings.Join(commands, ", "))
	case m == nil:
		return strings.Replace(text, `expected "<`, `missing argument "<`, 1)
	case renamedFlags[strings.TrimSpace(node.Path()+" "+m[2])] != "":
		return fmt.Sprintf("there is no flag %s any more; write %s", m[2], renamedFlags[strings.TrimSpace(node.Path()+" "+m[2])])
	case m[1] == "unknown flag":
		return fmt.Sprintf("unknown flag %s%s", m[2], suggest.Hint(m[2], flags))
	case len(commands) > 0:
		return fmt.Sprintf("unknown command %q%s", strings.TrimSpace(node.Path()+" "+m[2]), suggest.Hint(m[2], commands))
	}
	return fmt.Sprintf("unexpected argument %q", m[2])
}
