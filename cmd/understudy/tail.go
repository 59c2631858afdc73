// Tail: follows what comes, changes and goes, on a terminal or as JSON lines.

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
	Remote remote   `embed:""`
	Source string   `placeholder:"NAME" help:"Source to follow (default: the only source)."`
	Kind   []string `help:"Only records of this kind. May be repeated."`
	Field  []string `help:"Of changed records, only those whose field of this name changed. May be repeated."`
	After  string   `placeholder:"N" help:"Begin after the change with this number (default: with the next change)."`
	JSON   bool     `name:"json" help:"Print a line of JSON for each change."`
}

// Help returns what --help prints below the summary.
func (c *tailCmd) Help() string {
	return "Follows a running server until Ctrl-C. Each line has the time the change was noticed, what happened (came, changed, went), " +
		"the record, and the fields that changed.\n\nDescribed in docs/reference/feed.md."
}

// Run follows until the first signal.
func (c *tailCmd) Run(ctx context.Context, p *process) error {
	o, err := c.options(ctx, p)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(p.stdout)
	show := plainLine
	if c.JSON {
		show = jsonLine
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
	var refused *follow.StatusError
	if errors.As(err, &refused) {
		text := terminal.Printable(refused.Text)
		if refused.Status == http.StatusBadRequest {
			return usageError{errors.New(text)}
		}
		return fmt.Errorf("the server answered %d: %s", refused.Status, text)
	}
	return err
}

// options say where the server is, and with which credential.
func (c *tailCmd) options(ctx context.Context, p *process) (o follow.Options, err error) {
	server, err := c.Remote.server(ctx, p)
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
		o.Locate = func(context.Context) (string, string, error) { // another port and token at every start
			run, err := c.Remote.Running.find(p)
			return run.Viewer, run.Token, err
		}
	}
	return o, nil
}

// plainLine is a line for people; columns stand under each other.
func plainLine(w io.Writer, ch follow.Change) error {
	line := fmt.Sprintf("%s  %-7s  %-20s  %-34s  %s", ch.At.Local().Format(time.DateTime), terminal.Printable(ch.What),
		terminal.Printable(ch.Kind), terminal.Printable(ch.ID), terminal.Printable(strings.Join(ch.Fields, ", ")))
	_, err := fmt.Fprintln(w, strings.TrimRight(line, " "))
	return err
}

func jsonLine(w io.Writer, ch follow.Change) error { return json.NewEncoder(w).Encode(ch) }
