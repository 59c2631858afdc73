// Run: everything that runs beside each other, ended in order.

package frontend

import (
	"context"
	"errors"
	"sync"
	"time"
)

// grace is how long running answers may take after the first signal.
const grace = 10 * time.Second

// Task runs until its context ends.
type Task func(ctx context.Context) error

// Run runs servers and tasks until ctx ends or one of them fails. Then
// servers stop accepting, running answers finish or are cut off after the grace,
// and only then do the tasks end: an answer on its way still has its mirror.
func Run(ctx context.Context, faces []*Server, tasks []Task) error {
	taskCtx, endTasks := context.WithCancel(context.WithoutCancel(ctx))
	defer endTasks()
	faceCtx, fail := context.WithCancel(ctx)
	defer fail()
	var wg sync.WaitGroup
	errs := make(chan error, len(faces)+len(tasks))
	for _, f := range faces {
		wg.Go(func() { errs <- f.serve(); fail() })
	}
	var tg sync.WaitGroup
	for _, t := range tasks {
		tg.Go(func() {
			err := t(taskCtx)
			if taskCtx.Err() != nil {
				err = nil // it was told to end
			}
			errs <- err
			fail()
		})
	}
	<-faceCtx.Done()
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	stopErrs := make([]error, len(faces))
	var sg sync.WaitGroup
	for i, f := range faces {
		sg.Go(func() { stopErrs[i] = f.shutdown(stopCtx) })
	}
	sg.Wait()
	wg.Wait()
	endTasks()
	tg.Wait()
	close(errs)
	all := stopErrs
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}
