// Package sums is a part of the bench: what a million messages add up to.
package sums

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"understudy/bench/rig"
)

// messages is the list of all.
const messages = "/2010-04-01/Accounts/" + rig.Account + "/Messages.json"

// Measure asks a server that holds a million messages whole what they cost, how many they
// are and how long they took, by days, choices, numbers and countries: each sum for the
// first time, then again, then again after a message came. The very first sum is shown
// apart: it is asked while the columns are still being filled, and again until it is
// complete.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	records := r.Size(1_000_000, 4000)
	if err := measureCalls(ctx, r, records); err != nil {
		return err
	}
	g, err := r.Held(ctx, rig.Whole(records/2, "messages"), "messages") // a world has two messages a call
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	w := rig.NewClient(g.Serve.Addresses["viewer"], "", "")
	defer w.Close()
	m := &measuring{w: w, kind: "messages", records: int64(records)}
	if err := m.fill(ctx, r, g); err != nil {
		return err
	}
	first, again, changed := rig.NewAsking(), rig.NewAsking(), rig.NewAsking()
	for _, q := range questions() {
		if err := m.ask(ctx, q, first); err != nil {
			return err
		}
	}
	for range r.Times(20, 2) {
		for _, q := range questions() {
			if err := m.ask(ctx, q, again); err != nil {
				return err
			}
		}
	}
	api, through := g.Direct(), g.Through()
	defer api.Close()
	defer through.Close()
	for range r.Times(20, 2) {
		if err := api.Post(ctx, "/-/advance", `{"messages":1,"seconds":60}`); err != nil {
			return err
		}
		if _, err := through.Get(ctx, messages+"?PageSize=50", "Cache-Control: no-cache"); err != nil {
			return err
		}
		for _, q := range questions() {
			if err := m.ask(ctx, q, changed); err != nil {
				return err
			}
		}
	}
	last, _, err := m.get(ctx, m.all())
	if err != nil {
		return err
	}
	r.AtLeast("records in the last sum", float64(last.Totals[0].Count), float64(records+1), "records")
	first.Show(r, "ms, a sum asked for the first time")
	again.Show(r, "ms, asked again")
	changed.Show(r, "ms, asked again after a message came")
	r.AtMost("a sum asked for the first time, slowest", rig.Ms(rig.Quantile(first.All, 1)), 500, "ms")
	r.AtMost("a kept sum, 99 %", rig.Ms(rig.Quantile(again.All, 0.99)), 10, "ms")
	r.AtMost("a kept sum after a change, median", rig.Ms(rig.Median(changed.All)), 10, "ms")
	return nil
}

// measureCalls asks a server that holds calls whole for the sum of all of them.
func measureCalls(ctx context.Context, r *rig.Run, calls int) (err error) {
	g, err := r.Held(ctx, rig.Whole(calls, "calls"), "calls")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	w := rig.NewClient(g.Serve.Addresses["viewer"], "", "")
	defer w.Close()
	m := &measuring{w: w, kind: "calls", records: int64(calls)}
	return m.fill(ctx, r, g)
}

// questions are sums of every sort, each by a number of groups of its own.
func questions() (all []rig.Question) {
	for _, q := range [][3]string{
		{"price by day", "", "sum=price&by=day"}, {"price by status", "", "sum=price&by=status"},
		{"count by error", "status:failed,undelivered", "sum=count&by=error_code"}, {"price by country", "", "sum=price&by=to.country"},
		{"price by own number", "direction:outbound-api", "sum=price&by=from"}, {"delivery by day", "", "sum=delivery&by=day"},
		{"count by day and status", "", "sum=count&by=day,status"}, {"price by hour, a month", "date:" + rig.NewestCall.Format("2006-01"), "sum=price&by=hour"},
		{"segments by direction", "price<-0.01", "sum=num_segments&by=direction"}, {"count, rare word", "123456", "sum=count&by=day"},
	} {
		all = append(all, rig.Question{Group: q[0], URI: "/-/search?kind=messages&" + q[2] + "&q=" + url.QueryEscape(q[1])})
	}
	return all
}

// measuring asks for sums.
type measuring struct {
	w       *rig.Client
	kind    string
	records int64
}

// all returns the address of the sum of all.
func (m *measuring) all() string { return "/-/search?kind=" + m.kind + "&sum=count" }

// sum is what is looked at of an answer.
type sum struct {
	Complete bool              `json:"complete"`
	Rows     []json.RawMessage `json:"rows"`
	Totals   []struct {
		Count int64 `json:"count"`
	} `json:"totals"`
}

func (m *measuring) get(ctx context.Context, uri string) (s sum, took time.Duration, err error) {
	a, err := m.w.Page(ctx, uri)
	if err != nil {
		return s, 0, err
	}
	return s, a.Took, json.Unmarshal(a.Body, &s)
}

// fill asks for the first sum of all until it is complete.
func (m *measuring) fill(ctx context.Context, r *rig.Run, g *rig.Rig) error {
	before, err := g.Serve.Resident()
	if err != nil {
		return err
	}
	began := time.Now()
	var first time.Duration
	for asked := 0; ; asked++ {
		s, took, err := m.get(ctx, m.all())
		if err != nil {
			return err
		}
		if asked == 0 {
			first = took
		}
		if s.Complete {
			r.Exactly(m.kind+" in the first sum", int(s.Totals[0].Count), int(m.records))
			break
		}
		if err := rig.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	all := time.Since(began)
	after, err := g.Serve.Resident()
	if err != nil {
		return err
	}
	r.Table([][]string{
		{"the very first sum", "first answer, ms", "complete after, s", "us/record", "resident before, MiB", "after, MiB"},
		{"count of all " + m.kind, rig.Figure(rig.Ms(first)), rig.Figure(all.Seconds()), rig.Figure(float64(all.Microseconds()) / float64(m.records)),
			rig.Figure(float64(before) / rig.Mib), rig.Figure(float64(after) / rig.Mib)},
	})
	r.AtMost("the very first answer", rig.Ms(first), 500, "ms")
	return nil
}

// ask asks once; an answer that is not complete is an error, since its time says nothing.
func (m *measuring) ask(ctx context.Context, q rig.Question, in *rig.Asking) error {
	s, took, err := m.get(ctx, q.URI)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", q.URI, err)
	case !s.Complete:
		return fmt.Errorf("%s: the sum is not complete", q.URI)
	}
	in.Add(q.Group, took, len(s.Rows))
	return nil
}
