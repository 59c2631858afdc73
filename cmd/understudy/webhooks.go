// Webhooks: how those of a running server do, and pausing one or resuming it.

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"text/tabwriter"

	"understudy/request"
)

type hooksCmd struct {
	List   hooksListCmd   `cmd:"" default:"withargs" help:"Show all webhooks of a running server, or one."`
	Pause  hooksPauseCmd  `cmd:"" help:"Pause a webhook: nothing is sent until it is resumed."`
	Resume hooksResumeCmd `cmd:"" help:"Resume a paused webhook."`
}

const hooksPath = "/-/webhooks"

type hooksListCmd struct {
	Name    string  `arg:"" optional:"" help:"The webhook to show; without it all are shown."`
	Running running `embed:""`
}

// Run shows webhooks and changes nothing.
func (c *hooksListCmd) Run(ctx context.Context, p *process) error {
	run, err := c.Running.find(p)
	if err != nil {
		return err
	}
	var all struct {
		Webhooks []request.Webhook `json:"webhooks"`
	}
	if err := here(run).ask(ctx, http.MethodGet, hooksPath, nil, &all); err != nil {
		return err
	}
	if c.Name != "" {
		all.Webhooks = slices.DeleteFunc(all.Webhooks, func(w request.Webhook) bool { return w.Name != c.Name })
		if len(all.Webhooks) == 0 {
			return usageError{fmt.Errorf("no webhook is called %q; understudy webhooks shows all", c.Name)}
		}
	}
	if len(all.Webhooks) == 0 {
		_, err := fmt.Fprintln(p.stdout, "the settings name no webhooks; docs/reference/feed.md shows one")
		return err
	}
	return printHooks(p.stdout, all.Webhooks)
}

type hooksPauseCmd struct {
	Name    string  `arg:"" help:"The webhook."`
	Running running `embed:""`
}

// Run pauses one.
func (c *hooksPauseCmd) Run(ctx context.Context, p *process) error {
	return c.Running.change(ctx, p, c.Name, map[string]any{"pause": true})
}

type hooksResumeCmd struct {
	Name    string  `arg:"" help:"The webhook."`
	After   *int64  `placeholder:"N" help:"Deliver again what came after this change (default: go on where it is)."`
	Running running `embed:""`
}

// Run resumes one.
func (c *hooksResumeCmd) Run(ctx context.Context, p *process) error {
	how := map[string]any{}
	if c.After != nil {
		how["after"] = *c.After
	}
	return c.Running.change(ctx, p, c.Name, how)
}

// change posts what to do with a webhook and prints how it does then.
func (c *running) change(ctx context.Context, p *process, name string, how map[string]any) error {
	run, err := c.find(p)
	if err != nil {
		return err
	}
	var one request.Webhook
	if err := here(run).ask(ctx, http.MethodPost, hooksPath+"/"+name, how, &one); err != nil {
		return err
	}
	return printHooks(p.stdout, []request.Webhook{one})
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
