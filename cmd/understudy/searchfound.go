// Search results: the server's answer as a table, and saved searches.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/cmd/understudy/terminal"
	"understudy/internal/query"
)

// searchHit is a hit in the JSON of the server.
type searchHit query.SearchHit

// searchAnswer is the server's answer to a search. Hits keep their bytes, for the output as JSON.
type searchAnswer struct {
	query.SearchResult
	Hits []json.RawMessage `json:"hits"`
}

func describeCount(n query.Count) string {
	if n.AtLeast {
		return "at least " + strconv.FormatInt(n.N, 10)
	}
	return strconv.FormatInt(n.N, 10)
}

// printNotes prints the notes, the total and the counts by value.
func (a *searchAnswer) printNotes(w io.Writer) {
	for _, note := range a.Notes {
		fmt.Fprintln(w, "understudy:", terminal.Printable(note))
	}
	if a.Total != nil {
		fmt.Fprintf(w, "%s found\n", describeCount(*a.Total))
	}
	for _, f := range a.Facets {
		fmt.Fprintf(w, "%s:\n", terminal.Printable(f.Name))
		for _, v := range f.Values {
			fmt.Fprintf(w, "  %-30s %s\n", terminal.Printable(v.Term), describeCount(query.Count{N: v.N, AtLeast: v.AtLeast}))
		}
	}
}

// savedSearch is a saved search in the JSON of the server.
type savedSearch struct {
	Name   string   `json:"name"`
	Owner  string   `json:"owner"`
	Shared bool     `json:"shared"`
	Query  string   `json:"q"`
	Source string   `json:"source"`
	Kinds  []string `json:"kinds"`
	Sort   string   `json:"sort"`
}

func readSaved(ctx context.Context, server *admin) (all []savedSearch, err error) {
	var a struct {
		Saved []savedSearch `json:"saved"`
	}
	err = server.ask(ctx, http.MethodGet, "/-/search/saved", nil, &a)
	return a.Saved, err
}

// findSaved returns a saved search as the parameters of a search.
func findSaved(ctx context.Context, server *admin, name string) (url.Values, error) {
	all, err := readSaved(ctx, server)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(n savedSearch) bool { return n.Name == name })
	if i < 0 {
		return nil, usageError{fmt.Errorf("there is no saved search %q; understudy search --saved lists them", understudy.Clip(name))}
	}
	n := all[i]
	values := url.Values{"q": {n.Query}}
	setQuery(values, map[string]string{"source": n.Source, "sort": n.Sort})
	if len(n.Kinds) > 0 {
		values["kind"] = n.Kinds
	}
	return values, nil
}

// listSaved prints the saved searches.
func listSaved(ctx context.Context, server *admin, out io.Writer, asJSON bool) error {
	all, err := readSaved(ctx, server)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]any{"saved": all})
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "no searches are saved; understudy search --save NAME QUERY keeps one")
		return err
	}
	var table terminal.Table
	table.Add("NAME", "OWNER", "SHARED", "QUERY")
	for _, n := range all {
		shared := "no"
		if n.Shared {
			shared = "yes"
		}
		table.Add(terminal.Printable(n.Name), terminal.Printable(n.Owner), shared, terminal.Printable(n.Query))
	}
	return table.Print(out)
}

// hitRow is a hit in the columns of the table: its time, kind, id and text.
type hitRow struct{ at, kind, id, what string }

// minWhat is the least number of columns for the text of a hit beside its name. With less room the text is on a
// line of its own, behind indent.
const minWhat, indent = 32, "    "

// printRows prints rows in lines of at most width columns. With width 0 the lines have any length.
func printRows(out io.Writer, rows []hitRow, width int) {
	var names, starts terminal.Table // the columns without and with the id
	for _, r := range rows {
		names.Add(r.at, r.kind, "")
		starts.Add(r.at, r.kind, r.id, "")
	}
	padded, start := names.Lines(0), starts.Lines(0)
	for i, r := range rows {
		name, room := padded[i], width-terminal.Columns(start[i])
		switch {
		case width == 0:
			fmt.Fprintln(out, start[i]+r.what)
		case room >= minWhat:
			fmt.Fprintln(out, start[i]+terminal.Shorten(r.what, room))
		default:
			lines := []string{name + r.id, r.what}
			if terminal.Columns(lines[0]) > width { // the id is never cut
				lines = []string{strings.TrimRight(name, " "), r.id, r.what}
			}
			before := ""
			for _, line := range lines {
				if line != "" {
					fmt.Fprintln(out, before+terminal.Shorten(line, width-len(before)))
				}
				before = indent
			}
		}
	}
}

// row returns a hit as a row of the table. Its text is the first snippet, or the values of the columns if there
// is no snippet.
func (h *searchHit) row(columns []string) hitRow {
	row := hitRow{kind: terminal.Printable(h.Kind), id: terminal.Printable(h.ID)}
	if h.Clock != 0 {
		row.at = h.Clock.Time().Local().Format(time.DateTime)
	}
	if len(h.Snippets) > 0 {
		s := h.Snippets[0]
		row.what = markWords(s.Text, s.Marks)
		if s.Before {
			row.what = "…" + row.what
		}
		if s.After {
			row.what += "…"
		}
		row.what = terminal.Printable(s.Field) + ": " + row.what
	} else {
		var values map[string]json.RawMessage
		_ = json.Unmarshal(h.Body, &values) // a body that is not an object shows no values
		var parts []string
		for _, name := range columns {
			var text string
			if raw := values[name]; json.Unmarshal(raw, &text) != nil && !bytes.Equal(raw, []byte("null")) {
				text = string(raw)
			}
			if text != "" {
				parts = append(parts, shortenValue(terminal.Printable(text)))
			}
		}
		row.what = strings.Join(parts, "  ")
	}
	return row
}

// maxValue is the maximum length of a value in the table, in characters.
const maxValue = 80

func shortenValue(text string) string {
	if r := []rune(text); len(r) > maxValue {
		return string(r[:maxValue]) + "…"
	}
	return text
}

// markWords returns a snippet with its words in bold. marks has the first byte and the end of each word.
func markWords(text string, marks [][2]int) string {
	var b strings.Builder
	at := 0
	for _, m := range marks {
		if m[0] < at || m[1] < m[0] || m[1] > len(text) {
			continue
		}
		b.WriteString(terminal.Printable(text[at:m[0]]) + terminal.Bold + terminal.Printable(text[m[0]:m[1]]) + terminal.Plain)
		at = m[1]
	}
	b.WriteString(terminal.Printable(text[at:]))
	return b.String()
}
