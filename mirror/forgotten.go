// Forgotten: what upstream forgets by itself is not deleted.

package mirror

import (
	"context"
	"errors"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/request"
	"understudy/spec"
)

// parentAge is how old the last sight of a parent may be to tell whether it has
// ended.
const parentAge = 10 * time.Second

// forgotten reports whether a record that upstream says is not there is one that
// it forgets by itself: its clock is further back than the spec says, or what it
// lies under is final. When what is known of the parent is too old to tell, the
// parent is fetched first; when that fails the record is not taken for deleted.
// A record without any time, or under nothing that is held, was deleted.
func (fl *filler) forgotten(ctx context.Context, k *kind, rec *understudy.Record) bool {
	sp := k.source.Spec.Kind(k.name)
	if sp.Retention.Days > 0 {
		clock := query.UnixIn(sp, sp.Clock, rec.Body)
		if clock == 0 {
			clock = query.UnixIn(sp, sp.Order, rec.Body) // never sent, never started
		}
		if clock != 0 && fl.now().Unix()-clock > int64(sp.Retention.Days)*24*60*60 {
			return true
		}
	}
	if !sp.Retention.WithParent {
		return false
	}
	above := k.source.Spec.Kind(sp.Field(sp.Parent).Link)
	id := textOf(rec.Body, sp.Parent)
	if id == "" {
		return false
	}
	parent := fl.known(ctx, k.source, above, id)
	if parent == nil || parent.Final || above.Retention.WithParent {
		return parent != nil && parent.Final
	}
	if age, sane := fl.ages().age(fl.now(), parent.Seen); sane && age < parentAge {
		return false
	}
	target, ok := k.source.instanceOf(above, id)
	if target == nil || !ok {
		return false
	}
	fill := request.Fill{Target: target, Reason: request.Refresh, RecordsOnly: true}
	if _, _, err := fl.fillOnce(ctx, &fill, k.source, k.source.kinds[above.Name]); err != nil {
		return true // unknown; the next time may tell
	}
	parent = fl.known(ctx, k.source, above, id)
	return parent != nil && parent.Final
}

// known is a record in the shape it was last seen in; nil when it is not held,
// or cannot be read.
func (hs *holdings) known(ctx context.Context, s *source, k *spec.Kind, id string) *understudy.Record {
	last, _ := hs.lookUp(ctx, s, k, id)
	return last
}

// lookUp is a record in the shape it was last seen in; nil when it is not held.
func (hs *holdings) lookUp(ctx context.Context, s *source, k *spec.Kind, id string) (last *understudy.Record, err error) {
	seen := map[string]bool{}
	look := func(shape string) {
		if seen[shape] {
			return
		}
		seen[shape] = true
		rec, bad := hs.store.Record(ctx, s.Name, k.Name, shape, id)
		switch {
		case bad != nil && !errors.Is(bad, understudy.ErrNotFound):
			err = bad
		case bad == nil && (last == nil || rec.Seen.After(last.Seen)):
			last = rec
		}
	}
	for _, in := range k.Instances {
		look(in.Shape)
	}
	for _, l := range k.Lists {
		look(l.Shape)
	}
	return last, err
}

// textOf is a field's value as text, "" when it is null or absent.
func textOf(body []byte, name string) string {
	v, ok := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, name)
	if !ok || v.Kind == jsonspan.Null {
		return ""
	}
	return jsonspan.Text(body, v)
}
