// Seek: what is asked of the records by their places, and whether one is meant.

package store

import (
	"slices"

	"understudy/internal/query"
	"understudy/spec"
)

// fulfils reports whether a record, whose id, parent and body are given, is what
// is asked for by ids, parent and terms.
func (k *kindPlan) fulfils(q *query.RecordQuery, id, parent string, body []byte) bool {
	if q.Parent != "" && parent != q.Parent || len(q.IDs) > 0 && !slices.Contains(q.IDs, id) {
		return false
	}
	return k.match.Match(body)
}

// wants reports whether a question is about a kind.
func wants(q *query.RecordQuery, source, kind string) bool {
	return (q.Source == "" || q.Source == source) && (len(q.Kinds) == 0 || slices.Contains(q.Kinds, kind))
}

// firstShape is the shape records of a kind are told in: that of its first list.
func firstShape(kind *spec.Kind) string {
	if kind == nil || len(kind.Lists) == 0 {
		return ""
	}
	return kind.Lists[0].Shape
}
