// Tests of pages that fit by themselves and not beside each other.

package walk

import (
	"context"
	"errors"
	"sync"
	"testing"

	"understudy"
)

// scales is a run with room for so many bytes.
type scales struct {
	run
	mu         sync.Mutex
	most, peak int64
}

func (s *scales) Weigh(_ context.Context, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.most {
		return understudy.ErrInvalid
	}
	s.peak = max(s.peak, n)
	return nil
}

// press is a mirror whose pages all weigh the same; the first stays on its way
// until another was refused.
type press struct {
	Mirror
	weight  int64
	first   sync.Once
	begun   chan struct{}
	refused chan struct{}
	mu      sync.Mutex
	fills   int
}

func (p *press) Fill(ctx context.Context, f understudy.Fill) (understudy.Landed, error) {
	p.mu.Lock()
	p.fills++
	p.mu.Unlock()
	if err := f.Weigh(ctx, p.weight); err != nil {
		close(p.refused)
		return understudy.Landed{}, err
	}
	p.first.Do(func() {
		close(p.begun)
		if p.refused != nil {
			<-p.refused
		}
	})
	return understudy.Landed{Page: &understudy.Page{Status: 200}}, nil
}

func TestPagesThatDoNotFitTogetherFollowEachOther(t *testing.T) {
	p := &press{weight: 30, begun: make(chan struct{}), refused: make(chan struct{})}
	s := &scales{most: 100}
	x := &trip{w: &Walker{o: Options{Mirror: p}}, run: s}
	var group sync.WaitGroup
	once := func() {
		if _, err := x.once(t.Context(), &understudy.Target{}); err != nil {
			t.Error(err)
		}
	}
	group.Go(once)
	<-p.begun
	group.Go(once)
	group.Wait()
	if p.fills != 3 || s.peak != 30*factor || x.weight != 0 {
		t.Errorf("%d fetches, at most %d bytes at once, %d left", p.fills, s.peak, x.weight)
	}
}

// One that is too heavy by itself is not asked for again.
func TestAPageTooHeavyByItself(t *testing.T) {
	p := &press{weight: 60, begun: make(chan struct{}), refused: make(chan struct{})}
	x := &trip{w: &Walker{o: Options{Mirror: p}}, run: &scales{most: 100}}
	_, err := x.once(t.Context(), &understudy.Target{})
	var heavy *heavyError
	if !errors.As(err, &heavy) || p.fills != 1 || x.weight != 0 {
		t.Errorf("%v after %d fetches, %d left", err, p.fills, x.weight)
	}
}
