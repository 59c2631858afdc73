// Search found: what the server said, as a table, and the searches that were saved.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"text/tabwriter"

	"understudy"
	"understudy/internal/query"
)

// found is a hit as the server says it.
type found query.SearchHit

// findings is an answer of the server; a hit stays as it was sent.
type findings struct {
	query.SearchResult
	Hits    []json.RawMessage   `json:"hits"`
	Columns map[string][]string `json:"columns"`
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
		fmt.Fprintln(w, "understudy:", printable(note))
	}
	if a.Total != nil {
		fmt.Fprintf(w, "%s found\n", countText(*a.Total))
	}
	for _, f := range a.Facets {
		fmt.Fprintf(w, "%s:\n", printable(f.Name))
		for _, v := range f.Values {
			fmt.Fprintf(w, "  %-30s %s\n", printable(v.Term), countText(v.Count))
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

func (s searching) savedAll(ctx context.Context) (all []savedOne, err error) {
	var a struct {
		Saved []savedOne `json:"saved"`
	}
	err = s.ask(ctx, http.MethodGet, "/-/search/saved", nil, &a)
	return a.Saved, err
}

// saved are the parameters of a saved search.
func (s searching) saved(ctx context.Context, name string) (url.Values, error) {
	all, err := s.savedAll(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(n savedOne) bool { return n.Name == name })
	if i < 0 {
		return nil, usageError{fmt.Errorf("there is no saved search %q; understudy search --saved lists them", understudy.Clip(name))}
	}
	n := all[i]
	values := url.Values{"q": {n.Query}}
	for name, value := range map[string]string{"source": n.Source, "sort": n.Sort} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if len(n.Kinds) > 0 {
		values["kind"] = n.Kinds
	}
	return values, nil
}

// list prints the saved searches.
func (s searching) list(ctx context.Context, out io.Writer) error {
	all, err := s.savedAll(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "no searches are saved; understudy search --save NAME QUERY keeps one")
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tOWNER\tSHARED\tQUERY")
	for _, n := range all {
		shared := "no"
		if n.Shared {
			shared = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", printable(n.Name), printable(n.Owner), shared, printable(n.Query))
	}
	return t.Flush()
}
