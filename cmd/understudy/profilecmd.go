// The profile command: it shows where a running server uses memory and processor time.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"understudy/cmd/understudy/terminal"
	"understudy/internal/diagnostics"
	"understudy/internal/diagnostics/profile"
)

type profileCmd struct {
	What     string        `arg:"" enum:"allocs,cpu,list,stop" help:"allocs or cpu takes a profile, list prints those stored, stop ends one."`
	For      time.Duration `default:"60s" placeholder:"DURATION" help:"Length, 100ms to 10m (default ${default}). Ctrl-C ends it early."`
	ID       string        `name:"id" placeholder:"ID" help:"Print this stored profile instead of taking one."`
	Since    string        `placeholder:"ID" help:"Print the growth since a stored profile: its id, today, or version."`
	Held     bool          `help:"With allocs: print the memory in use instead of the memory allocated."`
	Function string        `placeholder:"TEXT" help:"Only functions whose name contains this text."`
	Out      string        `placeholder:"FILE" help:"Also write the profile to this file, for go tool pprof or go tool trace."`
	Output   outputFlag    `embed:""`
	Remote   serverFlags   `embed:""`
}

// profileGrace is how much longer the request for a profile may take than the profile itself.
const profileGrace = time.Minute

// Run takes a new profile, prints a stored profile, lists the stored profiles, or stops the running profile.
func (c *profileCmd) Run(ctx context.Context, p *process) error {
	takes := c.What == profile.Allocs || c.What == profile.CPU
	switch {
	case !takes && (c.ID != "" || c.Since != "" || c.Held || c.Function != "" || c.Out != ""):
		return usageError{errors.New("list and stop take no flags for a profile; remove them")}
	case c.Held && c.What == profile.CPU:
		return usageError{errors.New("--held works only with allocs; remove it")}
	}
	s, err := c.Remote.findServer(ctx, p)
	if err != nil {
		return err
	}
	switch {
	case c.What == "stop":
		var done struct{ Stopped bool }
		if err := s.ask(ctx, http.MethodPost, "/-/profile/stop", nil, &done); err != nil {
			return err
		}
		if !done.Stopped {
			return errors.New("no profile is running")
		}
		return c.Output.print(p.stdout, map[string]bool{"stopped": true}, func(io.Writer) error { return nil })
	case c.What == "list":
		var list diagnostics.ProfileList
		if err := s.ask(ctx, http.MethodGet, "/-/profile?format=json", nil, &list); err != nil {
			return err
		}
		return c.Output.print(p.stdout, list, func(w io.Writer) error { return printProfiles(w, list) })
	}
	if c.Out != "" && strings.Contains(c.ID, "_"+profile.Trace+"_") { // a recording has no report
		return c.save(ctx, s, c.ID)
	}
	report, err := c.report(ctx, s, p)
	if err != nil {
		return err
	}
	if c.Out != "" {
		if err := c.save(ctx, s, report.ID); err != nil {
			return err
		}
	}
	return c.Output.print(p.stdout, report, func(w io.Writer) error { return report.Print(w, terminal.Printable) })
}

// report returns a new profile, or a stored one.
func (c *profileCmd) report(ctx context.Context, s *admin, p *process) (*profile.Report, error) {
	q := url.Values{"format": {"json"}}
	setQuery(q, map[string]string{"since": c.Since, "function": c.Function})
	if c.Held {
		q.Set("measure", "held")
	}
	path, wait := "/-/profile/"+c.What, c.For+profileGrace
	if c.ID != "" {
		path, wait = "/-/profile", profileGrace
		q.Set("id", c.ID)
	} else {
		q.Set("for", c.For.String())
		progress := terminal.NewProgress(p.stderr, "profile "+c.What, p.quiet)
		defer progress.End()
		progress.Set(terminal.State{Ends: time.Now().Add(c.For), Note: "Ctrl-C ends it early"})
		if !p.quiet {
			fmt.Fprintf(p.stderr, "understudy: profiling for %v; Ctrl-C ends it early\n", c.For)
		}
	}
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	if c.ID == "" {
		done := make(chan struct{})
		// If the user presses Ctrl-C, the server ends the profile early and sends what it has so far.
		stop := context.AfterFunc(ctx, func() {
			defer close(done)
			_ = s.ask(asked, http.MethodPost, "/-/profile/stop", nil, nil) // if this fails, the profile ends at its normal time
		})
		defer func() {
			if !stop() {
				<-done
			}
		}()
	}
	resp, err := s.send(asked, http.MethodGet, path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	var report profile.Report
	return &report, s.read(resp, &report)
}

// save writes a stored profile to the file that the flag --out names.
func (c *profileCmd) save(ctx context.Context, s *admin, id string) error {
	resp, err := s.send(context.WithoutCancel(ctx), http.MethodGet, "/-/profile/kept/"+url.PathEscape(id), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := os.WriteFile(c.Out, data, 0o600); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// printProfiles prints the running profile, and a table of the stored profiles.
func printProfiles(out io.Writer, list diagnostics.ProfileList) error {
	if t := list.Taking; t != nil {
		fmt.Fprintf(out, "in progress: %s for %s, until %s\n", terminal.Printable(t.Kind), terminal.Printable(t.By),
			t.Until.UTC().Format(time.RFC3339))
	}
	if len(list.Kept) == 0 {
		_, err := fmt.Fprintln(out, "no profile is stored; understudy profile allocs takes one")
		return err
	}
	table := terminal.Table{{"ID", "KIND", "FROM", "TOOK", "FILE"}}
	for _, k := range list.Kept {
		table.Add(terminal.Printable(k.ID), terminal.Printable(k.Kind), k.From.UTC().Format(time.RFC3339), fmt.Sprint(k.Took),
			profile.Value("held", k.Bytes))
	}
	return table.Print(out)
}
