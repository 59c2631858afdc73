// Number as data: what its page shows, for programs.

package viewer

import (
	"encoding/json"
)

// numberData is the page as data.
func (q numberView) numberData() error {
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
	}{Number: q.n.number, Own: q.own()[q.n.number], Partners: []partnerData{}}
	p := q.contact()
	out.Partial = p.Partial
	if p.Last != nil {
		out.First, out.Last = p.First.Stamp, p.Last.Stamp
	}
	for _, pn := range q.n.panels {
		r := pn.wait()
		l := listData{
			Kind: pn.kind.Kind.Name, Field: pn.end.Column.Name, Href: q.source.Place(pn.target), More: r.more(), Problem: q.missing(r), Records: []json.RawMessage{},
		}
		for _, row := range r.rows() {
			l.Records = append(l.Records, row.Raw())
		}
		out.Lists = append(out.Lists, l)
	}
	for _, other := range p.Partners {
		out.Partners = append(out.Partners, partnerData{other.Number, other.Count, other.Href})
	}
	return q.sendJSON(out)
}
