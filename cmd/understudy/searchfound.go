// Search results: the server's answer as a table, and the saved searches.

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

// searchHit is one hit in the JSON of the server's answer.
type searchHit query.SearchHit

// searchAnswer is the server's answer to a search. Each hit keeps its original bytes, which are printed if the user wants JSON.
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

// printNotes prints the server's remarks, the total, and the number of hits for each value.
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

// savedSearch is a saved search in the JSON of the server's answer.
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

// findSaved returns the parameters that repeat a saved search.
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

// listSaved prints all saved searches.
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
	table := terminal.Table{{"NAME", "OWNER", "SHARED", "QUERY"}}
	for _, n := range all {
		shared := "no"
		if n.Shared {
			shared = "yes"
		}
		table.Add(terminal.Printable(n.Name), terminal.Printable(n.Owner), shared, terminal.Printable(n.Query))
	}
	return table.Print(out)
}

// hitRow is a hit as a row of the table: its time, kind, id and text.
type hitRow struct{ at, kind, id, text string }

// minTextColumns is the minimum width, in columns of the terminal, for the text of a hit beside its id. If there is less
// room, the text is on a line of its own after indent.
const minTextColumns, textIndent = 32, "    "

// printRows prints rows in lines that are at most width columns wide. If width is 0, there is no limit.
func printRows(out io.Writer, rows []hitRow, width int) {
	var names, starts terminal.Table // two versions of the columns before the text: without the id and with it
	for _, r := range rows {
		names.Add(r.at, r.kind, "")
		starts.Add(r.at, r.kind, r.id, "")
	}
	padded, start := names.Lines(0), starts.Lines(0)
	for i, r := range rows {
		name, room := padded[i], width-terminal.Columns(start[i])
		switch {
		case width == 0:
			fmt.Fprintln(out, start[i]+r.text)
		case room >= minTextColumns:
			fmt.Fprintln(out, start[i]+terminal.Shorten(r.text, room))
		default:
			lines := []string{name + r.id, r.text}
			if terminal.Columns(lines[0]) > width { // the id gets a line of its own, because ids are never cut
				lines = []string{strings.TrimRight(name, " "), r.id, r.text}
			}
			before := ""
			for _, line := range lines {
				if line != "" {
					fmt.Fprintln(out, before+terminal.Shorten(line, width-len(before)))
				}
				before = textIndent
			}
		}
	}
}

// row returns a hit as a row of the table. Its text is the first snippet. If there is no snippet, the text has the
// values of columns.
func (h *searchHit) row(columns []string) hitRow {
	row := hitRow{kind: terminal.Printable(h.Kind), id: terminal.Printable(h.ID)}
	if h.Clock != 0 {
		row.at = h.Clock.Time().Local().Format(time.DateTime)
	}
	if len(h.Snippets) > 0 {
		s := h.Snippets[0]
		row.text = markWords(s.Text, s.Marks)
		if s.Before {
			row.text = "…" + row.text
		}
		if s.After {
			row.text += "…"
		}
		row.text = terminal.Printable(s.Field) + ": " + row.text
	} else {
		var values map[string]json.RawMessage
		_ = json.Unmarshal(h.Body, &values) // if the record is not an object, no values are shown
		var parts []string
		for _, name := range columns {
			var text string
			if raw := values[name]; json.Unmarshal(raw, &text) != nil && !bytes.Equal(raw, []byte("null")) {
				text = string(raw)
			}
			if text != "" {
				shown := []rune(terminal.Printable(text))
				if len(shown) > maxValue {
					shown = append(shown[:maxValue], '…')
				}
				parts = append(parts, string(shown))
			}
		}
		row.text = strings.Join(parts, "  ")
	}
	return row
}

// maxValue is the maximum length in characters of a value in the table.
const maxValue = 80

// markWords returns a snippet with the found words in bold. marks has the start and the end of each word, in bytes.
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
