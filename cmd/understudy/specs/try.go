// Try: two pages of each list of a spec, as the API gives them now.

package specs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/cmd/understudy/terminal"
	"understudy/internal/smallfile"
	"understudy/kit/jsonspan"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// Trial is what is tried.
type Trial struct {
	Spec     string // a spec file, or the name of a built-in one
	Upstream string // the API's URL; "" = the spec's hosts
	As       Caller
	Vars     map[string]string // values of path variables
	Rate     float64           // requests a second
	Progress *terminal.Progress
	JSON     bool // the result is JSON instead of a table
}

// tryTime bounds a request with its tries.
const tryTime = 60 * time.Second

// trial is one run.
type trial struct {
	o      Trial
	spec   *spec.Spec
	client *upstream.Client
	seen   map[string]string  // the id of a record by the path of a list that has it, see listPath
	pages  []*understudy.Page // of the list that is tried
}

// Try walks two pages of each list of a spec, compares them and one record with what the
// spec says, and writes a table. The error says how many lists are otherwise.
func Try(ctx context.Context, o Trial, out io.Writer) error {
	sp, err := readSpec(o.Spec)
	if err != nil {
		return err
	}
	client, err := upstream.New(upstream.Options{
		Source: &spec.Source{Name: "try", Spec: sp, User: o.As.User}, Base: o.Upstream, Secret: o.As.Secret, Rate: o.Rate,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	t := &trial{o, sp, client, map[string]string{}, nil}
	var all summary
	lists := t.order()
	for i, one := range lists {
		o.Progress.Set(terminal.State{Done: int64(i), Total: int64(len(lists)), Unit: "lists"})
		r := t.list(ctx, one.kind, one.list)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		all.add(one, r)
	}
	o.Progress.End()
	if err := all.print(out, o.JSON); err != nil {
		return err
	}
	switch {
	case all.Wrong > 0:
		return fmt.Errorf("%d of %d lists are not as the spec says", all.Wrong, all.Tried)
	case all.Refused > 0 && all.Tried == 0:
		return fmt.Errorf("the API refused each of %d lists: see the statuses above; look at --upstream, --user and --secret", all.Refused)
	case all.Tried == 0:
		return errors.New("no list could be tried: give the path variables with --var NAME=VALUE")
	}
	return nil
}

// summary is the result of all lists.
type summary struct {
	Lists   []listResult `json:"lists"`
	Tried   int          `json:"tried"`
	Wrong   int          `json:"wrong"`
	Refused int          `json:"refused"`
	Left    int          `json:"left_out"`
}

// listResult is the result of one list, in words.
type listResult struct {
	Kind   string `json:"kind"`
	Path   string `json:"path"`
	Pages  string `json:"pages"`
	Rows   string `json:"rows"`
	Clock  string `json:"clock"`
	Record string `json:"record"`
	Result string `json:"result"`
	Remark string `json:"remark,omitempty"`
}

// add adds the result of a list.
func (s *summary) add(one listOf, r *result) {
	switch {
	case r.left:
		s.Left++
	case r.refused:
		s.Refused++
	default:
		s.Tried++
	}
	if len(r.wrong) > 0 {
		s.Wrong++
	}
	word, remark := r.outcome()
	s.Lists = append(s.Lists, listResult{one.kind.Name, one.list.Path, r.pages, r.rows, r.clock, r.record, word, remark})
}

// print writes a table with the path of each list below its line, or JSON.
func (s *summary) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(s)
	}
	var table terminal.Table
	table.Add("KIND", "PAGES", "ROWS", "CLOCK", "RECORD", "RESULT")
	for _, l := range s.Lists {
		table.Add(l.Kind, l.Pages, l.Rows, l.Clock, l.Record, l.Result)
	}
	for i, line := range table.Lines(terminal.Width(out)) {
		fmt.Fprintln(out, line)
		switch {
		case i == 0:
		case s.Lists[i-1].Remark == "":
			fmt.Fprintln(out, "  "+s.Lists[i-1].Path)
		default:
			fmt.Fprintf(out, "  %s: %s\n", s.Lists[i-1].Path, s.Lists[i-1].Remark)
		}
	}
	_, err := fmt.Fprintf(out, "%d lists tried, %d not as the spec says, %d refused, %d left out\n", s.Tried, s.Wrong, s.Refused, s.Left)
	return err
}

// readSpec reads a built-in spec, or a file.
func readSpec(name string) (*spec.Spec, error) {
	if ext := filepath.Ext(name); ext != ".yaml" && ext != ".yml" {
		return upstream.ReadBuiltIn(name)
	}
	data, err := smallfile.Read(name, upstream.MaxSpec)
	if err != nil {
		return nil, err
	}
	sp, err := upstream.ReadSpec(name, data)
	if err != nil {
		return nil, errors.New(understudy.PlainText(err))
	}
	return sp, nil
}

type listOf struct {
	kind *spec.Kind
	list *spec.List
}

// order are the lists, those with fewer path variables first: their records fill the
// variables of the others.
func (t *trial) order() (all []listOf) {
	for _, k := range t.spec.Kinds {
		for _, l := range k.Lists {
			all = append(all, listOf{k, l})
		}
	}
	slices.SortStableFunc(all, func(a, b listOf) int { return len(a.list.Template().Vars()) - len(b.list.Template().Vars()) })
	return all
}

// result is a line of the table.
type result struct {
	pages, rows, clock, record string
	wrong                      []string
	left                       bool // it was not asked for
	refused                    bool // the API does not give it to this caller
	note                       string
}

// outcome returns how a list is, in one or two words, and what there is to say of it behind its path.
func (r *result) outcome() (word, remark string) {
	word, remark = "ok", r.note
	switch {
	case len(r.wrong) > 0:
		word, remark = "wrong", strings.Join(r.wrong, "; ")
	case r.left:
		word = "left out"
	case r.refused:
		word = "refused"
	}
	return word, terminal.Printable(remark)
}

func (r *result) bad(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// list tries one list.
func (t *trial) list(ctx context.Context, k *spec.Kind, l *spec.List) *result {
	r := &result{pages: "-", rows: "-", clock: "-", record: "-"}
	path, missing := t.fill(l.Template(), nil)
	if missing != "" {
		r.left, r.note = true, fmt.Sprintf("{%s} is not known; give --var %s=VALUE", missing, missing)
		return r
	}
	query, missing := t.demanded(l)
	if missing != "" {
		r.left, r.note = true, fmt.Sprintf("it wants the parameter %s; give --var %s=VALUE", missing, missing)
		return r
	}
	t.pages = nil
	first, err := t.page(ctx, path, query)
	var refused statusError
	switch {
	case errors.As(err, &refused) && (refused < 300 || refused >= 400 && refused < 500):
		r.refused, r.note = true, "the API does not give it: "+understudy.PlainText(err)
		return r
	case err != nil:
		r.bad("%s", err)
		return r
	}
	r.pages, r.rows = "1", strconv.Itoa(countRows(l, first))
	if len(first.Rows) > 0 {
		t.seen[listPath(l.Template().Segments())] = first.Rows[0].ID
	}
	if len(k.ID) == 0 {
		r.note = "kept as whole pages"
	}
	if id := first.ConflictingID(); id != "" {
		r.bad("several rows have the id %s, and differ: check whether %s is the id", understudy.Clip(id), strings.Join(k.ID, " and "))
	}
	rows := first.Rows
	if second := t.second(ctx, r, k, l, path, query, first); second != nil {
		r.pages, r.rows = "2", fmt.Sprintf("%d+%d", countRows(l, first), countRows(l, second))
		rows = slices.Concat(rows, second.Rows)
	}
	t.lacking(r, l)
	if k.Clock != "" && len(rows) > 0 {
		r.clock = clockOf(r, k, rows)
	}
	if len(first.Rows) > 0 && len(k.ID) > 0 {
		t.instance(ctx, r, k, l, path, query, first)
	}
	defaults(r, l, first)
	t.names(r, k, first)
	return r
}

// defaults says which filter's default a row of a list without the filter contradicts.
func defaults(r *result, l *spec.List, page *understudy.Page) {
	for _, f := range l.Filters {
		if f.Default == "" || f.Op != "is" || f.Field == "" {
			continue
		}
		for _, row := range page.Rows {
			v, _ := jsonspan.Find(page.Body, jsonspan.Value{Kind: jsonspan.Object, Start: row.Start, End: row.End}, f.Field)
			if v.Kind != jsonspan.String {
				continue
			}
			value := jsonspan.Text(page.Body, v)
			if but := f.ExcludedValue(); but == "" && !strings.EqualFold(value, f.Default) || but != "" && value == but {
				r.bad("without %s the list has a row whose %s is %s, against the default %s: take the default out",
					f.Name, f.Field, understudy.Clip(value), f.Default)
				break
			}
		}
	}
}

// countRows returns how many rows a page has, also one of a kind without an id.
func countRows(l *spec.List, p *understudy.Page) int {
	n, _ := l.CountRows(p)
	return n
}

// statusError is an answer's status that is none of a page.
type statusError int

func (e statusError) Error() string { return "status " + strconv.Itoa(int(e)) }

// page asks for one page.
func (t *trial) page(ctx context.Context, path, query string) (*understudy.Page, error) {
	target, err := t.spec.Resolve("try", path, query)
	if err != nil {
		return nil, err
	}
	return t.fetch(ctx, target)
}

func (t *trial) fetch(ctx context.Context, target *spec.Target) (*understudy.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	page, err := t.client.Fetch(ctx, request.Fetch{Target: target, RetryWindow: tryTime / 2})
	var up *understudy.UpstreamError
	switch {
	case errors.As(err, &up) && up.Page != nil:
		return nil, statusError(up.Page.Status)
	case up != nil && up.Why == understudy.FailCredential:
		return nil, statusError(up.Status)
	case err != nil:
		return nil, errors.New(understudy.Clip(understudy.PlainText(err)))
	case page.Status != 200:
		return nil, statusError(page.Status)
	case strings.Contains(page.NotStored, "leads to no list"):
		return nil, errors.New(page.NotStored + ": name its path among the lists of the kind, too")
	case page.NotStored != "":
		return nil, errors.New(page.NotStored)
	}
	t.pages = append(t.pages, page)
	return page, nil
}

// clockOf says of how many rows the clock is a time, and how they are ordered by it.
func clockOf(r *result, k *spec.Kind, rows []understudy.Row) string {
	timed, up, down := 0, true, true
	for i, row := range rows {
		if row.Clock != 0 {
			timed++
		}
		if i > 0 && row.Clock != rows[i-1].Clock {
			up, down = up && row.Clock > rows[i-1].Clock, down && row.Clock < rows[i-1].Clock
		}
	}
	said := fmt.Sprintf("%d of %d", timed, len(rows))
	switch {
	case timed == 0:
		r.bad("%s is a time in no row", k.Clock)
	case down:
		said += ", newest first"
	case up:
		said += ", oldest first"
	default:
		said += ", in no order"
	}
	return said
}

// names notes the members of a row that the spec does not name: roles do not see them.
func (t *trial) names(r *result, k *spec.Kind, first *understudy.Page) {
	if len(first.Rows) == 0 {
		return
	}
	unnamed := slices.Sorted(maps.Keys(members(first, 0)))
	unnamed = slices.DeleteFunc(unnamed, func(name string) bool { return k.Field(name) != nil })
	if len(unnamed) > 0 && r.note == "" {
		r.note = "the spec does not name " + few(unnamed)
	}
}

// few are the first of some names.
func few(names []string) string {
	const shown = 3
	for i, name := range names {
		names[i] = understudy.Clip(name)
	}
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return strings.Join(names, ", ")
}
