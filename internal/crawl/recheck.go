// Recheck: what is walked again before its time, because it was forgotten here or
// upstream says something else.

package crawl

import (
	"context"
	"errors"
	"strconv"

	"understudy"
)

const (
	maxDoubts  = 16  // stretches of a kind; beyond them the whole lists are walked
	doubtAgain = 600 // seconds after a walk in which it is not doubted
)

// Recheck says that records with a clock in [from, to) (Unix seconds, 0 and 0: any,
// or none) may not be what was walked. What was not walked within ten minutes is
// walked again. It returns at once; what is covered stays so.
func (w *Crawler) Recheck(source, kind string, from, to int64) {
	name := source + "/" + kind
	if w.walks[name] == nil {
		return
	}
	w.mu.Lock()
	if len(w.rechecks[name]) >= maxDoubts {
		w.rechecks[name], from, to = nil, 0, 0
	}
	w.rechecks[name] = append(w.rechecks[name], interval{From: from, To: to})
	w.mu.Unlock()
	rouse(w.wake)
}

// recheck promises sweeps of what is doubted.
func (w *Crawler) recheck(ctx context.Context, x *kindCrawl, all intervals) error {
	m, err := w.read(ctx, x)
	if err != nil || !m.Keep || m.Rest == 0 {
		return err
	}
	now := w.clock()
	for _, doubt := range all {
		if doubt.From == 0 && doubt.To == 0 || !x.sliced() {
			if now-m.Rest >= doubtAgain && !m.rests(whole, now) {
				err = errors.Join(err, w.enqueue(ctx, x, "sweep", understudy.Steady, payload{}, ""))
			}
			continue
		}
		for _, c := range w.partitions(w.floor(x, now), m.Oldest, now) {
			if c.To <= doubt.From || c.From >= unbound(doubt.To, late) || now-m.Spans.oldest(c.From, c.To) < doubtAgain || m.rests(c.To, now) {
				continue
			}
			err = errors.Join(err, w.enqueue(ctx, x, "sweep", understudy.Steady, payload{From: c.From, To: c.To}, "/"+strconv.FormatInt(c.To, 10)))
		}
	}
	return err
}

// Forgot says that records of a kind are forgotten though upstream has them:
// until every part was walked again nothing is covered that was walked before,
// and the walks begin at once. Say it before they go. ErrInvalid: no such kind;
// of one that cannot be synced there is nothing to say.
func (w *Crawler) Forgot(ctx context.Context, source, kind string) error {
	x, err := w.find(source, kind)
	if Never(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for one := range x.each() {
		m, err := w.read(ctx, one)
		if err == nil && m.Rest != 0 {
			err = w.change(ctx, one, func(m *kindState) { m.Lost = w.clock() })
		}
		if err != nil {
			return err
		}
	}
	return nil
}
