// Tables of columns: records that say, field by field, what was set in them.
package kinds

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// TableRow is one number, application, key, caller id, address or queue.
type TableRow struct {
	layout *table
	s      *world.Sequence
	i      int64
	fields map[string]string // what is set, by the name of the form field
	Shown  []column          // in place of the layout's, where it looks different
}

// table says what the cards of one kind hold and how they look.
type table struct {
	path    string   // of the kind, as it stands in a URI
	columns []column // in the order they are written
	fresh   []column // those of the answer to a creation, if they differ
	// may are the fields a write may set, each with what it may hold: nil means
	// anything, a two-letter word the prefix of a SID, several words one of them.
	may map[string][]string
	// whole are fields that must be numbers, with the highest each may be.
	whole    map[string]int64
	needs    []string          // what a creation must say
	defaults map[string]string // what a field holds that was never set
	first    func(w *world.World, s *world.Sequence, i int64) map[string]string
	check    func(form url.Values) *format.Refusal // what else a write must meet
}

// column is one field of a card on its way out.
type column struct {
	name  string
	write func(o *format.Object, name string, c *TableRow, w *world.World)
}

// tableKind is a kind of cards of which the main account begins with some.
func tableKind(name, prefix string, tag uint64, begin int64, l *table, filters ...world.Filter) *world.Kind {
	return &world.Kind{
		Name: name, Prefix: prefix, Tag: tag, Filters: filters,
		Blank: func() world.Row { return &TableRow{layout: l} },
		Seed: func(w *world.World, k *world.Kind) *world.Sequence {
			return w.Sequence(k, 0, begin, w.Epoch.Unix()-(world.Days+1)*86400, 300*86400)
		},
		Create: func(_ *world.World, _ *world.Sequence, form url.Values) (map[string]string, *format.Refusal) {
			for _, name := range l.needs {
				if form.Get(name) == "" {
					return nil, format.Invalid("Missing required parameter " + name + " in the post body")
				}
			}
			return l.read(form)
		},
		Update: func(_ *world.World, _ *world.Sequence, _ int64, form url.Values) (map[string]string, []string, *format.Refusal) {
			fields, r := l.read(form)
			return fields, nil, r
		},
		Remove: true,
	}
}

// read takes the fields a write sets from its form.
func (l *table) read(form url.Values) (map[string]string, *format.Refusal) {
	if l.check != nil {
		if r := l.check(form); r != nil {
			return nil, r
		}
	}
	for name, most := range l.whole {
		if n, ok := format.Whole(form.Get(name)); form.Has(name) && (!ok || n > most) {
			return nil, format.Invalid(fmt.Sprintf("%s must be a number from 0 to %d", name, most))
		}
	}
	return readFields(l.may, form)
}

// readFields takes from a form the fields that may be set.
func readFields(may map[string][]string, form url.Values) (map[string]string, *format.Refusal) {
	fields := map[string]string{}
	for name, one := range may {
		if !form.Has(name) {
			continue
		}
		value := form.Get(name)
		if len(one) == 1 && value != "" && !format.IsSID(value, one[0]) || len(one) > 1 && !slices.Contains(one, value) {
			return nil, format.Invalid(name + " is not valid")
		}
		fields[name] = value
	}
	if len([]rune(fields["FriendlyName"])) > 64 {
		return nil, format.Refuse(400, 21451, "FriendlyName is too long")
	}
	return fields, nil
}

// Load reads the card with an index.
func (c *TableRow) Load(w *world.World, s *world.Sequence, i int64) {
	*c = TableRow{layout: c.layout, s: s, i: i, fields: map[string]string{}}
	if !s.Written(i) && i < s.Base {
		c.fields = c.layout.first(w, s, i)
	}
	if m := s.Marks[i]; m != nil {
		for name, value := range m.Form {
			c.fields[name] = value
		}
	}
}

// Field is what a field holds.
func (c *TableRow) Field(name string) string {
	if value := c.fields[name]; value != "" {
		return value
	}
	return c.layout.defaults[name]
}

// Made shows the row as in the answer to its creation.
func (c *TableRow) Made() { c.Shown = c.layout.fresh }

// friendlyName is the name it was given, or else its number as people read it.
func (c *TableRow) friendlyName() string {
	if name := c.Field("FriendlyName"); name != "" {
		return name
	}
	return format.Formatted(c.Field("PhoneNumber"))
}

// updated is when the card was last written to.
func (c *TableRow) updated() int64 {
	created := c.s.Created(c.i)
	if m := c.s.Marks[c.i]; m != nil {
		return max(created, m.Touched)
	}
	return created
}

// Append writes the card's row, which is its instance too.
func (c *TableRow) Append(dst []byte, w *world.World) []byte {
	columns := c.Shown
	if columns == nil {
		columns = c.layout.columns
	}
	o := format.Object{B: dst}
	o.Open()
	for _, one := range columns {
		one.write(&o, one.name, c, w)
	}
	o.Close()
	return o.B
}

// tableFilter asks for cards with exactly this in a field.
func tableFilter(name string) world.Filter {
	return world.Filter{Key: name, Read: world.TextFilter(func(r world.Row) string { return r.(*TableRow).Field(name) })}
}

// What a column may hold.

func text(form string) func(*format.Object, string, *TableRow, *world.World) {
	return func(o *format.Object, name string, c *TableRow, _ *world.World) { o.Text(name, c.Field(form)) }
}

func textOrNull(form string) func(*format.Object, string, *TableRow, *world.World) {
	return func(o *format.Object, name string, c *TableRow, _ *world.World) { o.TextOrNull(name, c.Field(form)) }
}

func truth(form string) func(*format.Object, string, *TableRow, *world.World) {
	return func(o *format.Object, name string, c *TableRow, _ *world.World) {
		o.Truth(name, c.Field(form) == "true")
	}
}

func amount(form string) func(*format.Object, string, *TableRow, *world.World) {
	return func(o *format.Object, name string, c *TableRow, _ *world.World) {
		n, _ := strconv.ParseInt(c.Field(form), 10, 64)
		o.Number(name, n)
	}
}

// always is a column that holds the same in every card.
func always(value string) func(*format.Object, string, *TableRow, *world.World) {
	return func(o *format.Object, name string, _ *TableRow, _ *world.World) { o.Text(name, value) }
}

func nameColumn(o *format.Object, name string, c *TableRow, _ *world.World) {
	o.Text(name, c.friendlyName())
}

func accountColumn(o *format.Object, name string, c *TableRow, w *world.World) {
	o.Text(name, w.AccountSID(c.s.Account))
}

func createdColumn(o *format.Object, name string, c *TableRow, _ *world.World) {
	o.Date(name, c.s.Created(c.i))
}

func updatedColumn(o *format.Object, name string, c *TableRow, _ *world.World) {
	o.Date(name, c.updated())
}

func sidColumn(o *format.Object, name string, c *TableRow, w *world.World) {
	o.Text(name, string(w.AppendSID(nil, c.s, c.i)))
}

func uriColumn(o *format.Object, name string, c *TableRow, w *world.World) {
	o.Text(name, format.Version+"/Accounts/"+w.AccountSID(c.s.Account)+"/"+c.layout.path+"/"+string(w.AppendSID(nil, c.s, c.i))+".json")
}
