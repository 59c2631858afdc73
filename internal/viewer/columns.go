// Columns: how each field of a kind is shown, worked out once.

package viewer

import (
	"slices"
	"strings"

	"understudy"
)

// Shape is how a value is drawn.
type Shape uint8

const (
	plain Shape = iota
	moment
	phone
	pill
	number
	YesNo
	code
	prose
	address
	ErrorCode
)

func (k *Kind) planColumns() {
	all := make([]*Column, 0, len(k.Fields))
	k.byField = map[string]*Column{}
	for _, f := range k.Fields {
		c := k.column(f)
		k.byField[f.Name] = c
		if f.Type != understudy.TypeMedia { // in no body
			all = append(all, c)
			if f.Type != understudy.TypeMap {
				k.every = append(k.every, c)
			}
		}
	}
	for _, name := range k.Columns {
		if c := k.byField[name]; c.Type != understudy.TypeMedia {
			k.Shown = append(k.Shown, c)
		}
	}
	k.Shown = slices.DeleteFunc(k.Shown, func(c *Column) bool { // a unit stands beside its number
		return slices.ContainsFunc(k.Shown, func(of *Column) bool { return of.unit == c.Name })
	})
	if len(k.Shown) == 0 {
		for _, c := range all[:min(8, len(all))] {
			if c.Type != understudy.TypeMap {
				k.Shown = append(k.Shown, c)
			}
		}
	}
	k.Groups = k.group(all)
}

func (k *Kind) column(f *understudy.Field) *Column {
	c := &Column{Field: f, Words: titleOf(f), heading: upperFirst(titleOf(f)), isID: slices.Contains(k.ID, f.Name)}
	for _, st := range slices.Concat(k.Final, k.Failed) {
		c.state = c.state || st.Field == f.Name && len(st.In) > 0
	}
	if u := k.Field(f.Name + "_unit"); u != nil {
		c.unit = u.Name
	}
	switch {
	case isDate(f.Type):
		c.shape, c.CellClass = moment, "when"
	case f.Type == understudy.TypeBool:
		c.shape, c.CellClass = YesNo, "flag"
	case f.Type == understudy.TypeCode:
		c.shape, c.CellClass = ErrorCode, "errcode"
	case f.Type == understudy.TypeInt || f.Type == understudy.TypeDecimal:
		c.shape, c.CellClass, c.digits = number, "num", true
	case c.state:
		c.shape, c.CellClass = pill, "state"
	case f.Class == understudy.ClassPhone:
		c.shape, c.CellClass = phone, "tel"
	case f.Class == understudy.ClassBody:
		c.shape, c.CellClass = prose, "prose"
	case f.Class == understudy.ClassURL:
		c.shape, c.CellClass = address, "address"
	case f.Type == understudy.TypeSelect:
		c.CellClass = "word"
	case c.isID || f.Link != "":
		c.shape, c.CellClass = code, "code"
	}
	return c
}

func isDate(t string) bool {
	switch t {
	case understudy.TypeRFC2822, understudy.TypeISO, understudy.TypeEpoch, understudy.TypeDate:
		return true
	}
	return false
}

// group sorts the fields of a record under headings: what its table shows,
// its times, everything else, and each object by itself.
func (k *Kind) group(all []*Column) []Group {
	first := Group{title: "Overview"}
	times, more := Group{title: "Times"}, Group{title: "More"}
	var objects []Group
	for _, c := range k.Shown {
		if !strings.Contains(c.Name, ".") && !c.isID && c.shape != moment {
			first.columns = append(first.columns, c)
		}
	}
	for _, c := range all {
		parent, _, dotted := strings.Cut(c.Name, ".")
		i := slices.IndexFunc(objects, func(g Group) bool { return dotted && g.columns[0].Name == parent })
		switch {
		case i >= 0:
			objects[i].columns = append(objects[i].columns, c)
		case c.Type == understudy.TypeMap:
			objects = append(objects, Group{title: upperFirst(c.Words), columns: []*Column{c}})
		case c.shape == moment:
			times.columns = append(times.columns, c)
		case !slices.Contains(first.columns, c):
			more.columns = append(more.columns, c)
		}
	}
	groups := []Group{first, times, more}
	for _, g := range objects {
		g.columns = slices.DeleteFunc(g.columns, func(c *Column) bool { return c.Type == understudy.TypeMap && len(g.columns) > 1 })
		groups = append(groups, g)
	}
	return slices.DeleteFunc(groups, func(g Group) bool { return len(g.columns) == 0 })
}

func (k *Kind) everyName() []string {
	names := make([]string, len(k.every))
	for i, c := range k.every {
		names[i] = c.Name
	}
	return names
}

// formOf says in words which of upstream's renderings a shape is.
func (k *Kind) formOf(shape string) string {
	for _, l := range k.PlannedLists {
		if l.Shape == shape {
			return "as the list “" + l.TabTitle + "” shows it"
		}
	}
	return "as another address shows it"
}
