// Package html is a part of the bench: the pages people look at, as a browser asks for them.
package html

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"time"

	"understudy/bench/rig"
)

// What Logrole 1.8.3 (commit 8d324f8) does with a warm list of 50 calls, as
// committed: it cannot be run here.
const (
	logroleRate  = 400   // requests a second of 16 clients
	logroleAlone = 224   // of one client
	logroleCPU   = 4.8   // ms a request
	logrolePlain = 57472 // bytes on the wire: it does not compress
	logroleZip   = 6283  // what gzip -6 would make of them
)

// Measure measures the viewer with few and with many records held. It measures
// each page warm, by one client and by sixteen, the first byte of pages that were
// not requested before, and pages that wait for upstream.
func Measure(ctx context.Context, r *rig.Run) error {
	small, err := htmlOf(ctx, r, r.Size(5000, 300), nil)
	if err != nil {
		return err
	}
	if !r.Turn {
		if _, err = htmlOf(ctx, r, r.Size(1_000_000, 1000), small); err != nil {
			return err
		}
		if err := counts(ctx, r); err != nil { // older programs have counts that are not exact
			return err
		}
	}
	return slowPages(ctx, r)
}

// cellOf is one page as one role sees it.
type htmlCell struct {
	alone, crowd rig.Measured
	plain, zip   int
}

// htmlOf measures a viewer that holds so many calls. With other cells its list
// is compared with theirs.
func htmlOf(ctx context.Context, r *rig.Run, records int, others map[string]htmlCell) (cells map[string]htmlCell, err error) {
	s := rig.Fast(records / 50)
	s.Records, s.Settings, s.Mirror = records, append(s.Settings, "sync: [calls]"), "memory: 25MiB, newest: 24h, older: 24h"
	g, err := r.Held(ctx, s, "calls")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	pages, err := htmlAddresses(ctx, g)
	if err != nil {
		return nil, err
	}
	d := r.FindDriver()
	r.Say("%d calls held; gzip; load by %s; Logrole's figures are committed ones, of its list", records, d.Name)
	rows := [][]string{{"page", "role", "req/s, 1", "req/s, 16", "p50 ms", "p99 ms", "CPU ms/req", "bytes", "gzipped"}}
	cells = map[string]htmlCell{}
	for _, role := range []string{"all", "support"} {
		for _, p := range pages {
			if p.Group == "number" && role != "all" {
				break // the role sees the ends of numbers alone
			}
			c, err := cellOf(ctx, r, g, d, p.URI, role)
			if err != nil {
				return nil, fmt.Errorf("%s as %s: %w", p.Group, role, err)
			}
			cells[p.Group+role] = c
			rows = append(rows, []string{p.Group, role, rig.Figure(c.alone.Rate), rig.Figure(c.crowd.Rate), rig.Figure(rig.Ms(c.crowd.P50)), rig.Figure(rig.Ms(c.crowd.P99)),
				rig.Figure(rig.Ms(c.crowd.Each)), fmt.Sprint(c.plain), fmt.Sprint(c.zip)})
		}
	}
	r.Table(append(rows, []string{"list", "Logrole", fmt.Sprint(logroleAlone), fmt.Sprint(logroleRate), "38.8", "142", rig.Figure(logroleCPU), fmt.Sprint(logrolePlain), fmt.Sprint(logroleZip)}))
	for _, role := range []string{"all", "support"} {
		for _, page := range []string{"detail", "home", "number", "conversation"} {
			if c := cells[page+role]; c.crowd.Requests > 0 {
				r.AtMost(fmt.Sprintf("%s, CPU a request, %d held, %s", page, records, role), rig.Ms(c.crowd.Each), 0.5, "ms")
			}
		}
		judgeHTML(r, fmt.Sprintf("%d held, %s", records, role), cells["list"+role], others["list"+role])
	}
	return cells, firstBytes(ctx, r, g, records)
}

func judgeHTML(r *rig.Run, who string, c, other htmlCell) {
	r.AtLeast("list, 16 clients, "+who, c.crowd.Rate/logroleRate, 10, "times Logrole's")
	r.AtMost("list, CPU a request, "+who, rig.Ms(c.crowd.Each), logroleCPU/10, "ms")
	r.AtMost("list, bytes on the wire, "+who, float64(c.zip)/logrolePlain, 0.12, "of Logrole's")
	if other.crowd.Requests > 0 {
		r.AtMost("list, CPU over that with few records, "+who, float64(c.crowd.Each)/float64(other.crowd.Each), 1.5, "times")
	}
}

// htmlHeaders are a browser's, of a person in a role.
func htmlHeaders(role, encoding string) []string {
	token := rig.OurToken
	if role != "all" {
		token = rig.SupportToken
	}
	return []string{"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(rig.Account+":"+token)), "Accept-Encoding: " + encoding, "Accept: text/html"}
}

// cellOf measures one page, after it has been looked at until it is warm.
func cellOf(ctx context.Context, r *rig.Run, g *rig.Rig, d rig.Driver, uri, role string) (c htmlCell, err error) {
	base := g.Serve.Addresses["viewer"]
	w := rig.NewClient(base, "", "")
	defer w.Close()
	for range r.Times(5, 1) {
		for encoding, size := range map[string]*int{"gzip": &c.zip, "identity": &c.plain} {
			a, err := w.Get(ctx, uri, htmlHeaders(role, encoding)...)
			if err != nil || a.Status != http.StatusOK {
				return c, errors.Join(err, fmt.Errorf("%s: status %d: %.300s", uri, a.Status, a.Body))
			}
			*size = len(a.Body)
		}
		if err := g.Calm(ctx); err != nil {
			return c, err
		}
	}
	one := rig.Target{URL: base + uri, Headers: htmlHeaders(role, "gzip"), Clients: 1, Long: driven(r, 2*time.Second)}
	if c.alone, err = d.Measure(ctx, g.Serve, one); err != nil {
		return c, err
	}
	one.Clients, one.Long = 16, driven(r, 4*time.Second)
	c.crowd, err = d.Measure(ctx, g.Serve, one)
	return c, err
}

// driven is how long a load lasts.
func driven(r *rig.Run, full time.Duration) time.Duration {
	if r.Quick {
		return 50 * time.Millisecond
	}
	return r.Long(full)
}

// htmlAddresses are the pages measured, of records that are held.
func htmlAddresses(ctx context.Context, g *rig.Rig) ([]rig.Question, error) {
	all, err := heldCalls(ctx, g, 1)
	if err != nil {
		return nil, err
	}
	one := slices.IndexFunc(all, func(c rig.CallRow) bool { return strings.HasPrefix(c.From, "+") && strings.HasPrefix(c.To, "+") })
	if one < 0 {
		return nil, errors.New("no call between two numbers is held")
	}
	number := "/twilio/number/" + url.PathEscape(all[one].From)
	return []rig.Question{
		{Group: "list", URI: "/twilio/calls"},
		{Group: "detail", URI: "/twilio/calls/" + all[one].SID},
		{Group: "home", URI: "/"},
		{Group: "number", URI: number},
		{Group: "conversation", URI: number + "/" + url.PathEscape(all[one].To)},
	}, nil
}

// heldCalls are calls of the newest pages.
func heldCalls(ctx context.Context, g *rig.Rig, pages int) (all []rig.CallRow, err error) {
	w := g.Through()
	defer w.Close()
	_, err = w.Walk(ctx, rig.Calls+"?PageSize=50", pages, func(a rig.Answer) {
		var body struct{ Calls []rig.CallRow }
		if json.Unmarshal(a.Body, &body) == nil {
			all = append(all, body.Calls...)
		}
	})
	if err == nil && len(all) == 0 {
		err = errors.New("no call is held")
	}
	return all, err
}

// firstBytes requests pages that were not requested before, each once, by one client.
func firstBytes(ctx context.Context, r *rig.Run, g *rig.Rig, records int) error {
	all, err := heldCalls(ctx, g, r.Times(4, 1))
	if err != nil {
		return err
	}
	rows := [][]string{append([]string{"ms to the first byte, never looked at"}, rig.SpreadHead[1:]...)}
	w := rig.NewClient(g.Serve.Addresses["viewer"], "", "")
	defer w.Close()
	var held []time.Duration
	for _, role := range []string{"all", "support"} {
		var took []time.Duration
		for _, c := range all[:r.Times(150, 5)] {
			t, err := firstByte(ctx, w, "/twilio/calls/"+c.SID, htmlHeaders(role, "gzip"))
			if err != nil {
				return err
			}
			took = append(took, t)
		}
		rows, held = append(rows, rig.Spread("detail, "+role, took)), append(held, took...)
	}
	r.Table(rows)
	r.AtMost(fmt.Sprintf("first byte of a page whose record is held, %d held, median", records), rig.Ms(rig.Median(held)), 10, "ms")
	r.Say("")
	return nil
}

// firstByte asks once and says when the first byte of the answer was there.
func firstByte(ctx context.Context, w *rig.Client, uri string, headers []string) (took time.Duration, err error) {
	var began time.Time
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { took = time.Since(began) }})
	began = time.Now()
	a, err := w.Get(ctx, uri, headers...)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%s: status %d", uri, a.Status)
	}
	return took, err
}
