// Compare, printed: the table of `make run`, and what upstream counted meanwhile.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// upstreamCounts is what the simulated API counted.
type upstreamCounts struct {
	Requests int            `json:"requests"`
	ByTarget map[string]int `json:"by_target"`
}

func (c *comparison) counts(ctx context.Context) (upstreamCounts, error) {
	var u upstreamCounts
	body, err := c.direct.get(ctx, "/-/stats")
	if err != nil {
		return u, err
	}
	return u, json.Unmarshal(body, &u)
}

// of adds up the targets that are the same key as uri, however spelt.
func (u upstreamCounts) of(c *comparison, uri string) int {
	want, err := c.source.Spec.Follow(c.source.Name, uri)
	if err != nil {
		return 0
	}
	n := 0
	for target, times := range u.ByTarget {
		if t, err := c.source.Spec.Follow(c.source.Name, target); err == nil && t.Key == want.Key {
			n += times
		}
	}
	return n
}

func printComparison(out io.Writer, lines []line) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\t\tdirect\trequests\t\tthrough Understudy\trequests\tin all\t")
	for _, l := range lines {
		fmt.Fprintf(w, "\t%s\t%s\t%d\t\t%s\t%d\t%d\t\n", l.what, round(l.direct.took), l.direct.forKey, round(l.through.took), l.through.forKey,
			l.through.most)
	}
	_ = w.Flush()
	fmt.Fprint(out, "requests: upstream requests for that page or record; in all: with prefetch and the polls that keep lists warm\n")
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
