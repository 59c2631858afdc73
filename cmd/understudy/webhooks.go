// Webhooks: how those of a running server do, and pausing one or setting it going again.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"

	"understudy/request"
)

type hooksCmd struct {
	Name  string `arg:"" optional:"" help:"The webhook to set going again; without one all are shown."`
	Pause bool   `help:"Pause it instead: nothing is sent until it is set going again."`
	After *int64 `placeholder:"N" help:"Deliver again what came after this change (default: go on where it is)."`
	running
}

// Run shows all webhooks, or pauses or resumes one.
func (c *hooksCmd) Run(ctx context.Context, p *process) error {
	if c.Name == "" && c.After != nil {
		return usageError{errors.New("--after is for one webhook; name it")}
	}
	if c.Name == "" && c.Pause {
		return usageError{errors.New("--pause is for one webhook; name it")}
	}
	run, err := c.find(p)
	if err != nil {
		return err
	}
	if c.Name != "" {
		var one request.Webhook
		body := struct {
			After *int64 `json:"after,omitempty"`
			Pause bool   `json:"pause,omitempty"`
		}{c.After, c.Pause}
		if err := here(run).ask(ctx, http.MethodPost, "/-/webhooks/"+c.Name, body, &one); err != nil {
			return err
		}
		return printHooks(p.stdout, []request.Webhook{one})
	}
	var all struct {
		Webhooks []request.Webhook `json:"webhooks"`
	}
	if err := here(run).ask(ctx, http.MethodGet, "/-/webhooks", nil, &all); err != nil {
		return err
	}
	if len(all.Webhooks) == 0 {
		_, err := fmt.Fprintln(p.stdout, "the settings name no webhooks; docs/feed.md shows one")
		return err
	}
	return printHooks(p.stdout, all.Webhooks)
}

// printHooks writes a table.
func printHooks(w io.Writer, all []request.Webhook) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WEBHOOK\tSOURCE\tSTATE\tAFTER\tBEHIND\tDELIVERED\tWHY")
	for _, s := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%s\n", s.Name, s.Source, s.State, s.After, s.Behind, s.Delivered, s.Why)
	}
	return t.Flush()
}
