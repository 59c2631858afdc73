// This file prints the report of a profile on a terminal.

package profile

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Value returns a value as text, according to its measure: bytes, or processor time.
func Value(measure string, n int64) string {
	if measure == "cpu" {
		return time.Duration(n).Round(time.Millisecond).String()
	}
	f := float64(n)
	switch size := max(n, -n); {
	case size >= 1<<30:
		return fmt.Sprintf("%.2f GiB", f/(1<<30))
	case size >= 1<<20:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	case size >= 1<<10:
		return fmt.Sprintf("%.1f KiB", f/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// Percent returns n as a percentage of total, or "" if total is 0.
func Percent(n, total int64) string {
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", float64(n)*100/float64(max(total, -total)))
}

// maxGraphed is the maximum number of functions that are printed with callers and callees.
const maxGraphed = 8

// Table is one of the small tables of a report.
type Table struct {
	Title  string
	Shares []Share
}

// Tables returns the small tables of the report.
func (out *Report) Tables() []Table {
	return []Table{{"By package", out.Packages}, {"By entry", out.Entries}, {"By job", out.Jobs}, {"By credential", out.Credentials}}
}

// Print prints a report. The function clean removes control characters, which could steer the terminal.
func (out *Report) Print(w io.Writer, clean func(string) string) error {
	var b strings.Builder
	of := "samples"
	if out.Kind == Allocs {
		of = "objects"
	}
	fmt.Fprintf(&b, "%s: %s %s in %d %s, %v from %s, version %s\n", clean(out.ID), Value(out.Measure, out.Total), clean(out.Measure),
		out.Count, of,
		out.Took, out.From.UTC().Format(time.RFC3339), clean(out.Version))
	if out.Since != nil {
		fmt.Fprintf(&b, "as the difference to %s (%v)", clean(out.Since.ID), out.Since.Took)
		if out.Scaled != 0 {
			fmt.Fprintf(&b, " times %.4g", out.Scaled)
		}
		b.WriteString("\n")
	}
	line := func(name string, share Share) {
		fmt.Fprintf(&b, "  %8s %10s %10d  %s\n", Percent(share.Value, out.Total), Value(out.Measure, share.Value), share.Count, clean(name))
	}
	fmt.Fprintf(&b, "\n  %8s %10s %10s  %s\n", "self", "", "count", "function, where")
	for _, f := range out.Functions {
		line(f.Name+"  "+f.At, Share{Value: f.Self, Count: f.Count})
	}
	b.WriteString("\nCallers above, callees below, each with what goes through it\n")
	for _, f := range out.Functions[:min(len(out.Functions), maxGraphed)] {
		b.WriteString("\n")
		for _, c := range f.Callers {
			line("    "+c.Name, c)
		}
		line(fmt.Sprintf("%s  (self %s, flat %s)", f.Name, Percent(f.Self, out.Total), Percent(f.Flat, out.Total)),
			Share{Value: f.Cum, Count: f.Through})
		for _, c := range f.Callees {
			line("        "+c.Name, c)
		}
	}
	for _, t := range out.Tables() {
		if len(t.Shares) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", t.Title)
		for _, s := range t.Shares {
			line(s.Name, s)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
