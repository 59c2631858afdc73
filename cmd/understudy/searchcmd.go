// The search command: it searches the records of a running server, and prints a table, lines of JSON, or an export.

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"understudy"
	"understudy/cmd/understudy/terminal"
)

type searchCmd struct {
	Query  []string    `arg:"" optional:"" help:"Words and conditions. Write -- before a query that begins with a minus."`
	Source string      `placeholder:"NAME" help:"Only records of this source."`
	Kind   []string    `help:"Only records of this kind. May be repeated."`
	Sort   string      `placeholder:"ORDER" help:"Order: newest (default), oldest, rank, FIELD, or -FIELD for the largest first."`
	Limit  *int        `placeholder:"N" help:"Largest number of records (default 50)."`
	Facets bool        `help:"Also count the matches by kind, status and day."`
	JSON   bool        `name:"json" help:"Print a line of JSON for each record, also on a terminal."`
	Export string      `placeholder:"FORM" help:"Print every match, as jsonl or as xml (the update document of a search engine)."`
	Save   string      `placeholder:"NAME" help:"Save the query under this name instead of searching."`
	Shared bool        `help:"With --save: show the saved search to everyone who can search."`
	Saved  bool        `help:"List the saved searches."`
	Open   string      `placeholder:"NAME" help:"Run this saved search."`
	Forget string      `placeholder:"NAME" help:"Delete this saved search."`
	Remote serverFlags `embed:""`
}

// maxPageHits is the maximum number of hits in one response of the server.
const maxPageHits = 500

// Run searches, exports, or manages saved searches. If the query is wrong, carets mark the mistake.
func (c *searchCmd) Run(ctx context.Context, p *process) error {
	query := strings.Join(c.Query, " ")
	if err := c.check(query); err != nil {
		return usageError{err}
	}
	server, err := c.Remote.findServer(ctx, p)
	if err != nil {
		return err
	}
	values := url.Values{"q": {query}}
	setQuery(values, map[string]string{"source": c.Source, "sort": c.Sort})
	if len(c.Kind) > 0 {
		values["kind"] = c.Kind
	}
	if c.Open != "" {
		if values, err = findSaved(ctx, server, c.Open); err != nil {
			return err
		}
	}
	err = c.execute(ctx, server, values, p)
	if r, ok := errors.AsType[*refusal](err); ok {
		r.query = values.Get("q")
	}
	return err
}

// execute searches, exports, or manages saved searches, according to the flags.
func (c *searchCmd) execute(ctx context.Context, server *admin, values url.Values, p *process) error {
	switch {
	case c.Saved:
		return listSaved(ctx, server, p.stdout, c.JSON)
	case c.Forget != "":
		return server.ask(ctx, http.MethodDelete, "/-/search/saved/"+url.PathEscape(c.Forget), nil, nil)
	case c.Save != "":
		return server.ask(ctx, http.MethodPost, "/-/search/saved", map[string]any{"name": c.Save, "q": values.Get("q"), "source": c.Source,
			"kinds": c.Kind, "sort": c.Sort, "shared": c.Shared}, nil)
	case c.Export != "":
		values.Set("format", c.Export)
		return exportHits(ctx, server, values, p)
	}
	return c.find(ctx, server, values, p)
}

// check returns an error if flags do not fit together, because no flag should be ignored silently.
func (c *searchCmd) check(query string) error {
	acts := 0
	for _, set := range []bool{c.Export != "", c.Save != "", c.Saved, c.Forget != ""} {
		if set {
			acts++
		}
	}
	asks := c.Sort != "" || c.Source != "" || len(c.Kind) > 0
	shows := c.Limit != nil || c.Facets || c.JSON && !c.Saved
	switch {
	case acts > 1:
		return errors.New("only one of --export, --save, --saved and --forget can be given")
	case c.Export != "" && c.Export != "jsonl" && c.Export != "xml":
		return fmt.Errorf("--export %q: write jsonl or xml", understudy.Clip(c.Export))
	case c.Limit != nil && *c.Limit < 1:
		return fmt.Errorf("--limit %d: write a number from 1", *c.Limit)
	case c.Open != "" && (query != "" || asks):
		return errors.New("--open uses the query, the kinds and the order of a saved search; remove yours")
	case (c.Saved || c.Forget != "") && (query != "" || c.Open != "" || asks || shows), c.Save != "" && (c.Open != "" || shows):
		return errors.New("--saved and --forget take nothing else; --save takes a query, --kind, --source, --sort and --shared; remove the rest")
	case c.Export != "" && shows:
		return errors.New("--export prints every match and nothing else; remove --limit, --facets and --json")
	case c.Shared && c.Save == "":
		return errors.New("--shared works only with --save NAME")
	}
	return nil
}

// defaultHits is the number of hits to print if the flag --limit is not given.
const defaultHits = 50

// find prints the hits of a search up to the limit. It requests one page of them after another.
func (c *searchCmd) find(ctx context.Context, server *admin, values url.Values, p *process) error {
	out := bufio.NewWriter(p.stdout)
	onTerminal := terminal.IsTerminal(p.stdout) && !c.JSON
	if c.Facets {
		values.Set("facets", "true")
	}
	most := defaultHits
	if c.Limit != nil {
		most = *c.Limit
	}
	for left := most; ; {
		values.Set("limit", strconv.Itoa(min(left, maxPageHits)))
		var a searchAnswer
		if err := server.ask(ctx, http.MethodGet, "/-/search?"+values.Encode(), nil, &a); err != nil {
			return err
		}
		var rows []hitRow
		for _, raw := range a.Hits {
			if !onTerminal {
				fmt.Fprintf(out, "%s\n", raw)
				continue
			}
			var h searchHit
			if err := json.Unmarshal(raw, &h); err != nil {
				return fmt.Errorf("the answer of the server cannot be read: %w", err)
			}
			row := h.row(a.Columns[h.Source+"/"+h.Kind])
			if noColor, _ := p.env("NO_COLOR"); noColor != "" {
				row.text = terminal.StripStyle(row.text)
			}
			rows = append(rows, row)
		}
		printRows(out, rows, terminal.Width(p.stdout))
		if err := out.Flush(); err != nil {
			return err
		}
		a.printNotes(p.stderr)
		left -= len(a.Hits)
		if a.Next == "" || left <= 0 {
			if a.Next != "" {
				fmt.Fprintf(p.stderr, "understudy: there are more matches; --limit %d shows more, --export jsonl shows all\n", min(most,
					math.MaxInt/10)*10)
			}
			return nil
		}
		values.Del("facets")
		values.Set("cursor", a.Next)
	}
}

// exportHits writes all hits of a search to standard output. It returns an error if the export is incomplete. It
// names kinds of which not all records are stored on standard error.
func exportHits(ctx context.Context, server *admin, values url.Values, p *process) error {
	resp, err := server.send(ctx, http.MethodGet, "/-/search?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	// A progress bar on the same terminal would overwrite lines of the export.
	progress := terminal.NewProgress(p.stderr, "search --export", p.quiet || terminal.IsTerminal(p.stdout))
	defer progress.End()
	if _, err := io.Copy(io.MultiWriter(p.stdout, lineCounter{progress}), resp.Body); err != nil {
		return fmt.Errorf("the export ended too early: %w", err)
	}
	progress.End()
	switch end := resp.Trailer.Get("Understudy-Export"); {
	case strings.HasPrefix(end, "complete"):
		return nil
	case strings.HasPrefix(end, "not complete"):
		_, err := fmt.Fprintf(p.stderr, "understudy: %s; understudy sync fetches them\n", terminal.Printable(end))
		return err
	default:
		return fmt.Errorf("the export is incomplete: %s; try again", terminal.Printable(end))
	}
}

// lineCounter is an io.Writer that counts lines, to show the progress.
type lineCounter struct{ progress *terminal.Progress }

// Write counts lines.
func (c lineCounter) Write(p []byte) (int, error) {
	c.progress.Add(int64(bytes.Count(p, []byte{'\n'})), "lines")
	return len(p), nil
}
