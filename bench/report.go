// Report: what a part prints and keeps: lines, aligned tables, targets.

package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"understudy/bench/place"
)

// report writes to the terminal and remembers the same text for the file.
type report struct {
	out  io.Writer
	kept bytes.Buffer
}

func newReport(out io.Writer) *report {
	r := &report{}
	r.out = io.MultiWriter(out, &r.kept)
	return r
}

// text is everything said so far.
func (r *report) text() []byte { return append(bytes.TrimRight(r.kept.Bytes(), "\n"), '\n') }

// say prints one line.
func (r *report) say(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

// head says what is measured, of what, where and when.
func (r *report) head(p part, o options) {
	r.say("%s: %s", p.name, p.about)
	r.say("date      %s", time.Now().UTC().Format(time.RFC3339))
	r.say("revision  %s", place.Revision())
	r.say("machine   %s", place.Machine())
	r.say("command   %s", o.command)
	if o.quick {
		r.say("quick     a smoke with small counts: the figures mean nothing")
	}
	r.say("")
}

// table prints aligned columns; the first row is the heading.
func (r *report) table(rows [][]string) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(r.out, strings.TrimRight(line, " \n"))
	}
	r.say("")
}

// atMost compares a figure with the most it may be, in the unit of both.
func (r *report) atMost(what string, got, limit float64, unit string) {
	r.target(what, got <= limit, strings.TrimRight(fmt.Sprintf("%s, target <= %s", figure(got), figure(limit))+" "+unit, " "))
}

// atLeast compares a figure with the least it must be.
func (r *report) atLeast(what string, got, limit float64, unit string) {
	r.target(what, got >= limit, strings.TrimRight(fmt.Sprintf("%s, target >= %s", figure(got), figure(limit))+" "+unit, " "))
}

// exactly compares a count with the only right one.
func (r *report) exactly(what string, got, want int) {
	r.target(what, got == want, fmt.Sprintf("%d, target %d", got, want))
}

func (r *report) target(what string, ok bool, detail string) {
	verdict := "ok"
	if !ok {
		verdict = "missed"
	}
	r.say("%-6s  %-58s %s", verdict, what, detail)
}

// figure keeps three digits, and all of a larger number.
func figure(v float64) string {
	switch {
	case v >= 100 || v <= -100 || v == float64(int64(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// ms is a duration as milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// mib is one MiB in bytes.
const mib = 1 << 20
