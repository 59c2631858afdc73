// The tail command prints changes of records. The webhooks commands list the webhooks of a running server, and pause, resume or test
// one of them. The tables commands show the SQL tables of a running server, and fill one of them again.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/cmd/understudy/terminal"
	"understudy/follow"
	"understudy/internal/feed"
	"understudy/internal/tables"
	"understudy/request"
)

type hooksCmd struct {
	List   hooksListCmd   `cmd:"" default:"withargs" help:"List the webhooks and how far each has delivered."`
	Pause  hooksPauseCmd  `cmd:"" help:"Pause a webhook. Nothing is sent until it is resumed."`
	Resume hooksResumeCmd `cmd:"" help:"Resume a paused webhook."`
	Test   hooksTestCmd   `cmd:"" help:"Send a test message to a webhook and print the answer."`
}

const hooksPath = "/-/webhooks"

type hooksListCmd struct {
	Name    string     `arg:"" optional:"" help:"Only the webhook of this name."`
	Output  outputFlag `embed:""`
	Running localFlags `embed:""`
}

// Run prints all webhooks of a server.
func (c *hooksListCmd) Run(ctx context.Context, p *process) error {
	if c.Name != "" && !slices.Contains(p.args, "list") {
		return usageError{fmt.Errorf("unknown command \"webhooks %s\"; write webhooks list %s, or pause, resume or test in place of list",
			c.Name, c.Name)}
	}
	var all struct {
		Webhooks []request.Webhook `json:"webhooks"`
	}
	if err := c.Running.ask(ctx, p, http.MethodGet, hooksPath, nil, &all); err != nil {
		return err
	}
	if c.Name != "" {
		all.Webhooks = slices.DeleteFunc(all.Webhooks, func(w request.Webhook) bool { return w.Name != c.Name })
		if len(all.Webhooks) == 0 {
			return usageError{fmt.Errorf("there is no webhook %q; understudy webhooks lists all", c.Name)}
		}
	}
	return c.Output.print(p.stdout, all, func(w io.Writer) error { return printHooks(w, all.Webhooks) })
}

type hooksPauseCmd struct {
	Name    string     `arg:"" help:"Name of the webhook."`
	Output  outputFlag `embed:""`
	Running localFlags `embed:""`
}

// Run pauses a webhook and prints its new state.
func (c *hooksPauseCmd) Run(ctx context.Context, p *process) error {
	return c.Running.change(ctx, p, c.Output, c.Name, map[string]any{"pause": true})
}

type hooksResumeCmd struct {
	Name    string     `arg:"" help:"Name of the webhook."`
	After   *int64     `placeholder:"N" help:"Send all changes after the change with this number again (default: go on where it stopped)."`
	Output  outputFlag `embed:""`
	Running localFlags `embed:""`
}

// Run resumes a webhook and prints its new state.
func (c *hooksResumeCmd) Run(ctx context.Context, p *process) error {
	how := map[string]any{}
	if c.After != nil {
		how["after"] = *c.After
	}
	return c.Running.change(ctx, p, c.Output, c.Name, how)
}

type hooksTestCmd struct {
	Name    string     `arg:"" help:"Name of the webhook."`
	Output  outputFlag `embed:""`
	Running localFlags `embed:""`
}

// Run sends a test message to the receiver of a webhook, and prints the receiver's response.
func (c *hooksTestCmd) Run(ctx context.Context, p *process) error {
	var result feed.HookTest
	if err := c.Running.ask(ctx, p, http.MethodPost, hooksPath+"/"+c.Name, map[string]any{"test": true}, &result); err != nil {
		return err
	}
	err := c.Output.print(p.stdout, result, func(w io.Writer) error {
		if !result.Delivered {
			return nil
		}
		_, err := fmt.Fprintf(w, "delivered: the receiver answered %d after %d ms\n", result.Status, result.Milliseconds)
		return err
	})
	if !result.Delivered {
		why := result.Why
		if result.Status > 0 {
			why = fmt.Sprintf("the receiver answered %d", result.Status)
		}
		return fmt.Errorf("the test message was not delivered: %s; check the webhook's url and secret in the settings", why)
	}
	return err
}

// change changes the state of a webhook and prints the new state.
func (c *localFlags) change(ctx context.Context, p *process, o outputFlag, name string, how map[string]any) error {
	var one request.Webhook
	if err := c.ask(ctx, p, http.MethodPost, hooksPath+"/"+name, how, &one); err != nil {
		return err
	}
	return o.print(p.stdout, one, func(w io.Writer) error { return printHooks(w, []request.Webhook{one}) })
}

// printHooks prints webhooks as a table.
func printHooks(w io.Writer, all []request.Webhook) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "The settings have no webhooks. An example is in docs/reference/feed.md.")
		return err
	}
	table := terminal.Table{{"WEBHOOK", "SOURCE", "STATE", "AFTER", "BEHIND", "DELIVERED", "WHY"}}
	for _, s := range all {
		table.Add(s.Name, s.Source, s.State, fmt.Sprint(s.After), fmt.Sprint(s.Behind), fmt.Sprint(s.Delivered), terminal.Printable(s.Why))
	}
	return table.Print(w)
}

type tablesCmd struct {
	Status  tablesStatusCmd  `cmd:"" default:"withargs" help:"Show the tables, and how current each is."`
	Rebuild tablesRebuildCmd `cmd:"" help:"Fill a table again. Readers see no empty table meanwhile."`
}

type tablesStatusCmd struct {
	Output  outputFlag `embed:""`
	Running localFlags `embed:""`
}

// Run prints the state of every table.
func (c *tablesStatusCmd) Run(ctx context.Context, p *process) error {
	return c.Running.askTables(ctx, p, c.Output, tables.Command{})
}

type tablesRebuildCmd struct {
	Kind    string     `arg:"" help:"The kind whose table is filled again."`
	Source  string     `help:"The source of the kind, if more than one has a table of it."`
	Output  outputFlag `embed:""`
	Running localFlags `embed:""`
}

// Run requests the rebuild, and prints the state of every table.
func (c *tablesRebuildCmd) Run(ctx context.Context, p *process) error {
	return c.Running.askTables(ctx, p, c.Output, tables.Command{Source: c.Source, Kind: c.Kind})
}

// askTables sends a command to the server and prints the state of every table.
func (c *localFlags) askTables(ctx context.Context, p *process, o outputFlag, command tables.Command) error {
	var all tables.Answer
	if err := c.ask(ctx, p, http.MethodPost, tables.Path, command, &all); err != nil {
		return err
	}
	return o.print(p.stdout, all, func(w io.Writer) error {
		if len(all.Tables) == 0 {
			_, err := fmt.Fprintln(w, "The settings have no tables. An example is in docs/how-to/tables.md.")
			return err
		}
		out := terminal.Table{{"SOURCE", "KIND", "TABLE", "ROWS", "POSITION", "LAG", "STATE"}}
		for _, s := range all.Tables {
			out.Add(s.Source, s.Kind, s.Table, fmt.Sprint(s.Rows), fmt.Sprint(s.Position), fmt.Sprint(s.Behind),
				strings.TrimSuffix(s.State+": "+terminal.Printable(s.Why), ": "))
		}
		return out.Print(w)
	})
}

type tailCmd struct {
	Remote serverFlags `embed:""`
	Source string      `placeholder:"NAME" help:"Source to follow (default: the only source)."`
	Kind   []string    `help:"Only records of this kind. May be repeated."`
	Field  []string    `help:"Of changed records, only those whose field of this name changed. May be repeated."`
	After  string      `placeholder:"N" help:"Begin after the change with this number (default: with the next change)."`
	JSON   bool        `name:"json" help:"Print a line of JSON for each change."`
	Wait   bool        `help:"Wait for the server if none runs yet in the data folder."`
}

// Run prints changes of records until the first signal.
func (c *tailCmd) Run(ctx context.Context, p *process) error {
	o, err := c.makeOptions(ctx, p)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(p.stdout)
	show := printLine
	if c.JSON {
		show = printJSON
	}
	err = follow.Receive(ctx, o, func(ch follow.Change) error {
		if err := show(out, ch); err != nil {
			return err
		}
		return out.Flush()
	})
	if ctx.Err() != nil {
		return nil
	}
	if refused, ok := errors.AsType[*follow.StatusError](err); ok {
		text := terminal.Printable(refused.Text)
		if refused.Status == http.StatusBadRequest {
			return usageError{errors.New(text)}
		}
		return fmt.Errorf("the server answered %d: %s", refused.Status, text)
	}
	return err
}

// makeOptions returns the options for reading the feed of changes: the server, the credential and the filters.
func (c *tailCmd) makeOptions(ctx context.Context, p *process) (o follow.Options, err error) {
	server, err := c.Remote.findServer(ctx, p)
	if _, isNone := errors.AsType[noServerError](err); err != nil && !(c.Wait && isNone) {
		return o, err
	}
	o = follow.Options{URL: server.url, User: server.user, Secret: server.secret, HTTP: server.client, Source: c.Source, Kinds: c.Kind,
		Fields: c.Field, After: c.After}
	state := "waiting for the server"
	o.OnOpen = func() { state = "the connection was lost" }
	o.OnLost = func(err error, pause time.Duration) {
		text := terminal.Printable(understudy.PlainText(err))
		fmt.Fprintf(p.stderr, "understudy: %s: %s; trying again in %v\n", state, text, pause.Round(100*time.Millisecond))
	}
	if c.Remote.URL == "" {
		o.MaxPause = 5 * time.Second                               // on this machine an attempt is cheap
		o.Locate = func(context.Context) (string, string, error) { // a server that has been restarted may have another port and another token
			run, err := c.Remote.Running.findServer(p)
			o.HTTP.Transport = newLocalAdmin(run).client.Transport // its certificate may be another one, too
			return run.Viewer, run.Token, err
		}
	}
	return o, nil
}

// printLine prints a change in columns.
func printLine(w io.Writer, ch follow.Change) error {
	line := fmt.Sprintf("%s  %-7s  %-20s  %-34s  %s", ch.At.Local().Format(time.DateTime), terminal.Printable(ch.What),
		terminal.Printable(ch.Kind), terminal.Printable(ch.ID), terminal.Printable(strings.Join(ch.Fields, ", ")))
	_, err := fmt.Fprintln(w, strings.TrimRight(line, " "))
	return err
}

// printJSON prints a change as a line of JSON.
func printJSON(w io.Writer, ch follow.Change) error { return json.NewEncoder(w).Encode(ch) }
