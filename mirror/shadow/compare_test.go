package shadow

import (
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
)

func TestDifferences(t *testing.T) {
	list := func(body string, ids ...string) *understudy.Page {
		p := &understudy.Page{Status: 200, Body: []byte(body)}
		for _, id := range ids {
			at := strings.Index(body, `{"id":"`+id)
			p.Rows = append(p.Rows, understudy.Row{ID: id, Start: at, End: at + strings.IndexByte(body[at:], '}') + 1})
		}
		return p
	}
	said := list(`{"end":1,"calls":[{"id":"a","x":1},{"id":"b","x":2}],"start":0}`, "a", "b")
	for _, test := range []struct {
		told         *understudy.Page
		field, where string
		gone         int
	}{
		{said, "", "", 0},
		{list(`{"end":1,"calls":[{"id":"a","x":1},{"id":"b","x":3}],"start":0}`, "a", "b"), "x", "row 1, b", 0},
		{list(`{"end":2,"calls":[{"id":"a","x":1},{"id":"b","x":2}],"start":0}`, "a", "b"), "end", "around the rows", 0},
		{list(`{"end":1, "calls":[{"id":"a","x":1},{"id":"b","x":2}],"start":0}`, "a", "b"), differsForm, "around the rows", 0},
		{list(`{"end":1,"calls":[{"id":"b","x":2},{"id":"a","x":1}],"start":0}`, "b", "a"), differsOrder, "row 0, a", 0},
		{list(`{"end":1,"calls":[{"id":"a","x":1}],"start":0}`, "a"), differsMembership, "row 1, b is not stored", 0},
		{list(`{"end":1,"calls":[{"id":"a","x":1},{"id":"c","x":2}],"start":0}`, "a", "c"), differsMembership, "row 1, c is stored", 1},
		{&understudy.Page{Status: 400, Body: []byte(`{}`)}, differsStatus, "200, not 400", 0},
	} {
		d, gone := compare(said, test.told, "calls")
		checktest.Equal(t, d.Field, test.field, "%s: d.Field", test.told.Body)
		checktest.Equal(t, d.Where, test.where, "%s: d.Where", test.told.Body)
		checktest.Equal(t, len(gone), test.gone, "%s: len(gone)", test.told.Body)
	}
}
