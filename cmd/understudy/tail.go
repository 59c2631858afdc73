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
	"os"
	"strings"
	"time"
	"unicode"

	"understudy/follow"
	"understudy/internal/config"
	"understudy/internal/datadir"
)

type tailCmd struct {
	Config string   `placeholder:"FILE" help:"Settings file, for its data folder (default understudy.yml)."`
	Data   string   `placeholder:"DIR" help:"Data folder of the running server (default: what the settings say)."`
	URL    string   `name:"url" placeholder:"URL" help:"Another server's viewer, instead of a data folder."`
	User   string   `help:"With --url: the user of a credential."`
	Secret string   `placeholder:"file:PATH" help:"With --url: its secret, file:PATH or cmd:COMMAND."`
	Source string   `help:"A configured source; may be left out while there is one."`
	Kind   []string `help:"Only this kind (repeatable)."`
	Field  []string `help:"Of what changed, only what changed in this field (repeatable)."`
	After  string   `placeholder:"N" help:"Begin after this change; 0 for the beginning (default: from now on)."`
	JSON   bool     `name:"json" help:"A line of JSON for each change."`
}

// Help is what --help says below the flags.
func (c *tailCmd) Help() string {
	return "Follows the changes of a running server until Ctrl-C: when it was noticed, what happened, to what, and in which " +
		"fields.\ndocs/feed.md says more."
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
	err = follow.Changes(ctx, o, func(ch follow.Change) error {
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
		refused.Text = printable(refused.Text)
		if refused.Status == http.StatusBadRequest {
			return usageError{err}
		}
	}
	return err
}

// options say where the server is, and with which credential.
func (c *tailCmd) options(ctx context.Context, p *process) (follow.Options, error) {
	o := follow.Options{Source: c.Source, Kinds: c.Kind, Fields: c.Field, After: c.After}
	o.Lost = func(err error, pause time.Duration) {
		fmt.Fprintf(p.stderr, "understudy: %s; again in %v\n", printable(err.Error()), pause.Round(100*time.Millisecond))
	}
	if c.URL != "" {
		if c.Data != "" || c.Config != "" {
			return o, usageError{errors.New("--url names a server; leave out --data and --config")}
		}
		o.URL, o.User = c.URL, c.User
		if c.Secret != "" {
			secret, err := config.ReadSecret(ctx, c.Secret, ".")
			if err != nil {
				return o, fmt.Errorf("--secret: %w", err)
			}
			o.Secret = secret.Reveal()
		}
		return o, nil
	}
	if c.User != "" || c.Secret != "" {
		return o, usageError{errors.New("--user and --secret need --url")}
	}
	run, err := c.running(p)
	if err != nil {
		return o, err
	}
	o.URL, o.Secret = run.Viewer, run.Token
	o.Where = func(context.Context) (string, string, error) { // another port and token at every start
		run, err := c.running(p)
		return run.Viewer, run.Token, err
	}
	o.HTTP = &http.Client{Transport: &http.Transport{}} // no proxy: it is this machine
	return o, nil
}

func (c *tailCmd) running(p *process) (datadir.Running, error) {
	return runningServer(p, c.Config, c.Data)
}

// runningServer is the server that holds a data folder.
func runningServer(p *process, file, data string) (datadir.Running, error) {
	if data == "" {
		if file == "" {
			file = "understudy.yml"
		}
		cfg, err := config.Read(file, p.env)
		if err != nil {
			return datadir.Running{}, fmt.Errorf("%w; or name the data folder of a running server with --data", err)
		}
		data = cfg.Data
	}
	run, err := datadir.ReadRunning(data)
	if errors.Is(err, os.ErrNotExist) {
		return run, fmt.Errorf("no server runs in the data folder %s; start one with understudy serve, or name another with --data", data)
	}
	return run, err
}

// plainLine is a line for people; columns stand under each other.
func plainLine(w io.Writer, ch follow.Change) error {
	line := fmt.Sprintf("%s  %-7s  %-20s  %-34s  %s", ch.At.Local().Format(time.DateTime), printable(ch.What), printable(ch.Kind),
		printable(ch.ID), printable(strings.Join(ch.Fields, ", ")))
	_, err := fmt.Fprintln(w, strings.TrimRight(line, " "))
	return err
}

// printable keeps what upstream wrote from steering a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

func jsonLine(w io.Writer, ch follow.Change) error { return json.NewEncoder(w).Encode(ch) }
