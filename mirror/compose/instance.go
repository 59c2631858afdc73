// Instance: the answer to a path of one record.

package compose

import (
	"bytes"
	"context"
	"slices"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Instance is the page upstream would have answered with a record.
func Instance(s *spec.Source, t *spec.Target, rec *understudy.Record) *understudy.Page {
	body, start, end := t.Instance.Wrap(rec.Body, t.Key.Asked(), s.PublicURL+t.Key.Asked())
	return &understudy.Page{
		Key: t.Key, Kind: t.Kind.Name, Shape: rec.Shape, ID: t.ID,
		Status: 200, ContentType: s.Spec.ContentType, Body: body,
		Rows: []understudy.Row{{ID: t.ID, Start: start, End: end, Final: rec.Final, Record: rec.Number, Version: rec.Version}},
		At:   rec.Seen,
		Sum:  sum(body),
	}
}

// Belongs reports whether a record is what upstream would show under the
// target's path: each path variable that is not part of the id (the account)
// must stand in the record as a string. Else one account's record would be
// answered under another's path. A record that has its own address says it there.
func Belongs(t *spec.Target, body []byte) bool {
	if t.Instance.Address != "" {
		v, _ := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, t.Instance.Address)
		if v.Kind != jsonspan.String {
			return false
		}
		to, err := t.Spec.Follow(t.Key.Source, jsonspan.Text(body, v))
		return err == nil && to.Key.Path() == t.Key.Path()
	}
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

// IDAt is the id of the record whose own address an instance path is, in any shape that its
// kind has; "": none is held.
func IDAt(ctx context.Context, s *spec.Source, t *spec.Target, records Store) (id string) {
	q := query.RecordQuery{Source: s.Name, Kinds: []string{t.Kind.Name},
		Predicates: []query.Predicate{{Field: t.Instance.Address, Any: []string{s.PublicURL + t.Key.Path()}}}}
	for _, q.Shape = range t.Kind.Shapes() {
		err := records.Seek(ctx, q, func(h query.Hit) bool {
			if Belongs(t, h.Record.Body) {
				id = h.Record.ID
			}
			return id == ""
		})
		if err != nil || id != "" {
			return id
		}
	}
	return ""
}
