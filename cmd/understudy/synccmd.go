// The sync command: it has the server fetch all records of a kind and keep them complete.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"understudy/cmd/understudy/terminal"
	"understudy/internal/crawl"
)

type syncCmd struct {
	What   string     `arg:"" name:"source/kind" help:"A source of the settings and one of its kinds."`
	End    bool       `help:"Stop keeping this kind complete. Records already stored are kept."`
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// syncPatience is how long the command waits while upstream is down or the sync makes no progress. The server
// continues after that.
const syncPatience = 2 * time.Minute

// Run asks the server to start or end a sync, and shows the progress.
func (c *syncCmd) Run(ctx context.Context, p *process) error {
	source, kind, ok := strings.Cut(c.What, "/")
	if !ok || source == "" || kind == "" || strings.Contains(kind, "/") {
		return usageError{fmt.Errorf("%q is not SOURCE/KIND; write for example NAME/calls", c.What)}
	}
	o := crawl.Command{Source: source, Kind: kind, End: c.End}
	return c.Place.askServer(ctx, p, false, func(ctx context.Context, server *admin) error {
		return watchSync(ctx, p, c.Output, o, server.sync(o))
	})
}

// sync returns a function for watchSync. Called with first, it starts or ends the sync. Otherwise it asks for the progress.
func (a *admin) sync(o crawl.Command) func(ctx context.Context, first bool) (crawl.Report, error) {
	return func(ctx context.Context, first bool) (r crawl.Report, err error) {
		if first {
			err = a.ask(ctx, http.MethodPost, "/-/sync", o, &r)
		} else {
			err = a.ask(ctx, http.MethodGet, "/-/sync?"+url.Values{"source": {o.Source}, "kind": {o.Kind}}.Encode(), nil, &r)
		}
		return r, err
	}
}

// watchSync shows the progress of a sync. It returns when all records are stored, or when they cannot be, with the
// reason as the error. It prints the reason of a delay at once.
func watchSync(ctx context.Context, p *process, out outputFlag, o crawl.Command,
	ask func(ctx context.Context, first bool) (crawl.Report, error)) error {
	name := o.Source + "/" + o.Kind
	progress := terminal.NewProgress(p.stderr, name, p.quiet)
	defer progress.End()
	var down time.Time
	first, told := true, ""
	err := poll(ctx, func() (bool, error) {
		r, err := ask(ctx, first)
		first = false
		switch {
		case err != nil:
			return false, err
		case o.End, r.Complete:
			progress.End()
			return true, out.print(p.stdout, r, func(w io.Writer) error {
				if o.End {
					_, err := fmt.Fprintf(w, "%s is no longer kept complete; its stored records stay\n", name)
					return err
				}
				_, err := fmt.Fprintf(w, "%s is complete: %s\n", name, formatCount(int(r.Progress.Done), "record"))
				return err
			})
		case r.Failed:
			return false, errors.New(r.Why)
		case !r.Kept:
			return false, errors.New("someone ended the sync; the kind is no longer kept complete")
		case !r.Stuck.IsZero() && time.Since(r.Stuck) > syncPatience:
			return false, fmt.Errorf("%s; the sync continues as soon as possible", r.Why)
		case r.Down == "":
			down = time.Time{}
		case down.IsZero():
			down = time.Now()
		case time.Since(down) > syncPatience:
			return false, fmt.Errorf("the provider cannot be reached: %s; the sync continues as soon as possible", r.Down)
		}
		if !r.Stuck.IsZero() && r.Why != told {
			told = r.Why
			progress.Print(p.stderr, fmt.Sprintf("%s waits: %s; it is tried again", name, r.Why))
		}
		progress.Set(syncState(r))
		return false, nil
	})
	if ctx.Err() != nil {
		return errors.New("interrupted; the next sync continues where this one stopped")
	}
	return err
}

// syncState returns the progress in the form that the progress bar needs.
func syncState(r crawl.Report) terminal.State {
	s := terminal.State{Unit: "records", Note: r.Why}
	if p := r.Progress; p != nil && p.Running {
		s.Done, s.Note = p.Done, ""
		if p.ETA > 0 {
			s.Ends = time.Now().Add(time.Duration(p.ETA) * time.Second)
		}
		if p.Total != nil {
			s.Total = *p.Total
		}
		if p.Walk != "" {
			s.Note = "walk " + p.Walk
		}
	}
	if r.Down != "" {
		s.Note = "waits: " + r.Down
	}
	return s
}
