// Rebuild: makes the indexes of the database anew, in a running server or its
// folder.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"understudy/internal/diagnostics"
)

type storeRebuildCmd struct{ place }

// Help is what --help says below the flags.
func (c *storeRebuildCmd) Help() string {
	return "Makes the indexes of terms and words anew from the records. A server that runs goes on answering; searches wait until it is " +
		"done. Interrupted, it goes on with the next start."
}

// Run has the server do it, and shows how far it is.
func (c *storeRebuildCmd) Run(ctx context.Context, p *process) error {
	bar := newBuildBar(p.stdout)
	return c.work(ctx, p, true, func(ctx context.Context, server *admin) error {
		var at diagnostics.Indexed
		method := http.MethodPost
		err := poll(ctx, func() (bool, error) {
			err := server.ask(ctx, method, "/-/index", nil, &at)
			method = http.MethodGet
			bar.at(at)
			return at.Done >= at.Total, err
		})
		if ctx.Err() != nil {
			err = errors.New("interrupted; a server that runs goes on, or the next that starts")
		}
		return bar.end(at.Total, err)
	})
}

// buildBar shows how far it is, on a terminal.
type buildBar struct {
	show  *show
	out   io.Writer
	began time.Time
	first int64
}

func newBuildBar(out io.Writer) *buildBar { return &buildBar{show: newShow(out), out: out} }

const barWidth = 30

func (b *buildBar) at(i diagnostics.Indexed) {
	if b.began.IsZero() {
		b.began, b.first = time.Now(), i.Done
	}
	if b.show.w == nil || i.Total == 0 {
		return
	}
	left := ""
	if new := i.Done - b.first; new > 0 && i.Done < i.Total {
		left = (time.Duration(float64(time.Since(b.began)) * float64(i.Total-i.Done) / float64(new))).Round(time.Second).String() + " left"
	}
	full := int(i.Done * barWidth / i.Total)
	b.show.text(fmt.Sprintf("[%s%s] %d of %d records %3d %%  %s", strings.Repeat("#", full), strings.Repeat("-", barWidth-full), i.Done,
		i.Total, i.Done*100/i.Total, left))
}

func (b *buildBar) end(records int64, err error) error {
	b.show.end()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.out, "the indexes are whole: %s\n", countOf(int(records), "record"))
	return err
}
