// Columns: how the viewer shows each field of a kind. They are computed once, at the start.

package plan

import (
	"slices"
	"strings"

	"understudy/spec"
)

// Shape is the form in which a value is drawn, such as a date or a number.
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

// planColumns computes the columns of a kind, and the groups of fields on a record's page.
func (k *Kind) planColumns() {
	all := make([]*Column, 0, len(k.Spec.Fields))
	k.ByField = map[string]*Column{}
	for _, f := range k.Spec.Fields {
		c := k.newColumn(f)
		k.ByField[f.Name] = c
		if f.Type != spec.TypeMedia { // a field of type media has no value in the record
			all = append(all, c)
			if f.Type != spec.TypeMap {
				k.AllColumns = append(k.AllColumns, c)
			}
		}
	}
	for _, name := range k.Spec.Columns {
		if c := k.ByField[name]; c.Spec.Type != spec.TypeMedia {
			k.DefaultColumns = append(k.DefaultColumns, c)
		}
	}
	// a field with the unit of a number is shown beside that number
	k.DefaultColumns = slices.DeleteFunc(k.DefaultColumns, func(c *Column) bool {
		return slices.ContainsFunc(k.DefaultColumns, func(of *Column) bool { return of.Unit == c.Spec.Name })
	})
	if len(k.DefaultColumns) == 0 {
		for _, c := range all[:min(8, len(all))] {
			if c.Spec.Type != spec.TypeMap {
				k.DefaultColumns = append(k.DefaultColumns, c)
			}
		}
	}
	k.Groups = k.group(all)
}

// newColumn returns the column of a field. Its shape depends on the type and the class of the field.
func (k *Kind) newColumn(f *spec.Field) *Column {
	c := &Column{Spec: f, Unit: f.Unit, Words: TitleOf(f), Heading: UpperFirst(TitleOf(f)), IsID: slices.Contains(k.Spec.ID, f.Name)}
	for _, st := range slices.Concat(k.Spec.Final, k.Spec.Failed) {
		c.isState = c.isState || st.Field == f.Name && len(st.In) > 0
	}
	if u := k.Spec.Field(f.Name + "_unit"); u != nil && c.Unit == "" {
		c.Unit = u.Name
	}
	switch {
	case spec.IsTimeType(f.Type):
		c.Shape, c.CellClass = Moment, "when"
	case f.Type == spec.TypeBool:
		c.Shape, c.CellClass = YesNo, "flag"
	case f.Type == spec.TypeCode:
		c.Shape, c.CellClass = ErrorCode, "errcode"
	case f.Type == spec.TypeInt || f.Type == spec.TypeDecimal:
		c.Shape, c.CellClass, c.IsNumeric = Number, "num", true
		if f.Show == spec.ShowSeconds {
			c.CellClass = "len"
		}
	case c.isState:
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

// group divides the fields of a record into groups: the columns of the table, the times, the fields of each object,
// and all others.
func (k *Kind) group(all []*Column) []Group {
	first := Group{Title: "Overview"}
	times, more := Group{Title: "Times"}, Group{Title: "More"}
	var objects []Group
	for _, c := range k.DefaultColumns {
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

// ColumnNames returns the names of all fields that a table can show as columns.
func (k *Kind) ColumnNames() []string {
	names := make([]string, len(k.AllColumns))
	for i, c := range k.AllColumns {
		names[i] = c.Spec.Name
	}
	return names
}

// ShapeText says in words in which of upstream's answers records have a shape.
func (k *Kind) ShapeText(shape string) string {
	for _, l := range k.PlannedLists {
		if l.Spec.Shape == shape {
			return "as the list “" + l.TabTitle + "” shows it"
		}
	}
	return "as another address shows it"
}
