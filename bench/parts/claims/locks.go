package claims

import (
	"context"
	"fmt"
	"sync"
	"time"

	"understudy/bench/rig"
)

var queueOfReaders = claim{
	name: "queue-of-readers", systems: "18",
	says:    "Readers may join a readers-writer lock as long as the first reader holds it",
	figure:  "reads of 0.5 s and writes of 1 s; no time of a late reader is given",
	measure: measureQueue,
}

// lateScale divides the article's times: its second takes a tenth of a second here.
const lateScale = 10

// measureQueue repeats the experiment that decides: a writer holds the lock for 1 s, three readers wait, then a second
// writer, and a reader arrives at 1.25 s while the three readers hold the lock until 1.5 s.
func measureQueue(ctx context.Context, r *rig.Run) (finding, error) {
	const unit = time.Second / lateScale
	var late, second []float64
	for range r.Times(7, 1) {
		at := map[string]float64{}
		var mu sync.Mutex
		var lock sync.RWMutex
		var all sync.WaitGroup
		began := time.Now()
		start := func(name string, when float64, writes bool) {
			all.Go(func() {
				if rig.Pause(ctx, time.Duration(when*float64(unit))) != nil {
					return
				}
				held := unit
				if writes {
					lock.Lock()
					defer lock.Unlock()
				} else {
					held = unit / 2
					lock.RLock()
					defer lock.RUnlock()
				}
				mu.Lock()
				at[name] = float64(time.Since(began)) / float64(unit)
				mu.Unlock()
				_ = rig.Pause(ctx, held)
			})
		}
		start("W1", 0, true)
		for i := range 3 {
			start(fmt.Sprint("R", i), 0.25*float64(i+1), false)
		}
		start("W2", 0.8, true)
		start("late", 1.25, false)
		all.Wait()
		if err := ctx.Err(); err != nil {
			return finding{}, err
		}
		late, second = append(late, at["late"]), append(second, at["W2"])
	}
	got := rig.Median(late)
	f := finding{
		ours:    fmt.Sprintf("A reader that arrives at 1.25 s gets the lock at %s s, after the writer that waits", rig.Figure(got)),
		verdict: judge(got < 1.5, wrong),
		title:   "A reader arrives at 1.25 s and gets the lock at … s",
		bars:    []rig.Bar{article("by the article's rule", 1.25), bar("with sync.RWMutex", late)},
		table: [][]string{{"who", "arrives", "gets the lock by the article's rule", "gets it"},
			{"the second writer", "0.8 s", "1.75 s", rig.Figure(rig.Median(second)) + " s"},
			{"the late reader", "1.25 s", "1.25 s", rig.Figure(got) + " s"}},
		text: "A writer that waits shuts out every later reader. When it unlocks, all readers that wait by then get the lock together, before the " +
			"next writer. So a reader waits for one writer at most. The article's own output shows this: its first five readers end together.\n\n" +
			"The times are a tenth of the article's, multiplied by ten again. `TestQueueOfRWMutex` of kit/lockwatch has all three experiments.",
	}
	return f, nil
}
