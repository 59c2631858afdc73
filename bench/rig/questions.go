// Questions: many different ones asked once each, and how long each took.

package rig

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// Question is a request that is sent once. The part itself checks the answer.
type Question struct {
	Group string // what it is an example of
	URI   string
}

// Asking collects the times of requests by group.
type Asking struct {
	groups []string
	took   map[string][]time.Duration
	found  map[string][]int
	All    []time.Duration
}

func NewAsking() *Asking {
	return &Asking{took: map[string][]time.Duration{}, found: map[string][]int{}}
}

// Add adds the time of one answer, and the number of records in it.
func (a *Asking) Add(group string, took time.Duration, found int) {
	if _, known := a.took[group]; !known {
		a.groups = append(a.groups, group)
	}
	a.took[group] = append(a.took[group], took)
	a.found[group] = append(a.found[group], found)
	a.All = append(a.All, took)
}

// Show prints a row for each group, with the median number of records in its answers, and a row for all requests.
func (a *Asking) Show(r *Run, title string) {
	head := append([]string{title}, SpreadHead[1:]...)
	rows := [][]string{append(head, "records, median")}
	for _, g := range a.groups {
		rows = append(rows, append(Spread(g, a.took[g]), fmt.Sprint(Median(a.found[g]))))
	}
	r.Table(append(rows, Spread("all", a.All)))
}

// Held starts a rig and syncs one kind completely.
func (r *Run) Held(ctx context.Context, s Setup, kind string) (*Rig, error) {
	g, err := r.Rig(ctx, s)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, r.Bin, "sync", "twilio/"+kind, "--config", filepath.Join(g.Dir, "understudy.yml"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("sync %s: %w: %s", kind, err, out[max(0, len(out)-2000):]), g.Close())
	}
	r.Say("all %s walked in %s s", kind, Figure(time.Since(began).Seconds()))
	r.Say("")
	return g, nil
}

// Whole returns the setup of a rig that keeps a kind complete and answers lists from records. No answer becomes
// old during the part.
func Whole(records int, kind string) Setup {
	return Setup{
		Records:  records,
		Settings: []string{"rate: 100000", "concurrency: 20", "lists_from: records", "sync: [" + kind + "]"},
		Mirror:   "memory: 25MiB, newest: 24h, older: 24h",
	}
}
