// Agreement: how often a list composed from records is the same as upstream's list.

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

// agreement counts the results of the comparisons of one list.
type agreement struct {
	Equal     int64      `json:"equal"` // the number of comparisons without a difference since the last difference
	All       int64      `json:"all"`
	Differing int64      `json:"differing,omitempty"`
	Last      difference `json:"last,omitzero"`
	Spec      string     `json:"spec,omitempty"` // the fingerprint of the spec under which these results were counted
}

// Scores returns how the lists of a source are answered, in the order of its spec. It leaves out lists of kinds that
// have no records.
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
	set, _ := l.answers.Load().(Answers)
	first := Upstream
	if l.IsRecordsFirst() {
		first = Records
	}
	a := &l.agreement
	return request.ListScore{
		Kind: l.kind.Name, Path: l.list.Path, Title: l.list.Title, Answers: string(set), First: string(first), Equal: a.Equal,
		Enough: SamplesNeeded, Samples: a.All, Differing: a.Differing, Field: a.Last.Field, Where: a.Last.Where, DifferedAt: a.Last.At.UTC(),
	}
}

// count adds the result of a comparison. A zero difference means that both pages are the same. If shows is false,
// both are the same refusal: that proves nothing about records, so it does not add to Equal. turned is true if the
// list is now answered from the other side first.
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
		return l.agreement.Equal >= SamplesNeeded && !l.hasAgreed.Swap(true)
	}
	l.agreement.Equal, l.agreement.Last = 0, d
	l.agreement.Differing++
	return l.hasAgreed.Swap(false)
}

// kvName returns the key under which the agreement of a source's lists is stored.
func (ls *Lists) kvName() string { return "fidelity/" + ls.src.Name }

// Restore reads the agreement that was stored before the restart.
func (r *Reads) Restore(ctx context.Context) {
	if r.options.KV == nil {
		return
	}
	for _, ls := range r.sources {
		scores := map[string]agreement{}
		if err := understudy.ReadJSON(ctx, r.options.KV, ls.kvName(), &scores); err != nil {
			r.options.Logger.Warn("mirror: the saved comparisons of lists cannot be read", "source", ls.src.Name, "error", err)
			continue
		}
		for list, l := range ls.lists {
			if known, ok := scores[list.Path]; ok && known.Spec == fingerprint(ls.src.Spec, l.list, l.kind) {
				l.mu.Lock()
				l.agreement = known
				l.hasAgreed.Store(known.Equal >= SamplesNeeded)
				l.mu.Unlock()
			}
		}
	}
}

// save stores the agreement of all lists that have new samples.
func (r *Reads) save(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(r.sources)) {
		ls := r.sources[name]
		scores, dirty := map[string]agreement{}, false
		for list, l := range ls.lists {
			l.mu.Lock()
			dirty = dirty || l.dirty
			if l.dirty = false; l.agreement.All > 0 {
				l.agreement.Spec = fingerprint(ls.src.Spec, l.list, l.kind)
				scores[list.Path] = l.agreement
			}
			l.mu.Unlock()
		}
		if !dirty || r.options.KV == nil {
			continue
		}
		if err := understudy.WriteJSON(ctx, r.options.KV, ls.kvName(), scores); err != nil {
			r.options.Logger.Warn("mirror: the comparisons of lists cannot be saved", "source", ls.src.Name, "error", err)
			for _, l := range ls.lists {
				l.mu.Lock()
				l.dirty = l.agreement.All > 0
				l.mu.Unlock()
			}
		}
	}
}

// fingerprint returns a hash of everything in a spec that decides how a list is composed from records. Results that
// were counted under another fingerprint are ignored.
func fingerprint(s *spec.Spec, list *spec.List, k *spec.Kind) string {
	h := fnv.New64a()
	p, e := s.PagingOf(list), &s.Errors
	fmt.Fprintf(h, "%q %q %q %v %v", list.Path, list.Key, list.Shape, list.FixedValues, list.Rows)
	for _, f := range list.Filters {
		fmt.Fprintf(h, " %q %q %q %q %v %v %d %d %v", f.Name, f.Field, f.Op, f.Type, f.WholePeriod, f.Exclusive, f.MaxDaysBack,
			f.MaxDays, f.Meaning)
	}
	fmt.Fprintf(h, " %q %q %q %q %d %d %q %d %q %q %q", p.Style, p.Next, p.Cursor, p.Size, p.Default, p.Max, p.Page, p.First, p.Tokens,
		p.Template, p.Token)
	if p.More+p.Back+p.Total != "" {
		fmt.Fprintf(h, " %q %q %q", p.More, p.Back, p.Total)
	}
	fmt.Fprintf(h, " %q %q %v %v %v %v %v", e.ContentType, e.Template, e.Codes, e.Messages, s.Quirks, s.VarFields, s.Vars)
	fmt.Fprintf(h, " %q %q %q %q %q %v", k.ID, k.Prefixes, k.Clock, k.Order, k.Parent, k.Retention)
	for _, f := range k.Fields {
		fmt.Fprintf(h, " %q %q %q", f.Name, f.Type, f.Link)
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
