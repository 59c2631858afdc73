// Report: what a part prints and keeps: lines, aligned tables, targets.

package rig

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"understudy/bench/place"
)

// report prints to the terminal and keeps the same text for the file of the result.
type report struct {
	out     io.Writer
	kept    bytes.Buffer
	figures []figure
}

func newReport(out io.Writer) *report {
	r := &report{}
	r.out = io.MultiWriter(out, &r.kept)
	return r
}

// text returns everything that was printed so far.
func (r *report) text() []byte { return append(bytes.TrimRight(r.kept.Bytes(), "\n"), '\n') }

// Say prints one line.
func (r *report) Say(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

// head prints what is measured, and the date, revision, machine and command.
func (r *report) head(p Part, o Options) {
	r.Say("%s: %s", p.Name, p.About)
	r.Say("date      %s", time.Now().UTC().Format(time.RFC3339))
	r.Say("revision  %s", place.Revision("."))
	r.Say("machine   %s", place.Machine())
	r.Say("command   %s", o.Command)
	if o.Quick {
		r.Say("quick     a smoke with small counts: the figures mean nothing")
	}
	r.Say("")
}

// Table prints aligned columns; the first row is the heading.
func (r *report) Table(rows [][]string) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(r.out, strings.TrimRight(line, " \n"))
	}
	r.Say("")
}

// AtMost prints a figure and whether it is at most the limit. unit is the unit of both.
func (r *report) AtMost(what string, got, limit float64, unit string) {
	r.figures = append(r.figures, figure{what, unit, got, false})
	r.target(what, got <= limit, strings.TrimRight(fmt.Sprintf("%s, target <= %s", Figure(got), Figure(limit))+" "+unit, " "))
}

// AtLeast prints a figure and whether it is at least the limit.
func (r *report) AtLeast(what string, got, limit float64, unit string) {
	r.figures = append(r.figures, figure{what, unit, got, true})
	r.target(what, got >= limit, strings.TrimRight(fmt.Sprintf("%s, target >= %s", Figure(got), Figure(limit))+" "+unit, " "))
}

// Exactly prints a count and whether it is the wanted count.
func (r *report) Exactly(what string, got, want int) {
	r.target(what, got == want, fmt.Sprintf("%d, target %d", got, want))
}

func (r *report) target(what string, ok bool, detail string) {
	verdict := "ok"
	if !ok {
		verdict = "missed"
	}
	r.Say("%-6s  %-58s %s", verdict, what, detail)
}

// Figure returns a number with three digits, or as a whole number if it is larger.
func Figure(v float64) string {
	switch {
	case v >= 100 || v <= -100 || v == float64(int64(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// Ms returns a duration in milliseconds.
func Ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Mib is one MiB in bytes.
const Mib = 1 << 20
