// Seen: records that have been through the gate before, as rows.

package access

import (
	"fmt"

	"understudy"
	"understudy/kit/jsonspan"
)

// Seen reads a record's body that is already as the caller sees it, such as a
// hit of a search. Nothing is hidden anew: a mask that was masked again would
// lose its last digits. The error is ErrForbidden when the caller sees nothing of
// the kind, ErrInvalid when the body is no JSON object.
func (g *Gate) Seen(c understudy.Caller, source, kind string, body []byte) (Row, error) {
	plan, all, err := g.plan(c, source, kind)
	if err != nil {
		return Row{}, err
	}
	if all {
		plan = nil
	}
	k := g.specs[source].Kind(kind)
	doc, err := jsonspan.Document(body)
	if err != nil || k == nil || doc.Kind != jsonspan.Object {
		return Row{}, fmt.Errorf("access: %w: a record of %s that is no object", understudy.ErrInvalid, clip(kind))
	}
	v := &View{Body: body, plan: plan, kind: k}
	return v.row(doc), nil
}
