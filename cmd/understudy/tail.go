// The tail command: it prints changes of records as soon as the server notices them.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"understudy"
	"understudy/cmd/understudy/terminal"
	"understudy/follow"
)

type tailCmd struct {
	Remote serverFlags `embed:""`
	Source string      `placeholder:"NAME" help:"Source to follow (default: the only source)."`
	Kind   []string    `help:"Only records of this kind. May be repeated."`
	Field  []string    `help:"Of changed records, only those whose field of this name changed. May be repeated."`
	After  string      `placeholder:"N" help:"Begin after the change with this number (default: with the next change)."`
	JSON   bool        `name:"json" help:"Print a line of JSON for each change."`
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
	if err != nil {
		return o, err
	}
	o = follow.Options{URL: server.url, User: server.user, Secret: server.secret, HTTP: server.client, Source: c.Source, Kinds: c.Kind,
		Fields: c.Field, After: c.After}
	o.OnLost = func(err error, pause time.Duration) {
		text := terminal.Printable(understudy.PlainText(err))
		fmt.Fprintf(p.stderr, "understudy: the connection was lost: %s; trying again in %v\n", text, pause.Round(100*time.Millisecond))
	}
	if c.Remote.URL == "" {
		o.Locate = func(context.Context) (string, string, error) { // a server that has been restarted may have another port and another token
			run, err := c.Remote.Running.findServer(p)
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
