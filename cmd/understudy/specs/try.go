// Try: two pages of each list in a spec are compared with the answers of the API.

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

// Trial says which spec to compare with the API, and how.
type Trial struct {
	Spec     string // the path of a spec file, or the name of a built-in spec
	Upstream string // the URL of the API; "" means the hosts in the spec
	As       Caller
	Vars     map[string]string // the values of path variables by name
	Rate     float64           // the maximum rate in requests per second
	Progress *terminal.Progress
	JSON     bool // whether the result is printed as JSON and not as a table
}

// tryTimeout is the maximum time of a request, including its retries.
const tryTimeout = 60 * time.Second

// trial is a Trial that is running.
type trial struct {
	options Trial
	spec    *spec.Spec
	client  *upstream.Client
	ids     map[string]string  // the id of one record of each list; the keys are the results of describePath
	pages   []*understudy.Page // the pages that were fetched of the current list
}

// Try fetches two pages and one record of each list, compares them with the spec, and prints a table. If lists differ
// from the spec, its error has the number of these lists.
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
	var lists []listOf
	for _, k := range t.spec.Kinds {
		for _, l := range k.Lists {
			lists = append(lists, listOf{k, l})
		}
	}
	// The records of lists with fewer path variables give the values of the variables of later lists.
	slices.SortStableFunc(lists, func(a, b listOf) int { return len(a.list.Template().Vars()) - len(b.list.Template().Vars()) })
	for i, one := range lists {
		o.Progress.Set(terminal.State{Done: int64(i), Total: int64(len(lists)), Unit: "lists"})
		r := t.tryList(ctx, one.kind, one.list)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		all.add(r)
	}
	o.Progress.End()
	if err := all.print(out, o.JSON); err != nil {
		return err
	}
	switch {
	case all.Wrong > 0:
		return fmt.Errorf("%d of %d lists differ from the spec", all.Wrong, all.Tried)
	case all.Refused > 0 && all.Tried == 0:
		return fmt.Errorf("the API refused all %d lists; see the statuses above, and check --upstream, --user and --secret", all.Refused)
	case all.Tried == 0:
		return errors.New("no list could be tried; add the path variables with --var NAME=VALUE")
	}
	return nil
}

// summary has the results of all lists, and the number of lists with each result.
type summary struct {
	Lists   []*result `json:"lists"`
	Tried   int       `json:"tried"`
	Wrong   int       `json:"wrong"`
	Refused int       `json:"refused"`
	Left    int       `json:"left_out"`
}

// add adds the result of a list.
func (s *summary) add(r *result) {
	switch {
	case r.isLeftOut:
		s.Left++
	case r.isRefused:
		s.Refused++
	default:
		s.Tried++
	}
	if len(r.faults) > 0 {
		s.Wrong++
	}
	r.setResult()
	s.Lists = append(s.Lists, r)
}

// print prints the results as JSON, or as a table. In the table, the path and the remark of each list are on a second line.
func (s *summary) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(s)
	}
	table := terminal.Table{{"KIND", "PAGES", "ROWS", "CLOCK", "RECORD", "RESULT"}}
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
	_, err := fmt.Fprintf(out, "%d lists tried, %d differ from the spec, %d refused, %d left out\n", s.Tried, s.Wrong, s.Refused, s.Left)
	return err
}

// readSpec reads a spec file, or a built-in spec.
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

// listOf is a list together with its kind.
type listOf struct {
	kind *spec.Kind
	list *spec.List
}

// result is what was found out about one list.
type result struct {
	Kind   string `json:"kind"`
	Path   string `json:"path"`
	Pages  string `json:"pages"`
	Rows   string `json:"rows"`
	Clock  string `json:"clock"`
	Record string `json:"record"`
	Result string `json:"result"` // the result for the list in one or two words
	Remark string `json:"remark,omitempty"`

	faults    []string
	isLeftOut bool // whether no request was sent, because the value of a path variable is not known
	isRefused bool // whether the API refused the request
}

// setResult sets the field Result. If the list differs from the spec, its remark becomes the list of differences.
func (r *result) setResult() {
	r.Result = "ok"
	switch {
	case len(r.faults) > 0:
		r.Result, r.Remark = "wrong", strings.Join(r.faults, "; ")
	case r.isLeftOut:
		r.Result = "left out"
	case r.isRefused:
		r.Result = "refused"
	}
	r.Remark = terminal.Printable(r.Remark)
}

// addFault notes a difference between the API and the spec.
func (r *result) addFault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// tryList fetches two pages of a list and one record, and compares them with the spec.
func (t *trial) tryList(ctx context.Context, k *spec.Kind, l *spec.List) *result {
	r := &result{Kind: k.Name, Path: l.Path, Pages: "-", Rows: "-", Clock: "-", Record: "-"}
	path, missing := t.fill(l.Template(), nil)
	if missing != "" {
		r.isLeftOut, r.Remark = true, fmt.Sprintf("{%s} is not known; add --var %s=VALUE", missing, missing)
		return r
	}
	query, missing := t.requiredQuery(l)
	if missing != "" {
		r.isLeftOut, r.Remark = true, fmt.Sprintf("it needs the parameter %s; add --var %s=VALUE", missing, missing)
		return r
	}
	t.pages = nil
	first, err := t.fetchPath(ctx, path, query)
	var refused statusError
	switch {
	case errors.As(err, &refused) && (refused < 300 || refused >= 400 && refused < 500):
		r.isRefused, r.Remark = true, "the API refuses it: "+understudy.PlainText(err)
		return r
	case err != nil:
		r.addFault("%s", err)
		return r
	}
	r.Pages, r.Rows = "1", strconv.Itoa(countRows(l, first))
	if len(first.Rows) > 0 {
		t.ids[describePath(l.Template().Segments())] = first.Rows[0].ID
	}
	if len(k.ID) == 0 {
		r.Remark = "stored as whole pages"
	}
	if id := first.ConflictingID(); id != "" {
		r.addFault("different rows have the id %s; check whether %s is the id", understudy.Clip(id), strings.Join(k.ID, " and "))
	}
	rows := first.Rows
	if second := t.fetchSecond(ctx, r, k, l, path, query, first); second != nil {
		r.Pages, r.Rows = "2", fmt.Sprintf("%d+%d", countRows(l, first), countRows(l, second))
		rows = slices.Concat(rows, second.Rows)
	}
	t.checkPlaces(r, l)
	if k.Clock != "" && len(rows) > 0 {
		r.Clock = checkClock(r, k, rows)
	}
	if len(first.Rows) > 0 && len(k.ID) > 0 {
		t.compareRecord(ctx, r, k, l, path, query, first)
	}
	checkDefaults(r, l, first)
	t.noteUnnamed(r, k, first)
	return r
}

// checkDefaults notes a fault if a filter has a default in the spec, but the list without the filter shows a row that
// the default would exclude.
func checkDefaults(r *result, l *spec.List, page *understudy.Page) {
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
				r.addFault("without %s the list has a row whose %s is %s, which contradicts the default %s; remove the default",
					f.Name, f.Field, understudy.Clip(value), f.Default)
				break
			}
		}
	}
}

// countRows returns the number of rows on a page. It works for kinds without an id, too.
func countRows(l *spec.List, p *understudy.Page) int {
	n, _ := l.CountRows(p)
	return n
}

// statusError is the error that an answer has an unexpected status.
type statusError int

func (e statusError) Error() string { return "status " + strconv.Itoa(int(e)) }

// fetchPath fetches the page at a path with a query.
func (t *trial) fetchPath(ctx context.Context, path, query string) (*understudy.Page, error) {
	target, err := t.spec.Resolve("try", path, query)
	if err != nil {
		return nil, err
	}
	return t.fetch(ctx, target)
}

// fetch fetches a page, with retries, and adds it to the pages of the current list. It returns an error if the answer
// is not a usable page.
func (t *trial) fetch(ctx context.Context, target *spec.Target) (*understudy.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	page, err := t.client.Fetch(ctx, request.Fetch{Target: target, RetryWindow: tryTimeout / 2})
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
	case strings.Contains(page.NotStored, "does not lead to a list"):
		return nil, errors.New(page.NotStored + "; add its path to the lists of the kind, too")
	case page.NotStored != "":
		return nil, errors.New(page.NotStored)
	}
	t.pages = append(t.pages, page)
	return page, nil
}

// checkClock returns, in words, how many rows have a time in the clock field and whether they are sorted by it.
func checkClock(r *result, k *spec.Kind, rows []understudy.Row) string {
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
		r.addFault("no row has a time in %s", k.Clock)
	case down:
		said += ", newest first"
	case up:
		said += ", oldest first"
	default:
		said += ", in no order"
	}
	return said
}

// noteUnnamed adds a remark about fields of a row that are not in the spec. Roles cannot see such fields.
func (t *trial) noteUnnamed(r *result, k *spec.Kind, first *understudy.Page) {
	if len(first.Rows) == 0 {
		return
	}
	unnamed := slices.Sorted(maps.Keys(readMembers(first, 0)))
	unnamed = slices.DeleteFunc(unnamed, func(name string) bool { return k.Field(name) != nil })
	if len(unnamed) > 0 && r.Remark == "" {
		r.Remark = "the spec does not name " + joinNames(unnamed)
	}
}

// joinNames returns the first three names, and how many more there are.
func joinNames(names []string) string {
	const shown = 3
	for i, name := range names {
		names[i] = understudy.Clip(name)
	}
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return strings.Join(names, ", ")
}
