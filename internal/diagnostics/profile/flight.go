// This file keeps the last events of the runtime, and stores them when a request was slow.

package profile

import (
	"context"
	"fmt"
	"io"
	"runtime/trace"
	"time"
)

// Trace is a recording of the runtime's events before the end of a slow request, for go tool trace. See runtime/trace.FlightRecorder.
const Trace = "trace"

const (
	flightWindow = 10 * time.Second // how long events are kept at least, if flightBytes suffice
	flightBytes  = 3 << 20          // the size of a recording, about
	flightPause  = time.Minute      // the shortest time between two recordings
	maxTraces    = 2                // the number of recordings that are stored
)

// RecordEvents keeps the last events of the runtime until ctx ends, and stores those for which KeepEvents asks. Events contain the
// names of functions and times, and no values.
func (r *Recorder) RecordEvents(ctx context.Context) error {
	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: flightWindow, MaxBytes: flightBytes})
	if err := recorder.Start(); err != nil {
		return fmt.Errorf("profile: record events: %w", err)
	}
	defer recorder.Stop()
	r.flight.Store(true)
	defer r.flight.Store(false)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.slow:
		}
		kept, err := r.keep(Trace, r.o.Now(), flightWindow, func(w io.Writer) error { _, err := recorder.WriteTo(w); return err })
		if err != nil {
			r.o.Logger.Error("the events before the end of a slow request were not kept", "err", err)
		} else {
			r.o.Logger.Info("a request was slow; the events before its end are kept as a profile", "id", kept.ID)
		}
		select {
		case <-ctx.Done():
		case <-time.After(flightPause):
		}
	}
}

// KeepEvents stores the last events if RecordEvents runs and has stored none within the last minute. It does not wait.
func (r *Recorder) KeepEvents() {
	if r.flight.Load() {
		select {
		case r.slow <- struct{}{}: // RecordEvents waits for a slow request
		default:
		}
	}
}
