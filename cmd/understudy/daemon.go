// The commands for the process that uses a data folder: status, stop, reload and restart. The settings command compares its
// settings with the file.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"understudy/cmd/understudy/terminal"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/kit/pidfile"
	"understudy/request"
)

type statusCmd struct {
	Output outputFlag `embed:""`
	Server localFlags `embed:""`
}

// serverStatus describes a running server.
type serverStatus struct {
	PID     int            `json:"pid"`
	Seconds float64        `json:"seconds,omitempty"` // since the process started; absent if the system does not say
	Viewer  string         `json:"viewer,omitempty"`  // absent until the server listens
	Status  string         `json:"status"`            // starting, or as in /-/health
	Reasons []string       `json:"reasons,omitempty"`
	Nodes   []request.Node `json:"nodes,omitempty"` // the processes that share the database
}

// Run prints which server uses the data folder, and how it is.
func (c *statusCmd) Run(ctx context.Context, p *process) error {
	run, err := c.Server.findHolder(p)
	if err != nil {
		return err
	}
	s := serverStatus{Status: "starting"}
	if run.Viewer != "" {
		err = newLocalAdmin(run).ask(ctx, http.MethodGet, "/-/health", nil, &s)
		if refused, ok := errors.AsType[*refusal](err); ok && refused.Status == http.StatusServiceUnavailable {
			s.Status, err = "down", nil
		}
	}
	s.PID, s.Viewer, s.Seconds = run.PID, run.Viewer, run.Process().Age().Seconds()
	return errors.Join(err, c.Output.print(p.stdout, s, s.print))
}

// print prints the status as text.
func (s serverStatus) print(w io.Writer) error {
	table := terminal.Table{{"process", fmt.Sprint(s.PID)}}
	table.Add("status", terminal.Printable(strings.Join(append([]string{s.Status}, s.Reasons...), "; ")))
	if s.Seconds > 0 {
		table.Add("running for", (time.Duration(s.Seconds) * time.Second).String())
	}
	if s.Viewer != "" {
		table.Add("viewer", s.Viewer)
	}
	if err := table.Print(w); err != nil || len(s.Nodes) == 0 {
		return err
	}
	nodes := terminal.Table{{"NODE", "VERSION", "LEASE", "BEHIND"}}
	for _, n := range s.Nodes {
		nodes.Add(terminal.Printable(n.ID), terminal.Printable(n.Version), fmt.Sprint(n.Lease, " ms"), fmt.Sprint(n.Behind))
	}
	fmt.Fprintln(w)
	return nodes.Print(w)
}

type stopCmd struct {
	Wait   time.Duration `default:"30s" help:"How long the process may take to end."`
	Server localFlags    `embed:""`
}

// startPatience is how long a process that does not listen yet may take to end, before it gets the second signal, which ends it at once.
const startPatience = 3 * time.Second

// Run ends the process that uses the data folder, and waits until it has ended.
func (c *stopCmd) Run(ctx context.Context, p *process) error {
	run, err := c.Server.findHolder(p)
	if err != nil {
		return err
	}
	began, signals := time.Now(), 0
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	err = poll(ctx, func() (bool, error) {
		handle, err := run.Process().Open()
		if errors.Is(err, pidfile.ErrGone) && signals > 0 {
			return true, nil
		} else if errors.Is(err, pidfile.ErrGone) {
			if _, err := c.Server.findHolder(p); err != nil {
				return false, err // it has ended meanwhile
			}
			return false, fmt.Errorf("process %d uses the data folder in another container; stop it there", run.PID)
		}
		if err == nil && (signals == 0 || signals == 1 && run.Viewer == "" && time.Since(began) > startPatience) {
			signals++
			err = handle.Signal(syscall.SIGTERM)
		}
		if errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		return false, errors.Join(err, handle.Release())
	})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("process %d got SIGTERM and has not ended within %v; wait, or end it at once: kill -9 %d", run.PID, c.Wait, run.PID)
	}
	if err == nil {
		_, err = fmt.Fprintf(p.stdout, "process %d has ended after %v\n", run.PID, time.Since(began).Round(10*time.Millisecond))
	}
	return err
}

type reloadCmd struct {
	Server localFlags `embed:""`
}

// Run lets the server read its settings again.
func (c *reloadCmd) Run(ctx context.Context, p *process) error {
	var done diagnostics.Reloaded
	err := c.Server.ask(ctx, p, http.MethodPost, "/-/reload", nil, &done)
	if err == nil {
		_, err = fmt.Fprintln(p.stdout, "the server has read its settings again")
	}
	if err == nil && len(done.NeedRestart) > 0 {
		_, err = fmt.Fprintln(p.stdout, "these take effect after a restart:", terminal.Printable(strings.Join(done.NeedRestart, ", ")))
	}
	return err
}

type settingsCmd struct {
	Effective bool       `xor:"what" help:"Print the file with all its defaults (default)."`
	Diff      bool       `xor:"what" help:"Print the settings that have another value in the running server."`
	Output    outputFlag `embed:""`
	Server    localFlags `embed:""`
}

// Run prints the settings file with a line for each default, or compares it with the running server.
func (c *settingsCmd) Run(ctx context.Context, p *process) error {
	if c.Diff {
		var pending config.Pending
		if err := c.Server.ask(ctx, p, http.MethodGet, "/-/reload", nil, &pending); err != nil {
			return err
		}
		return c.Output.print(p.stdout, pending, func(w io.Writer) error { return printPending(w, pending) })
	}
	path := cmp.Or(c.Server.Config, "understudy.yml")
	data, err := config.ReadFile(path)
	if err != nil {
		return err
	}
	if data, err = config.FillFile(data, p.env); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, err = p.stdout.Write(data)
	return err
}

// printPending prints the settings that differ as a table.
func printPending(w io.Writer, pending config.Pending) error {
	if len(pending.Changes) == 0 {
		_, err := fmt.Fprintln(w, "the running server uses these settings")
		return err
	}
	table := terminal.Table{{"SETTING", "RUNNING", "FILE", "NEEDS"}}
	for _, d := range pending.Changes {
		needs := "reload"
		if d.Restart {
			needs = "restart"
		}
		table.Add(terminal.Printable(d.Name), terminal.Printable(d.Running), terminal.Printable(d.File), needs)
	}
	return table.Print(w)
}

type restartCmd struct {
	Server localFlags `embed:""`
}

// restartPatience is how long a server may take to listen again, with all tries.
const restartPatience = time.Minute

// Run lets the server replace itself by the program of its file, and waits until it listens again.
func (c *restartCmd) Run(ctx context.Context, p *process) error {
	began := time.Now()
	run, err := c.Server.findServer(p)
	if err == nil {
		err = newLocalAdmin(run).ask(ctx, http.MethodPost, "/-/restart", nil, nil)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, restartPatience)
	defer cancel()
	err = poll(ctx, func() (bool, error) {
		now, err := c.Server.findServer(p)
		if alive := run.Process().Send(syscall.Signal(0)); errors.Is(alive, pidfile.ErrGone) {
			return false, fmt.Errorf("process %d has ended; its log says why", run.PID)
		}
		return err == nil && now.Token != run.Token, nil // each start makes a new token
	})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("process %d does not listen again after %v; its log says why", run.PID, restartPatience)
	}
	if err == nil {
		took := time.Since(began).Round(time.Millisecond)
		_, err = fmt.Fprintf(p.stdout, "process %d has restarted and listens again after %v\n", run.PID, took)
	}
	return err
}

// findHolder returns the process that uses the data folder, also if it does not listen yet.
func (c *localFlags) findHolder(p *process) (datadir.Running, error) {
	return c.find(p, datadir.ReadHolder)
}
