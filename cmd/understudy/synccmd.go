// Sync: has a kind held whole, by the running server or in its folder.

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
	"understudy/request"
)

type syncCmd struct {
	What  string `arg:"" name:"source/kind" help:"A source of the settings and one of its kinds."`
	End   bool   `help:"Stop keeping this kind complete. Records already stored are kept."`
	Place place  `embed:""`
}

// syncPatience is how long upstream may be down, or the walk come no further,
// before the command gives up; the server does not.
const syncPatience = 2 * time.Minute

// Help returns what --help prints below the summary.
func (c *syncCmd) Help() string {
	return "Fetches all records of a kind. From then on the server keeps the kind complete: it finds new, changed and deleted records. " +
		"The exit code is 0 when the kind is complete, and 1 with the reason when it cannot be completed.\n\n" +
		"Described in docs/explanation/sync.md."
}

// Run has the server begin or end it, and shows how far it is.
func (c *syncCmd) Run(ctx context.Context, p *process) error {
	source, kind, ok := strings.Cut(c.What, "/")
	if !ok || source == "" || kind == "" || strings.Contains(kind, "/") {
		return usageError{fmt.Errorf("%q is not SOURCE/KIND; write for example NAME/calls", c.What)}
	}
	o := crawl.Command{Source: source, Kind: kind, End: c.End}
	return c.Place.work(ctx, p, false, func(ctx context.Context, server *admin) error {
		return watchSync(ctx, p, o, server.sync(o))
	})
}

// sync asks to begin or end at first, then how far it is.
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

// watchSync tells how far it is until the kind is complete or cannot be, and at once what holds it up.
func watchSync(ctx context.Context, p *process, o crawl.Command, ask func(ctx context.Context, first bool) (crawl.Report, error)) error {
	show := newShow(p.stdout)
	defer show.end()
	var down time.Time
	first, told := true, ""
	err := poll(ctx, func() (bool, error) {
		r, err := ask(ctx, first)
		first = false
		switch {
		case err != nil:
			return false, err
		case o.End:
			show.end()
			_, err := fmt.Fprintf(p.stdout, "%s/%s is kept up no longer\n", o.Source, o.Kind)
			return true, err
		case r.Complete:
			show.end()
			_, err := fmt.Fprintf(p.stdout, "%s/%s is complete: %s\n", o.Source, o.Kind, countOf(int(r.Progress.Done), "record"))
			return true, err
		case r.Failed:
			return false, errors.New(r.Why)
		case !r.Kept:
			return false, errors.New("somebody ended the sync: it is kept up no longer")
		case !r.Stuck.IsZero() && time.Since(r.Stuck) > syncPatience:
			return false, fmt.Errorf("%s; the sync goes on when it can", r.Why)
		case r.Down == "":
			down = time.Time{}
		case down.IsZero():
			down = time.Now()
		case time.Since(down) > syncPatience:
			return false, fmt.Errorf("upstream cannot be asked: %s; the sync goes on when it can", r.Down)
		}
		if !r.Stuck.IsZero() && r.Why != told {
			told = r.Why
			show.end()
			fmt.Fprintf(p.stderr, "%s/%s waits: %s; it is tried again\n", o.Source, o.Kind, r.Why)
		}
		show.line(o, r)
		return false, nil
	})
	if ctx.Err() != nil {
		return errors.New("interrupted; the sync goes on where it was")
	}
	return err
}

// show is a line that is written over, on a terminal; elsewhere nothing.
type show struct {
	w     io.Writer
	width int
}

func newShow(w io.Writer) *show {
	if !terminal.Is(w) {
		return &show{}
	}
	return &show{w: w}
}

func (s *show) line(o crawl.Command, r crawl.Report) { s.say(lineOf(o, r)) }

// say writes over the line.
func (s *show) say(text string) {
	if s.w == nil {
		return
	}
	fmt.Fprintf(s.w, "\r%-*s", s.width, text)
	s.width = max(s.width, len(text))
}

func (s *show) end() {
	if s.w != nil && s.width > 0 {
		fmt.Fprintf(s.w, "\r%*s\r", s.width, "")
		s.width = 0
	}
}

// lineOf says how far a sync is, in columns that stay where they are.
func lineOf(o crawl.Command, r crawl.Report) string {
	name := o.Source + "/" + o.Kind
	switch p := r.Progress; {
	case r.Down != "":
		return fmt.Sprintf("%-28s waits: %s", name, r.Down)
	case p == nil || !p.Running:
		return fmt.Sprintf("%-28s %s", name, r.Why)
	case p.Total == nil || *p.Total == 0:
		return fmt.Sprintf("%-28s %9d records%s%s", name, p.Done, walkOf(p), left(p))
	default:
		return fmt.Sprintf("%-28s %9d of %9d records %3d %%%s%s", name, p.Done, *p.Total, p.Done*100 / *p.Total, walkOf(p), left(p))
	}
}

func walkOf(p *request.Progress) string {
	if p.Walk == "" {
		return ""
	}
	return ", walk " + p.Walk
}

func left(p *request.Progress) string {
	if p.ETA == 0 {
		return ""
	}
	return fmt.Sprintf("  %v left", time.Duration(p.ETA)*time.Second)
}
