// Instances: the answer to the path of one record.

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

// InstancePage returns the page that upstream would have answered with a record.
func InstancePage(s *spec.Source, t *spec.Target, rec *understudy.Record) *understudy.Page {
	body, start, end := t.Instance.Wrap(rec.Body, t.Key.RequestURI(), s.PublicURL+t.Key.RequestURI())
	return &understudy.Page{
		Key: t.Key, Kind: t.Kind.Name, Shape: rec.Shape, ID: t.ID,
		Status: 200, ContentType: s.Spec.ContentType, Body: body,
		Rows: []understudy.Row{{ID: t.ID, Start: start, End: end, Final: rec.Final, Record: rec.Number, Version: rec.Version}},
		At:   rec.Seen,
		Sum:  checksum(body),
	}
}

// IsUnderTarget reports whether upstream would show a record under the target's path. Each path variable that
// is not part of the id, such as the account, must occur in the record as a string. Otherwise one account's
// record would be answered under another's path. A record with its own address is checked by that address.
func IsUnderTarget(t *spec.Target, body []byte) bool {
	if t.Instance.Address != "" {
		v, _ := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, t.Instance.Address)
		if v.Kind != jsonspan.String {
			return false
		}
		to, err := t.Spec.ResolveLink(t.Key.Source, jsonspan.Text(body, v))
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

// IDAt returns the id of the record whose own address is the target's path, in any shape of its kind. It
// returns "" if no such record is stored.
func IDAt(ctx context.Context, s *spec.Source, t *spec.Target, records Store) (id string) {
	q := query.RecordQuery{Source: s.Name, Kinds: []string{t.Kind.Name},
		Predicates: []query.Predicate{{Field: t.Instance.Address, Any: []string{s.PublicURL + t.Key.Path()}}}}
	for _, q.Shape = range t.Kind.Shapes() {
		err := records.Seek(ctx, q, func(h query.Hit) bool {
			if IsUnderTarget(t, h.Record.Body) {
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
