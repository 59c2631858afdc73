// Columns: how each field of a kind is shown, worked out once.

package plan

import (
	"slices"
	"strings"

	"understudy/spec"
)

// Shape is how a value is drawn.
type Shape uint8

const (
	Plain Shape = iota
	Moment
	Phone
	Pill
	Number
	YesNo
	Code
	Prose
	address
	ErrorCode
)

func (k *Kind) planColumns() {
	all := make([]*Column, 0, len(k.Spec.Fields))
	k.ByField = map[string]*Column{}
	for _, f := range k.Spec.Fields {
		c := k.column(f)
		k.ByField[f.Name] = c
		if f.Type != spec.TypeMedia { // in no body
			all = append(all, c)
			if f.Type != spec.TypeMap {
				k.Every = append(k.Every, c)
			}
		}
	}
	for _, name := range k.Spec.Columns {
		if c := k.ByField[name]; c.Spec.Type != spec.TypeMedia {
			k.Shown = append(k.Shown, c)
		}
	}
	k.Shown = slices.DeleteFunc(k.Shown, func(c *Column) bool { // a unit stands beside its number
		return slices.ContainsFunc(k.Shown, func(of *Column) bool { return of.Unit == c.Spec.Name })
	})
	if len(k.Shown) == 0 {
		for _, c := range all[:min(8, len(all))] {
			if c.Spec.Type != spec.TypeMap {
				k.Shown = append(k.Shown, c)
			}
		}
	}
	k.Groups = k.group(all)
}

func (k *Kind) column(f *spec.Field) *Column {
	c := &Column{Spec: f, Unit: f.Unit, Words: TitleOf(f), Heading: UpperFirst(TitleOf(f)), IsID: slices.Contains(k.Spec.ID, f.Name)}
	for _, st := range slices.Concat(k.Spec.Final, k.Spec.Failed) {
		c.state = c.state || st.Field == f.Name && len(st.In) > 0
	}
	if u := k.Spec.Field(f.Name + "_unit"); u != nil && c.Unit == "" {
		c.Unit = u.Name
	}
	switch {
	case spec.IsTime(f.Type):
		c.Shape, c.CellClass = Moment, "when"
	case f.Type == spec.TypeBool:
		c.Shape, c.CellClass = YesNo, "flag"
	case f.Type == spec.TypeCode:
		c.Shape, c.CellClass = ErrorCode, "errcode"
	case f.Type == spec.TypeInt || f.Type == spec.TypeDecimal:
		c.Shape, c.CellClass, c.Digits = Number, "num", true
		if f.Show == spec.ShowSeconds {
			c.CellClass = "len"
		}
	case c.state:
		c.Shape, c.CellClass = Pill, "state"
	case f.Class == spec.ClassPhone:
		c.Shape, c.CellClass = Phone, "tel"
	case f.Class == spec.ClassBody:
		c.Shape, c.CellClass = Prose, "prose"
	case f.Class == spec.ClassURL:
		c.Shape, c.CellClass = address, "address"
	case f.Show == spec.ShowDirection:
		c.CellClass = "dir"
	case f.Type == spec.TypeSelect:
		c.CellClass = "word"
	case c.IsID || f.Link != "":
		c.Shape, c.CellClass = Code, "code"
	}
	return c
}

// group sorts the fields of a record under headings: what its table shows,
// its times, everything else, and each object by itself.
func (k *Kind) group(all []*Column) []Group {
	first := Group{Title: "Overview"}
	times, more := Group{Title: "Times"}, Group{Title: "More"}
	var objects []Group
	for _, c := range k.Shown {
		if !strings.Contains(c.Spec.Name, ".") && !c.IsID && c.Shape != Moment {
			first.Columns = append(first.Columns, c)
		}
	}
	for _, c := range all {
		parent, _, dotted := strings.Cut(c.Spec.Name, ".")
		i := slices.IndexFunc(objects, func(g Group) bool { return dotted && g.Columns[0].Spec.Name == parent })
		switch {
		case i >= 0:
			objects[i].Columns = append(objects[i].Columns, c)
		case c.Spec.Type == spec.TypeMap:
			objects = append(objects, Group{Title: UpperFirst(c.Words), Columns: []*Column{c}})
		case c.Shape == Moment:
			times.Columns = append(times.Columns, c)
		case !slices.Contains(first.Columns, c):
			more.Columns = append(more.Columns, c)
		}
	}
	groups := []Group{first, times, more}
	for _, g := range objects {
		g.Columns = slices.DeleteFunc(g.Columns, func(c *Column) bool { return c.Spec.Type == spec.TypeMap && len(g.Columns) > 1 })
		groups = append(groups, g)
	}
	return slices.DeleteFunc(groups, func(g Group) bool { return len(g.Columns) == 0 })
}

// EveryName are the names of all columns a table can show.
func (k *Kind) EveryName() []string {
	names := make([]string, len(k.Every))
	for i, c := range k.Every {
		names[i] = c.Spec.Name
	}
	return names
}

// FormOf says in words which of upstream's renderings a shape is.
func (k *Kind) FormOf(shape string) string {
	for _, l := range k.PlannedLists {
		if l.Spec.Shape == shape {
			return "as the list “" + l.TabTitle + "” shows it"
		}
	}
	return "as another address shows it"
}
