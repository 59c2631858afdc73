// Command understudy is the command line: one file a command.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"understudy"
	"understudy/internal/slowapi"
)

// Exit codes scripts depend on.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// process is what a command may touch of the process around it.
type process struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) (string, bool)
	began          time.Time // when it started
}

// commands is the command line.
type commands struct {
	Serve       serveCmd       `cmd:"" help:"Stand in for the configured APIs."`
	Slowapi     slowapiCmd     `cmd:"" name:"slowapi" help:"Run the simulated slow API alone."`
	Check       checkCmd       `cmd:"" help:"Check the settings file and print what it means."`
	Spec        specCmd        `cmd:"" help:"Draw a spec from an API's document or answers, and try one."`
	Explain     explainCmd     `cmd:"" help:"Say what a role sees of a kind, and by which line of the settings."`
	Store       storeCmd       `cmd:"" help:"Look at the database of a data folder."`
	Purge       purgeCmd       `cmd:"" help:"Forget a page or a record, in a running server or its data folder."`
	Tail        tailCmd        `cmd:"" help:"Follow what comes, changes and goes."`
	Search      searchCmd      `cmd:"" help:"Find records by words and conditions in a running server."`
	Forecast    forecastCmd    `cmd:"" help:"Say when a sampled number reaches a level."`
	Hooks       hooksCmd       `cmd:"" name:"webhooks" help:"Show the webhooks of a running server, pause one, or resume it."`
	Sync        syncCmd        `cmd:"" help:"Fetch every record of a kind and keep it whole."`
	Erase       eraseCmd       `cmd:"" help:"Take a person out of every file, in a running server or its data folder."`
	Users       usersCmd       `cmd:"" help:"Add, change, list and remove those who sign in at the viewer."`
	Credentials credentialsCmd `cmd:"" help:"Make, list, rotate and revoke credentials of programs."`
	Audit       auditCmd       `cmd:"" help:"Read the audit log, and say whether it is what was written."`
	Profile     profileCmd     `cmd:"" help:"Say where a running server spends memory and processor time."`
	CA          caCmd          `cmd:"" name:"ca" help:"Print the certificate that programs trust the proxy by."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

func main() {
	// net/http reports odd upstream bytes through the standard logger; they may
	// hold what is not for this log. Everything of ours goes through slog.
	log.SetOutput(io.Discard)
	os.Exit(run(process{began: time.Now(), args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv}))
}

// run parses the command line and runs the command. The first SIGINT or
// SIGTERM ends it in order, the second at once.
func run(p process) int {
	var cli commands
	code := -1
	parser, err := kong.New(&cli,
		kong.Name("understudy"),
		kong.Description("A fast, permissioned, always-on stand-in for slow APIs. Try: understudy serve --demo"),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(c int) { code = c }),
		kong.Vars{"shape": slowapi.Shape, "shapes": slowapi.Shapes},
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		fmt.Fprintln(p.stderr, "understudy:", err)
		return exitFailed
	}
	if len(p.args) == 0 {
		p.args = []string{"--help"}
	}
	chosen, err := parser.Parse(p.args)
	if code >= 0 {
		return code // --help has printed
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "understudy: %v\ntry: understudy --help\n", err)
		return exitUsage
	}
	ctx, stop := signals()
	defer stop()
	chosen.BindTo(ctx, (*context.Context)(nil))
	chosen.Bind(&p)
	return exitCode(chosen.Run(), p.stderr)
}

// decodeDuration reads a flag's duration, which may be in days or weeks.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := understudy.ParseDuration(text)
	target.SetInt(int64(d))
	return err
}

// oneSignal is how close together two signals are one: a program like timeout
// signals its child and then the whole group.
const oneSignal = 100 * time.Millisecond

// signals is a context the first SIGINT or SIGTERM ends; the second ends the
// process at once.
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
				if time.Since(first) > oneSignal {
					os.Exit(exitFailed)
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() { signal.Stop(ch); close(done); cancel() }
}

// usageError is the caller's mistake rather than ours: exit 2.
type usageError struct{ error }

func exitCode(err error, stderr io.Writer) int {
	var usage usageError
	var refused *refusal
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.As(err, &refused) && refused.mistake():
		fmt.Fprintln(stderr, "understudy:", understudy.PlainText(err))
		return exitUsage
	}
	fmt.Fprintln(stderr, "understudy:", understudy.PlainText(err))
	return exitFailed
}

type versionCmd struct{}

// Run prints one line.
func (versionCmd) Run(p *process) error {
	_, err := fmt.Fprintln(p.stdout, "understudy", version())
	return err
}

// version is the module's version, or the revision it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v, dirty := info.Main.Version, ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && (v == "" || v == "(devel)"):
			v = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	v = cmp.Or(v, "(devel)")
	return v + dirty + " " + info.GoVersion
}
