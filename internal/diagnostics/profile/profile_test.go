// Tests of what profiles say, against pprof itself, and of what is kept.

package profile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	rt "runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

func newTest(t *testing.T, o Options) *Recorder {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "profiles")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return New(o)
}

// planted is a parser with the hot spot of the article: it makes strings.
//
//go:noinline
func planted(n int) (length int) {
	text := ""
	for i := range n {
		text += strconv.Itoa(i) // the hot line
	}
	return len(text)
}

// hotLine is the line of the comment above.
func hotLine(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("profile_test.go")
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(data), "// the hot"+" line")
	return fmt.Sprintf("internal/diagnostics/profile/profile_test.go:%d", strings.Count(before, "\n")+1)
}

// while does work until the function returned is called, which waits for it.
func while(work func()) (stop func()) {
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				work()
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func TestAPlantedHotSpotIsFirst(t *testing.T) {
	r := newTest(t, Options{Version: "v1"})
	stop := while(func() { planted(2000) })
	kept, err := r.Take(t.Context(), Allocs, 300*time.Millisecond, "test")
	stop()
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Report(ReportOptions{ID: kept.ID})
	if err != nil {
		t.Fatal(err)
	}
	checktest.MustTrue(t, len(got.Functions) != 0, "want planted at: len(got.Functions) is 0")
	checktest.MustTrue(t, strings.HasSuffix(got.Functions[0].Name, ".planted"),
		"want planted at: got.Functions[0].Name is %q", got.Functions[0].Name)
	checktest.MustEqual(t, got.Functions[0].At, hotLine(t), "want planted at: got.Functions[0].At")
	f := got.Functions[0]
	checktest.True(t, f.Self*2 >= got.Total, "f.Self*2 is %v", f.Self*2)
	checktest.True(t, f.Count != 0, "f.Count is 0")
	checktest.MustTrue(t, len(f.Callers) != 0, "len(f.Callers) is 0")
	checktest.Equal(t, got.Measure, "allocated", "got.Measure")
	if got.Packages[0].Name != "understudy/internal/diagnostics/profile" || len(got.Jobs) != 0 {
		t.Errorf("%+v, %+v", got.Packages, got.Jobs)
	}
	var text bytes.Buffer
	{
		err := got.Print(&text, strings.ToUpper)
		checktest.MustNoError(t, err, "%v", err)
		checktest.Contains(t, text.String(), "PLANTED", "%v: text.String()", err)
		checktest.Lacks(t, text.String(), ".planted", "%v: text.String()", err)
	}
	held, err := r.Report(ReportOptions{ID: kept.ID, Held: true, Match: "planted"})
	checktest.MustNoError(t, err, "")
	checktest.Equal(t, held.Measure, "held", "held.Measure")
	checktest.True(t, held.Total < got.Total, "held.Total is %v", held.Total)
}

// readings are two readings of the runtime with work between them.
func readings(t *testing.T) (before, after *profile.Profile) {
	t.Helper()
	read := func() *profile.Profile {
		runtime.GC()
		p, err := readAllocs()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	before = read()
	for range 20 {
		planted(3000)
	}
	return before, read()
}

// What grew equals the difference pprof makes of the same two files, by function
// and in total.
func TestTheDifferenceEqualsPprofs(t *testing.T) {
	if !sample.IsFullRun() {
		t.Skip("UNDERSTUDY_PROVE is not set: go tool pprof is compiled at its first use")
	}
	before, after := readings(t)
	dir := t.TempDir()
	for name, p := range map[string]*profile.Profile{"before": before, "after": after} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(p.Write(f), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "-unit=B", "-sample_index=alloc_space",
		"-diff_base", filepath.Join(dir, "before"), filepath.Join(dir, "after")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	diff, err := compareAllocs(before, after, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	got := Report{Kept: Kept{Kind: Allocs}}
	if err := got.read(diff, ReportOptions{Limit: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	flat := map[string]int64{}
	for _, m := range regexp.MustCompile(`(?m)^\s*(-?\d+)B\s+\S+\s+\S+\s+(-?\d+)B?\s+\S+\s+(.+)$`).FindAllStringSubmatch(string(out), -1) {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		flat[strings.TrimSuffix(m[3], " (inline)")] += n
	}
	seen := 0
	for _, f := range got.Functions {
		if want, ok := flat[f.Name]; ok && want != f.Flat {
			t.Errorf("%s: %d, pprof %d", f.Name, f.Flat, want)
		} else if ok && f.Flat != 0 {
			seen++
		}
	}
	total := int64(0)
	for _, n := range flat {
		total += n
	}
	checktest.True(t, seen != 0, "seen is 0; out %s", out)
	checktest.Equal(t, total, got.Total, "total; out %s", out)
	checktest.True(t, total != 0, "total is 0; out %s", out)
}

// The difference is made of the later reading less the earlier one; what is held
// is that of the later.
func TestBetween(t *testing.T) {
	before, after := readings(t)
	sum := func(p *profile.Profile, i int) (n int64) {
		for _, s := range p.Sample {
			n += s.Value[i]
		}
		return n
	}
	want := make([]int64, 4)
	for i := range want {
		if want[i] = sum(after, i); i < 2 { // alloc_objects, alloc_space
			want[i] -= sum(before, i)
		}
	}
	diff, err := compareAllocs(before, after, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got := sum(diff, i); got != want[i] {
			t.Errorf("%s: %d, want %d", diff.SampleType[i].Type, got, want[i])
		}
	}
	if want[1] == 0 {
		t.Error("nothing was allocated")
	}
}

func TestCPUByJobAndCredential(t *testing.T) {
	r := newTest(t, Options{})
	stopJob := while(func() {
		rt.Do(t.Context(), rt.Labels(JobLabel, "sweep calls"), func(context.Context) { planted(2000) })
	})
	serve := r.Handler(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		r.MarkCaller(req, understudy.Caller{Name: "reports"})
		planted(2000)
	}))
	stopRequests := while(func() { serve.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) })
	defer stopRequests()
	defer stopJob()
	has := func(all []Share, name string) bool {
		for _, s := range all {
			if s.Name == name && s.Value > 0 && s.Count > 0 {
				return true
			}
		}
		return false
	}
	seenJob, seenCredential := false, false
	for range 40 { // until a busy machine has let both run under the profiler
		kept, err := r.Take(t.Context(), CPU, 300*time.Millisecond, "test")
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Report(ReportOptions{ID: kept.ID})
		if err != nil || got.Measure != "cpu" {
			t.Fatalf("%+v, %v", got, err)
		}
		seenJob = seenJob || has(got.Jobs, "sweep calls")
		seenCredential = seenCredential || has(got.Credentials, "reports")
		if seenJob && seenCredential {
			break
		}
	}
	if !seenJob || !seenCredential {
		t.Errorf("the job was seen: %v, the credential: %v", seenJob, seenCredential)
	}
	if r.IsCPUProfiled() {
		t.Error("labels are still given")
	}
}

func TestOneAtATime(t *testing.T) {
	r := newTest(t, Options{})
	type taken struct {
		kept *Kept
		err  error
	}
	first := make(chan taken)
	go func() {
		kept, err := r.Take(t.Context(), Allocs, Longest, "maria")
		first <- taken{kept, err}
	}()
	for r.Taking() == nil {
		runtime.Gosched()
	}
	_, err := r.Take(t.Context(), CPU, time.Second, "jan")
	var busy *BusyError
	checktest.MustTrue(t, errors.As(err, &busy), "errors.As(err, &busy) is false")
	checktest.Equal(t, busy.Taking.By, "maria", "busy.Taking.By; %v", err)
	checktest.Contains(t, err.Error(), "allocs", "err.Error()")
	checktest.Contains(t, err.Error(), busy.Taking.From.UTC().Format(time.TimeOnly), "err.Error()")
	if !r.Stop() {
		t.Error("there was none to stop")
	}
	if got := <-first; got.err != nil || got.kept.Took >= Longest {
		t.Errorf("%+v", got)
	}
	if r.Stop() || r.Taking() != nil {
		t.Error("it goes on")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Take(gone, CPU, time.Second, "jan"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, length := range []time.Duration{0, -1, Longest + 1} {
		if _, err := r.Take(t.Context(), CPU, length, "jan"); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%v: %v", length, err)
		}
	}
	if all, err := r.List(); len(all) != 1 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// The folder stays under its limit, and the last of the version before stays.
func TestTheRingIsBounded(t *testing.T) {
	now := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)
	dir := filepath.Join(t.TempDir(), "profiles")
	p, err := readAllocs()
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	keep := func(version string, limit int64) *Recorder {
		r := newTest(t, Options{Dir: dir, Version: version, Limit: limit, Now: func() time.Time { return now }})
		kept, err := r.keepProfile(Allocs, now, p)
		if err != nil {
			t.Fatal(err)
		}
		now, size = now.Add(time.Hour), kept.Bytes
		return r
	}
	keep("v1 go1.26", 1<<40)
	keep("v1 go1.26", 1<<40)
	var r *Recorder
	for range 20 {
		r = keep("v2", 4*size)
	}
	all, err := r.List()
	if err != nil {
		t.Fatal(err)
	}
	checktest.MustTrue(t, len(all) >= 3, "len(all) is %v, want >= 3", len(all))
	checktest.MustTrue(t, len(all) <= 5, "len(all) is %v, want <= 5", len(all))
	checktest.Equal(t, all[len(all)-1].Version, "v1-go1.26", "all[len(all)-1].Version")
	checktest.Equal(t, all[0].Version, "v2", "all[0].Version")
	if k, err := r.Find(Allocs, "version"); err != nil || k.Version != "v1-go1.26" {
		t.Errorf("%+v, %v", k, err)
	}
	if k, err := r.Find(Allocs, "today"); err != nil || k.From.Day() != now.Day() {
		t.Errorf("%+v, %v", k, err)
	}
	if _, err := r.Find(CPU, "version"); !errors.Is(err, understudy.ErrNotFound) {
		t.Error(err)
	}
	grew, err := r.Report(ReportOptions{ID: all[0].ID, Since: "version"})
	checktest.MustNoError(t, err, "")
	checktest.Equal(t, grew.Total, 0, "grew.Total")
	checktest.True(t, grew.Since != nil, "grew.Since is nil")
}

// Run keeps one each hour, without being asked.
func TestRunKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTest(t, Options{Version: "v1"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(2*time.Hour + 30*time.Minute)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		all, err := r.List()
		checktest.MustNoError(t, err, "")
		checktest.MustEqual(t, len(all), 3, "len(all)")
		checktest.Equal(t, all[0].Took, 30*time.Minute, "all[0].Took")
		checktest.Equal(t, all[1].Took, time.Hour, "all[1].Took")
	})
}

// The events before the end of a slow request are stored, and not again within a minute. Recordings push out no profiles.
func TestEventsOfASlowRequestAreKept(t *testing.T) {
	r := newTest(t, Options{Version: "v1"})
	r.KeepEvents() // nothing is recorded yet
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.RecordEvents(ctx) }()
	var all []Kept
	for end := time.Now().Add(20 * time.Second); len(all) == 0; runtime.Gosched() {
		r.KeepEvents()
		all, _ = r.List()
		checktest.MustTrue(t, time.Now().Before(end), "no recording is kept")
	}
	r.KeepEvents()
	cancel()
	checktest.NoError(t, <-done, "RecordEvents")
	r.KeepEvents()
	all, err := r.List()
	checktest.MustNoError(t, err, "List")
	checktest.MustEqual(t, len(all), 1, "len(all)")
	checktest.Equal(t, all[0].Kind, Trace, "all[0].Kind")
	data, name, err := r.Read(all[0].ID)
	checktest.MustNoError(t, err, "Read")
	checktest.True(t, strings.HasPrefix(string(data), "go 1."), "the file begins with %.20q", data)
	checktest.True(t, strings.HasSuffix(name, ".trace"), "name is %s", name)
	if _, err := r.Report(ReportOptions{ID: all[0].ID}); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("a report of it: %v", err)
	}
	now := time.Now()
	p, err := readAllocs()
	checktest.MustNoError(t, err, "readAllocs")
	_, err = r.keepProfile(Allocs, now.Add(-time.Hour), p)
	checktest.MustNoError(t, err, "keep a profile")
	for i := range 5 {
		_, err := r.keep(Trace, now.Add(time.Duration(i)*time.Minute), time.Second, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
		checktest.MustNoError(t, err, "keep a recording")
	}
	all, err = r.List()
	checktest.MustNoError(t, err, "List")
	checktest.MustEqual(t, len(all), maxTraces+1, "len(all)")
	checktest.Equal(t, all[maxTraces].Kind, Allocs, "the oldest")
}

// Whatever a request names, nothing outside the folder is read.
func FuzzRead(f *testing.F) {
	for _, id := range []string{"", "..", "../secret", "20260601T080000.000Z_allocs_60000ms_v1", "20260601T080000.000Z_cpu_1ms_..",
		"a/b\x00"} {
		f.Add(id)
	}
	dir := filepath.Join(f.TempDir(), "profiles")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "..", "secret.pb.gz"), []byte("secret"),
		0o600)); err != nil {
		f.Fatal(err)
	}
	r := New(Options{Dir: dir, Now: time.Now})
	f.Fuzz(func(t *testing.T, id string) {
		if data, _, err := r.Read(id); err == nil || len(data) > 0 {
			t.Fatalf("%q: %q", id, data)
		}
		if k, ok := parseID(id); ok && (strings.ContainsAny(id, "/\\\x00") || k.Took < 0) {
			t.Fatalf("%q: %+v", id, k)
		}
	})
}
