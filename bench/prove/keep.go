// This file stores the result of each part in bench/prove.txt.

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"understudy/bench/place"
)

// result is the result of a part's last run.
type result struct {
	OK       bool
	Date     time.Time
	Took     time.Duration
	Hash     string // the hash of the code that the part ran
	Runs     int    // how often the part passed with this hash, including this run
	InAll    time.Duration
	Revision string
	Detail   string
}

// current reports whether the result belongs to the present code of the part.
func (r result) current(p part) bool { return r.OK && r.Hash != "" && r.Hash == p.hash }

// after returns the result with the number of earlier runs that passed with the same hash added.
func (r result) after(before result) result {
	r.Runs, r.InAll = 1, r.Took
	if r.OK && before.OK && before.Hash == r.Hash {
		r.Runs += before.Runs
		r.InAll += before.InAll
	}
	return r
}

func (r result) verdict() string {
	switch {
	case r.Date.IsZero():
		return "not run"
	case r.OK:
		return "ok"
	}
	return "failed"
}

// keep has the results in bench/prove.txt. The report is also the stored state. It is committed, so that the next run
// continues on any machine where this run stopped.
type keep struct {
	root  string
	Parts map[string]result
}

// columns of the report are separated by at least two spaces. No part's name contains two spaces.
var columns = regexp.MustCompile(` {2,}`)

func openKeep(root string) (*keep, error) {
	k := &keep{root: root, Parts: map[string]result{}}
	if err := os.MkdirAll(filepath.Join(root, ".cache", "prove"), 0o755); err != nil {
		return nil, err
	}
	return k, k.read()
}

// read adds results from the report that are missing or older here, because another run may have written the report in the meantime.
func (k *keep) read() error {
	data, err := os.ReadFile(k.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		if name, r, ok := readLine(strings.TrimSpace(line)); ok && r.Date.After(k.Parts[name].Date) {
			k.Parts[name] = r
		}
	}
	return nil
}

// readLine parses the line of one part. ok is false for any other line, and for a part that was not run.
func readLine(line string) (name string, r result, ok bool) {
	f := columns.Split(line, 9)
	if len(f) < 8 || !slices.Contains([]string{"ok", "old", "failed"}, f[1]) {
		return "", r, false
	}
	date, err := time.Parse(time.RFC3339, f[2])
	if err != nil {
		return "", r, false
	}
	took, err := time.ParseDuration(f[5])
	if err != nil {
		return "", r, false
	}
	runs, err := strconv.Atoi(f[6])
	if err != nil {
		return "", r, false
	}
	inAll, err := time.ParseDuration(f[7])
	if err != nil {
		return "", r, false
	}
	r = result{OK: f[1] != "failed", Date: date, Hash: f[3], Revision: f[4], Took: took, Runs: runs, InAll: inAll}
	if len(f) == 9 {
		r.Detail = f[8]
	}
	return f[0], r, true
}

func (k *keep) path() string { return filepath.Join(k.root, "bench", "prove.txt") }

// put stores a result and writes the report.
func (k *keep) put(name string, r result, all []part) error {
	if err := k.read(); err != nil {
		return err
	}
	k.Parts[name] = r.after(k.Parts[name])
	return os.WriteFile(k.path(), k.report(all), 0o644)
}

// report returns the text of bench/prove.txt: a line for every part, with its result.
func (k *keep) report(parts []part) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "make prove: each part as it ended the last time it was run\n"+
		"A result is current while its hash is: of the test package, everything it imports, its test data and its counts.\n"+
		"machine  %s\n\n", place.Machine())
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "part\tresult\tdate\thash\trevision\ttook\truns\tin all\tdetail")
	for _, p := range parts {
		r := k.Parts[p.name]
		if r.Date.IsZero() {
			fmt.Fprintf(w, "%s\t%s\n", p.name, r.verdict())
			continue
		}
		verdict := r.verdict()
		if r.OK && !r.current(p) {
			verdict = "old"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", p.name, verdict, r.Date.Format(time.RFC3339), cmp.Or(r.Hash, "-"),
			cmp.Or(r.Revision, "-"), r.Took.Round(time.Second), r.Runs, r.InAll.Round(time.Second), r.Detail)
	}
	_ = w.Flush()
	var out bytes.Buffer
	for line := range strings.Lines(b.String()) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.Bytes()
}
