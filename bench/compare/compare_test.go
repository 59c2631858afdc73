package compare

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"understudy/internal/sample"
)

var record = flag.Bool("record", false, "measure the files of testdata again")

const (
	block  = 100 // the work of a recorded sample, about 2 ms
	trials = 200
)

// work takes a processor time that is proportional to n, and returns it in nanoseconds.
func work(n int) float64 {
	var buf [32 << 10]byte
	spent := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			panic(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	began := spent()
	for range n {
		sum := sha256.Sum256(buf[:])
		buf[0] = sum[0]
	}
	return float64(spent() - began)
}

// measured returns a figure whose second side has more work by a number of percent.
func measured(t *testing.T, block, percent int) Figure {
	t.Helper()
	f := Figure{Name: fmt.Sprintf("Work%dPercentMore", percent), Unit: "ns/op"}
	err := Turns(t.Context(), io.Discard, "work", func(side int) error {
		f.Add(side, work(block+side*percent*block/100))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// recorded returns the figures of testdata/before.txt and testdata/after.txt: 20 pairs, measured in turns, in which 0 to 19 percent
// of work was added.
func recorded(t *testing.T) []Figure {
	t.Helper()
	var all results
	for side, name := range []string{"before.txt", "after.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.add(side, text); err != nil {
			t.Fatal(err)
		}
	}
	return all.both()
}

// TestVerdictIsBenchstats compares medians, changes and probabilities of 20 pairs with what benchstat printed for the same files.
func TestVerdictIsBenchstats(t *testing.T) {
	if *record {
		recordPairs(t)
	}
	text, err := os.ReadFile("testdata/benchstat.csv")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	read := csv.NewReader(strings.NewReader(string(text)))
	read.FieldsPerRecord = -1
	rows, err := read.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		want[row[0]] = row
	}
	figures := recorded(t)
	if len(figures) != 20 {
		t.Fatalf("%d pairs", len(figures))
	}
	said := map[Verdict]int{}
	for _, f := range figures {
		v, change, p := f.Judge()
		said[v]++
		row := want[f.Name]
		if len(row) < 7 {
			t.Fatalf("benchstat printed %q of %s", row, f.Name)
		}
		if change != row[5] || row[6] != fmt.Sprintf("p=%0.3f n=%d", p, len(f.After)) || (v == Same) != (row[5] == "~") {
			t.Errorf("%s: %s, %s, p=%.3f, benchstat: %q", f.Name, v, change, p, row)
		}
		for i, side := range [][]float64{f.Before, f.After} {
			seconds, err := strconv.ParseFloat(row[1+2*i], 64)
			if got := median(side).Center / 1e9; err != nil || math.Abs(got-seconds) > 1e-6*seconds {
				t.Errorf("%s: median %v, benchstat %s (%v)", f.Name, got, row[1+2*i], err)
			}
		}
	}
	if said[Worse] < 15 || said[Same] < 1 || said[Better] > 0 {
		t.Errorf("verdicts %v", said)
	}
	for _, f := range figures {
		f.More = true
		if v, _, _ := f.Judge(); v == Worse {
			t.Errorf("%s: less of what should be less is called worse", f.Name)
		}
	}
}

// recordPairs measures the pairs again and lets benchstat judge them.
func recordPairs(t *testing.T) {
	t.Helper()
	var sides [2]strings.Builder
	for percent := range 20 {
		f := measured(t, block, percent)
		for i, values := range [][]float64{f.Before, f.After} {
			for _, v := range values {
				fmt.Fprintf(&sides[i], "Benchmark%s 1 %.0f ns/op\n", f.Name, v)
			}
		}
	}
	for i, name := range []string{"before.txt", "after.txt"} {
		if err := os.WriteFile(filepath.Join("testdata", name), []byte(sides[i].String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da",
		"-alpha", fmt.Sprint(Alpha), "-format", "csv", "before.txt", "after.txt")
	cmd.Dir = "testdata"
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("testdata/benchstat.csv", out, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSameAgainstSame lets the same work stand on both sides. In 200 trials at most ten may be called better or worse. make test draws
// both sides from recorded samples, with a fixed seed; at full counts they are measured.
func TestSameAgainstSame(t *testing.T) {
	pool := recorded(t)[0]
	all := append(pool.Before, pool.After...)
	draw := rand.New(rand.NewPCG(1, 2))
	alarms := 0
	for range trials {
		f := Figure{}
		if sample.IsFullRun() {
			f = measured(t, block, 0)
		} else {
			draw.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
			f.Before, f.After = all[:Samples], all[Samples:]
		}
		if v, _, _ := f.Judge(); v != Same {
			alarms++
		}
	}
	if t.Logf("%d false alarms in %d trials", alarms, trials); alarms > trials/20 {
		t.Errorf("%d of %d trials found a difference where there is none", alarms, trials)
	}
}

// TestSlowDownOfThreePercent finds it in the recorded samples, and at full counts in ones that are measured now.
func TestSlowDownOfThreePercent(t *testing.T) {
	f := recorded(t)[3]
	if sample.IsFullRun() {
		f = measured(t, 10*block, 3)
	}
	if v, change, p := f.Judge(); v != Worse {
		t.Errorf("three percent more work: %s, %s, p=%.3f", v, change, p)
	}
}

func TestTable(t *testing.T) {
	flat := func(from, step float64) (values []float64) {
		for i := range Samples {
			values = append(values, from+step*float64(i%5))
		}
		return values
	}
	rows, worse := Table("part", []Figure{
		{"slower", "ms", false, flat(2, 0.01), flat(3, 0.01)}, {"more", "a second", true, flat(100, 1), flat(150, 1)},
		{"the same", "ms", false, flat(1, 0.01), flat(1, 0.01)}, {"none", "", false, flat(0, 0), flat(1, 0)},
	})
	var lines []string
	for _, row := range rows {
		lines = append(lines, strings.Join(row, "|"))
	}
	want := `part|before||after|||change|p|n|
slower|2.02|±0%|3.02|±0%|ms|+49.50%|0.000|20+20|worse
more|102|±1%|152|±1%|a second|+49.02%|0.000|20+20|better
the same|1.02|±1%|1.02|±1%|ms|~|1.000|20+20|same
none|0|±0%|1|±0%||?|0.000|20+20|worse`
	if text := strings.Join(lines, "\n"); text != want || worse != 2 {
		t.Errorf("%d worse\n%s\nwant\n%s", worse, text, want)
	}
}

func TestTurns(t *testing.T) {
	var log strings.Builder
	count, first, last := [2]int{}, [2]int{}, -1
	err := Turns(t.Context(), &log, "part", func(side int) error {
		if count[0] == count[1] {
			first[side]++
		} else if side == last {
			t.Error("one side twice in a pair")
		}
		count[side]++
		last = side
		return nil
	})
	if err != nil || count != [2]int{Samples, Samples} || first[0] == 0 || first[1] == 0 || !strings.Contains(log.String(), "part: 20 of 20 rounds, 0s left\n") {
		t.Errorf("%v, %v, first %v\n%s", err, count, first, log.String())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Turns(ended, io.Discard, "part", func(int) error { return nil }); err == nil {
		t.Error("it does not end with its context")
	}
}

// TestBenchmarks compares two checkouts of a small module. One of them has a benchmark that the other does not have.
func TestBenchmarks(t *testing.T) {
	var checkouts [2]string
	for i := range checkouts {
		dir := t.TempDir()
		checkouts[i] = dir
		code := "package p\n\nimport \"testing\"\n\nfunc BenchmarkBoth(b *testing.B) {\n\tfor b.Loop() {\n\t\tb.ReportMetric(" + fmt.Sprint(i+1) + ", \"calls/s\")\n\t}\n}\n"
		if i == 1 {
			code += "\nfunc BenchmarkNew(b *testing.B) {\n\tfor b.Loop() {\n\t}\n}\n"
		}
		for name, text := range map[string]string{"go.mod": "module p\n\ngo 1.26\n", "p_test.go": code} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	benchTime = "1x"
	figures, err := Benchmarks(t.Context(), io.Discard, checkouts, ".", "Both|New")
	if err != nil {
		t.Fatal(err)
	}
	units := map[string]Figure{}
	for _, f := range figures {
		units[f.Unit] = f
		if !strings.HasPrefix(f.Name, "Both") {
			t.Errorf("%s is compared with nothing", f.Name)
		}
	}
	if v, _, _ := units["calls/s"].Judge(); v != Better || units["ns/op"].Name == "" {
		t.Errorf("%s, %+v", v, figures)
	}
	for pattern, want := range map[string]string{"Absent": "no benchmark that matches", "(": "missing closing"} {
		if _, err := Benchmarks(t.Context(), io.Discard, checkouts, ".", pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("pattern %q: %v", pattern, err)
		}
	}
	if _, err := Benchmarks(t.Context(), io.Discard, checkouts, "./absent", "."); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("a package that is not there: %v", err)
	}
}
