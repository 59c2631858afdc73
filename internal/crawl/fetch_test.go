// Tests of what pages on their way weigh.

package crawl

import (
	"context"
	"errors"
	"testing"

	"understudy"
	"understudy/internal/checktest"
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
	_, err := x.tryFetch(t.Context(), &spec.Target{})
	checktest.MustNoError(t, err, "")
	checktest.Equal(t, r.most, 30*bodyFactor, "r.most")
	checktest.Equal(t, r.pages, 0, "r.pages")
}

// One that is too heavy by itself is not asked for again.
func TestAPageTooHeavyByItself(t *testing.T) {
	p, r := &press{weight: room}, &run{}
	x := &jobRun{w: &Crawler{o: Options{Mirror: p}}, run: r}
	_, err := x.tryFetch(t.Context(), &spec.Target{})
	var heavy *memoryError
	checktest.MustTrue(t, errors.As(err, &heavy), "errors.As(err, &heavy) is false")
	checktest.True(t, !isRetried(err), "isRetried(err) is true")
	checktest.Equal(t, p.fills, 1, "p.fills; %v", err)
	checktest.Equal(t, r.pages, 0, "r.pages; %v", err)
}
