// Instance: the answer to a path of one record.

package compose

import (
	"bytes"
	"slices"

	"understudy"
	"understudy/spec"
)

// Instance is the page upstream would have answered with a record.
func Instance(t *spec.Target, rec *understudy.Record) *understudy.Page {
	return &understudy.Page{
		Key: t.Key, Kind: t.Kind.Name, Shape: rec.Shape, ID: t.ID,
		Status: 200, ContentType: "application/json", Body: rec.Body,
		Rows: []understudy.Row{{ID: t.ID, End: len(rec.Body), Final: rec.Final, Record: rec.Number, Version: rec.Version}},
		At:   rec.Seen,
		Sum:  sum(rec.Body),
	}
}

// Belongs reports whether a record is what upstream would show under the
// target's path: each path variable that is not part of the id (the account)
// must stand in the record as a string. Else one account's record would be
// answered under another's path.
func Belongs(t *spec.Target, body []byte) bool {
	quoted := make([]byte, 0, 64)
	for _, v := range t.Vars {
		if slices.Contains(t.Instance.ID, v.Name) {
			continue
		}
		quoted = append(append(append(quoted[:0], '"'), v.Value...), '"')
		if !bytes.Contains(body, quoted) {
			return false
		}
	}
	return true
}
