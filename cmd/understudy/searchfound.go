// Search found: what the server said, as a table, and the searches that were saved.

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

// found is a hit as the server says it.
type found query.SearchHit

// findings is an answer of the server; a hit stays as it was sent.
type findings struct {
	query.SearchResult
	Hits []json.RawMessage `json:"hits"`
}

func countText(n query.Count) string {
	if n.AtLeast {
		return "at least " + strconv.FormatInt(n.N, 10)
	}
	return strconv.FormatInt(n.N, 10)
}

// tell prints what is said beside the hits.
func (a *findings) tell(w io.Writer) {
	for _, note := range a.Notes {
		fmt.Fprintln(w, "understudy:", terminal.Printable(note))
	}
	if a.Total != nil {
		fmt.Fprintf(w, "%s found\n", countText(*a.Total))
	}
	for _, f := range a.Facets {
		fmt.Fprintf(w, "%s:\n", terminal.Printable(f.Name))
		for _, v := range f.Values {
			fmt.Fprintf(w, "  %-30s %s\n", terminal.Printable(v.Term), countText(query.Count{N: v.N, AtLeast: v.AtLeast}))
		}
	}
}

// savedOne is a saved search as the server says it.
type savedOne struct {
	Name   string   `json:"name"`
	Owner  string   `json:"owner"`
	Shared bool     `json:"shared"`
	Query  string   `json:"q"`
	Source string   `json:"source"`
	Kinds  []string `json:"kinds"`
	Sort   string   `json:"sort"`
}

func readSaved(ctx context.Context, server *admin) (all []savedOne, err error) {
	var a struct {
		Saved []savedOne `json:"saved"`
	}
	err = server.ask(ctx, http.MethodGet, "/-/search/saved", nil, &a)
	return a.Saved, err
}

// findSaved returns the parameters of a saved search.
func findSaved(ctx context.Context, server *admin, name string) (url.Values, error) {
	all, err := readSaved(ctx, server)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(n savedOne) bool { return n.Name == name })
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

// hitRow is a hit on a terminal.
type hitRow struct{ at, kind, id, what string }

// leastWhat is how much room, in columns, what a hit says must have beside its
// name; where there is less it stands on a line of its own.
const leastWhat, indent = 32, "    "

// printRows writes rows in columns, each no wider than a terminal; width 0: as
// wide as they are.
func printRows(out io.Writer, rows []hitRow, width int) {
	var names, starts terminal.Table // without the id of a hit, and with it
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
		case room >= leastWhat:
			fmt.Fprintln(out, start[i]+terminal.Fitted(r.what, room))
		default:
			lines := []string{name + r.id, r.what}
			if terminal.Columns(lines[0]) > width { // an id that is cut short is none
				lines = []string{strings.TrimRight(name, " "), r.id, r.what}
			}
			before := ""
			for _, line := range lines {
				if line != "" {
					fmt.Fprintln(out, before+terminal.Fitted(line, width-len(before)))
				}
				before = indent
			}
		}
	}
}

// row is a hit as a line of a table: when, what, and where the words were found
// or else what it says.
func (h *found) row(columns []string) hitRow {
	row := hitRow{kind: terminal.Printable(h.Kind), id: terminal.Printable(h.ID)}
	if h.Clock != 0 {
		row.at = h.Clock.Time().Local().Format(time.DateTime)
	}
	if len(h.Snippets) > 0 {
		s := h.Snippets[0]
		row.what = marked(s.Text, s.Marks)
		if s.Before {
			row.what = "…" + row.what
		}
		if s.After {
			row.what += "…"
		}
		row.what = terminal.Printable(s.Field) + ": " + row.what
	} else {
		var values map[string]json.RawMessage
		_ = json.Unmarshal(h.Body, &values) // what is no object shows nothing
		var parts []string
		for _, name := range columns {
			var text string
			if raw := values[name]; json.Unmarshal(raw, &text) != nil && !bytes.Equal(raw, []byte("null")) {
				text = string(raw)
			}
			if text != "" {
				parts = append(parts, short(terminal.Printable(text)))
			}
		}
		row.what = strings.Join(parts, "  ")
	}
	return row
}

// shortest is how long a value in a table is, in characters.
const shortest = 80

func short(text string) string {
	if r := []rune(text); len(r) > shortest {
		return string(r[:shortest]) + "…"
	}
	return text
}

// marked is a snippet with its words in bold.
func marked(text string, marks [][2]int) string {
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
