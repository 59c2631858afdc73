// Record: a record that is fetched by its id is compared with its row in a list.

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

// compareRecord fetches the record of the first row by its own path, and compares it with the row.
func (t *trial) compareRecord(ctx context.Context, r *result, k *spec.Kind, l *spec.List, path, query string, first *understudy.Page) {
	target, err := t.spec.Resolve("try", path, "")
	if err != nil {
		return
	}
	vars := map[string]string{}
	for _, v := range target.Vars {
		vars[v.Name] = v.Value
	}
	// Paths come first if the values of more of their variables are known from the list.
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
			to, missing = t.readAddress(in, first), ""
		}
		if missing != "" || to == "" {
			continue
		}
		one, err := t.fetchPath(ctx, to, "")
		if err != nil {
			r.addFault("%s: %s", in.Path, err)
			return
		}
		again := func() (*understudy.Page, error) { return t.fetchPath(ctx, path, query) }
		t.compareRow(r, in, l, first, one, again)
		return
	}
}

// readAddress returns the path of the first row's record, which it takes from the address in the row. It returns ""
// if that address does not match the path of the instance. Lists below the record use the name in its address, such
// as the number of an issue that has another id.
func (t *trial) readAddress(in *spec.Instance, first *understudy.Page) string {
	var said string
	_ = json.Unmarshal(readMembers(first, 0)[in.Address], &said) // a field that is not a string stays "", which is no address
	own, err := t.spec.ResolveLink("try", said)
	if err != nil || own.Instance != in {
		return ""
	}
	segments := in.Template().Segments()
	t.ids[describePath(segments[:len(segments)-1])] = own.Vars[len(own.Vars)-1].Value
	return own.Key.Path()
}

// compareRow notes a fault if a record differs from its row. It reads the list again, because the record may have
// changed between the two requests. It ignores fields that change with every request.
func (t *trial) compareRow(
	r *result, in *spec.Instance, l *spec.List, first, one *understudy.Page, again func() (*understudy.Page, error),
) {
	if one.ID != first.Rows[0].ID {
		r.addFault("%s shows another record than %s", in.Path, understudy.Clip(first.Rows[0].ID))
		return
	}
	if in.Shape == l.Shape {
		t.compareEnvelope(r, in, one) // such a record is stored together with the JSON around it, so that is compared too
	}
	other := listDifferences(first, one, one.ID)
	if len(other) > 0 && in.Shape == l.Shape {
		newer, err := again()
		if err != nil {
			r.Record = "not compared: " + understudy.PlainText(err)
			return
		}
		if other = listDifferences(newer, one, one.ID); other == nil {
			r.Record = "not compared: its row has moved"
			return
		}
		changing := listDifferences(newer, first, one.ID)
		other = slices.DeleteFunc(other, func(name string) bool { return slices.Contains(changing, name) })
	}
	switch {
	case len(other) == 0:
		r.Record = "as its row"
	case in.Shape != l.Shape:
		r.Record = "own shape"
	default:
		r.Record = "differs"
		r.addFault("%s differs from its row in %s; give the instance its own shape", in.Path, joinNames(other))
	}
}

// listDifferences returns the names of the fields in which the record in one differs from the row with this id on
// page. It returns nil if page has no such row.
func listDifferences(page, one *understudy.Page, id string) []string {
	i := slices.IndexFunc(page.Rows, func(row understudy.Row) bool { return row.ID == id })
	if i < 0 {
		return nil
	}
	row, record := readMembers(page, i), readMembers(one, 0)
	all := maps.Clone(row)
	maps.Copy(all, record)
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool {
		var x, y any
		return json.Unmarshal(row[name], &x) == nil && json.Unmarshal(record[name], &y) == nil && reflect.DeepEqual(x, y)
	})
	return append([]string{}, slices.Sorted(maps.Keys(all))...)
}

// readMembers returns the fields of a row by their names.
func readMembers(page *understudy.Page, row int) map[string]json.RawMessage {
	record := map[string]json.RawMessage{}
	// the row was found in a parsed document, so it is a valid object
	_ = json.Unmarshal(page.Body[page.Rows[row].Start:page.Rows[row].End], &record)
	return record
}

// compareEnvelope notes a fault if the JSON around a record is not as the spec says.
func (t *trial) compareEnvelope(r *result, in *spec.Instance, one *understudy.Page) {
	var said, is any
	where, _ := t.spec.BuildURL(one.Key, "")
	made, _, _ := in.Wrap(one.Body[one.Rows[0].Start:one.Rows[0].End], one.Key.URI, where)
	if json.Unmarshal(made, &said) != nil || json.Unmarshal(one.Body, &is) != nil || !reflect.DeepEqual(said, is) {
		r.addFault("%s has other data around its record; give the instance an answer", in.Path)
	}
}
