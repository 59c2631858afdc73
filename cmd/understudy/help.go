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

// details are what --help prints below the summary of a command, by the words of the command.
var details = map[string]string{
	"backup": "The file has the database, the audit log, the settings file, and audio and images. It is a tar file packed with zstd, " +
		"and appears under its name when it is complete. A running server writes it, on its own machine, and continues to answer. " +
		"Without a server the command writes it.\n\nDescribed in docs/how-to/back-up.md.",
	"ca": "Prints the certificate to standard output and the path of its file to standard error. A program that trusts it trusts " +
		"the proxy (serve --connect) for the hosts of the sources and for no others. The private key stays in the data " +
		"folder.\n\nDescribed in docs/reference/proxy.md.",
	"cert": "Prints the certificate to standard output and the path of its file to standard error. Programs that trust it reach the ports " +
		"of the server by https. The private key stays in the data folder.\n\nDescribed in docs/how-to/tls.md.",
	"completion": "Write the script where the shell reads completions, or read it at the start of the shell:\n\n    source " +
		"<(understudy completion bash)\n    source <(understudy completion zsh)\n    understudy completion fish | source",
	"demo": "Needs no account, no settings file and no network. It prints its addresses and a credential; Ctrl-C ends it.",
	"bugreport": "The zip file has the versions, the findings of doctor, the settings, the counters of a running server and its newest " +
		"profile. A text of the settings that may be secret is replaced by (hidden). Lines of logs are left out, because they may " +
		"contain numbers of people.\n\nDescribed in docs/how-to/find-a-fault.md.",
	"doctor": "Checks the settings, the running server and its locks, the data folder and its disk, the clock, the database and each " +
		"upstream. It asks an upstream once, with the source's own credential, and changes nothing. The exit code is 1 if something " +
		"does not work; a warning alone leaves it 0.\n\nDescribed in docs/how-to/find-a-fault.md.",
	"erase": "Deletes every record with the number from the data folder for good, with the records below it, older versions, pages " +
		"and files, and prints a receipt. The records are not stored again. The provider still has them: delete them there, " +
		"too.\n\nDescribed in docs/how-to/erase.md.",
	"forecast": "Prints how likely a sampled number reaches a level in time, and by which dates. Numbers are sampled if the spec " +
		"marks their field with sample: 1h.\n\nWhat the figures mean, and what they do not, is in docs/how-to/forecast.md.",
	"man": "To read a page: understudy man store verify | man -l -\n\nTo install all pages: understudy man --dir " +
		"/usr/local/share/man/man1",
	"profile": "Prints which functions use most, with their callers above and the functions they call below, and the same for " +
		"packages, jobs and credentials. Another server answers only a credential with the role all.\n\n--since today compares with " +
		"the first profile of the day, --since version with the last one of the previous version.\n\nDescribed in " +
		"docs/reference/diagnostics.md.",
	"purge": "Deletes the stored page of a path, or a record with its versions, its files and the pages that show it. The next " +
		"request fetches it from the provider again, where nothing is changed.\n\nExamples are in docs/how-to/purge.md.",
	"restore": "Compares every part with its SHA-256 before anything appears in the folder. Refuses a folder that has a database, " +
		"and a backup of a newer version.\n\nDescribed in docs/how-to/back-up.md.",
	"resume": "A restored data folder is paused: a server in it answers, and sends nothing by itself. Webhooks, watches, polls, " +
		"syncs and jobs wait. A running server starts again without a pause.\n\nDescribed in docs/how-to/back-up.md.",
	"search": "A query has words, \"phrases\", beginnings (deliv*), exclusions (-word) and conditions: FIELD:VALUE, FIELD>VALUE, " +
		"kind:KIND, date:2026-05, number:+1… The newest records come first. The output is a table on a terminal and lines of JSON " +
		"elsewhere.\n\nThe grammar and examples are in docs/reference/search.md.",
	"serve": "Answers programs at the drop-in address of each source and people at the viewer's address, until Ctrl-C or SIGTERM. " +
		"SIGHUP reads the settings file again.\n\nTo try it without a settings file or an account: understudy demo",
	"settings": "The comparison shows (hidden) in place of a text that may be secret. It tells what a reload would change, and what needs a " +
		"restart: understudy reload.",
	"status": "The exit code is 1 if no server uses the data folder. The viewer's page /-/administration says how well a server works.",
	"restart": "Connections stay open, and requests that arrive meanwhile wait for the new program. It first reads settings, " +
		"specs, users and secrets, looks whether it knows the database, and whether new ports are free. If that fails, the old program " +
		"goes on. A start that fails later is tried again for half a minute.",
	"stop": "Sends SIGTERM: the server finishes its requests, stores what it knows and ends. It never signals another process that has " +
		"the number of a server which was killed.",
	"store locks": "PostgreSQL: each session waits for the one above it that is less indented. Queries are printed up to their " +
		"first value. SQLite: the process that writes to the file, and what the server is writing.\n\nDescribed in " +
		"docs/how-to/locks.md.",
	"store move": "Copies all rows, compares each row of both databases, builds the indexes and verifies the copy. A running server " +
		"answers meanwhile, but can store nothing. The command ends when that server is stopped. After an interruption the next run " +
		"continues; if the database has changed, it starts again. Media contents are not moved: they stay in the data folder or in " +
		"the bucket.",
	"store rebuild": "Deletes the indexes of terms and words and builds them again. A running server continues to answer; searches " +
		"wait until the indexes are complete. After an interruption the next start of a server continues the work.",
	"store shrink": "Ids that have a shorter form get it, unless another process uses the database. SQLite: writes all rows to a new " +
		"file, which replaces the database. The disk needs room for both. A running server continues to answer, and stores new " +
		"answers when the copy is complete. PostgreSQL: runs VACUUM on Understudy's tables.\n\nDescribed in docs/explanation/store.md.",
	"sync": "Fetches all records of a kind. From then on the server keeps the kind complete: it finds new, changed and deleted " +
		"records. The exit code is 0 when the kind is complete, and 1 with the reason when it cannot be completed.\n\nDescribed in " +
		"docs/explanation/sync.md.",
	"tail": "Follows a running server until Ctrl-C. Each line has the time the change was noticed, what happened (came, changed, " +
		"went), the record, and the fields that changed. With --wait the command may start before the server.\n\n" +
		"Described in docs/reference/feed.md.",
	"webhooks test": "The message is signed as all others and has the type test. Changes that wait are not sent, and a paused " +
		"webhook stays paused. The exit code is 0 if the receiver answers with a status from 200 to 299.",
}

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
