// Help: help pages, man pages, completions, and the message after a mistake in the command line.

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

// maxHelpColumns is the maximum width of help pages, even if the terminal is wider.
const maxHelpColumns = 80

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command, such as store verify (default: all commands)."`
}

// Run prints the help page of a command. Without an argument, it lists all commands.
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

// Run prints the completion script for a shell. If words are given, it prints the candidates for the last of them.
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

// Run prints the man page of one command, or writes the man pages of all commands to a folder.
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

// printHelp prints the help page of a command. On the page with all commands, the last line says how to get help for one.
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

// printUsageError prints what is wrong with a command line, and which help page to read. It returns the exit code.
func printUsageError(stderr io.Writer, text string, command *kong.Node) int {
	help := "understudy help"
	if command != nil && command.Path() != "" && command.Path() != "help" {
		help += " " + command.Path()
	}
	fmt.Fprintf(stderr, "understudy: %s\nRun \"%s\" to see its arguments and flags.\n", text, help)
	return exitUsage
}

// selectedNode returns the command in whose arguments a parse error occurred. It returns nil if the command line
// names no known command.
func selectedNode(err error) *kong.Node {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return nil
	}
	return parse.Context.Selected()
}

// unknownWord matches the errors for a flag or argument that a command does not have.
var unknownWord = regexp.MustCompile(`^(unknown flag|unexpected argument) (\S+?)(, did you mean .*)?$`)

// renamedFlags has the flags of earlier versions, each with the command that has replaced it.
var renamedFlags = map[string]string{
	"serve --demo": "understudy demo", "serve --slowapi": "understudy demo --slowapi", "webhooks list --pause": "understudy webhooks pause",
	"webhooks --pause": "understudy webhooks pause", "webhooks --after": "understudy webhooks resume NAME --after",
	"webhooks list --after": "understudy webhooks resume NAME --after",
}

// explainParseError returns what is wrong with a command line. If a word is misspelled, it suggests the most similar
// command or flag.
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
		return fmt.Sprintf("the flag %s was replaced; write %s", m[2], renamedFlags[strings.TrimSpace(node.Path()+" "+m[2])])
	case m[1] == "unknown flag":
		return fmt.Sprintf("unknown flag %s%s", m[2], suggest.Hint(m[2], flags))
	case len(commands) > 0:
		return fmt.Sprintf("unknown command %q%s", strings.TrimSpace(node.Path()+" "+m[2]), suggest.Hint(m[2], commands))
	}
	return fmt.Sprintf("unexpected argument %q", m[2])
}
