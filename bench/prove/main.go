// Command prove runs the inspection at full counts, as far as a budget of time
// goes, and goes on where it stopped: first what failed or never ran, then
// what is old, the oldest first. A result is old when the code that it speaks
// of has changed. With more time than all parts take, they are run again and
// what they took adds up.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"understudy/bench/place"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := prove(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

// prove runs parts until the budget is used up.
func prove(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("prove", flag.ContinueOnError)
	budget := fs.Duration("for", usualBudget, "how long to go on; a part that would not fit is not begun")
	root := fs.String("root", "..", "folder of the product's module")
	list := fs.Bool("list", false, "list the parts and what is known of them")
	only := fs.String("part", "", "run only parts whose name contains this")
	if err := fs.Parse(args); err != nil {
		return err
	}
	dir, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	parts, err := find(ctx, dir)
	if err != nil {
		return err
	}
	k, err := openKeep(dir)
	if err != nil {
		return err
	}
	h := hasher{root: dir, modules: map[string]map[string]listed{}, files: map[string][]byte{}}
	if err := h.hash(ctx, parts); err != nil {
		return err
	}
	if *list {
		_, err := os.Stdout.Write(k.report(parts))
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !strings.Contains(p.name, *only) })
	s := session{dir: dir, keep: k, all: parts, until: time.Now().Add(*budget), again: *only != "" || *budget > allParts}
	for {
		ran, err := s.run(ctx, chosen)
		if more := ran > 0 && *only == "" && s.again; err != nil || !more {
			return err
		}
	}
}

const (
	usualBudget = 2 * time.Hour
	allParts    = 7 * time.Hour // the time of all parts together on two cores
)

// session is one run of prove.
type session struct {
	dir   string
	keep  *keep
	all   []part // for the report
	until time.Time
	again bool // parts with a current result are run again after the others
}

// run runs each due part once, and returns how many parts it ran.
func (s session) run(ctx context.Context, parts []part) (ran int, err error) {
	revision := place.Revision(".")
	slices.SortStableFunc(parts, s.order)
	var failed []string
	left := 0
	for _, p := range parts {
		known := s.keep.Parts[p.name]
		if known.current(p) && !s.again {
			continue
		}
		first := ran == 0 && !known.current(p)
		if !first && time.Now().Add(p.expect(known)).After(s.until) {
			left++
			continue
		}
		fmt.Printf("%-44s ", p.name)
		r := runPart(ctx, s.dir, p)
		if ctx.Err() != nil {
			fmt.Println("stopped")
			return ran, ctx.Err()
		}
		ran++
		r.Revision, r.Hash = revision, p.hash
		fmt.Printf("%-6s %8s  %s\n", r.verdict(), r.Took.Round(time.Second), r.Detail)
		if !r.OK {
			failed = append(failed, p.name)
		}
		if err := s.keep.put(p.name, r, s.all); err != nil {
			return ran, err
		}
	}
	fmt.Printf("%d parts run, %d left for next time; the report is bench/prove.txt\n", ran, left)
	if len(failed) > 0 {
		return ran, fmt.Errorf("failed: %s; logs are in .cache/prove", strings.Join(failed, ", "))
	}
	return ran, nil
}

// order sorts the parts. Parts that failed or never ran come first. Then come parts with an old result, the oldest first,
// and then parts with a current result, those with the least total time first.
func (s session) order(a, b part) int {
	x, y := s.keep.Parts[a.name], s.keep.Parts[b.name]
	rank := func(r result, p part) int {
		switch {
		case !r.OK:
			return 0
		case !r.current(p):
			return 1
		}
		return 2
	}
	if by := cmp.Compare(rank(x, a), rank(y, b)); by != 0 {
		return by
	}
	if rank(x, a) == 2 {
		return cmp.Compare(x.InAll, y.InAll)
	}
	return x.Date.Compare(y.Date)
}

// runPart runs a part for its number of rounds, or until the time is over. It writes the output to a log. It stops after
// the first round that fails.
func runPart(ctx context.Context, dir string, p part) result {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	began := time.Now()
	r := result{Date: began.UTC(), OK: true}
	var all []byte
	round := 0
	for r.OK && round < max(p.rounds, 1) && (round == 0 || time.Since(began) < p.within) {
		out, err := p.run(ctx, dir)
		all = append(all, out...)
		round++
		r.OK = (err == nil || p.ended != nil && p.ended.Match(out)) && (p.bad == nil || !p.bad.Match(out))
		if r.Detail = p.detail(out); r.OK && err != nil {
			r.Detail = "deadline: its time ended while its workers were busy, and nothing was found"
		}
	}
	r.Took = time.Since(began)
	if p.rounds > 1 {
		r.Detail = fmt.Sprintf("round %d of %d: %s", round, p.rounds, r.Detail)
	}
	if !r.OK && ctx.Err() != nil {
		r.Detail = fmt.Sprintf("not done after %v", p.limit)
	}
	log := filepath.Join(dir, ".cache", "prove", strings.NewReplacer("/", "_", " ", "_").Replace(p.name)+".log")
	if err := os.WriteFile(log, all, 0o644); err != nil {
		r.Detail += "; " + err.Error()
	}
	return r
}

// run runs the command once.
func (p part) run(ctx context.Context, dir string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.command[0], p.command[1:]...)
	cmd.Dir = filepath.Join(dir, p.dir)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	return cmd.CombinedOutput()
}
