// Record: a record that is tried by itself, compared with its row.

package specs

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"understudy"
	"understudy/spec"
)

// instance asks for the first row's record by its own path, and compares the two.
func (t *trial) instance(ctx context.Context, r *result, k *spec.Kind, l *spec.List, path, query string, first *understudy.Page) {
	target, err := t.spec.Resolve("try", path, "")
	if err != nil {
		return
	}
	vars := map[string]string{}
	for _, v := range target.Vars {
		vars[v.Name] = v.Value
	}
	// A path below the list first, then one with few variables that are of other records.
	others := func(in *spec.Instance) (n int) {
		for _, name := range in.Template().Vars() {
			if vars[name] == "" && !slices.Contains(in.ID, name) {
				n++
			}
		}
		return n
	}
	all := slices.Clone(k.Instances)
	slices.SortStableFunc(all, func(a, b *spec.Instance) int { return others(a) - others(b) })
	for _, in := range all {
		parts := strings.Split(first.Rows[0].ID, spec.IDSeparator)
		if len(k.ID) == 1 {
			parts = []string{first.Rows[0].ID}
		}
		for i, name := range in.ID {
			if i < len(parts) {
				vars[name] = parts[i]
			}
		}
		to, missing := t.fill(in.Template(), vars)
		if in.Address != "" {
			to, missing = t.addressOf(in, first), ""
		}
		if missing != "" || to == "" {
			continue
		}
		one, err := t.page(ctx, to, "")
		if err != nil {
			r.bad("%s: %s", in.Path, err)
			return
		}
		again := func() (*understudy.Page, error) { return t.page(ctx, path, query) }
		t.compare(r, in, l, first, one, again)
		return
	}
}

// addressOf returns the path of the first row's record as the row itself says it; "" when that is none of the
// instance's. What names the record there fills the paths of lists below it: an issue's number, where its id is another.
func (t *trial) addressOf(in *spec.Instance, first *understudy.Page) string {
	var said string
	_ = json.Unmarshal(members(first, 0)[in.Address], &said) // the field is a text, or it is no address
	own, err := t.spec.ResolveLink("try", said)
	if err != nil || own.Instance != in {
		return ""
	}
	segments := in.Template().Segments()
	t.seen[listPath(segments[:len(segments)-1])] = own.Vars[len(own.Vars)-1].Value
	return own.Key.Path()
}

// compare says how a record differs from its row. A row that differs is read again: the record may
// have changed between the two requests. What has changed in the row is not judged, as it may change with
// every request.
func (t *trial) compare(r *result, in *spec.Instance, l *spec.List, first, one *understudy.Page, again func() (*understudy.Page, error)) {
	if one.ID != first.Rows[0].ID {
		r.bad("%s shows another record than %s", in.Path, understudy.Clip(first.Rows[0].ID))
		return
	}
	if in.Shape == l.Shape {
		t.envelope(r, in, one) // a shape of its own is kept as it came
	}
	other := differences(first, one, one.ID)
	if len(other) > 0 && in.Shape == l.Shape {
		newer, err := again()
		if err != nil {
			r.record = "not compared: " + understudy.PlainText(err)
			return
		}
		if other = differences(newer, one, one.ID); other == nil {
			r.record = "not compared: its row has moved"
			return
		}
		changing := differences(newer, first, one.ID)
		other = slices.DeleteFunc(other, func(name string) bool { return slices.Contains(changing, name) })
	}
	switch {
	case len(other) == 0:
		r.record = "as its row"
	case in.Shape != l.Shape:
		r.record = "own shape"
	default:
		r.record = "differs"
		r.bad("%s differs from its row in %s: give it a shape of its own", in.Path, few(other))
	}
}

// differences returns the members in which the first record of a page differs from the row of that
// id on another; nil when that does not have the row.
func differences(page, one *understudy.Page, id string) []string {
	i := slices.IndexFunc(page.Rows, func(row understudy.Row) bool { return row.ID == id })
	if i < 0 {
		return nil
	}
	row, record := members(page, i), members(one, 0)
	all := maps.Clone(row)
	maps.Copy(all, record)
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool {
		var x, y any
		return json.Unmarshal(row[name], &x) == nil && json.Unmarshal(record[name], &y) == nil && reflect.DeepEqual(x, y)
	})
	return append([]string{}, slices.Sorted(maps.Keys(all))...)
}

// members returns the members of a row's record.
func members(page *understudy.Page, row int) map[string]json.RawMessage {
	record := map[string]json.RawMessage{}
	_ = json.Unmarshal(page.Body[page.Rows[row].Start:page.Rows[row].End], &record) // a row is an object
	return record
}

// envelope compares what an answer has around its record with what the spec says.
func (t *trial) envelope(r *result, in *spec.Instance, one *understudy.Page) {
	var said, is any
	where, _ := t.spec.BuildURL(one.Key, "")
	made, _, _ := in.Wrap(one.Body[one.Rows[0].Start:one.Rows[0].End], one.Key.URI, where)
	if json.Unmarshal(made, &said) != nil || json.Unmarshal(one.Body, &is) != nil || !reflect.DeepEqual(said, is) {
		r.bad("%s has something else around its record: give it an answer", in.Path)
	}
}
