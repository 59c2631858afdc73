// The explain command: what a role sees of a kind, or of one record, and why.

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"understudy"
	"understudy/cmd/understudy/terminal"
	"understudy/internal/access"
)

type explainCmd struct {
	Role string `arg:"" help:"A role of the settings, or all."`
	What string `arg:"" name:"source/kind[/id]" help:"A source and a kind of its records, and maybe the id of one."`
	place
}

// Run prints what a role sees of each field, and which line of the settings says so; of a
// record it prints the values, too, and whether the role may find it.
func (c *explainCmd) Run(ctx context.Context, p *process) error {
	source, what, _ := strings.Cut(c.What, "/")
	kind, id, one := strings.Cut(what, "/")
	if one {
		return c.record(ctx, p, source, kind, id)
	}
	gate, err := c.gate(p)
	if err != nil {
		return err
	}
	shown, err := gate.Explain(c.Role, source, kind)
	if err != nil {
		return usageError{err}
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FIELD\tCLASS\tSHOWN\tBY")
	for _, s := range shown {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Field, s.Class, s, s.Line)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, line := range gate.Words(c.Role, source) {
		if of, what, _ := strings.Cut(line, ": "); of == kind {
			_, err = fmt.Fprintf(p.stdout, "records: %s\n", what)
		}
	}
	return err
}

// gate is that of the settings.
func (c *explainCmd) gate(p *process) (*access.Gate, error) {
	cfg, folder, err := c.settings(p)
	if err != nil {
		return nil, err
	}
	_, gate, err := gateOf(cfg, folder)
	return gate, err
}

// record asks the running server, or the data folder, for a record.
func (c *explainCmd) record(ctx context.Context, p *process, source, kind, id string) error {
	ask := url.Values{"role": {c.Role}, "source": {source}, "kind": {kind}, "id": {id}}
	return c.work(ctx, p, true, func(ctx context.Context, server *admin) error {
		var e access.Explained
		if err := server.ask(ctx, http.MethodGet, "/-/explain?"+ask.Encode(), nil, &e); err != nil {
			return err
		}
		w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "FIELD\tSHOWN\tVALUE\tBY")
		for _, f := range e.Fields {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Field, f.Level, terminal.Printable(understudy.Clip(f.Value)), f.Line)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		return printReasons(p.stdout, &e)
	})
}

// printReasons says whether a role may find a record, and why.
func printReasons(out io.Writer, e *access.Explained) error {
	word := map[bool]string{true: "yes", false: "no"}
	fmt.Fprintf(out, "may find it: %s\n", word[e.Found])
	if len(e.Reasons) == 0 {
		_, err := fmt.Fprintln(out, "  no line bounds which records of the kind the role finds")
		return err
	}
	for _, r := range e.Reasons {
		if _, err := fmt.Fprintf(out, "  %-3s  %s\n", word[r.Holds], terminal.Printable(r.Words)); err != nil {
			return err
		}
	}
	return nil
}
