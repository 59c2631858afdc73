// Package lists is a part of the bench: any filtered list of a million calls, made from records.
package lists

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"understudy/bench/rig"
)

// Measure asks for lists of a million calls that are held whole, no two the same:
// filters alone and together, windows of time, places deep in the list, and
// sizes of pages. Every answer is made from records, none was made before.
// Then upstream fails every request, and others are asked.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	records := r.Size(1_000_000, 3000)
	g, err := r.Held(ctx, rig.Whole(records, "calls"), "calls")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return measure(ctx, r, g, records, limits{5, 25})
}

// MeasurePostgres is Measure with the records in PostgreSQL, and with its own targets.
func MeasurePostgres(ctx context.Context, r *rig.Run) (err error) {
	records := r.Size(1_000_000, 3000)
	g, stop, err := r.HeldOnPostgres(ctx, rig.Whole(records, "calls"), "calls")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return measure(ctx, r, g, records, limits{10, 50})
}

// limits are the targets of the median and the 99th percentile, in milliseconds.
type limits struct{ median, p99 float64 }

func measure(ctx context.Context, r *rig.Run, g *rig.Rig, records int, most limits) error {
	w := g.Through()
	defer w.Close()
	samples, err := sample(ctx, w, r.Times(40, 3))
	if err != nil {
		return err
	}
	d := &drawer{rng: rand.New(rand.NewPCG(1, 2)), calls: samples, records: records, asked: map[string]bool{}}
	if err := askLists(ctx, r, w, d, "upstream well", most); err != nil {
		return err
	}
	if err := g.Faults(ctx, `[{"match":"","status":503}]`); err != nil {
		return err
	}
	return askLists(ctx, r, w, d, "upstream down", most)
}

// askLists asks a few thousand lists and compares the times with the targets.
// Pages of 1,000, which are 2 MB, have a row of their own and are not judged.
func askLists(ctx context.Context, r *rig.Run, w *rig.Client, d *drawer, when string, most limits) error {
	judged, large := rig.NewAsking(), rig.NewAsking()
	others := 0
	for range r.Times(3000, 60) {
		q := d.list()
		for hops := 0; hops < 3 && q.URI != ""; hops++ {
			a, err := w.Page(ctx, q.URI)
			if err != nil {
				return err
			}
			if !strings.Contains(a.Header.Get("Cache-Status"), "composed") {
				others++
			}
			in := judged
			if strings.Contains(q.URI, "PageSize=1000&") {
				in = large
			}
			in.Add(q.Group, a.Took, strings.Count(string(a.Body), `"subresource_uris"`))
			if q.URI = ""; d.rng.IntN(4) == 0 {
				q.Group = "the page after, by its token"
				if q.URI, err = a.Next(); err != nil {
					return err
				}
			}
		}
	}
	judged.Show(r, "ms, "+when)
	large.Show(r, "ms, "+when+", pages of 1,000")
	r.Exactly("lists that were not made from records, "+when, others, 0)
	r.AtMost("a filtered list, "+when+", median", rig.Ms(rig.Median(judged.All)), most.median, "ms")
	r.AtMost("a filtered list, "+when+", 99 %", rig.Ms(rig.Quantile(judged.All, 0.99)), most.p99, "ms")
	r.Say("")
	return nil
}

// sample reads pages spread over the whole list.
func sample(ctx context.Context, w *rig.Client, pages int) (all []rig.CallRow, err error) {
	for i := range pages {
		day := rig.NewestCall.AddDate(0, 0, -i*rig.WorldDays/pages).Format(time.DateOnly)
		a, err := w.Page(ctx, rig.Calls+"?PageSize=50&"+url.QueryEscape("StartTime<")+"="+day)
		if err != nil {
			return nil, err
		}
		var body struct{ Calls []rig.CallRow }
		if err := json.Unmarshal(a.Body, &body); err != nil {
			return nil, err
		}
		all = append(all, body.Calls...)
	}
	if len(all) < pages {
		return nil, fmt.Errorf("%d pages showed %d calls", pages, len(all))
	}
	return all, nil
}

// drawer draws lists, none twice.
type drawer struct {
	rng     *rand.Rand
	calls   []rig.CallRow
	records int
	asked   map[string]bool
}

func (d *drawer) list() rig.Question {
	for {
		group, params := d.filters()
		size := []int{50, 50, 50, 50, 50, 50, 20, 20, 1, 7, 100, 200, 1000}[d.rng.IntN(13)]
		q := url.Values{}
		for i := 0; i < len(params); i += 2 {
			q.Set(params[i], params[i+1])
		}
		uri := fmt.Sprintf("%s?PageSize=%d&%s", rig.Calls, size, q.Encode())
		if !d.asked[uri] {
			d.asked[uri] = true
			return rig.Question{Group: group, URI: uri}
		}
	}
}

// filters are names and values.
func (d *drawer) filters() (group string, params []string) {
	c := d.calls[d.rng.IntN(len(d.calls))]
	status := []string{"completed", "busy", "no-answer", "failed", "canceled"}[d.rng.IntN(5)]
	from, to := d.window()
	switch d.rng.IntN(12) {
	case 0:
		return "deep in the list, by token", []string{"Page", fmt.Sprint(1 + d.rng.IntN(d.records/50)), "PageToken", "PA" + c.SID}
	case 1:
		return "to", []string{"To", c.To}
	case 2:
		return "from", []string{"From", c.From}
	case 3:
		return "from and to", []string{"From", c.From, "To", c.To}
	case 4:
		return "status, deep in the list", []string{"Status", status, "Page", fmt.Sprint(1 + d.rng.IntN(d.records/50)), "PageToken", "PA" + c.SID}
	case 5:
		return "window of days", []string{"StartTime>", from, "StartTime<", to}
	case 6:
		return "window of ends", []string{"EndTime>", from, "EndTime<", to}
	case 7:
		return "window and status", []string{"StartTime>", from, "StartTime<", to, "Status", status}
	case 8:
		return "window, status and from", []string{"StartTime>", from, "StartTime<", to, "Status", c.Status, "From", c.From}
	case 9:
		return "to and status", []string{"To", c.To, "Status", status}
	case 10:
		if c.Parent == nil {
			return "parent that has none", []string{"ParentCallSid", c.SID}
		}
		return "parent", []string{"ParentCallSid", *c.Parent}
	}
	return "nobody's number", []string{"From", fmt.Sprintf("+1999%07d", d.rng.IntN(10_000_000))}
}

// window is a few days somewhere, as the filters write them.
func (d *drawer) window() (from, to string) {
	begin := rig.NewestCall.AddDate(0, 0, -d.rng.IntN(rig.WorldDays))
	return begin.Format(time.DateOnly), begin.AddDate(0, 0, d.rng.IntN(8)).Format(time.DateOnly)
}
