// Part: one measurement, what it is given, and how it is run.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// part is one measurement.
type part struct {
	name, about string
	run         func(ctx context.Context, r *run) error
}

// parts in the order they run: what needs a quiet machine least comes last.
var parts = []part{
	{"cold", "a cold page, over upstream's own time", cold},
	{"warm", "a warm page: latency, and requests a second beside a bare handler", warm},
	{"html", "the pages people look at: requests a second, CPU and bytes beside Logrole", htmlPages},
	{"profiler", "a warm page while a profile is taken", profiler},
	{"flights", "a hundred clients on one cold key, a killed leader, a deadline", flights},
	{"next", "the next page, one upstream latency later", next},
	{"walk", "a full walk with the official SDK, direct and the second time", walk},
	{"cpu", "CPU for each newly mirrored page, and its split by room", cpu},
	{"memory", "first page after a restart, resident memory, pages a byte limit holds", memory},
	{"million", "a million records on disk: start, bytes a record, by table", million},
	{"lists", "any filtered list of a million calls, made from records", lists},
	{"search", "words and conditions in a million messages", search},
	{"overload", "three times as many cold questions as may be answered, beside warm ones", overload},
	{"ingest", "a million records into the store, with changes and all indexes", ingest},
	{"history", "what a record's past takes on disk", history},
	{"imports", "64 jobs of 1 to 64 MB under one limit of memory", imports},
	{"folders", "what differs between two listings, beside an object a row", folders},
	{"xml", "a document of a hundred fields as XML, beside encoding/xml", xmlDocuments},
	{"texts", "queries and ids as text, beside net/url and encoding/base64", texts},
	{"onlinestat", "numbers summarised as they come", onlineStatistics},
	{"events", "telling four subscribers in the process", events},
	{"feed", "from a change to a thousand subscribers, one of them slow", feedPart},
	{"reader", "one reader a second on the newest page, through refreshes and a fault", reader},
}

// run is what a part is given: the options, a scratch folder, and a report.
type run struct {
	options
	*report
	dir string
}

// runAll runs parts one after the other. One that fails does not stop the rest.
func runAll(ctx context.Context, o options, chosen []part, out io.Writer) error {
	var errs []error
	for _, p := range chosen {
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		if err := runOne(ctx, o, p, out); err != nil {
			fmt.Fprintf(out, "could not be measured: %v\n\n", err)
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return errors.Join(errs...)
}

// runOne runs a part in a fresh folder and writes its results.
func runOne(ctx context.Context, o options, p part, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "understudy-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &run{options: o, report: newReport(out), dir: dir}
	r.head(p, o)
	if err := p.run(ctx, r); err != nil {
		return err
	}
	r.say("")
	if o.results == "" {
		return nil
	}
	if err := os.MkdirAll(o.results, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.results, p.name+".txt"), r.text(), 0o644)
}

// times is how often something is done: full, or a few in a smoke.
func (r *run) times(full, quick int) int {
	if r.quick {
		return quick
	}
	return full
}
