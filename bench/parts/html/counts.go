// Counts: a list of a hundred thousand records with its counts by value, whole.

package html

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"understudy/bench/rig"
)

// counts measures lists of held messages until their last count is there: at first, while nothing
// is in memory, until a page is exact, then each with a condition that was not asked for before.
func counts(ctx context.Context, r *rig.Run) (err error) {
	messages := r.Size(100_000, 1000)
	g, err := r.Held(ctx, rig.Whole(messages/2, "messages"), "messages") // a world has two messages a call
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	w := rig.NewClient(g.Serve.Addresses["viewer"], "", "")
	defer w.Close()
	began := time.Now() // what counts are made of is read into memory
	for err = errInexact; errors.Is(err, errInexact) && time.Since(began) < time.Minute; {
		_, err = counted(ctx, w, "/twilio/messages")
	}
	if err != nil {
		return err
	}
	first := time.Since(began)
	if err := g.Calm(ctx); err != nil {
		return err
	}
	var anew, kept []time.Duration
	for i := range r.Times(200, 5) {
		one, err := counted(ctx, w, "/twilio/messages?understudy.q="+url.QueryEscape(fmt.Sprintf("price<-0.00%03d", i)))
		if err != nil {
			return err
		}
		same, err := counted(ctx, w, "/twilio/messages")
		if err != nil {
			return err
		}
		anew, kept = append(anew, one), append(kept, same)
	}
	r.Table([][]string{append([]string{"ms, list of messages with its counts"}, rig.SpreadHead[1:]...), rig.Spread("until the first is exact", []time.Duration{first}),
		rig.Spread("with another condition", anew), rig.Spread("again", kept)})
	r.AtMost(fmt.Sprintf("list with its counts made anew, %d messages held, median", messages), rig.Ms(rig.Median(anew)), 50, "ms")
	r.AtMost(fmt.Sprintf("list with its counts again, %d messages held, median", messages), rig.Ms(rig.Median(kept)), 50, "ms")
	r.Say("")
	return nil
}

// errInexact says that a page has not all counts, or some that are not exact.
var errInexact = errors.New("its counts are missing, or not exact")

// counted asks for a page and says when the last byte of it was there. Its counts must be exact.
func counted(ctx context.Context, w *rig.Client, uri string) (time.Duration, error) {
	began := time.Now()
	a, err := w.Get(ctx, uri, htmlHeaders("all", "identity")...)
	took := time.Since(began)
	switch {
	case err != nil:
		return 0, err
	case a.Status != http.StatusOK:
		return 0, fmt.Errorf("%s: status %d", uri, a.Status)
	case !bytes.Contains(a.Body, []byte(`class="facet"`)) || bytes.Contains(a.Body, []byte("at least")):
		return 0, fmt.Errorf("%s: %w", uri, errInexact)
	}
	return took, nil
}
