// Arrange: how a list is shown beside what it asks upstream for: its columns,
// its order, the words its records must have.

package viewer

import (
	"slices"
	"strings"

	"understudy"
	"understudy/internal/access"
)

// Own parameters of a list's arrangement.
const (
	ownColumns = understudy.OwnPrefix + "columns" // fields, in order, by commas
	ownSort    = understudy.OwnPrefix + "sort"    // a field; "-" before it: the largest first
	ownText    = understudy.OwnPrefix + "q"       // a condition in the words of the search
	ownCursor  = understudy.OwnPrefix + "cursor"  // where a searched list goes on
)

// mostColumns bounds how many columns an address names.
const mostColumns = 60

// arrangement is how a list is shown. The zero value is the kind's own way.
type arrangement struct {
	columns []*column // nil = those of the kind
	sort    *column   // nil = upstream's order
	down    bool      // the largest first
	text    string
	cursor  string
}

// searched reports whether upstream has no such list: it is found by searching
// the records that are held.
func (a arrangement) searched() bool { return a.sort != nil || a.text != "" }

// params are an arrangement in an address, its place in the list left out.
func (a arrangement) params() understudy.Query {
	var all understudy.Query
	if len(a.columns) > 0 {
		all = append(all, understudy.Param{Name: ownColumns, Value: columnNames(a.columns)})
	}
	if a.text != "" {
		all = append(all, understudy.Param{Name: ownText, Value: a.text})
	}
	if a.sort != nil {
		all = append(all, understudy.Param{Name: ownSort, Value: a.order()})
	}
	return all
}

// order is the value of the parameter for the order.
func (a arrangement) order() string {
	switch {
	case a.sort == nil:
		return ""
	case a.down:
		return "-" + a.sort.Name
	}
	return a.sort.Name
}

func columnNames(columns []*column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return strings.Join(names, ",")
}

// arrange reads one of a list's own parameters; taken is false when it is none
// of them.
func (q *visit) arrange(ask *question, p understudy.Param) (taken bool, err error) {
	a := &ask.arrangement
	switch p.Name {
	case ownColumns:
		more, err := q.kind.columnsNamed(p.Value)
		if err != nil {
			return true, err
		}
		before := len(a.columns)
		for _, c := range more {
			if !slices.Contains(a.columns, c) {
				a.columns = append(a.columns, c)
			}
		}
		ask.tidy = ask.tidy && before == 0 && p.Value != "" && columnNames(a.columns) == p.Value
	case ownSort:
		return true, q.arrangeOrder(ask, p.Value)
	case ownText:
		text := strings.TrimSpace(p.Value)
		ask.tidy = ask.tidy && text == p.Value && text != ""
		if a.text != "" && text != "" { // what a form adds narrows what was there
			text, ask.tidy = a.text+" "+text, false
		}
		if text != "" {
			a.text = text
		}
	case ownCursor:
		a.cursor = p.Value
		ask.tidy = ask.tidy && p.Value != ""
	default:
		return false, nil
	}
	return true, nil
}

// columnsNamed reads fields by commas, each once.
func (k *kindPlan) columnsNamed(text string) ([]*column, error) {
	var all []*column
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		c := k.byField[name]
		if c == nil || !slices.Contains(k.every, c) {
			return nil, unknownWord("column of "+k.Title, name, k.everyName(), nil)
		}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	if len(all) > mostColumns {
		return nil, badRequest("That are too many columns", "A list shows at most 60 of them.", nil)
	}
	return all, nil
}

func (k *kindPlan) everyName() []string {
	names := make([]string, len(k.every))
	for i, c := range k.every {
		names[i] = c.Name
	}
	return names
}

// arrangeOrder reads the order. A field the role does not fully see orders
// nothing: where a record stands would tell what it holds.
func (q *visit) arrangeOrder(ask *question, text string) error {
	name, down := strings.CutPrefix(text, "-")
	if name == "" {
		ask.tidy = false
		return nil
	}
	c := q.kind.byField[name]
	if c == nil || !slices.Contains(q.kind.every, c) {
		return unknownWord("column of "+q.kind.Title, name, q.kind.everyName(), nil)
	}
	if q.v.Gate.Level(q.caller, q.source.Name, q.kind.Name, c.Name) != access.See {
		return &problem{
			Title: "Your role does not allow this", kind: understudy.ErrForbidden,
			Hint: "It may not sort by " + c.Name + ", which it does not fully see." + q.remedy(),
		}
	}
	ask.tidy = ask.tidy && ask.sort == nil
	ask.sort, ask.down = c, down
	return nil
}

// chosen are the columns of a list: those that were chosen or else the kind's,
// less those the role does not show.
func (q *visit) chosen(ask *question) []*column {
	if len(ask.columns) == 0 {
		return q.columnsOf(q.kind)
	}
	return q.visible(q.kind, ask.columns)
}

// visible are those of some columns that the caller's role shows.
func (q *visit) visible(k *kindPlan, columns []*column) []*column {
	var shown []*column
	for _, c := range columns {
		if q.v.Gate.Level(q.caller, k.source.Name, k.Name, c.Name) != access.Hide {
			shown = append(shown, c)
		}
	}
	return shown
}
