// Compare: what `make run` measures, direct against through Understudy.

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy/internal/app"
	"understudy/internal/crawl"
	"understudy/kit/retry"
	"understudy/request"
	"understudy/spec"
)

const (
	crowd   = 100 // clients that ask for one cold page at once
	repeats = 31  // times that a page which is held is asked for: the middle one counts

	usual = 12 * time.Second // what all of it takes
)

// way is one way to the API: direct or through Understudy.
type way struct {
	base, user, password string
	client               *http.Client
}

// comparison measures both ways against the same simulated API.
type comparison struct {
	direct, through way
	source          *spec.Source
	list            *spec.List
	kind            *spec.Kind
	first           []byte // the page that was read directly, whose next one is asked for
}

// line is one row of the table.
type line struct {
	what            string
	direct, through outcome
}

// outcome is what one measurement took: time, and upstream requests for the
// key and in all.
type outcome struct {
	took         time.Duration
	forKey, most int
}

// compare prints the table, has the polled kinds fetched whole and then waits
// for the end.
func compare(ctx context.Context, a *app.App, slow string, p *process) error {
	out := p.stdout
	c, err := compared(ctx, a, slow)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nmeasuring, direct against through Understudy (about twelve seconds) …\n")
	if err := awaitPoll(ctx, a, c); err != nil {
		return nil // it ended before the first poll came
	}
	progress := newShow(out)
	began := time.Now()
	lines, err := c.measure(ctx, func(what string, number, of int) {
		left := max(0, usual-time.Since(began)).Round(time.Second)
		progress.say(fmt.Sprintf("  %d of %d: %s, about %v left", number, of, what, left))
	})
	progress.end()
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		// A failed measurement is worth a sentence, not the end of the demo.
		fmt.Fprintf(out, "the comparison could not be measured: %v\n", err)
	default:
		printComparison(out, lines)
	}
	if err := syncAll(ctx, a, c.source, p); err != nil && ctx.Err() == nil {
		fmt.Fprintf(out, "not every record could be fetched: %v\n", err)
	}
	<-ctx.Done()
	return nil
}

// syncAll has every record of the polled kinds fetched, so that what a newcomer
// searches for is there, and says what can be tried then.
func syncAll(ctx context.Context, a *app.App, src *spec.Source, p *process) error {
	asked := func() int64 { return a.Asked(src.Name, request.Sync) }
	before := asked()
	fmt.Fprintf(p.stdout, "\nfetching every record, as `understudy sync` does (about half a minute) …\n")
	for _, kind := range src.Polls {
		o := crawl.Order{Source: src.Name, Kind: kind}
		if err := watchSync(ctx, p, o, here(a.Commands()).sync(o)); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.stdout, "that took %d upstream requests; any search in %s, and any list of them while the API is down, is now answered "+
		"from records:\n%s/search\n", asked()-before, strings.Join(src.Polls, " and "), a.Viewer())
	return nil
}

// awaitPoll waits until the newest page is there: it is kept warm from the
// start, and this is what is measured.
func awaitPoll(ctx context.Context, a *app.App, c *comparison) error {
	for a.CaughtUp(c.source.Name, c.kind.Name).IsZero() {
		if err := retry.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func compared(ctx context.Context, a *app.App, slow string) (*comparison, error) {
	src := a.Sources()[0]
	kind := src.Spec.Kind(src.Polls[0])
	settings := a.Settings()
	cfg, cred := settings.Sources[src.Name], settings.Credentials[0]
	ours, err := demoSecrets(ctx, cred.Secret)
	if err != nil {
		return nil, err
	}
	theirs, err := demoSecrets(ctx, cfg.Secret)
	if err != nil {
		return nil, err
	}
	client := func() *http.Client {
		return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowd}, Timeout: 30 * time.Second}
	}
	return &comparison{
		direct:  way{slow, cfg.User, theirs.Reveal(), client()},
		through: way{a.Address(src.Name), cred.User, ours.Reveal(), client()},
		source:  src, kind: kind, list: kind.Lists[0],
	}, nil
}

// measure runs the five lines, each on keys not asked for before except the
// newest page and its records, which are kept warm: that is what it is for. It calls begin at each line.
func (c *comparison) measure(ctx context.Context, begin func(what string, number, of int)) ([]line, error) {
	defer c.direct.client.CloseIdleConnections()
	defer c.through.client.CloseIdleConnections()
	steps := []struct {
		what string
		run  func(context.Context, way, string) (outcome, error)
		uri  string
	}{
		{"newest page", c.repeated, c.path(0)},
		{"next page, at once", c.next(0), c.path(41)},
		{"next page, a second later", c.next(time.Second), c.path(42)},
		{"one record by its id", c.record, c.path(0)},
		{strconv.Itoa(crowd) + " clients, one cold page", c.crowd, c.path(44)},
	}
	var lines []line
	for i, s := range steps {
		begin(s.what, i+1, len(steps))
		l := line{what: s.what}
		var err error
		if l.direct, err = s.run(ctx, c.direct, s.uri); err != nil {
			return nil, fmt.Errorf("%s, direct: %w", s.what, err)
		}
		if l.through, err = s.run(ctx, c.through, s.uri); err != nil {
			return nil, fmt.Errorf("%s, through: %w", s.what, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// path is the first page of the list at a page size, 0 = the default.
func (c *comparison) path(size int) string {
	path, _ := c.source.FillPath(c.list.Template())
	if size > 0 {
		path += "?" + c.source.Spec.Paging.Size + "=" + strconv.Itoa(size)
	}
	return path
}

func (c *comparison) one(ctx context.Context, w way, uri string) (outcome, error) {
	return c.timed(ctx, uri, func() error { _, err := w.get(ctx, uri); return err })
}

// repeated times a page that is held many times and returns the middle one; direct it is asked
// for once.
func (c *comparison) repeated(ctx context.Context, w way, uri string) (outcome, error) {
	if w == c.direct {
		return c.one(ctx, w, uri)
	}
	all := make([]outcome, repeats)
	for i := range all {
		var err error
		if all[i], err = c.one(ctx, w, uri); err != nil {
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

// next reads a page, waits like a person would, and times the page after it.
func (c *comparison) next(pause time.Duration) func(context.Context, way, string) (outcome, error) {
	return func(ctx context.Context, w way, uri string) (outcome, error) {
		// The next page may be fetched before it is asked for: count from before.
		before, err := c.counts(ctx)
		if err != nil {
			return outcome{}, err
		}
		body := c.first
		if w != c.direct || body == nil {
			if body, err = w.get(ctx, uri); err != nil {
				return outcome{}, err
			}
		}
		if w == c.direct {
			c.first = body
		}
		var page map[string]any
		if err := json.Unmarshal(body, &page); err != nil {
			return outcome{}, err
		}
		link, _ := page[c.source.Spec.Paging.Next].(string)
		if link == "" {
			return outcome{}, errors.New("the first page has no next")
		}
		if pause > 0 && w != c.direct { // the direct page was read for the line before
			if err := retry.Sleep(ctx, pause+pause/2); err != nil { // lists take up to a fifth longer
				return outcome{}, err
			}
		}
		o, err := c.timed(ctx, link, func() error { _, err := w.get(ctx, link); return err })
		if err != nil {
			return o, err
		}
		after, err := c.counts(ctx)
		o.forKey = after.of(c, link) - before.of(c, link)
		o.most = after.Requests - before.Requests
		return o, err
	}
}

// record times one record of a page that is held.
func (c *comparison) record(ctx context.Context, w way, uri string) (outcome, error) {
	body, err := c.through.get(ctx, uri)
	if err != nil {
		return outcome{}, err
	}
	var page map[string]json.RawMessage
	var rows []map[string]any
	if err := errors.Join(json.Unmarshal(body, &page), json.Unmarshal(page[c.list.Key], &rows)); err != nil {
		return outcome{}, err
	}
	if len(rows) == 0 {
		return outcome{}, errors.New("the page has no records")
	}
	// A record in the middle: the newest may still be on its way.
	id, _ := rows[len(rows)/2][c.kind.ID[0]].(string)
	in := c.kind.Instances[0]
	path, _ := in.Template().Fill(func(name string) (string, bool) {
		if name == in.ID[0] {
			return id, true
		}
		return c.source.User, true
	})
	return c.one(ctx, w, path)
}

// crowd times a hundred clients on one page.
func (c *comparison) crowd(ctx context.Context, w way, uri string) (outcome, error) {
	return c.timed(ctx, uri, func() error {
		errs := make([]error, crowd)
		var wg sync.WaitGroup
		for i := range crowd {
			wg.Go(func() { _, errs[i] = w.get(ctx, uri) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

// timed runs one measurement between two looks at upstream's counters.
func (c *comparison) timed(ctx context.Context, uri string, run func() error) (outcome, error) {
	before, err := c.counts(ctx)
	if err != nil {
		return outcome{}, err
	}
	began := time.Now()
	if err := run(); err != nil {
		return outcome{}, err
	}
	took := time.Since(began)
	after, err := c.counts(ctx)
	return outcome{took, after.of(c, uri) - before.of(c, uri), after.Requests - before.Requests}, err
}

// get reads one answer whole; anything but 200 is an error.
func (w way) get(ctx context.Context, uri string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+uri, nil)
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth(w.user, w.password)
	resp, err := w.client.Do(req)
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
