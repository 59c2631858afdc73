// Instances: answers to requests for a single record.

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

// InstancePage returns the page with one record, as upstream would answer a request for it.
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

// IsUnderTarget reports whether upstream would show a record under the target's path. If a path variable is not part
// of the id, such as the account, one of the record's values must be equal to it. Otherwise a path of one account
// could show a record of another. If records contain their own address, it compares the address instead.
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

// IDAt returns the id of the record whose address is the target's path, in any shape of its kind. It returns "" if no
// such record is stored.
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
