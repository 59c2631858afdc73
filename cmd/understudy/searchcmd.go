// Search command: finds records in a running server, as a table, as JSON lines
// or as an export.

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
	"time"
	"unicode/utf8"

	"understudy"
)

type searchCmd struct {
	Query  []string `arg:"" optional:"" help:"What to look for; docs/search.md has the grammar. One that begins with a minus comes behind --."`
	Source string   `help:"Only this source."`
	Kind   []string `help:"Only this kind (repeatable)."`
	Sort   string   `placeholder:"ORDER" help:"newest (default), oldest, rank, or a field; -FIELD for the largest first."`
	Limit  *int     `placeholder:"N" help:"Hits at most (default 50)."`
	Facets bool     `help:"Count the matches by kind, status and day, too."`
	JSON   bool     `name:"json" help:"A line of JSON for each hit, also on a terminal."`
	Export string   `placeholder:"FORM" help:"Every match, as jsonl or xml (a search engine's update document)."`
	Save   string   `placeholder:"NAME" help:"Keep the query under a name instead of searching."`
	Shared bool     `help:"With --save: everyone who may search sees it."`
	Saved  bool     `help:"List the saved searches."`
	Open   string   `placeholder:"NAME" help:"Search by a saved search."`
	Forget string   `placeholder:"NAME" help:"Delete a saved search."`
	Config string   `placeholder:"FILE" help:"Settings file, for its data folder (default understudy.yml)."`
	Data   string   `placeholder:"DIR" help:"Data folder of the running server (default: what the settings say)."`
	URL    string   `name:"url" placeholder:"URL" help:"Another server's viewer, instead of a data folder."`
	User   string   `help:"With --url: the user of a credential."`
	Secret string   `placeholder:"file:PATH" help:"With --url: its secret, file:PATH or cmd:COMMAND."`
}

// Help is what --help says below the flags.
func (c *searchCmd) Help() string {
	return "Finds words, \"phrases\", begin*, -not, FIELD:VALUE, FIELD>VALUE, kind:KIND, date:2026-05, number:+1… in every record a " +
		"running server holds, newest first.\n" +
		"Prints a table on a terminal and JSON lines elsewhere. docs/search.md has the grammar and examples."
}

// searchWait bounds one answer of the server; an export has none.
const searchWait = 2 * time.Minute

// mostHits is how many hits one answer may hold.
const mostHits = 500

// searching is a server to ask.
type searching struct {
	url, user, secret string
	client            *http.Client
}

// Run does what the flags ask for.
func (c *searchCmd) Run(ctx context.Context, p *process) error {
	query := strings.Join(c.Query, " ")
	if err := c.check(query); err != nil {
		return usageError{err}
	}
	s, err := c.server(ctx, p)
	if err != nil {
		return err
	}
	values := url.Values{"q": {query}}
	put := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	put("source", c.Source)
	put("sort", c.Sort)
	if len(c.Kind) > 0 {
		values["kind"] = c.Kind
	}
	if c.Open != "" {
		if values, err = s.saved(ctx, c.Open); err != nil {
			return err
		}
	}
	switch {
	case c.Saved:
		return s.list(ctx, p.stdout)
	case c.Forget != "":
		return s.command(ctx, http.MethodDelete, "/-/search/saved/"+url.PathEscape(c.Forget), nil)
	case c.Save != "":
		body, err := json.Marshal(map[string]any{"name": c.Save, "q": query, "source": c.Source, "kinds": c.Kind, "sort": c.Sort,
			"shared": c.Shared})
		if err != nil {
			return err
		}
		return s.pointed(s.command(ctx, http.MethodPost, "/-/search/saved", body), query)
	case c.Export != "":
		values.Set("format", c.Export)
		return s.pointed(s.export(ctx, values, p.stdout), values.Get("q"))
	}
	return s.pointed(c.find(ctx, s, values, p), values.Get("q"))
}

// check refuses flags that do not go together: none is left unheard.
func (c *searchCmd) check(query string) error {
	acts := 0
	for _, set := range []bool{c.Export != "", c.Save != "", c.Saved, c.Forget != ""} {
		if set {
			acts++
		}
	}
	asks := c.Sort != "" || c.Source != "" || len(c.Kind) > 0
	shows := c.Limit != nil || c.Facets || c.JSON
	switch {
	case acts > 1:
		return errors.New("--export, --save, --saved and --forget go one at a time")
	case c.Export != "" && c.Export != "jsonl" && c.Export != "xml":
		return fmt.Errorf("--export %q: write jsonl or xml", understudy.Clip(c.Export))
	case c.Limit != nil && *c.Limit < 1:
		return fmt.Errorf("--limit %d: write a number from 1", *c.Limit)
	case c.Open != "" && (query != "" || asks):
		return errors.New("--open has a query, kinds and an order already; leave yours out")
	case (c.Saved || c.Forget != "") && (query != "" || c.Open != "" || asks || shows), c.Save != "" && (c.Open != "" || shows):
		return errors.New("--saved and --forget stand alone, --save beside a query, --kind, --source, --sort and --shared; leave the rest out")
	case c.Export != "" && shows:
		return errors.New("--export gives every match, and nothing else; leave --limit, --facets and --json out")
	case c.Shared && c.Save == "":
		return errors.New("--shared goes with --save NAME")
	}
	return nil
}

// usualHits is how many hits are shown by default.
const usualHits = 50

// server says where to ask, and with which credential.
func (c *searchCmd) server(ctx context.Context, p *process) (*searching, error) {
	o, err := (&tailCmd{Config: c.Config, Data: c.Data, URL: c.URL, User: c.User, Secret: c.Secret}).options(ctx, p)
	if err != nil {
		return nil, err
	}
	s := &searching{url: strings.TrimSuffix(o.URL, "/"), user: o.User, secret: o.Secret, client: http.DefaultClient}
	if o.HTTP != nil {
		s.client = o.HTTP
	}
	return s, nil
}

// find prints hits until there are enough.
func (c *searchCmd) find(ctx context.Context, s *searching, values url.Values, p *process) error {
	out := bufio.NewWriter(p.stdout)
	terminal := isTerminal(p.stdout) && !c.JSON
	if c.Facets {
		values.Set("facets", "true")
	}
	most := usualHits
	if c.Limit != nil {
		most = *c.Limit
	}
	for left := most; ; {
		values.Set("limit", strconv.Itoa(min(left, mostHits)))
		var a findings
		if err := s.ask(ctx, http.MethodGet, "/-/search?"+values.Encode(), nil, &a); err != nil {
			return err
		}
		var rows []hitRow
		for _, raw := range a.Hits {
			if !terminal {
				fmt.Fprintf(out, "%s\n", raw)
				continue
			}
			var h found
			if err := json.Unmarshal(raw, &h); err != nil {
				return fmt.Errorf("the server answered what cannot be read: %w", err)
			}
			rows = append(rows, h.row(a.Columns[h.Source+"/"+h.Kind]))
		}
		printRows(out, rows, widthOf(p.stdout))
		if err := out.Flush(); err != nil {
			return err
		}
		a.tell(p.stderr)
		left -= len(a.Hits)
		if a.Next == "" || left <= 0 {
			if a.Next != "" {
				fmt.Fprintf(p.stderr, "understudy: there are more; --limit %d shows them, --export jsonl gives all\n", min(most, math.MaxInt/10)*10)
			}
			return nil
		}
		values.Del("facets")
		values.Set("cursor", a.Next)
	}
}

// refusal is a request the server did not answer as asked.
type refusal struct {
	Status int
	Text   string `json:"error"`
	At     *int   `json:"at"`
	End    *int   `json:"end"`
}

// Error is what the server said.
func (r *refusal) Error() string { return r.Text }

// pointed says where in a query an error is, with a line of carets below it.
func (s *searching) pointed(err error, query string) error {
	var r *refusal
	if !errors.As(err, &r) {
		return err
	}
	text := printable(r.Text)
	if r.At != nil && r.End != nil && *r.At >= 0 && *r.At <= *r.End && *r.End <= len(query) && utf8.ValidString(query) {
		text += "\n" + underlined(query, *r.At, *r.End)
	}
	switch r.Status {
	case http.StatusBadRequest, http.StatusNotFound:
		return usageError{errors.New(text)}
	}
	return errors.New(text)
}

// send asks the server; the caller closes the body.
func (s *searching) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if s.user != "" {
		req.SetBasicAuth(s.user, s.secret)
	} else if s.secret != "" {
		req.Header.Set("Authorization", "Bearer "+s.secret)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the server with viewer %s does not answer: %w", s.url, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	r := &refusal{Status: resp.StatusCode}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(r); err != nil || r.Text == "" {
		r.Text = fmt.Sprintf("the server with viewer %s answered %s", s.url, resp.Status)
	}
	return nil, r
}

// mostAnswer bounds one answer, in bytes.
const mostAnswer = 256 << 20

// ask reads an answer.
func (s *searching) ask(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, searchWait)
	defer cancel()
	resp, err := s.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	return readJSON(resp, s.url, into)
}

// readJSON reads an answer of the server with that viewer, into nothing when nil,
// and closes it.
func readJSON(resp *http.Response, viewer string, into any) error {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent || into == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, mostAnswer)).Decode(into); err != nil {
		return fmt.Errorf("the server with viewer %s answered nothing that can be read: %w", viewer, err)
	}
	return nil
}

func (s *searching) command(ctx context.Context, method, path string, body []byte) error {
	return s.pointed(s.ask(ctx, method, path, body, nil), "")
}

// export copies every match to out, and fails when that was not all.
func (s *searching) export(ctx context.Context, values url.Values, out io.Writer) error {
	resp, err := s.send(ctx, http.MethodGet, "/-/search?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(out, resp.Body); err != nil {
		return fmt.Errorf("the export was broken off: %w", err)
	}
	if end := resp.Trailer.Get("Understudy-Export"); !strings.HasPrefix(end, "complete") {
		return fmt.Errorf("the export is not whole: %s; try again", printable(end))
	}
	return nil
}
