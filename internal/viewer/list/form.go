// The filter form of a list: its inputs, and a label for each filter in use.

package list

import (
	"cmp"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// form is the filter form of a list. The names of its inputs are upstream's parameters.
type form struct {
	Action    string
	Hidden    []understudy.Param
	Inputs    []input
	Chips     []chip
	Zone      string // the name of the time zone that the inputs for times use
	Clear     string
	HasLookup bool        // whether a phone number in the search box is looked up
	Ranges    []page.Link // links to the same list, but only with the records of the last hour or days
}

// input is one input with its label.
type input struct {
	ID, Name, Label string
	Type            string // the type attribute of the input element, or "select" for a menu
	Value           string
	Step            template.HTMLAttr // the attribute step="1" if the value has seconds; else empty
	Required        bool
	Options         []page.Option
	Hint            string
}

// chip is a label for a filter in use, with the address that removes the filter.
type chip struct{ Label, Text, Remove string }

// makeForm returns the filter form of a list.
func makeForm(q *page.Exchange, asked *listQuery) form {
	ask, paging := new(listQuery), asked.list.PagingStyle
	*ask = *asked
	ask.arrangement.cursor = ""
	filters := ask.filters()
	f := form{Action: q.Kind.Href, Zone: q.Clock.Zone.String()}
	if q.Kind.FindList("", append(slices.Clone(ask.vars), filters...)) != ask.list {
		f.Hidden = append(f.Hidden, understudy.Param{Name: plan.OwnList, Value: ask.list.Slug})
	}
	f.Hidden = append(f.Hidden, plan.OwnVars(ask.vars)...)
	f.Hidden = append(f.Hidden, ask.arrangement.params().Remove(func(p understudy.Param) bool { return p.Name == paramText })...)
	f.Hidden = append(f.Hidden, ask.asOf.Param()...)
	fillFormText(q, ask, &f)
	if f.HasLookup = q.Rights.CanLookUp(); f.HasLookup {
		f.Hidden = append(f.Hidden, understudy.Param{Name: lookupListField, Value: f.Action})
		f.Action = lookupPath
	}
	for i, name := range ask.list.Needs {
		f.Inputs = append(f.Inputs, ask.needInput(i, name))
	}
	for i, flt := range ask.list.Spec.Filters {
		value, set := filters.Get(flt.Name)
		if !set && !q.Rights.CanFilter(ask.list, i) {
			continue
		}
		in := makeInput(q, flt, value)
		in.ID = "f" + strconv.Itoa(i)
		f.Inputs = append(f.Inputs, in)
		if set {
			rest := filters.Remove(func(p understudy.Param) bool { return p.Name == flt.Name })
			f.Chips = append(f.Chips, chip{in.Label, formatFilterValue(q, flt, in, value), ask.address("", rest, nil)})
		}
	}
	if paging.Size != "" && paging.Default > 0 {
		size, _ := filters.Get(paging.Size)
		f.Inputs = append(f.Inputs, sizeInput(paging, size))
	}
	f.Ranges = makeRanges(q, ask, filters)
	if len(f.Chips) > 0 {
		rest := filters.Remove(func(p understudy.Param) bool { return p.Name != paging.Size })
		plain := *ask
		plain.arrangement = arrangement{columns: ask.arrangement.columns}
		f.Clear = plain.address("", rest, nil)
	}
	return f
}

// lastRanges are the ranges of time that the form offers as links. since is in the form that page.ParseRelative parses.
var lastRanges = []struct{ since, text string }{{"-1h", "Last hour"}, {"today", "Today"}, {"-7d", "7 days"}, {"-30d", "30 days"}}

// makeRanges returns links that show only the records since each moment of lastRanges. It returns none if upstream
// has no such filter.
func makeRanges(q *page.Exchange, ask *listQuery, filters understudy.Query) (all []page.Link) {
	i := slices.IndexFunc(ask.list.Spec.Filters, func(f *spec.Filter) bool {
		return f.Op == "since" && f.Field == q.Kind.Spec.Clock && spec.IsTimeType(f.Type)
	})
	if q.Kind.Spec.Clock == "" || i < 0 || !q.Rights.CanFilter(ask.list, i) || !q.Clock.AsOf.At.IsZero() {
		return nil
	}
	since := ask.list.Spec.Filters[i]
	rest := filters.Remove(func(p understudy.Param) bool {
		f := ask.list.Spec.Filter(p.Name)
		return f != nil && f.Field == since.Field
	})
	for _, r := range lastRanges {
		if since.Type != spec.TypeDate || r.since != "-1h" {
			query := append(slices.Clone(rest), understudy.Param{Name: since.Name, Value: r.since})
			all = append(all, page.Link{Href: ask.address("", query, nil), Text: r.text,
				Current: r.since == ask.since && len(filters) == len(rest)+1})
		}
	}
	return all
}

// fillFormText adds the search box, which takes conditions that are no filters of upstream, and chips for the
// conditions in use.
func fillFormText(q *page.Exchange, ask *listQuery, f *form) {
	if q.V.Options.Search == nil || !q.Kind.HasRecords() || !q.Clock.AsOf.At.IsZero() {
		return
	}
	f.Inputs = append(f.Inputs, input{ID: "text", Name: paramText, Label: "Words or conditions", Type: "search", Value: ask.arrangement.text,
		Hint: "late duration>60"})
	less := func(change func(a *arrangement)) string {
		at := *ask
		change(&at.arrangement)
		return at.address("", ask.filters(), nil)
	}
	if ask.arrangement.text != "" {
		f.Chips = append(f.Chips, chip{"Has", ask.arrangement.text, less(func(a *arrangement) { a.text = "" })})
	}
	for i, n := range ask.arrangement.narrow {
		label, text := showCondition(q, n, q.Kind)
		f.Chips = append(f.Chips, chip{label, text, less(func(a *arrangement) { a.narrow = slices.Delete(slices.Clone(a.narrow), i, i+1) })})
	}
	if ask.arrangement.sort != nil {
		order := ask.arrangement.sort.Words + ", smallest first"
		if ask.arrangement.descending {
			order = ask.arrangement.sort.Words + ", largest first"
		}
		f.Chips = append(f.Chips, chip{"Sorted by", order, less(func(a *arrangement) { a.sort = nil })})
	}
}

// needInput returns an input for a path variable, such as the id of the list's parent record.
func (ask *listQuery) needInput(i int, name string) input {
	value, _ := ask.vars.Get(name)
	in := input{ID: "n" + strconv.Itoa(i), Name: name, Label: plan.UpperFirst(plan.Spell(spec.SnakeCase(name))),
		Type: "text", Value: value,
		Required: true}
	if of := ask.list.Parent; of.Kind != nil && len(of.Kind.Spec.ID) == 1 {
		in.Label = plan.UpperFirst(of.Kind.Spec.Singular)
		if len(of.Kind.Spec.Prefixes) > 0 {
			in.Hint = of.Kind.Spec.Prefixes[0] + "…"
		}
	}
	return in
}

// makeInput returns the input of a filter; its type depends on the type of the filter.
func makeInput(q *page.Exchange, f *spec.Filter, value string) input {
	in := input{Name: f.Name, Label: f.Title, Type: "text", Value: value}
	field := q.Kind.Spec.Field(f.Field)
	if in.Label == "" {
		in.Label = f.Name
		if field != nil {
			in.Label = plan.TitleOf(field)
		}
	}
	in.Label = plan.UpperFirst(in.Label)
	switch {
	case len(f.Values) > 0:
		in.Type, in.Options = "select", choices(f.Values, f.Values, value)
	case f.Type == spec.TypeBool:
		in.Type, in.Options = "select", choices([]string{"true", "false"}, []string{"yes", "no"}, value)
	case spec.IsTimeType(f.Type):
		fillDateInput(q, f, &in)
	case f.Type == spec.TypeInt:
		in.Type = "number"
	case f.Op == "digits":
		in.Hint = "digits it contains"
	case field != nil && field.Class == spec.ClassPhone:
		in.Type, in.Hint = "tel", "+…"
	}
	return in
}

// choices returns the options of a menu: "any", then the values. If the chosen value is not among the values, it is added.
func choices(values, texts []string, chosen string) []page.Option {
	all := []page.Option{{Value: "", Text: "any", Selected: chosen == ""}}
	for i, v := range values {
		all = append(all, page.Option{Value: v, Text: texts[i], Selected: v == chosen})
	}
	if chosen != "" && !slices.Contains(values, chosen) {
		all = append(all, page.Option{Value: chosen, Text: chosen, Selected: true})
	}
	return all
}

// fillDateInput sets the input to a time in the reader's zone, or to a date as it is. Any other text gets a text
// input, so that submitting the form does not lose the filter.
func fillDateInput(q *page.Exchange, f *spec.Filter, in *input) {
	day := f.Op == "day" || f.Type == spec.TypeDate
	in.Type = "datetime-local"
	if day {
		in.Type = "date"
	}
	if in.Value == "" {
		return
	}
	t, dateOnly, ok := page.ParseDate(f.Type, in.Value)
	switch {
	case !ok || day && !dateOnly:
		in.Type = "text"
	case day:
		in.Value = t.Format(time.DateOnly)
	default:
		l := t.In(q.Clock.Zone)
		in.Value = l.Format("2006-01-02T15:04")
		if l.Second() != 0 {
			in.Value, in.Step = l.Format("2006-01-02T15:04:05"), `step="1"`
		}
	}
}

// formatFilterValue returns the value of a filter in words.
func formatFilterValue(q *page.Exchange, f *spec.Filter, in input, value string) string {
	for _, o := range in.Options {
		if o.Selected {
			return o.Text
		}
	}
	if spec.IsTimeType(f.Type) {
		if t, dateOnly, ok := page.ParseDate(f.Type, value); ok && dateOnly {
			return t.Format("2 Jan 2006") + " (UTC)"
		} else if ok {
			l := t.In(q.Clock.Zone)
			if l.Second() != 0 {
				return l.Format("2 Jan 2006 15:04:05")
			}
			return l.Format("2 Jan 2006 15:04")
		}
	}
	return q.V.FormatValue(f.Field, value, q.Kind)
}

// sizeInput returns a menu of the page sizes that upstream accepts.
func sizeInput(p *spec.Paging, asked string) input {
	asked = cmp.Or(asked, strconv.Itoa(p.Default))
	all := []int{20, 50, 100, 200, 500, 1000, p.Default}
	if n, err := strconv.Atoi(asked); err == nil && n > 0 {
		all = append(all, n)
	}
	slices.Sort(all)
	in := input{ID: "size", Name: p.Size, Label: "Rows a page", Type: "select"}
	for _, n := range slices.Compact(all) {
		if p.Max == 0 || n <= p.Max {
			text := strconv.Itoa(n)
			in.Options = append(in.Options, page.Option{Value: text, Text: text, Selected: text == asked})
		}
	}
	return in
}

// momentForm is the form that shows the list as it was at an earlier moment. It keeps the other parameters of the address.
type momentForm struct {
	Action string
	Hidden understudy.Query
	Input  input
	Zone   string
	Now    string // the address of the list with current data; empty if the list shows them already
}

// momentForm returns the form for an earlier moment. It returns nil if the versions of the kind's records are not stored.
func (lv listing) momentForm() *momentForm {
	if !lv.q.Kind.HasRecords() {
		return nil
	}
	at := *lv.ask
	// a search shows only current data, so the address keeps the columns but no conditions
	at.asOf, at.arrangement = page.AsOf{}, arrangement{columns: lv.ask.arrangement.columns}
	f := &momentForm{Zone: lv.q.Clock.Zone.String(), Input: lv.momentInput()}
	now := at.address("", lv.ask.filters(), nil)
	path, raw, _ := strings.Cut(now, "?")
	f.Action = path
	if params, err := understudy.ParseQuery(raw); err == nil {
		f.Hidden = params
	}
	if !lv.q.Clock.AsOf.At.IsZero() {
		f.Now = now
	}
	return f
}

func (lv listing) momentInput() input {
	in := input{ID: "asof", Name: understudy.OwnAsOf, Label: "As it was known on", Type: "datetime-local", Required: true}
	if !lv.q.Clock.AsOf.At.IsZero() {
		l := lv.q.Clock.AsOf.At.In(lv.q.Clock.Zone)
		in.Value, in.Step = l.Format("2006-01-02T15:04:05"), `step="1"`
		if l.Nanosecond() != 0 {
			in.Value, in.Step = l.Format("2006-01-02T15:04:05.000"), `step="0.001"`
		}
	}
	return in
}
