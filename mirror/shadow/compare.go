// Comparing: the differences between upstream's page and the page composed from records.

package shadow

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"

	"understudy"
	"understudy/kit/jsonspan"
)

// difference describes how two pages differ. It has names of fields and parameters, and ids, but no values.
type difference struct {
	Field string    `json:"field"`
	Where string    `json:"where,omitempty"`
	At    time.Time `json:"at"`
}

// Values of difference.Field that are not names of fields.
const (
	differsStatus     = "(status)"     // one of the pages is a refusal and the other is not
	differsMembership = "(membership)" // a record is on only one of the pages
	differsOrder      = "(order)"
	differsForm       = "(form)" // the pages differ only in white space or in the order of members
)

// compare returns how upstream's page and the composed page differ. The difference is zero if they are the same. gone
// has the ids of records that only the composed page shows.
func compare(fetched, composed *understudy.Page, key string) (d difference, gone []string) {
	switch {
	case fetched.Status != composed.Status:
		return difference{Field: differsStatus, Where: strconv.Itoa(fetched.Status) + ", not " + strconv.Itoa(composed.Status)}, nil
	case bytes.Equal(fetched.Body, composed.Body):
		return difference{}, nil
	case fetched.Status != 200:
		return difference{Field: firstDifference(fetched.Body, composed.Body, ""), Where: "the refusal"}, nil
	}
	if d, gone = compareRows(fetched.Rows, composed.Rows); d.Field != "" {
		return d, gone
	}
	for i := range fetched.Rows {
		a, b := fetched.Rows[i], composed.Rows[i]
		one, other := fetched.Body[a.Start:a.End], composed.Body[b.Start:b.End]
		if !bytes.Equal(one, other) {
			return difference{Field: firstDifference(one, other, ""), Where: "row " + strconv.Itoa(i) + ", " + a.ID}, nil
		}
	}
	return difference{Field: firstDifference(fetched.Body, composed.Body, key), Where: "around the rows"}, nil
}

// compareRows compares which records two pages show, and in which order.
func compareRows(fetched, composed []understudy.Row) (d difference, gone []string) {
	shown, have := map[string]bool{}, map[string]bool{}
	for _, r := range fetched {
		shown[r.ID] = true
	}
	for i, r := range composed {
		if have[r.ID] = true; !shown[r.ID] {
			gone = append(gone, r.ID)
			d = addDifference(d, differsMembership, i, r.ID+" is stored")
		}
	}
	for i, r := range fetched {
		if !have[r.ID] {
			d = addDifference(d, differsMembership, i, r.ID+" is not stored")
		}
	}
	for i := range min(len(fetched), len(composed)) {
		if fetched[i].ID != composed[i].ID {
			d = addDifference(d, differsOrder, i, fetched[i].ID)
		}
	}
	if len(fetched) != len(composed) {
		d = addDifference(d, differsMembership, min(len(fetched), len(composed)), "one ends here")
	}
	return d, gone
}

// addDifference returns d, or if d is zero, a new difference.
func addDifference(d difference, field string, row int, what string) difference {
	return cmp.Or(d, difference{Field: field, Where: "row " + strconv.Itoa(row) + ", " + what})
}

// firstDifference returns the first name of a field, in sorted order, in which two objects differ. It ignores the field named by but.
func firstDifference(a, b []byte, but string) string {
	var names []string
	err := jsonspan.FindChanges(a, b, func(name []byte) bool {
		if string(name) != but {
			names = append(names, string(name))
		}
		return true
	})
	if err != nil || len(names) == 0 {
		return differsForm
	}
	return slices.Min(names)
}
