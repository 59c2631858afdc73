// Command seconds shows where the time of `make test` goes.
//
// It reads what `go test -json` writes, prints what `go test` would have
// printed, and keeps the seconds of each package and of each slow test in a
// file, and the first words of each test that failed. With -speed it keeps how
// slow the machine is now. With -table it prints the file as a table, what failed
// last, and fails when all parts together took longer than -most, or than that
// many times as long as the machine is slow.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	keep := flag.String("keep", "", "file that holds the seconds; it is appended to")
	table := flag.Bool("table", false, "print the file as a table")
	speed := flag.Bool("speed", false, "measure how slow the machine is now")
	took := flag.Duration("took", 0, "with -table: how long all of it took, from its beginning to its end")
	most := flag.Duration("most", 14*time.Minute, "with -table: how long all of it may take")
	flag.Parse()
	err := errors.New("-keep FILE is needed")
	switch {
	case *keep == "":
	case *speed:
		err = measure(*keep)
	case *table:
		err = show(os.Stdout, *keep, *took, *most)
	default:
		err = watch(os.Stdin, os.Stdout, *keep)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "seconds:", err)
		os.Exit(1)
	}
}

// long is the maximum time for one test in `make test`. A longer test runs a sample there, and runs completely in `make prove`.
const long = 20 * time.Second

// event is a line of `go test -json` (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of output of the build
	Elapsed                       float64
}

// watch prints the output of each package when the package ends, and the output of failed tests.
func watch(in io.Reader, out io.Writer, keep string) error {
	file, err := os.OpenFile(keep, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	said := map[string][]string{} // the output so far, by package and test
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var e event
		if json.Unmarshal(scan.Bytes(), &e) != nil {
			fmt.Fprintln(out, scan.Text()) // not JSON: go itself speaks
			continue
		}
		of := e.Package + " " + e.Test
		switch e.Action {
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "output":
			said[of] = append(said[of], e.Output)
		case "fail":
			fmt.Fprint(out, strings.Join(said[of], ""))
			if err := noteFailure(file, e, said[of]); err != nil {
				return err
			}
			delete(said, of)
		case "pass", "skip":
			if e.Test == "" {
				fmt.Fprint(out, last(said[of]))
			}
			delete(said, of)
		}
		if err := note(file, e); err != nil {
			return err
		}
	}
	return errors.Join(scan.Err(), file.Close())
}

// last returns the line that go test prints for a package that passed.
func last(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "?") {
			return line
		}
	}
	return ""
}

// note stores the seconds of a package, or of a slow test.
func note(w io.Writer, e event) error {
	ended := e.Action == "pass" || e.Action == "fail"
	took := time.Duration(e.Elapsed * float64(time.Second))
	if !ended || e.Test != "" && (took < long || strings.Contains(e.Test, "/")) {
		return nil
	}
	_, err := fmt.Fprintf(w, "%.1f\t%s\n", took.Seconds(), strings.TrimSpace(e.Package+" "+e.Test))
	return err
}

// failed is the beginning of a line with the output of a failed test.
const failed = "failed\t"

// noteFailure stores the first five lines that a failed test printed. The whole output may be long, and people read only
// the end of a log.
func noteFailure(w io.Writer, e event, output []string) error {
	kept := 0
	for _, line := range output {
		line = strings.TrimSpace(line)
		if e.Test == "" || !strings.Contains(line, "_test.go:") || kept == 5 {
			continue
		}
		kept++
		if _, err := fmt.Fprintf(w, "%s%s %s: %.400s\n", failed, e.Package, e.Test, line); err != nil {
			return err
		}
	}
	return nil
}

// row is one line of the table.
type row struct {
	name    string
	seconds float64
}

// show prints packages and other parts by their seconds, then the slow tests. Parts run at the same time, so their times
// add up to more than the whole time.
func show(w io.Writer, keep string, took, most time.Duration) error {
	rows, failures, slow, err := read(keep)
	if err != nil {
		return err
	}
	most = allowed(most, slow)
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name)) })
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "seconds\t  part\n")
	var tests []row
	rest := 0.0
	for _, r := range rows {
		switch {
		case strings.Contains(r.name, " Test"):
			tests = append(tests, r)
		case r.seconds < 2:
			rest += r.seconds
		default:
			fmt.Fprintf(t, "%.1f\t  %s\n", r.seconds, r.name)
		}
	}
	fmt.Fprintf(t, "%.1f\t  parts below two seconds\n", rest)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range tests {
		fmt.Fprintf(w, "%.1f seconds, above %v: %s; let it run a sample here and its whole in make prove\n", r.seconds, long, r.name)
	}
	for _, line := range failures {
		fmt.Fprintln(w, "failed:", line)
	}
	fmt.Fprintf(w, "all together %v of %v; the machine is %.2f times as slow as the reference\n", took, most, slow)
	if took > most {
		return fmt.Errorf("make test took %v; %v is the most it may take", took, most)
	}
	return nil
}

// read reads what watch and tools/steps have stored.
func read(keep string) (rows []row, failures []string, slow []float64, err error) {
	data, err := os.ReadFile(keep)
	if err != nil {
		return nil, nil, nil, err
	}
	for line := range strings.Lines(string(data)) {
		if said, ok := strings.CutPrefix(line, failed); ok {
			failures = append(failures, strings.TrimSpace(said))
			continue
		}
		if times, ok := strings.CutPrefix(line, slower); ok {
			factor, err := strconv.ParseFloat(strings.TrimSpace(times), 64)
			if err != nil {
				return nil, nil, nil, fmt.Errorf("%s: %q is not how slow a machine is", keep, line)
			}
			slow = append(slow, factor)
			continue
		}
		number, name, ok := strings.Cut(strings.TrimSpace(line), "\t")
		seconds, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %q is not seconds and a name", keep, line)
		}
		rows = append(rows, row{name, seconds})
	}
	return rows, failures, slow, nil
}
