// The records that were found for a phone number by a lookup, shown as a conversation.

package viewer

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/actions"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// splitConversation divides the records that a lookup found for a number. It returns calls and messages as a
// conversation, oldest first, and all other records in rest.
func splitConversation(q *page.Exchange, number string, hits []page.Hit) (talk any, rest []page.Hit) {
	p := &messages{A: party{Shown: "our number"}}
	for _, h := range hits {
		i := slices.IndexFunc(h.Kind.Source.Contacts, func(t *plan.Contact) bool { return t.Kind == h.Kind })
		if i < 0 {
			rest = append(rest, h)
			continue
		}
		contact := h.Kind.Source.Contacts[i]
		if len(p.all) == 0 {
			// the number is left out of these links, because it must not appear in any address
			p.Actions = actions.NumberLinks(q, h.Kind.Source, "", false)
		}
		theirs := isNumberAtEnd(q, contact.Ends[0], h, number)
		t, ok := readMessage(q, direction{kind: contact, isFromA: !theirs}, h.Row, time.Time{})
		if !ok {
			rest = append(rest, h)
			continue
		}
		end := contact.Ends[1]
		if theirs {
			end = contact.Ends[0]
		}
		p.B.Shown = cmp.Or(p.B.Shown, q.CellContext(h.Kind, nil, nil).Cell(end.Column, h.Row, true).Text)
		p.all = append(p.all, t)
	}
	if len(p.all) == 0 {
		return nil, rest
	}
	slices.SortStableFunc(p.all, func(a, b message) int { return a.at.Compare(b.at) })
	p.Days = groupDays(q, p.all)
	return p, rest
}

// isNumberAtEnd reports whether the record has the number at the given end (sender or recipient). It compares the
// values as the caller sees them, because the role may mask numbers.
func isNumberAtEnd(q *page.Exchange, end plan.End, h page.Hit, number string) bool {
	name := end.Column.Spec.Name
	if strings.ContainsAny(name, `."\`) {
		return false
	}
	record := understudy.Page{Key: understudy.Key{Source: h.SearchHit.Source}, Kind: h.Kind.Spec.Name, Status: http.StatusOK,
		Body: []byte(`{"` + name + `":"` + number + `"}`)}
	view, err := q.Rights.Gate.MakeView(q.Rights.Caller, &record)
	if err != nil {
		return false
	}
	row, err := q.Rights.Gate.ParseShownRow(q.Rights.Caller, h.SearchHit.Source, h.Kind.Spec.Name, view.Body)
	want, got := row.Field(name), h.Row.Field(name)
	return err == nil && got.State != access.Hidden && got.Text == want.Text
}
