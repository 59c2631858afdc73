// The explain command: it prints what a role sees of a kind or of one record, and why.

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"understudy"
	"understudy/cmd/understudy/terminal"
	"understudy/internal/access"
)

type explainCmd struct {
	Role   string     `arg:"" help:"Name of a role of the settings, or all."`
	What   string     `arg:"" name:"source/kind[/id]" help:"A source and one of its kinds. With an id: that record."`
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Run prints what a role sees of each field of a kind, and the line of settings that decides it. For a record, it
// also prints the values and whether the role finds the record.
func (c *explainCmd) Run(ctx context.Context, p *process) error {
	source, what, _ := strings.Cut(c.What, "/")
	kind, id, one := strings.Cut(what, "/")
	if one {
		return c.explainRecord(ctx, p, source, kind, id)
	}
	cfg, folder, err := c.Place.readSettings(p)
	if err != nil {
		return err
	}
	_, gate, err := readGate(cfg, folder)
	if err != nil {
		return err
	}
	shown, err := gate.Explain(c.Role, source, kind)
	if err != nil {
		return usageError{err}
	}
	found := struct {
		Fields  []access.FieldExplanation `json:"fields"`
		Records []string                  `json:"records,omitempty"` // the rules that say which records the role finds
	}{}
	for _, s := range shown {
		found.Fields = append(found.Fields, access.FieldExplanation{Field: s.Field, Class: s.Class, Level: s.String(), Line: s.Line})
	}
	for _, line := range gate.DescribeRules(c.Role, source) {
		if of, what, _ := strings.Cut(line, ": "); of == kind {
			found.Records = append(found.Records, what)
		}
	}
	return c.Output.print(p.stdout, found, func(w io.Writer) error {
		table := terminal.Table{{"FIELD", "CLASS", "SHOWN", "BY"}}
		for _, f := range found.Fields {
			table.Add(f.Field, f.Class, f.Level, f.Line)
		}
		err := table.Print(w)
		for _, rule := range found.Records {
			fmt.Fprintln(w, "records:", rule)
		}
		return err
	})
}

// explainRecord prints what a role sees of a stored record.
func (c *explainCmd) explainRecord(ctx context.Context, p *process, source, kind, id string) error {
	ask := url.Values{"role": {c.Role}, "source": {source}, "kind": {kind}, "id": {id}}
	var e access.RecordExplanation
	if err := c.Place.ask(ctx, p, http.MethodGet, "/-/explain?"+ask.Encode(), nil, &e); err != nil {
		return err
	}
	return c.Output.print(p.stdout, e, func(w io.Writer) error {
		table := terminal.Table{{"FIELD", "SHOWN", "VALUE", "BY"}}
		for _, f := range e.Fields {
			table.Add(f.Field, f.Level, terminal.Printable(understudy.Clip(f.Value)), f.Line)
		}
		if err := table.Print(w); err != nil {
			return err
		}
		return printReasons(w, &e)
	})
}

// printReasons prints whether a role finds a record, and the rules that decide that.
func printReasons(out io.Writer, e *access.RecordExplanation) error {
	word := map[bool]string{true: "yes", false: "no"}
	fmt.Fprintf(out, "finds it: %s\n", word[e.Found])
	if len(e.Reasons) == 0 {
		_, err := fmt.Fprintln(out, "  no rule limits which records of the kind the role finds")
		return err
	}
	for _, r := range e.Reasons {
		if _, err := fmt.Fprintf(out, "  %-3s  %s\n", word[r.Holds], terminal.Printable(r.Words)); err != nil {
			return err
		}
	}
	return nil
}
