// Package inside connects the packages of the product in this process, as cmd does, and measures them under the profiler.
package inside

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

	"understudy/bench/rig"
)

// interior is a drop-in port in this process, in front of a simulated API in another process.
type interior struct {
	*server
	api *rig.Child
}

func openInterior(ctx context.Context, r *rig.Run, records int) (*interior, error) {
	api, err := rig.Start(ctx, r.Dir, "slowapi-inside", "slowapi ", r.Bin, "slowapi", "--listen", "127.0.0.1:0", "--latency", "0s", "--records", fmt.Sprint(records))
	if err != nil {
		return nil, err
	}
	h, err := openServer(ctx, r, api.Addresses["slowapi"])
	if err != nil {
		return nil, errors.Join(err, api.Stop())
	}
	return &interior{h, api}, nil
}

func (i *interior) close() error { return errors.Join(i.server.close(), i.api.Stop()) }

// NewPages starts a child process that walks a list through the packages in this
// process, and prints the use of CPU time. Upstream and the walker are processes
// of their own and not in the profile.
func NewPages(ctx context.Context, r *rig.Run, pages int) (err error) {
	i, err := openInterior(ctx, r, 50*pages)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	spent, rooms, err := profiled(r, "cpu", func() error { return follow(ctx, r, i.address, pages) })
	if err != nil {
		return err
	}
	counts, err := (&rig.Rig{Api: i.api}).Asked(ctx)
	if err != nil {
		return err
	}
	r.Table(splitRows("CPU of a new page, by room", "ms/page", rooms, float64(len(counts.ByTarget))*1e6))
	r.Say("inside one process, profiler on: %s ms a page by the kernel's count", rig.Figure(rig.Ms(spent)/float64(len(counts.ByTarget))))
	r.Say("")
	return nil
}

// Warm does the same for a stored page, under load.
func Warm(ctx context.Context, r *rig.Run, d rig.Driver, a rig.Target) (err error) {
	i, err := openInterior(ctx, r, 5000)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	a.URL = i.address + a.URL
	if _, err := d.Run(ctx, a); err != nil { // until it is ready in both forms
		return err
	}
	var l rig.Load
	_, rooms, err := profiled(r, "warm", func() (err error) { l, err = d.Run(ctx, a); return err })
	if err != nil {
		return err
	}
	r.Table(splitRows("CPU of a warm answer, gzip, by room", "us/request", rooms, float64(l.Requests)*1e3))
	return nil
}

// profiled runs f under the CPU profiler. It returns the CPU time of this process as counted by the kernel, and the
// profile's CPU time by package. With -profile it stores the profile.
func profiled(r *rig.Run, name string, f func() error) (spent time.Duration, rooms map[string]time.Duration, err error) {
	dir := r.Dir
	if r.Profile != "" {
		dir = r.Profile
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

// follow starts a child process that walks a list.
func follow(ctx context.Context, r *rig.Run, address string, pages int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c, err := rig.Start(ctx, r.Dir, "follow", "walked ", self, "follow", "-base", address, "-pages", fmt.Sprint(pages))
	if err != nil {
		return err
	}
	<-c.Exited
	return c.Err
}

// split adds up CPU time by package. A sample belongs to the innermost function on the stack that is in one of our packages, without
// what is below the Write of an answer. Other samples belong to the garbage collector, net/http or the rest of the runtime.
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
			return "net/http, serving" // bytes that a frontend has written are being sent
		}
		if path, ok := strings.CutPrefix(name, "understudy/"); ok && !strings.HasPrefix(path, "bench/") {
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
	case has("main."), has("understudy/bench/"):
		return "the bench itself"
	}
	return "runtime, scheduling"
}

// splitRows returns the shares of the CPU time, largest first, each divided by the nanoseconds of the unit.
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

// Follow is the child process of follow.
func Follow(ctx context.Context, args []string, out io.Writer) error {
	fs := rig.NewFlags("follow", out)
	base := fs.String("base", "", "the drop-in's address")
	pages := fs.Int("pages", 1, "how many pages to read")
	if err := fs.Parse(args); err != nil {
		return err
	}
	n, err := rig.NewClient(*base, rig.Account, rig.OurToken).Walk(ctx, rig.Calls, *pages, nil)
	fmt.Fprintf(out, "walked %d pages\n", n)
	return err
}
