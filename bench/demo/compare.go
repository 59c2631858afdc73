// This file measures the five lines of `make run`: the API directly, against the API through Understudy.

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"understudy/kit/retry"
)

const (
	crowd   = 100              // the number of clients that request one cold page at once
	repeats = 31               // how often a stored page is requested; the median counts
	usual   = 12 * time.Second // what all of it takes

	// Values from the demo's settings (cmd/understudy/demo.yml).
	account      = "AC00000000000000000000000000000001"
	directToken  = "slowapitoken"
	throughToken = "understudydemotoken"
	calls        = "/2010-04-01/Accounts/" + account + "/Calls"
)

// polled are the kinds that the demo keeps warm, and fetches completely at the end.
var polled = []string{"calls", "messages"}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowd}, Timeout: 30 * time.Second}

// way is one way to the API: direct or through Understudy.
type way struct{ base, user, password string }

// comparison measures both ways against the same simulated API.
type comparison struct {
	direct, through way
	next            string // the link to the page after the one that was read directly
}

// line is one row of the table.
type line struct {
	what            string
	direct, through outcome
}

// outcome is the result of one measurement: the time, the upstream requests for the key, and all upstream requests.
type outcome struct {
	took         time.Duration
	forKey, most int
}

// compare prints the table and then fetches all records of the polled kinds.
func (d *demo) compare(ctx context.Context) {
	fmt.Printf("\nmeasuring, direct against through Understudy (about twelve seconds) …\n")
	// The newest page is kept warm from the start, and this is what is measured.
	var now stats
	var err error
	for now.Sources["twilio"].Kinds[polled[0]].CaughtUpTo.IsZero() && err == nil {
		if err = retry.Wait(ctx, 50*time.Millisecond); err == nil {
			now, err = d.readStats(ctx)
		}
	}
	var lines []line
	if err == nil {
		c := &comparison{direct: way{d.addresses["slowapi"], account, directToken}, through: way{d.addresses["twilio"], account, throughToken}}
		lines, err = c.measure(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		// A failed measurement is reported, but does not end the demo.
		fmt.Printf("the comparison could not be measured: %v\n", err)
	default:
		printLines(lines)
	}
	if err := d.syncAll(ctx); err != nil && ctx.Err() == nil {
		fmt.Printf("not every record could be fetched: %v\n", err)
	}
}

// syncAll fetches every record of the polled kinds, so that a newcomer's searches find something. Then it prints what can be tried.
func (d *demo) syncAll(ctx context.Context) error {
	before, err := d.readStats(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\nfetching every record, as `understudy sync` does (about half a minute) …\n")
	for _, kind := range polled {
		var said strings.Builder
		cmd := exec.CommandContext(ctx, d.program, "sync", "twilio/"+kind, "--data", d.folder)
		cmd.Stdout, cmd.Stderr = os.Stdout, &said
		if err := cmd.Run(); err != nil {
			return errors.New(cmp.Or(strings.TrimPrefix(strings.TrimSpace(said.String()), "understudy: "), err.Error()))
		}
	}
	after, err := d.readStats(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("that took %d upstream requests; any search in %s, and any list of them while the API is down, is now answered "+
		"from records:\n%s/search\n", after.Upstream.ByReason["sync"]-before.Upstream.ByReason["sync"], strings.Join(polled, " and "),
		d.addresses["viewer"])
	return nil
}

// stats is a part of Understudy's own statistics.
type stats struct {
	Sources map[string]struct {
		Kinds map[string]struct {
			CaughtUpTo time.Time `json:"caught_up_to"`
		} `json:"kinds"`
	} `json:"sources"`
	Upstream struct {
		ByReason map[string]int `json:"by_reason"`
	} `json:"upstream"`
}

func (d *demo) readStats(ctx context.Context) (s stats, err error) {
	body, err := way{base: d.addresses["viewer"]}.get(ctx, "/-/stats")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(body, &s)
}

// measure measures the five lines. Each uses keys that were not requested before, except the newest page and its records,
// which are kept warm on purpose. On a terminal it shows its progress.
func (c *comparison) measure(ctx context.Context) ([]line, error) {
	defer client.CloseIdleConnections()
	steps := []struct {
		what string
		run  func(context.Context, way, string) (outcome, error)
		uri  string
	}{
		{"newest page", c.askRepeatedly, calls + ".json"},
		{"next page, at once", c.askNext(0), calls + ".json?PageSize=41"},
		{"next page, a second later", c.askNext(time.Second), calls + ".json?PageSize=42"},
		{"one record by its id", c.askRecord, calls + ".json"},
		{strconv.Itoa(crowd) + " clients, one cold page", c.askTogether, calls + ".json?PageSize=44"},
	}
	var lines []line
	began, width := time.Now(), 0
	info, err := os.Stdout.Stat()
	onTerminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	for i, s := range steps {
		if onTerminal {
			text := fmt.Sprintf("  %d of %d: %s, about %v left", i+1, len(steps), s.what, max(0, usual-time.Since(began)).Round(time.Second))
			fmt.Printf("\r%-*s", width, text)
			width = max(width, len(text))
		}
		l := line{what: s.what}
		if l.direct, err = s.run(ctx, c.direct, s.uri); err != nil {
			err = fmt.Errorf("%s, direct: %w", s.what, err)
		} else if l.through, err = s.run(ctx, c.through, s.uri); err != nil {
			err = fmt.Errorf("%s, through: %w", s.what, err)
		}
		if err != nil {
			break
		}
		lines = append(lines, l)
	}
	if onTerminal {
		fmt.Printf("\r%*s\r", width, "")
	}
	return lines, err
}

// askOnce times one request.
func (c *comparison) askOnce(ctx context.Context, w way, uri string) (outcome, error) {
	return c.timeRun(ctx, uri, func() error { _, err := w.get(ctx, uri); return err })
}

// askRepeatedly requests a stored page many times and returns the median time. It requests the page only once directly from the API.
func (c *comparison) askRepeatedly(ctx context.Context, w way, uri string) (outcome, error) {
	if w == c.direct {
		return c.askOnce(ctx, w, uri)
	}
	all := make([]outcome, repeats)
	for i := range all {
		var err error
		if all[i], err = c.askOnce(ctx, w, uri); err != nil {
			return outcome{}, err
		}
	}
	slices.SortFunc(all, func(a, b outcome) int { return cmp.Compare(a.took, b.took) })
	middle := all[repeats/2]
	for _, o := range all {
		middle.forKey, middle.most = max(middle.forKey, o.forKey), max(middle.most, o.most)
	}
	return middle, nil
}

// askNext reads a page, waits as long as a person would, and times the page after it.
func (c *comparison) askNext(pause time.Duration) func(context.Context, way, string) (outcome, error) {
	return func(ctx context.Context, w way, uri string) (outcome, error) {
		// The next page may be fetched before it is requested, so the requests are counted from here on.
		before, err := c.readCounts(ctx)
		if err != nil {
			return outcome{}, err
		}
		link := c.next
		if w != c.direct || link == "" {
			body, err := w.get(ctx, uri)
			if err != nil {
				return outcome{}, err
			}
			var page struct {
				Next string `json:"next_page_uri"`
			}
			if err := json.Unmarshal(body, &page); err != nil {
				return outcome{}, err
			}
			if link = page.Next; link == "" {
				return outcome{}, errors.New("the first page has no next")
			}
		}
		if w == c.direct {
			c.next = link
		} else if err := retry.Wait(ctx, pause+pause/2); err != nil { // lists take up to a fifth longer
			return outcome{}, err
		}
		o, err := c.askOnce(ctx, w, link)
		if err != nil {
			return o, err
		}
		after, err := c.readCounts(ctx)
		o.forKey, o.most = after.count(link)-before.count(link), after.Requests-before.Requests
		return o, err
	}
}

// askRecord times the request for one record of a stored page.
func (c *comparison) askRecord(ctx context.Context, w way, uri string) (outcome, error) {
	body, err := c.through.get(ctx, uri)
	if err != nil {
		return outcome{}, err
	}
	var page struct {
		Calls []struct{ Sid string } `json:"calls"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return outcome{}, err
	}
	if len(page.Calls) == 0 {
		return outcome{}, errors.New("the page has no records")
	}
	// a record in the middle, because the newest may still change
	return c.askOnce(ctx, w, calls+"/"+page.Calls[len(page.Calls)/2].Sid+".json")
}

// askTogether times a hundred clients on one page.
func (c *comparison) askTogether(ctx context.Context, w way, uri string) (outcome, error) {
	return c.timeRun(ctx, uri, func() error {
		errs := make([]error, crowd)
		var wg sync.WaitGroup
		for i := range crowd {
			wg.Go(func() { _, errs[i] = w.get(ctx, uri) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

// timeRun runs one measurement, and reads upstream's counters before and after it.
func (c *comparison) timeRun(ctx context.Context, uri string, run func() error) (outcome, error) {
	before, err := c.readCounts(ctx)
	if err != nil {
		return outcome{}, err
	}
	began := time.Now()
	if err := run(); err != nil {
		return outcome{}, err
	}
	took := time.Since(began)
	after, err := c.readCounts(ctx)
	return outcome{took, after.count(uri) - before.count(uri), after.Requests - before.Requests}, err
}

// upstreamCounts is what the simulated API counted.
type upstreamCounts struct {
	Requests int            `json:"requests"`
	ByTarget map[string]int `json:"by_target"`
}

func (c *comparison) readCounts(ctx context.Context) (u upstreamCounts, err error) {
	body, err := c.direct.get(ctx, "/-/stats")
	if err != nil {
		return u, err
	}
	return u, json.Unmarshal(body, &u)
}

// count adds up the requests for the same page as uri. The order of the parameters does not matter.
func (u upstreamCounts) count(uri string) (n int) {
	for target, times := range u.ByTarget {
		if sortParameters(target) == sortParameters(uri) {
			n += times
		}
	}
	return n
}

// sortParameters returns a URI with its parameters in the order of their names.
func sortParameters(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return uri
	}
	return u.Path + "?" + u.Query().Encode()
}

// get reads a whole answer. Any status except 200 is an error.
func (w way) get(ctx context.Context, uri string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+uri, nil)
	if err != nil {
		return nil, err
	}
	if w.user != "" {
		req.SetBasicAuth(w.user, w.password)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", uri, resp.Status)
	}
	return body, err
}

func printLines(lines []line) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\t\tdirect\trequests\t\tthrough Understudy\trequests\tin all\t")
	for _, l := range lines {
		fmt.Fprintf(w, "\t%s\t%s\t%d\t\t%s\t%d\t%d\t\n", l.what, round(l.direct.took), l.direct.forKey, round(l.through.took), l.through.forKey,
			l.through.most)
	}
	_ = w.Flush()
	fmt.Print("requests: upstream requests for that page or record; in all: with prefetch and the polls that keep lists warm\n")
}

// round keeps three digits.
func round(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
