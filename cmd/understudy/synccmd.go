// Sync: has a kind held whole, by the running server or in its folder.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"understudy/internal/app"
	"understudy/internal/config"
	"understudy/internal/crawl"
	"understudy/internal/datadir"
)

type syncCmd struct {
	What string `arg:"" name:"source/kind" help:"A configured source and one of its kinds."`
	End  bool   `help:"Keep it up no longer; what is held stays."`
	place
}

const (
	syncEvery = 250 * time.Millisecond // between two looks at how far it is
	syncAsk   = 20 * time.Second       // for one answer of the server
	// syncPatience is how long upstream may be down, or the walk come no further,
	// before the command gives up; the server does not.
	syncPatience = 2 * time.Minute
)

// Help is what --help says below the flags.
func (c *syncCmd) Help() string {
	return "Fetches every record of a kind and keeps the kind whole from then on: what is new, what changes late, what goes.\n" +
		"Ends with 0 when the kind is complete and with 1 and the reason when it cannot be. docs/sync.md shows examples."
}

// Run asks the server that holds the folder, or walks in the folder itself when
// none does.
func (c *syncCmd) Run(ctx context.Context, p *process) error {
	source, kind, ok := strings.Cut(c.What, "/")
	if !ok || source == "" || kind == "" || strings.Contains(kind, "/") {
		return usageError{fmt.Errorf("%q is not SOURCE/KIND; write for example NAME/calls", c.What)}
	}
	o := crawl.Order{Source: source, Kind: kind, End: c.End}
	data, err := c.data(p)
	if err != nil {
		return err
	}
	if _, err := os.Stat(data); err != nil && c.Data != "" && c.Config == "" {
		return fmt.Errorf("data folder: %w; name it with --data", err)
	}
	server, dir, err := datadir.Hold(data) // a folder that is not there yet is made
	switch {
	case err != nil:
		return err
	case server != nil:
		return watchSync(ctx, p, o, func(ctx context.Context, first bool) (crawl.Report, error) { return admin{*server}.sync(ctx, o, first) })
	}
	return errors.Join(c.alone(ctx, p, dir, o), dir.Close())
}

// alone walks in a folder no server uses.
func (c *syncCmd) alone(ctx context.Context, p *process, dir *datadir.Dir, o crawl.Order) error {
	if _, err := os.Stat(filepath.Join(dir.Path, datadir.DemoFile)); err == nil {
		return fmt.Errorf("%s is a demo's folder, whose API runs with it; try: understudy serve --demo --data %s", dir.Path, dir.Path)
	}
	cfg, folderPath, err := c.settings(p)
	if err != nil {
		return err
	}
	cfg.Log.Access = "off"
	a, err := app.Build(ctx, app.Options{Settings: cfg, Folder: folderPath, Secrets: config.FileSecrets(folderPath), Dir: dir, By: "config",
		Version: version(), Stderr: p.stderr, Headless: true})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop() // no walk runs any more
		ended <- a.Serve(ctx, nil, nil)
	}()
	err = watchSync(ctx, p, o, func(ctx context.Context, first bool) (crawl.Report, error) {
		r, err := a.Sync(ctx, o, first)
		return r, mistake(err)
	})
	stop()
	return errors.Join(err, <-ended)
}

// watchSync tells how far it is until the kind is complete or cannot be.
func watchSync(ctx context.Context, p *process, o crawl.Order, ask func(ctx context.Context, first bool) (crawl.Report, error)) error {
	show := newShow(p.stdout)
	defer show.end()
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	var down time.Time
	for first := true; ; first = false {
		r, err := ask(ctx, first)
		switch {
		case ctx.Err() != nil:
			return errors.New("interrupted; the server goes on where it was")
		case err != nil:
			return err
		case o.End:
			show.end()
			_, err := fmt.Fprintf(p.stdout, "%s/%s is kept up no longer\n", o.Source, o.Kind)
			return err
		case r.Complete:
			show.end()
			_, err := fmt.Fprintf(p.stdout, "%s/%s is complete: %s\n", o.Source, o.Kind, countOf(int(r.Progress.Done), "record"))
			return err
		case r.Failed:
			return errors.New(r.Why)
		case !r.Kept:
			return errors.New("somebody ended the sync: it is kept up no longer")
		case r.Stuck != nil && time.Since(*r.Stuck) > syncPatience:
			return fmt.Errorf("%s; the sync goes on when it can", r.Why)
		case r.Down == "":
			down = time.Time{}
		case down.IsZero():
			down = time.Now()
		case time.Since(down) > syncPatience:
			return fmt.Errorf("upstream cannot be asked: %s; the sync goes on when it can", r.Down)
		}
		show.line(o, r)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("interrupted; the sync goes on where it was")
		}
	}
}

// show is a line that is written over, on a terminal; elsewhere nothing.
type show struct {
	w     io.Writer
	width int
}

func newShow(w io.Writer) *show {
	if !isTerminal(w) {
		return &show{}
	}
	return &show{w: w}
}

func (s *show) line(o crawl.Order, r crawl.Report) {
	if s.w == nil {
		return
	}
	s.text(lineOf(o, r))
}

// text writes over the line.
func (s *show) text(text string) {
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
func lineOf(o crawl.Order, r crawl.Report) string {
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

func walkOf(p *crawl.Progress) string {
	if p.Walk == "" {
		return ""
	}
	return ", walk " + p.Walk
}

func left(p *crawl.Progress) string {
	if p.ETA == 0 {
		return ""
	}
	return fmt.Sprintf("  %v left", time.Duration(p.ETA)*time.Second)
}

// sync asks the running server: to begin or end at first, then how far it is.
func (r admin) sync(ctx context.Context, o crawl.Order, first bool) (report crawl.Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, syncAsk)
	defer cancel()
	method, target := http.MethodGet, r.Viewer+"/-/sync?"+url.Values{"source": {o.Source}, "kind": {o.Kind}}.Encode()
	body := []byte(nil)
	if first {
		method, target = http.MethodPost, r.Viewer+"/-/sync"
		if body, err = json.Marshal(o); err != nil {
			return report, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return report, err
	}
	req.Header.Set("Authorization", "Bearer "+r.Token)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is this machine
	resp, err := client.Do(req)
	if err != nil {
		return report, fmt.Errorf("the server with viewer %s (process %d) does not answer: %w", r.Viewer, r.PID, err)
	}
	defer resp.Body.Close()
	var answer struct {
		crawl.Report
		Error string `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer); err != nil {
		return report, fmt.Errorf("the server with viewer %s answered %s and nothing that can be read", r.Viewer, resp.Status)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return answer.Report, nil
	case http.StatusBadRequest:
		return report, usageError{errors.New(answer.Error)}
	case http.StatusConflict:
		return report, errors.New(answer.Error)
	}
	return report, fmt.Errorf("the server with viewer %s answered %s: %s", r.Viewer, resp.Status, answer.Error)
}
