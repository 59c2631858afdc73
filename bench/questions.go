// Questions: many different ones asked once each, and how long each took.

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// question is asked once. What it must bring is for the part to check.
type question struct {
	group string // what it is an example of
	uri   string
}

// asking collects what questions took, by group.
type asking struct {
	groups []string
	took   map[string][]time.Duration
	found  map[string][]int
	all    []time.Duration
}

func newAsking() *asking {
	return &asking{took: map[string][]time.Duration{}, found: map[string][]int{}}
}

// add notes one answer and how many records were in it.
func (a *asking) add(group string, took time.Duration, found int) {
	if _, known := a.took[group]; !known {
		a.groups = append(a.groups, group)
	}
	a.took[group] = append(a.took[group], took)
	a.found[group] = append(a.found[group], found)
	a.all = append(a.all, took)
}

// show is a row for each group, with how many records its answers had in the
// middle, and one for all.
func (a *asking) show(r *run, title string) {
	head := append([]string{title}, spreadHead[1:]...)
	rows := [][]string{append(head, "records, median")}
	for _, g := range a.groups {
		rows = append(rows, append(spread(g, a.took[g]), fmt.Sprint(median(a.found[g]))))
	}
	r.table(append(rows, spread("all", a.all)))
}

// held starts a rig and has it hold one kind whole.
func (r *run) held(ctx context.Context, s Setup, kind string) (*Rig, error) {
	g, err := r.rig(ctx, s)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, r.bin, "sync", "twilio/"+kind, "--config", filepath.Join(g.dir, "understudy.yml"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("sync %s: %w: %s", kind, err, out[max(0, len(out)-2000):]), g.close())
	}
	r.say("all %s walked in %s s", kind, figure(time.Since(began).Seconds()))
	r.say("")
	return g, nil
}

// whole are the settings of a rig that keeps a kind whole and answers from
// records, for as long as the part takes.
func whole(records int, kind string) Setup {
	return Setup{
		records:  records,
		settings: []string{"rate: 100000", "concurrency: 20", "answers: records", "sync: [" + kind + "]"},
		mirror:   "hot: 25MiB, newest: 24h, older: 24h",
	}
}
