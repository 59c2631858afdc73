// Agreement: how often a list made from records is equal to upstream's.

package shadow

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

// agreement is what the samples of one list said.
type agreement struct {
	Equal     int64      `json:"equal"` // in a row, up to now
	All       int64      `json:"all"`
	Differing int64      `json:"differing,omitempty"`
	Last      difference `json:"last,omitzero"`
	Spec      string     `json:"spec,omitempty"` // as it was then (printOf)
}

// Scores are how the lists of a source are answered, in the order of its spec;
// those of a kind without records are left out.
func (r *Reads) Scores(source string) []request.ListScore {
	ls := r.sources[source]
	if ls == nil {
		return nil
	}
	var out []request.ListScore
	for _, k := range ls.src.Spec.Kinds {
		for _, list := range k.Lists {
			if l := ls.lists[list]; l != nil {
				out = append(out, l.score())
			}
		}
	}
	return out
}

func (l *List) score() request.ListScore {
	l.mu.Lock()
	defer l.mu.Unlock()
	set, _ := l.set.Load().(Answers)
	first := Upstream
	if l.RecordsFirst() {
		first = Records
	}
	a := &l.agreement
	return request.ListScore{
		Kind: l.kind.Name, Path: l.list.Path, Title: l.list.Title, Answers: string(set), First: string(first), Equal: a.Equal, Enough: Enough,
		Samples: a.All, Differing: a.Differing, Field: a.Last.Field, Where: a.Last.Where, DifferedAt: a.Last.At.UTC(),
	}
}

// count takes a sample in; a zero difference means equal. An equal refusal says
// nothing about records (shows is false): it does not count among those in a row.
// count reports whether the list turned.
func (l *List) count(d difference, shows bool) (turned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirty = true
	l.agreement.All++
	if d.Field == "" && !shows {
		return false
	}
	if d.Field == "" {
		l.agreement.Equal++
		return l.agreement.Equal >= Enough && !l.agreed.Swap(true)
	}
	l.agreement.Equal, l.agreement.Last = 0, d
	l.agreement.Differing++
	return l.agreed.Swap(false)
}

// kvName is the name of a source's value.
func (ls *Lists) kvName() string { return "fidelity/" + ls.src.Name }

// Recall reads the agreement that earlier runs have found.
func (r *Reads) Recall(ctx context.Context) {
	if r.o.KV == nil {
		return
	}
	for _, ls := range r.sources {
		scores := map[string]agreement{}
		if err := understudy.ReadJSON(ctx, r.o.KV, ls.kvName(), &scores); err != nil {
			r.o.Logger.Warn("mirror: what was known of lists made from records cannot be read", "source", ls.src.Name, "error", err)
			continue
		}
		for list, l := range ls.lists {
			if known, ok := scores[list.Path]; ok && known.Spec == printOf(ls.src.Spec, l.list, l.kind) {
				l.mu.Lock()
				l.agreement = known
				l.agreed.Store(known.Equal >= Enough)
				l.mu.Unlock()
			}
		}
	}
}

// keep writes down what is new.
func (r *Reads) keep(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(r.sources)) {
		ls := r.sources[name]
		scores, dirty := map[string]agreement{}, false
		for list, l := range ls.lists {
			l.mu.Lock()
			dirty = dirty || l.dirty
			if l.dirty = false; l.agreement.All > 0 {
				l.agreement.Spec = printOf(ls.src.Spec, l.list, l.kind)
				scores[list.Path] = l.agreement
			}
			l.mu.Unlock()
		}
		if !dirty || r.o.KV == nil {
			continue
		}
		if err := understudy.WriteJSON(ctx, r.o.KV, ls.kvName(), scores); err != nil {
			r.o.Logger.Warn("mirror: what is known of lists made from records cannot be kept", "source", ls.src.Name, "error", err)
			for _, l := range ls.lists {
				l.mu.Lock()
				l.dirty = l.agreement.All > 0
				l.mu.Unlock()
			}
		}
	}
}

// printOf says in a few characters all of a spec by which a list is made from
// records: what was found out by another spec is not known of this one.
func printOf(s *spec.Spec, list *spec.List, k *spec.Kind) string {
	h := fnv.New64a()
	p, e := s.PagingOf(list), &s.Errors
	fmt.Fprintf(h, "%q %q %q %v %v", list.Path, list.Key, list.Shape, list.Only, list.Rows)
	for _, f := range list.Filters {
		fmt.Fprintf(h, " %q %q %q %q %v %v %d %d %v", f.Name, f.Field, f.Op, f.Type, f.Whole, f.Open, f.Back, f.Longest, f.Meaning)
	}
	fmt.Fprintf(h, " %q %q %q %q %d %d %q %d %q %q %q", p.Style, p.Next, p.Cursor, p.Size, p.Default, p.Max, p.Page, p.First, p.Tokens,
		p.Template, p.Token)
	if p.More+p.Back+p.Total != "" {
		fmt.Fprintf(h, " %q %q %q", p.More, p.Back, p.Total)
	}
	fmt.Fprintf(h, " %q %q %v %v %v %v %v", e.ContentType, e.Template, e.Codes, e.Messages, s.Quirks, s.Shown, s.Vars)
	fmt.Fprintf(h, " %q %q %q %q %q %v", k.ID, k.Prefixes, k.Clock, k.Order, k.Parent, k.Retention)
	for _, f := range k.Fields {
		fmt.Fprintf(h, " %q %q %q", f.Name, f.Type, f.Link)
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
