// This file sums up the matches of a search in groups.

package agents

import (
	"cmp"
	"context"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"understudy"
	"understudy/internal/query"
)

// sumArgs are the arguments of a sum.
type sumArgs struct {
	Query  string   `json:"query"`
	Source string   `json:"source"`
	Kinds  []string `json:"kinds"`
	Sum    string   `json:"sum"`
	By     []string `json:"by"`
	Zone   string   `json:"zone"`
	Limit  int      `json:"limit"`
}

// sumAnswer is the result of a sum.
type sumAnswer struct {
	query.SumResult
	Note string `json:"note"`
}

// addSums adds the tool that sums up a search.
func (b *builder) addSums() {
	if b.srv.o.Search == nil {
		return
	}
	most := query.MaxSumGroupings
	p := (&properties{}).add("query", text("the query, as in search; empty means all records"))
	b.addSource(p).add("kinds", &jsonschema.Schema{Type: "array", Items: enum("", b.offer.names(hasID)),
		Description: "only these kinds; default: all"})
	p.add("sum", text("what is summed: count (default), a field with numbers such as price, or the name of a duration"))
	p.add("by", &jsonschema.Schema{Type: "array", Items: text(""), MaxItems: &most, Description: "groups: hour, day, week, month, kind, " +
		"a field such as status, or to.country; default: one group with all matches"})
	p.add("zone", text("the time zone of hours, days, weeks and months, such as Europe/Berlin; default UTC"))
	least, rows := 1.0, float64(b.srv.o.Limits.Rows)
	p.add("limit", &jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: &rows,
		Description: "the maximum number of groups; default 20"})
	add[sumAnswer](b, "sums", "Sum up a search", "Returns counts, costs and durations of the records that a search finds, in groups. "+
		"complete says whether every match is included.", hasID, p,
		func(ctx context.Context, v *exchange, a sumArgs) (any, error) { return v.readSums(ctx, a) })
}

// readSums returns the sums of a search.
func (v *exchange) readSums(ctx context.Context, a sumArgs) (any, error) {
	limit, err := v.limit(a.Limit)
	if err != nil {
		return nil, err
	}
	if err := v.checkSearch(a.Source, a.Kinds); err != nil {
		return nil, err
	}
	r := query.SumRequest{Search: query.SearchRequest{Text: a.Query, Source: a.Source, Kinds: a.Kinds}, Sum: a.Sum, By: a.By, Limit: limit}
	r.Sum = cmp.Or(r.Sum, query.SumCount)
	if a.Zone != "" && len(a.Zone) < 64 {
		r.Zone, err = time.LoadLocation(a.Zone)
	}
	if err != nil || len(a.Zone) >= 64 || a.Zone == "Local" {
		return nil, newInvalid("there is no timezone %q; names are those of the IANA database, such as Europe/Berlin", understudy.Clip(a.Zone))
	}
	found, err := v.srv.o.Search.Sum(ctx, v.caller, r)
	if err != nil {
		return nil, err
	}
	out := &sumAnswer{*found, dataNote}
	return out, v.recordAction(ctx, understudy.AuditEntry{Action: understudy.ActionSearch, What: "an agent sums up a search", Source: a.Source,
		Rows: len(found.Rows), Values: []string{a.Query}})
}
