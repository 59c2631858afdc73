// This file runs the servers and tasks of a process, and shuts them down in order.

package frontend

import (
	"context"
	"errors"
	"sync"
	"time"
)

// shutdownTime is how long running answers may take after the shutdown has begun.
const shutdownTime = 10 * time.Second

// Task is a function that runs until its context ends.
type Task func(ctx context.Context) error

// Run runs servers and tasks until ctx ends or one of them fails. Then the servers stop accepting, and running answers
// have shutdownTime to finish. The tasks end only after that, because a running answer still needs the mirror.
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
				err = nil // a context error is expected after the context has ended
			}
			errs <- err
			fail()
		})
	}
	<-faceCtx.Done()
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	stopErrs := make([]error, len(faces))
	var sg sync.WaitGroup
	for i, f := range faces {
		sg.Go(func() {
			if errors.Is(context.Cause(ctx), ErrRestart) {
				f.copySockets(stopCtx)
			}
			stopErrs[i] = f.stop(stopCtx)
		})
	}
	sg.Wait()
	wg.Wait()
	endTasks()
	tg.Wait()
	close(errs)
	for err := range errs {
		stopErrs = append(stopErrs, err)
	}
	return errors.Join(stopErrs...)
}
