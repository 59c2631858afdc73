// Command understudy is the command line. Each command has a file of its own.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"understudy"
	"understudy/cmd/understudy/reference"
	"understudy/internal/slowapi"
)

// The exit codes of all commands. Scripts depend on them.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// process has the parts of the operating system that a command uses, such as its output streams.
type process struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) (string, bool)
	startedAt      time.Time   // when the process started
	quiet          bool        // whether commands show no progress
	hasExited      func() bool // reports whether a flag such as --help has already printed its text and ended the command
	parser         *kong.Kong
}

// commands has all commands and their flags, for the parser.
type commands struct {
	Serve       serveCmd         `cmd:"" group:"run" help:"Start the server that the settings file describes."`
	Demo        demoCmd          `cmd:"" group:"run" help:"Start a demo: a simulated slow API and a server in front of it."`
	Slowapi     slowapiCmd       `cmd:"" group:"run" name:"slowapi" help:"Start the simulated slow API alone."`
	Status      statusCmd        `cmd:"" group:"run" help:"Show which server uses a data folder, and how it is."`
	Stop        stopCmd          `cmd:"" group:"run" help:"Stop the server of a data folder, and wait until it has ended."`
	Reload      reloadCmd        `cmd:"" group:"run" help:"Let a running server read its settings again, and say what was wrong."`
	Restart     restartCmd       `cmd:"" group:"run" help:"Let a running server become its newest program, without losing a request."`
	Check       checkCmd         `cmd:"" group:"run" help:"Check the settings file and show what it means."`
	Settings    settingsCmd      `cmd:"" group:"run" help:"Print the settings file with all defaults, or compare it with the running server."`
	Search      searchCmd        `cmd:"" group:"records" help:"Search the records of a running server."`
	Tail        tailCmd          `cmd:"" group:"records" help:"Print each change of a record as the server notices it."`
	Sync        syncCmd          `cmd:"" group:"records" help:"Fetch every record of a kind, and keep the kind complete."`
	Purge       purgeCmd         `cmd:"" group:"records" help:"Delete the copy of one page or record; it is fetched again when asked for."`
	Erase       eraseCmd         `cmd:"" group:"records" help:"Delete a person's records from every file of the server, for good."`
	Forecast    forecastCmd      `cmd:"" group:"records" help:"Estimate when a sampled number, such as a balance, reaches a level."`
	Users       usersCmd         `cmd:"" group:"people" help:"Manage the people who sign in with a password."`
	Credentials credentialsCmd   `cmd:"" group:"people" help:"Manage the credentials of programs."`
	Explain     explainCmd       `cmd:"" group:"people" help:"Show which fields a role sees, and which line of the settings decides it."`
	Audit       auditCmd         `cmd:"" group:"people" help:"Read and verify the audit log."`
	CA          caCmd            `cmd:"" group:"people" name:"ca" help:"Print the certificate by which programs trust the proxy."`
	Cert        certCmd          `cmd:"" group:"people" name:"cert" help:"Print the certificate by which programs trust tls: self."`
	Spec        specCmd          `cmd:"" group:"operate" help:"Write a spec for an API, and try it."`
	Doctor      doctorCmd        `cmd:"" group:"operate" help:"Look for what is wrong, and say what mends it."`
	Bugreport   bugreportCmd     `cmd:"" group:"operate" help:"Write what helps to find a fault into one file, without secrets."`
	Store       storeCmd         `cmd:"" group:"operate" help:"Count, verify and repair the database of a data folder."`
	Backup      backupCmd        `cmd:"" group:"operate" help:"Write the data folder of a server into one file, while the server runs."`
	Restore     restoreCmd       `cmd:"" group:"operate" help:"Restore a backup to an empty data folder."`
	Resume      resumeCmd        `cmd:"" group:"operate" help:"Let a server in a restored data folder send again."`
	Hooks       hooksCmd         `cmd:"" group:"operate" name:"webhooks" help:"List, pause, resume and test the webhooks of a running server."`
	Tables      tablesCmd        `cmd:"" group:"operate" help:"Show the SQL tables that a running server keeps current, and rebuild them."`
	Profile     profileCmd       `cmd:"" group:"operate" help:"Show which functions of a running server use memory or processor time."`
	Help        helpCmd          `cmd:"" group:"other" help:"Print the help of a command."`
	Completion  completionCmd    `cmd:"" group:"other" help:"Print a script that completes commands and flags in a shell."`
	Man         manCmd           `cmd:"" group:"other" help:"Print the man page of a command, or write all man pages."`
	Version     versionCmd       `cmd:"" group:"other" help:"Print the version."`
	Quiet       bool             `short:"q" help:"Show no progress."`
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version and exit."`
}

func main() {
	// net/http writes unexpected bytes of upstream to the standard logger. They may be secret, so that logger is
	// turned off. Understudy itself uses slog.
	log.SetOutput(io.Discard)
	os.Exit(run(process{startedAt: time.Now(), args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv}))
}

// description is the first paragraph of the help page.
const description = "Understudy stands in front of a slow API. It answers programs in the API's own protocol from its own copy, " +
	"and goes on when the API is down.\n\nTry it without an account: understudy demo"

// newParser returns the parser of command lines. It calls exit if a flag such as --help ends the command.
func newParser(cli *commands, stdout, stderr io.Writer, exit func(code int)) (*kong.Kong, error) {
	parser, err := kong.New(cli,
		kong.Name("understudy"),
		kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.Exit(exit),
		kong.Vars{"shape": slowapi.DefaultShape, "shapes": slowapi.Shapes, "shells": reference.Shells, "version": describeVersion()},
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: maxHelpColumns}),
		kong.Help(printHelp),
		kong.Groups{"run": "Servers:", "records": "Records:", "people": "People and programs:", "operate": "Operation:", "other": "Other:",
			"data": "Data folder:", "server": "Server:"},
	)
	if err != nil {
		return nil, err
	}
	parser.Model.HelpFlag.Help = "Print this help and exit."
	for _, command := range parser.Model.Leaves(false) {
		command.Detail = details[command.Path()]
	}
	return parser, nil
}

// run parses the command line and runs the command. The first SIGINT or SIGTERM lets the command stop cleanly, and
// the second ends it at once.
func run(p process) int {
	var cli commands
	code := -1
	parser, err := newParser(&cli, p.stdout, p.stderr, func(c int) { code = c })
	if err != nil {
		fmt.Fprintln(p.stderr, "understudy:", err)
		return exitFailed
	}
	if len(p.args) == 0 {
		p.args = []string{"--help"}
	}
	chosen, err := parser.Parse(p.args)
	if code >= 0 {
		return code // a flag such as --help has printed its text already
	}
	if err != nil {
		return printUsageError(p.stderr, explainParseError(err), selectedNode(err))
	}
	ctx, stop := signals()
	defer stop()
	p.quiet, p.parser, p.hasExited = cli.Quiet, parser, func() bool { return code >= 0 }
	chosen.BindTo(ctx, (*context.Context)(nil))
	chosen.Bind(&p)
	return exitCode(chosen.Run(), chosen.Selected(), p.stderr)
}

// decodeDuration parses the value of a flag that takes a duration. Days and weeks are permitted, as in 30d and 2w.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := understudy.ParseDuration(text)
	target.SetInt(int64(d))
	return err
}

// maxSignalGap is how far apart two signals may be to count as one. A program such as timeout sends a signal to its
// child and then to the whole process group.
const maxSignalGap = 100 * time.Millisecond

// signals returns a context that ends at the first SIGINT or SIGTERM. The second signal ends the process at once.
func signals() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-ch:
			cancel()
		case <-done:
			return
		}
		first := time.Now()
		for {
			select {
			case <-ch:
				if time.Since(first) > maxSignalGap {
					os.Exit(exitFailed)
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() { signal.Stop(ch); close(done); cancel() }
}

// usageError is the error that the command line is wrong. It leads to the exit code 2.
type usageError struct{ error }

// exitCode prints an error and returns the exit code for it.
func exitCode(err error, command *kong.Node, stderr io.Writer) int {
	var refused *refusal
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, new(usageError)):
		return printUsageError(stderr, understudy.PlainText(err), command)
	}
	fmt.Fprintln(stderr, "understudy:", understudy.PlainText(err))
	if errors.As(err, &refused) && refused.isMistake() {
		return exitUsage
	}
	return exitFailed
}

// outputFlag has the flag that chooses JSON instead of text.
type outputFlag struct {
	JSON bool `name:"json" help:"Print JSON instead of text."`
}

// print prints value as a line of JSON if the flag is set. Otherwise it calls text.
func (o outputFlag) print(w io.Writer, value any, text func(w io.Writer) error) error {
	if o.JSON {
		return json.NewEncoder(w).Encode(value)
	}
	return text(w)
}

type versionCmd struct{}

// Run prints the version of Understudy.
func (versionCmd) Run(p *process) error {
	_, err := fmt.Fprintln(p.stdout, describeVersion())
	return err
}

// The linker sets these in a release: its version, and the commit from which it was built with the commit's date.
var release, commit, commitDate string

// version returns the version of the module and of Go.
func version() string {
	var module string
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version
	}
	return cmp.Or(release, module, "(devel)") + " " + runtime.Version()
}

// describeVersion returns the version with the commit from which the program was built, if it is known.
func describeVersion() string {
	built, date, changes := commit, commitDate, ""
	if info, ok := debug.ReadBuildInfo(); ok && built == "" {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				built = s.Value
			case s.Key == "vcs.time":
				date = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				changes = "+changes"
			}
		}
	}
	if built == "" {
		return "understudy " + version()
	}
	return fmt.Sprintf("understudy %s (commit %s%s, %s)", version(), built[:min(12, len(built))], changes, date)
}
