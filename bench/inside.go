// Inside: the same walk with the rooms in this process, under the profiler.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/pprof/profile"
)

// interior is a drop-in in this process, before a simulated API in another.
type interior struct {
	*house
	api *child
}

func openInterior(ctx context.Context, r *run, records int) (*interior, error) {
	api, err := start(ctx, r.dir, "slowapi-inside", "slowapi ", r.bin, "slowapi", "--listen", "127.0.0.1:0", "--latency", "0s", "--records", fmt.Sprint(records))
	if err != nil {
		return nil, err
	}
	h, err := openHouse(ctx, r, api.addresses["slowapi"])
	if err != nil {
		return nil, errors.Join(err, api.stop())
	}
	return &interior{h, api}, nil
}

func (i *interior) close() error { return errors.Join(i.house.close(), i.api.stop()) }

// inside lets a child walk a list through the rooms in this process, and
// prints where the CPU time went. Upstream and the walker are processes of
// their own and not in the profile.
func inside(ctx context.Context, r *run, pages int) (err error) {
	i, err := openInterior(ctx, r, 50*pages)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	spent, rooms, err := profiled(r, "cpu", func() error { return follow(ctx, r, i.address, pages) })
	if err != nil {
		return err
	}
	counts, err := (&Rig{api: i.api}).asked(ctx)
	if err != nil {
		return err
	}
	r.table(splitRows("CPU of a new page, by room", "ms/page", rooms, float64(len(counts.ByTarget))*1e6))
	r.say("inside one process, profiler on: %s ms a page by the kernel's count", figure(ms(spent)/float64(len(counts.ByTarget))))
	r.say("")
	return nil
}

// insideWarm does the same for a page that is held, under load.
func insideWarm(ctx context.Context, r *run, d driver, a Target) (err error) {
	i, err := openInterior(ctx, r, 5000)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	a.url = i.address + a.url
	if _, err := d.run(ctx, a); err != nil { // until it is ready in both forms
		return err
	}
	var l load
	_, rooms, err := profiled(r, "warm", func() (err error) { l, err = d.run(ctx, a); return err })
	if err != nil {
		return err
	}
	r.table(splitRows("CPU of a warm answer, gzip, by room", "us/request", rooms, float64(l.requests)*1e3))
	return nil
}

// profiled runs f under the CPU profiler. It gives this process's CPU time by
// the kernel's count, and the profile's by room. With -profile the profile is
// kept.
func profiled(r *run, name string, f func() error) (spent time.Duration, rooms map[string]time.Duration, err error) {
	dir := r.dir
	if r.profile != "" {
		dir = r.profile
	}
	path := filepath.Join(dir, name+".pprof")
	file, err := os.Create(path)
	if err != nil {
		return 0, nil, err
	}
	spent, err = underProfiler(file, f)
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, nil, err
	}
	rooms, err = split(path)
	return spent, rooms, err
}

func underProfiler(w io.Writer, f func() error) (time.Duration, error) {
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		return 0, err
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		return 0, err
	}
	err := f()
	pprof.StopCPUProfile()
	if err != nil {
		return 0, err
	}
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	used := func(u syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }
	return used(after) - used(before), err
}

// follow lets a child of the bench walk a list.
func follow(ctx context.Context, r *run, address string, pages int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c, err := start(ctx, r.dir, "follow", "walked ", self, "follow", "-base", address, "-pages", fmt.Sprint(pages))
	if err != nil {
		return err
	}
	<-c.exited
	return c.err
}

// split adds up CPU time by who spent it: the innermost function of one of our
// packages on the stack, what lies below an answer's Write left out; where there is none, the garbage collector, net/http,
// or what is left of the runtime.
func split(path string) (map[string]time.Duration, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		return nil, err
	}
	out := map[string]time.Duration{}
	for _, s := range p.Sample {
		out[room(s)] += time.Duration(s.Value[len(s.Value)-1])
	}
	return out, nil
}

func room(s *profile.Sample) string {
	var names []string // innermost first
	for _, l := range s.Location {
		for _, line := range l.Line {
			names = append(names, line.Function.Name)
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "net/http.(*response)") || strings.HasPrefix(name, "net/http.(*chunkWriter)") {
			return "net/http, serving" // bytes handed over by a face are on their way
		}
		if path, ok := strings.CutPrefix(name, "understudy/"); ok {
			path, _, _ = strings.Cut(path, "[") // type arguments hold paths too
			slash := strings.LastIndexByte(path, '/')
			dot := strings.IndexByte(path[slash+1:], '.')
			return path[:slash+1+dot]
		}
		if strings.HasPrefix(name, "understudy.") {
			return "understudy"
		}
	}
	switch has := func(part string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, part) })
	}; {
	case has("runtime.gcBgMarkWorker"), has("runtime.bgsweep"), has("runtime.bgscavenge"):
		return "garbage collector"
	case has("net/http.(*conn)"), has("net/http.(*connReader)"):
		return "net/http, serving"
	case has("net/http.(*persistConn)"), has("net/http.(*Transport)"):
		return "net/http, asking upstream"
	case has("database/sql"):
		return "internal/store"
	case has("main."):
		return "the bench itself"
	}
	return "runtime, scheduling"
}

// splitRows are the shares of the CPU time, largest first, each divided by so
// many nanoseconds of the unit.
func splitRows(what, unit string, rooms map[string]time.Duration, by float64) [][]string {
	var total time.Duration
	var names []string
	for name, d := range rooms {
		total += d
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(int(rooms[b]-rooms[a]), strings.Compare(a, b)) })
	rows := [][]string{{what, unit, "share"}}
	for _, name := range names {
		rows = append(rows, []string{name, fmt.Sprintf("%.3f", float64(rooms[name])/by), fmt.Sprintf("%.1f %%", 100*float64(rooms[name])/float64(total))})
	}
	return append(rows, []string{"all", fmt.Sprintf("%.3f", float64(total)/by), "100 %"})
}

// walker is the child process of follow.
func walker(ctx context.Context, args []string, out io.Writer) error {
	fs := newFlags("follow", out)
	base := fs.String("base", "", "the drop-in's address")
	pages := fs.Int("pages", 1, "how many pages to read")
	if err := fs.Parse(args); err != nil {
		return err
	}
	n, err := NewClient(*base, account, ourToken).walk(ctx, calls, *pages, nil)
	fmt.Fprintf(out, "walked %d pages\n", n)
	return err
}
