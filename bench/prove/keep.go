// Keep: what is known of each part, in .cache/prove and in bench/prove.txt.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"understudy/bench/place"
)

// result is how a part ended the last time it was run.
type result struct {
	OK       bool          `json:"ok"`
	Date     time.Time     `json:"date"`
	Took     time.Duration `json:"took"`
	Revision string        `json:"revision"`
	Machine  string        `json:"machine"`
	Detail   string        `json:"detail"`
}

// rank puts what failed or never ran first.
func (r result) rank() int {
	if r.Date.IsZero() || !r.OK {
		return 0
	}
	return 1
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

// keep is the file of results by part.
type keep struct {
	root  string
	Parts map[string]result `json:"parts"`
}

func openKeep(root string) (*keep, error) {
	k := &keep{root: root, Parts: map[string]result{}}
	if err := os.MkdirAll(filepath.Dir(k.path()), 0o755); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(k.path())
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, k); err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to begin anew", k.path(), err)
	}
	return k, nil
}

func (k *keep) path() string { return filepath.Join(k.root, ".cache", "prove", "state.json") }

// put remembers a result.
func (k *keep) put(name string, r result) error {
	r.Machine = place.Machine()
	k.Parts[name] = r
	data, err := json.MarshalIndent(k, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(k.path(), append(data, '\n'), 0o644)
}

// report is bench/prove.txt: every part there is, with what is known of it.
func (k *keep) report(parts []part) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "make prove: each part as it ended the last time it was run\nmachine  %s\n\n", place.Machine())
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "part\tresult\tdate\trevision\ttook\tdetail")
	for _, p := range parts {
		r := k.Parts[p.name]
		if r.Date.IsZero() {
			fmt.Fprintf(w, "%s\t%s\n", p.name, r.verdict())
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.name, r.verdict(), r.Date.Format(time.RFC3339), r.Revision, r.Took.Round(time.Second), r.Detail)
	}
	_ = w.Flush()
	var out bytes.Buffer
	for line := range strings.Lines(b.String()) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.Bytes()
}
