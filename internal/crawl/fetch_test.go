// Tests of what pages on their way weigh.

package crawl

import (
	"context"
	"errors"
	"testing"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

// press is a mirror whose pages all weigh the same.
type press struct {
	Source
	weight int64
	fills  int
}

func (p *press) Fill(ctx context.Context, f request.Fill) (request.PageSaved, error) {
	p.fills++
	if err := f.Reserve(ctx, p.weight); err != nil {
		return request.PageSaved{}, err
	}
	return request.PageSaved{Page: &understudy.Page{Status: 200}}, nil
}

// A page weighs with what comes of it, and nothing once it is done with.
func TestAPageGivesBackWhatItWeighed(t *testing.T) {
	p, r := &press{weight: 30}, &run{}
	x := &jobRun{w: &Crawler{o: Options{Mirror: p}}, run: r}
	if _, err := x.tryFetch(t.Context(), &spec.Target{}); err != nil || r.most != 30*bodyFactor || r.pages != 0 {
		t.Errorf("%v, at most %d bytes, %d left", err, r.most, r.pages)
	}
}

// One that is too heavy by itself is not asked for again.
func TestAPageTooHeavyByItself(t *testing.T) {
	p, r := &press{weight: room}, &run{}
	x := &jobRun{w: &Crawler{o: Options{Mirror: p}}, run: r}
	_, err := x.tryFetch(t.Context(), &spec.Target{})
	var heavy *memoryError
	if !errors.As(err, &heavy) || isRetried(err) || p.fills != 1 || r.pages != 0 {
		t.Errorf("%v after %d fetches, %d left", err, p.fills, r.pages)
	}
}
