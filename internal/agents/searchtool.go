// This file searches records, and reads the history of a record.

package agents

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/access/seen"
	"understudy/internal/query"
)

// searchArgs are the arguments of a search.
type searchArgs struct {
	Query  string   `json:"query"`
	Source string   `json:"source"`
	Kinds  []string `json:"kinds"`
	Sort   string   `json:"sort"`
	Cursor string   `json:"cursor"`
	Limit  int      `json:"limit"`
}

// searchAnswer is the result of a search.
type searchAnswer struct {
	Query string                 `json:"query" jsonschema:"the query as it was understood"`
	Notes []string               `json:"notes,omitempty"`
	Part  bool                   `json:"partial,omitempty" jsonschema:"the search stopped at a limit; continue with next_cursor"`
	Held  map[string]storedState `json:"held,omitempty" jsonschema:"how complete the stored records are, by source/kind"`
	Cut   string                 `json:"cut,omitempty" jsonschema:"why there are fewer records than requested"`
	Next  string                 `json:"next_cursor,omitempty" jsonschema:"the cursor of the next page; absent at the end"`
	Note  string                 `json:"note"`
	Hits  []searchHit            `json:"hits"`
}

// storedState says how much of a kind is stored, and since when.
type storedState struct {
	Complete bool       `json:"complete" jsonschema:"whether all records are stored"`
	CaughtUp *time.Time `json:"caught_up_to,omitempty" jsonschema:"when the newest records were last read"`
}

// searchHit is a record that was found.
type searchHit struct {
	Source string          `json:"source"`
	Kind   string          `json:"kind"`
	ID     string          `json:"id,omitempty" jsonschema:"absent if your role does not see it"`
	Link   string          `json:"link,omitempty" jsonschema:"the address of the record's page for people"`
	Record json.RawMessage `json:"record" jsonschema:"the record as your role sees it: hidden values are null"`
}

// addSearch adds the tool that searches records.
func (b *builder) addSearch() {
	if b.srv.o.Search == nil {
		return
	}
	p := (&properties{}).add("query", text(`words, "a phrase", wor*, numbers (+1555…), ids, and conditions: status:failed price>0.5 `+
		`start_time>=2026-06-01 (a OR b) -not has:field no:field; all must hold; empty finds everything`))
	b.addSource(p).add("kinds", &jsonschema.Schema{Type: "array", Items: enum("", b.offer.names(hasID)),
		Description: "only these kinds; default: all"})
	b.addPage(p.add("sort", text("newest (default), oldest, rank, or a field; a minus before the field sorts the largest first")))
	add[searchAnswer](b, "search", "Search records", "Finds stored records by words and by conditions on any field.",
		hasID, p,
		func(ctx context.Context, v *exchange, a searchArgs) (any, error) { return v.search(ctx, a) })
}

// checkSearch returns an error for a kind or source that the role does not see. It is the same error as for an
// unknown kind or source.
func (v *exchange) checkSearch(source string, kinds []string) error {
	for _, kind := range kinds {
		if !slices.Contains(v.offer.names(hasID), kind) {
			return newUnknown("kind", kind, v.offer.names(hasID))
		}
	}
	if source != "" && !slices.Contains(v.offer.sourceNames(), source) {
		return newUnknown("source", source, v.offer.sourceNames())
	}
	return nil
}

// search runs a search.
func (v *exchange) search(ctx context.Context, a searchArgs) (any, error) {
	limit, err := v.limit(a.Limit)
	if err != nil {
		return nil, err
	}
	if err := v.checkSearch(a.Source, a.Kinds); err != nil {
		return nil, err
	}
	if a.Sort == "newest" {
		a.Sort = ""
	}
	ask := query.SearchRequest{Text: a.Query, Source: a.Source, Kinds: a.Kinds, Sort: a.Sort, Cursor: a.Cursor, Limit: limit}
	found, err := v.srv.o.Search.Find(ctx, v.caller, ask)
	if err != nil {
		return nil, err
	}
	out := &searchAnswer{Query: found.Query, Notes: found.Notes, Part: found.Partial, Note: dataNote, Hits: []searchHit{}}
	if fit := v.fittingRows(len(found.Hits), func(i int) int { return len(found.Hits[i].Body) }); fit < len(found.Hits) {
		ask.Limit = fit // the search is repeated with a smaller limit, because the cursor depends on the number of hits
		if found, err = v.srv.o.Search.Find(ctx, v.caller, ask); err != nil {
			return nil, err
		}
		out.Cut = "more would make the answer too large; continue with next_cursor"
	}
	out.Next = found.Next
	e := understudy.AuditEntry{Action: understudy.ActionSearch, What: "an agent searches", Source: a.Source, Values: []string{a.Query}}
	for _, h := range found.Hits {
		if err := v.checkSize(len(h.Body)); err != nil {
			return nil, err
		}
		link := ""
		if h.URL != "" {
			link = v.srv.o.PublicURL + h.URL
		}
		out.Hits = append(out.Hits, searchHit{h.Source, h.Kind, h.ID, link, h.Body})
		e.IDs = append(e.IDs, h.ID)
		v.addHeld(ctx, out, h.Source, h.Kind)
	}
	e.Rows = len(out.Hits)
	return out, v.recordAction(ctx, e)
}

// addHeld adds to an answer how much of a kind is stored, if the caller may know the number of its records.
func (v *exchange) addHeld(ctx context.Context, out *searchAnswer, source, kind string) {
	name := source + "/" + kind
	if _, ok := out.Held[name]; ok || v.srv.o.StoredState == nil || !v.srv.o.Gate.CanCount(v.caller, source, kind) {
		return
	}
	if out.Held == nil {
		out.Held = map[string]storedState{}
	}
	complete, at := v.srv.o.StoredState(ctx, source, kind)
	h := storedState{Complete: complete}
	if !at.IsZero() {
		at = at.UTC().Truncate(time.Second)
		h.CaughtUp = &at
	}
	out.Held[name] = h
}

// historyArgs are the arguments of the history tool.
type historyArgs struct {
	Source string            `json:"source"`
	Kind   string            `json:"kind"`
	ID     string            `json:"id"`
	Within map[string]string `json:"within"`
	Limit  int               `json:"limit"`
}

// historyAnswer contains the versions of a record, the newest first.
type historyAnswer struct {
	Source   string        `json:"source"`
	Kind     string        `json:"kind"`
	ID       string        `json:"id"`
	Cut      string        `json:"cut,omitempty" jsonschema:"why versions are missing"`
	Note     string        `json:"note"`
	Versions []versionView `json:"versions" jsonschema:"newest first; as_of with the time in from returns the whole version"`
}

// versionView is a period in which a record did not change.
type versionView struct {
	From    time.Time             `json:"from"`
	Until   *time.Time            `json:"until,omitempty" jsonschema:"absent for the current version"`
	What    string                `json:"what" jsonschema:"first seen, changed, seen, gone or returned"`
	Shape   string                `json:"shape,omitempty" jsonschema:"the kind of answer that contained it"`
	Changed map[string][2]*string `json:"changed,omitempty" jsonschema:"the values before and after by field; null means no value"`
	Record  json.RawMessage       `json:"record,omitempty" jsonschema:"the oldest version, with all values"`
	Lost    bool                  `json:"not_kept,omitempty" jsonschema:"the values of this version are not stored"`
}

// addHistory adds the tool that reads the history of a record.
func (b *builder) addHistory() {
	if b.srv.o.History == nil {
		return
	}
	p := b.addWithin(b.addID(b.addKind(&properties{}, hasHistory), true, hasHistory), recordNeeds)
	least, most := 1.0, float64(b.srv.o.Limits.Rows)
	limit := text("the maximum number of versions; default 20")
	limit.Type, limit.Minimum, limit.Maximum = "integer", &least, &most
	add[historyAnswer](b, "history", "See what changed", "Returns every stored version of a record with its changes.", hasHistory,
		p.add("limit", limit), func(ctx context.Context, v *exchange, a historyArgs) (any, error) { return v.readHistory(ctx, a) })
}

// readHistory returns the versions of a record.
func (v *exchange) readHistory(ctx context.Context, a historyArgs) (any, error) {
	limit, err := v.limit(a.Limit)
	if err != nil {
		return nil, err
	}
	if _, err := v.offer.findKind(a.Source, a.Kind, hasHistory); err != nil {
		return nil, err
	}
	k, t, err := v.findInstance(recordArgs{a.Source, a.Kind, a.ID, a.Within})
	if err != nil {
		return nil, err
	}
	if err := v.srv.o.Gate.CheckRead(v.caller, t); err != nil {
		return nil, err
	}
	if err := v.srv.o.Gate.CheckFind(ctx, v.caller, t, v.srv.o.Mirror.Answer); err != nil {
		return nil, err
	}
	past, err := seen.Reader{History: v.srv.o.History, Gate: v.srv.o.Gate, Caller: v.caller}.Read(ctx, k.Source.Name, k.Spec.Name, t.ID,
		limit)
	if err != nil {
		return nil, err
	}
	if len(past.Versions) == 0 {
		return nil, understudy.ErrNotFound
	}
	out := &historyAnswer{Source: k.Source.Name, Kind: k.Spec.Name, ID: a.ID, Note: dataNote, Versions: []versionView{}}
	if past.More {
		out.Cut = "there are older versions; use a larger limit, or as_of"
	}
	left := v.srv.o.Limits.Bytes
	for i, s := range past.Versions {
		one, size := versionOf(s)
		if left -= size; left < 0 {
			if i == 0 {
				return nil, v.checkSize(size)
			}
			out.Cut = "older versions would make the answer too large; as_of returns them"
			break
		}
		out.Versions = append(out.Versions, one)
	}
	return out, v.recordAction(ctx, understudy.AuditEntry{Action: understudy.ActionRecord, What: "an agent reads the past of a record",
		Source: out.Source, Kind: out.Kind, IDs: []string{t.ID}, Rows: len(out.Versions)})
}

// versionOf returns a version in the form for an agent, and its approximate size in bytes.
func versionOf(s *seen.Version) (out versionView, size int) {
	out = versionView{From: s.Version.From.UTC(), Shape: s.Version.Shape, Lost: !s.Version.Gone && !s.Kept}
	if !s.Version.Until.IsZero() {
		until := s.Version.Until.UTC()
		out.Until = &until
	}
	switch {
	case s.Version.Gone:
		out.What = "gone"
	case s.Back:
		out.What = "came back"
	case s.First:
		out.What = "first seen"
	case s.Before == nil:
		out.What = "seen"
	default:
		out.What = "changed"
	}
	switch {
	case !s.Kept:
	case s.Before == nil || !s.Before.Kept:
		out.Record, size = s.Row.JSON(), len(s.Row.JSON())
	default:
		out.Changed = map[string][2]*string{}
		for _, d := range seen.ChangedFields(s.Before, s) {
			out.Changed[d.Name] = [2]*string{valueOf(d.Before), valueOf(d.After)}
			size += len(d.Name) + len(d.Before.Text) + len(d.After.Text)
		}
	}
	return out, size
}

// valueOf returns the text of a field's value, or nil if there is no value.
func valueOf(v access.Value) *string {
	if v.State != access.Seen && v.State != access.Masked {
		return nil
	}
	return &v.Text
}
