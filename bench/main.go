// Command bench measures the built understudy binary against a simulated slow
// API, one part for each number the project promises, and keeps the results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"understudy/bench/inside"
	"understudy/bench/parts/claims/echo"
	"understudy/bench/parts/imports"
	"understudy/bench/parts/ingest"
	rpcecho "understudy/bench/parts/rpc/echo"
	"understudy/bench/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "bare" {
		exit(rig.Bare(ctx, os.Args[2:], os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == "loop" {
		exit(rig.Loop(ctx, os.Args[2:], os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == "follow" {
		exit(inside.Follow(ctx, os.Args[2:], os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == "echo" {
		exit(echo.Serve(ctx, os.Args[2:], os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == "rpc" {
		exit(rpcecho.Serve(ctx, os.Args[2:], os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == "ingest" {
		exit(ingest.Child(ctx, os.Args[2:], os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == "imports" {
		exit(imports.Import(ctx, os.Args[2:], os.Stdout))
	}
	exit(bench(ctx, os.Args[1:], os.Stdout))
}

func exit(err error) {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench reads the flags and runs the parts asked for. A target that was missed
// is printed and is no error; a part that could not be measured is one.
func bench(ctx context.Context, args []string, out io.Writer) error {
	o := rig.Options{Command: strings.TrimSpace("go run . " + strings.Join(args, " "))}
	fs := rig.NewFlags("bench", out)
	list := fs.Bool("list", false, "list the parts")
	only := fs.String("part", "", "run only these parts, with commas between")
	fs.StringVar(&o.Bin, "bin", "../bin/understudy", "the binary to measure (make build)")
	fs.BoolVar(&o.Quick, "quick", false, "smoke every part in seconds; writes no results unless -results is given")
	fs.DurationVar(&o.Reader, "reader", 10*time.Minute, "how long the part reader reads")
	fs.StringVar(&o.Results, "results", "results", "folder of the results; empty prints only")
	fs.StringVar(&o.Drawings, "drawings", "../docs", "folder of the drawings; empty draws none")
	fs.StringVar(&o.Old, "old", "", "compare with the program of this checkout, in turns")
	fs.StringVar(&o.As, "as", "compared", "name of the results of a comparison")
	fs.StringVar(&o.Package, "go", "", "compare the benchmarks of this package of Go, such as ./kit/logline, instead of parts")
	fs.StringVar(&o.Pattern, "run", ".", "only benchmarks whose names match")
	fs.StringVar(&o.Profile, "profile", "", "keep the CPU profiles of the parts cpu and warm in this folder")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *list {
		for _, p := range parts {
			fmt.Fprintf(out, "%-9s %s\n", p.Name, p.About)
		}
		return nil
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if o.Quick && !given(fs, "results") {
		o.Results = ""
	}
	if o.Bin, err = filepath.Abs(o.Bin); err != nil {
		return err
	}
	if _, err := os.Stat(o.Bin); err != nil {
		return fmt.Errorf("%w; build it with make build or name it with -bin", err)
	}
	if o.Self, err = os.Executable(); err != nil {
		return err
	}
	if o.Old != "" {
		return rig.Compare(ctx, o, chosen, out)
	}
	if err := rig.RunAll(ctx, o, chosen, out); err != nil || o.Results == "" || o.Drawings == "" || o.Quick {
		return err
	}
	chart, err := rig.DrawOverview(o.Results)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a folder that lacks results of other parts
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.Drawings, rig.OverviewFile), chart, 0o644)
}

func given(fs *flag.FlagSet, name string) (found bool) {
	fs.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// choose finds parts by name; "" is all of them.
func choose(names string) ([]rig.Part, error) {
	if names == "" {
		return parts, nil
	}
	var out []rig.Part
next:
	for name := range strings.SplitSeq(names, ",") {
		for _, p := range parts {
			if p.Name == name {
				out = append(out, p)
				continue next
			}
		}
		return nil, fmt.Errorf("no part is called %q; -list names them", name)
	}
	return out, nil
}
