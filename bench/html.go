// HTML: the pages people look at, as a browser asks for them.

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"
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

// htmlPages measures the viewer with few and with many records held: each page
// warm, by one client and by sixteen, the first byte of pages nobody has looked
// at, and pages that wait for upstream.
func htmlPages(ctx context.Context, r *run) error {
	small, err := htmlOf(ctx, r, r.times(5000, 300), nil)
	if err != nil {
		return err
	}
	if _, err = htmlOf(ctx, r, r.times(1_000_000, 1000), small); err != nil {
		return err
	}
	return slowPages(ctx, r)
}

// cellOf is one page as one role sees it.
type htmlCell struct {
	alone, crowd measured
	plain, zip   int
}

// htmlOf measures a viewer that holds so many calls. With other cells its list
// is compared with theirs.
func htmlOf(ctx context.Context, r *run, records int, others map[string]htmlCell) (cells map[string]htmlCell, err error) {
	s := fast(records / 50)
	s.records, s.settings, s.mirror = records, append(s.settings, "sync: [calls]"), "hot: 25MiB, newest: 24h, older: 24h"
	g, err := r.held(ctx, s, "calls")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	pages, err := htmlAddresses(ctx, g)
	if err != nil {
		return nil, err
	}
	d := r.findDriver()
	r.say("%d calls held; gzip; load by %s; Logrole's figures are committed ones, of its list", records, d.name)
	rows := [][]string{{"page", "role", "req/s, 1", "req/s, 16", "p50 ms", "p99 ms", "CPU ms/req", "bytes", "gzipped"}}
	cells = map[string]htmlCell{}
	for _, role := range []string{"all", "support"} {
		for _, p := range pages {
			if p.group == "number" && role != "all" {
				break // the role sees the ends of numbers alone
			}
			c, err := cellOf(ctx, r, g, d, p.uri, role)
			if err != nil {
				return nil, fmt.Errorf("%s as %s: %w", p.group, role, err)
			}
			cells[p.group+role] = c
			rows = append(rows, []string{p.group, role, figure(c.alone.rate), figure(c.crowd.rate), figure(ms(c.crowd.p50)), figure(ms(c.crowd.p99)),
				figure(ms(c.crowd.each)), fmt.Sprint(c.plain), fmt.Sprint(c.zip)})
		}
	}
	r.table(append(rows, []string{"list", "Logrole", fmt.Sprint(logroleAlone), fmt.Sprint(logroleRate), "38.8", "142", figure(logroleCPU), fmt.Sprint(logrolePlain), fmt.Sprint(logroleZip)}))
	for _, role := range []string{"all", "support"} {
		for _, page := range []string{"detail", "home", "number", "conversation"} {
			if c := cells[page+role]; c.crowd.requests > 0 {
				r.atMost(fmt.Sprintf("%s, CPU a request, %d held, %s", page, records, role), ms(c.crowd.each), 0.5, "ms")
			}
		}
		judgeHTML(r, fmt.Sprintf("%d held, %s", records, role), cells["list"+role], others["list"+role])
	}
	return cells, firstBytes(ctx, r, g, records)
}

func judgeHTML(r *run, who string, c, other htmlCell) {
	r.atLeast("list, 16 clients, "+who, c.crowd.rate/logroleRate, 10, "times Logrole's")
	r.atMost("list, CPU a request, "+who, ms(c.crowd.each), logroleCPU/10, "ms")
	r.atMost("list, bytes on the wire, "+who, float64(c.zip)/logrolePlain, 0.12, "of Logrole's")
	if other.crowd.requests > 0 {
		r.atMost("list, CPU over that with few records, "+who, float64(c.crowd.each)/float64(other.crowd.each), 1.5, "times")
	}
}

// htmlHeaders are a browser's, of a person in a role.
func htmlHeaders(role, encoding string) []string {
	token := ourToken
	if role != "all" {
		token = supportToken
	}
	return []string{"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(account+":"+token)), "Accept-Encoding: " + encoding, "Accept: text/html"}
}

// cellOf measures one page, after it has been looked at until it is warm.
func cellOf(ctx context.Context, r *run, g *Rig, d driver, uri, role string) (c htmlCell, err error) {
	base := g.serve.addresses["viewer"]
	w := NewClient(base, "", "")
	defer w.close()
	for range r.times(5, 1) {
		for encoding, size := range map[string]*int{"gzip": &c.zip, "identity": &c.plain} {
			a, err := w.get(ctx, uri, htmlHeaders(role, encoding)...)
			if err != nil || a.status != http.StatusOK {
				return c, errors.Join(err, fmt.Errorf("%s: status %d: %.300s", uri, a.status, a.body))
			}
			*size = len(a.body)
		}
		if err := g.calm(ctx); err != nil {
			return c, err
		}
	}
	one := Target{base + uri, htmlHeaders(role, "gzip"), 1, driven(r, 2*time.Second)}
	if c.alone, err = d.measure(ctx, g.serve, one); err != nil {
		return c, err
	}
	one.clients, one.long = 16, driven(r, 4*time.Second)
	c.crowd, err = d.measure(ctx, g.serve, one)
	return c, err
}

// driven is how long a load lasts.
func driven(r *run, full time.Duration) time.Duration {
	if r.quick {
		return 50 * time.Millisecond
	}
	return full
}

// htmlAddresses are the pages measured, of records that are held.
func htmlAddresses(ctx context.Context, g *Rig) ([]question, error) {
	all, err := heldCalls(ctx, g, 1)
	if err != nil {
		return nil, err
	}
	number := "/twilio/number/" + url.PathEscape(all[0].From)
	return []question{
		{"list", "/twilio/calls"}, {"detail", "/twilio/calls/" + all[0].SID}, {"home", "/"},
		{"number", number}, {"conversation", number + "/" + url.PathEscape(all[0].To)},
	}, nil
}

// heldCalls are calls of the newest pages.
func heldCalls(ctx context.Context, g *Rig, pages int) (all []callRow, err error) {
	w := g.through()
	defer w.close()
	_, err = w.walk(ctx, calls+"?PageSize=50", pages, func(a answer) {
		var body struct{ Calls []callRow }
		if json.Unmarshal(a.body, &body) == nil {
			all = append(all, body.Calls...)
		}
	})
	if err == nil && len(all) == 0 {
		err = errors.New("no call is held")
	}
	return all, err
}

// firstBytes asks for pages nobody has looked at, each once, by one client.
func firstBytes(ctx context.Context, r *run, g *Rig, records int) error {
	all, err := heldCalls(ctx, g, r.times(4, 1))
	if err != nil {
		return err
	}
	rows := [][]string{append([]string{"ms to the first byte, never looked at"}, spreadHead[1:]...)}
	w := NewClient(g.serve.addresses["viewer"], "", "")
	defer w.close()
	var held []time.Duration
	for _, role := range []string{"all", "support"} {
		var took []time.Duration
		for _, c := range all[:r.times(150, 5)] {
			t, err := firstByte(ctx, w, "/twilio/calls/"+c.SID, htmlHeaders(role, "gzip"))
			if err != nil {
				return err
			}
			took = append(took, t)
		}
		rows, held = append(rows, spread("detail, "+role, took)), append(held, took...)
	}
	r.table(rows)
	r.atMost(fmt.Sprintf("first byte of a page whose record is held, %d held, median", records), ms(median(held)), 10, "ms")
	r.say("")
	return nil
}

// firstByte asks once and says when the first byte of the answer was there.
func firstByte(ctx context.Context, w *Client, uri string, headers []string) (took time.Duration, err error) {
	var began time.Time
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { took = time.Since(began) }})
	began = time.Now()
	a, err := w.get(ctx, uri, headers...)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("%s: status %d", uri, a.status)
	}
	return took, err
}
