// The page of a number as JSON, for programs.

package viewer

import (
	"encoding/json"
)

// sendNumber sends the page as JSON.
func (v numberView) sendNumber() error {
	type listData struct {
		Kind    string            `json:"kind"`
		Field   string            `json:"field"`
		Href    string            `json:"href"`
		More    bool              `json:"more"`
		Problem string            `json:"problem,omitempty"`
		Records []json.RawMessage `json:"records"`
	}
	type partnerData struct {
		Number string `json:"number"`
		Count  int64  `json:"count"`
		Href   string `json:"href"`
	}
	out := struct {
		Number   string        `json:"number"`
		Own      bool          `json:"own"`
		First    string        `json:"first,omitempty"`
		Last     string        `json:"last,omitempty"`
		Partial  bool          `json:"partial"`
		Lists    []listData    `json:"lists"`
		Partners []partnerData `json:"partners"`
	}{Number: v.reads.number, Own: v.ownNumbers()[v.reads.number], Partners: []partnerData{}}
	p := v.contact()
	out.Partial = p.Partial
	if p.Last != nil {
		out.First, out.Last = p.First.Stamp, p.Last.Stamp
	}
	for _, pn := range v.reads.panels {
		r := pn.Read.Wait()
		l := listData{
			Kind: pn.kind.Kind.Spec.Name, Field: pn.end.Column.Spec.Name, Href: v.q.Source.Place(pn.Read.Target), More: r.HasMore(),
			Problem: r.MissingReason(v.q), Records: []json.RawMessage{},
		}
		for _, row := range r.Rows() {
			l.Records = append(l.Records, row.JSON())
		}
		out.Lists = append(out.Lists, l)
	}
	for _, other := range p.Partners {
		out.Partners = append(out.Partners, partnerData{other.Number, other.Count, other.Href})
	}
	return v.q.SendJSON(out)
}
