// This file summarises a profile in tables.

package profile

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"understudy"
)

// Report is the summary of a profile. Values are bytes or nanoseconds, and counts are allocations or samples. In
// the difference of two profiles both are negative where less was used than before.
type Report struct {
	Kept
	Measure string `json:"measure"`         // what was measured: allocated, held or cpu
	Since   *Kept  `json:"since,omitempty"` // the profile that was subtracted; nil if the report shows a single profile
	// the factor by which the values of Since were multiplied, because the two profiles have different lengths
	Scaled    float64    `json:"scaled,omitempty"`
	Total     int64      `json:"total"`
	Count     int64      `json:"count"`
	Functions []Function `json:"functions"` // the functions sorted by Self, the largest first
	// shares by package: each sample counts for the package of the function to whose Self it counts
	Packages []Share `json:"packages"`
	// shares by the first function of the product's packages, seen from the start of the goroutine
	Entries     []Share `json:"entries"`
	Jobs        []Share `json:"jobs,omitempty"`        // shares by job; only for CPU profiles, because allocations have no labels
	Credentials []Share `json:"credentials,omitempty"` // shares by credential; only for CPU profiles
}

// Function is how much memory or time a function uses.
type Function struct {
	Name string `json:"name"`
	At   string `json:"at"` // the file and line of the function that use most
	// Self is what the function itself uses and the library functions that it calls. Flat leaves out library
	// functions, as in pprof. Cum includes all functions that it calls.
	Self    int64   `json:"self"`
	Flat    int64   `json:"flat"`
	Cum     int64   `json:"cum"`
	Count   int64   `json:"count"`     // the number of samples in Self
	Through int64   `json:"cum_count"` // the number of samples in Cum
	Callers []Share `json:"callers,omitempty"`
	Callees []Share `json:"callees,omitempty"`
}

// Share is the part of the total that belongs to a name.
type Share struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
	Count int64  `json:"count"`
}

// ReportOptions says what a report shows.
type ReportOptions struct {
	ID    string
	Since string // the id of another profile to compare with, or ""
	Held  bool   // whether to show the memory in use instead of allocations
	Match string // a text that the names of the shown functions must contain
	Limit int    // the maximum number of functions; 0 means 40
}

const (
	maxFunctions = 40
	maxShares    = 20
	maxEdges     = 8
	// sameLength is the maximum relative difference in length of two profiles that are compared without scaling.
	sameLength = 0.05
)

// measures returns the name of a measure, and the pprof names of its value and its count.
func measures(kind string, held bool) (name, value, count string) {
	switch {
	case kind == CPU:
		return "cpu", "cpu", "samples"
	case held:
		return "held", "inuse_space", "inuse_objects"
	}
	return "allocated", "alloc_space", "alloc_objects"
}

// Report summarises a stored profile, or the difference of two stored profiles. Errors: ErrNotFound for an unknown
// profile; ErrInvalid if the two profiles are of different kinds.
func (r *Recorder) Report(a ReportOptions) (*Report, error) {
	kept, err := r.Find("", a.ID)
	if err != nil {
		return nil, err
	}
	p, err := r.open(kept.ID)
	if err != nil {
		return nil, err
	}
	out := &Report{Kept: *kept}
	if a.Since != "" {
		if out.Since, err = r.Find(kept.Kind, a.Since); err != nil {
			return nil, err
		}
		if out.Since.Kind != kept.Kind {
			return nil, fmt.Errorf("profile: %w: %s and %s cannot be compared", understudy.ErrInvalid, kept.Kind, out.Since.Kind)
		}
		former, err := r.open(out.Since.ID)
		if err != nil {
			return nil, err
		}
		if p, out.Scaled, err = compareProfiles(former, p); err != nil {
			return nil, err
		}
	}
	return out, out.read(p, a)
}

// compareProfiles returns p minus the profile former. If their lengths differ, values that grow with time are
// scaled to the length of p, and the returned scale is the factor. Otherwise the scale is 0.
func compareProfiles(former, p *profile.Profile) (*profile.Profile, float64, error) {
	scale := 1.0
	if former.DurationNanos > 0 && p.DurationNanos > 0 {
		scale = float64(p.DurationNanos) / float64(former.DurationNanos)
	}
	same := math.Abs(scale-1) <= sameLength
	if same {
		scale = 1
	}
	ratios := make([]float64, len(former.SampleType))
	for i, t := range former.SampleType {
		if ratios[i] = -scale; strings.HasPrefix(t.Type, "inuse_") {
			ratios[i] = -1
		}
	}
	diff, err := addScaled(former, p, ratios)
	if same {
		scale = 0
	}
	return diff, scale, err
}

// tally adds up the samples of a profile.
type tally struct {
	functions                           map[string]*functionSums
	packages, entries, jobs, credential map[string]*Share
	seen                                map[string]bool // the names of the functions in the current stack
	edges                               map[[2]string]bool
}

// functionSums adds up the samples of a function.
type functionSums struct {
	function         Function
	lines            map[string]int64
	callers, callees map[string]*Share
}

func add(to map[string]*Share, name string, value, count int64) {
	s := to[name]
	if s == nil {
		s = &Share{Name: name}
		to[name] = s
	}
	s.Value += value
	s.Count += count
}

// frame is one call of a stack.
type frame struct{ name, at string }

// read fills the report from a profile.
func (out *Report) read(p *profile.Profile, a ReportOptions) error {
	var value, count string
	out.Measure, value, count = measures(out.Kind, a.Held)
	vi := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == value })
	ci := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == count })
	if vi < 0 || ci < 0 {
		return fmt.Errorf("profile: %w: %s has no %s", understudy.ErrInvalid, out.ID, value)
	}
	t := tally{
		map[string]*functionSums{}, map[string]*Share{}, map[string]*Share{}, map[string]*Share{}, map[string]*Share{},
		map[string]bool{}, map[[2]string]bool{},
	}
	for _, s := range p.Sample {
		v, n := s.Value[vi], s.Value[ci]
		if v == 0 && n == 0 {
			continue
		}
		out.Total += v
		out.Count += n
		t.sample(stackOf(s), v, n)
		if out.Kind == CPU {
			add(t.jobs, label(s, JobLabel), v, n)
			add(t.credential, label(s, CredentialLabel), v, n)
		}
	}
	out.Packages, out.Entries = largest(t.packages, maxShares), largest(t.entries, maxShares)
	out.Jobs, out.Credentials = largest(t.jobs, maxShares), largest(t.credential, maxShares)
	out.Functions = t.largest(a)
	return nil
}

// The names of the labels of samples in a CPU profile.
const (
	JobLabel        = "job"
	CredentialLabel = "credential"
)

func label(s *profile.Sample, name string) string {
	if values := s.Label[name]; len(values) > 0 {
		return values[0]
	}
	return "none"
}

// stackOf returns the stack of a sample, beginning with the innermost call.
func stackOf(s *profile.Sample) []frame {
	var all []frame
	for _, l := range s.Location {
		for _, line := range l.Line {
			if f := line.Function; f != nil {
				all = append(all, frame{f.Name, fmt.Sprintf("%s/%s:%d", folderOf(f.Name), path.Base(f.Filename), line.Line)})
			}
		}
	}
	if len(all) == 0 {
		all = append(all, frame{"unknown", "unknown"})
	}
	return all
}

// packageOf returns the package to which a function belongs.
func packageOf(name string) string {
	name, _, _ = strings.Cut(name, "[") // type arguments may contain slashes
	slash := strings.LastIndexByte(name, '/') + 1
	rest, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + rest
}

// module is the module of the product. Package main of the module is the command.
const module = "understudy"

// isOurs reports whether a function belongs to the product.
func isOurs(name string) bool {
	p := packageOf(name)
	return p == "main" || p == module || strings.HasPrefix(p, module+"/")
}

// folderOf returns the folder of a function's file in the source tree.
func folderOf(name string) string {
	switch p := packageOf(name); p {
	case "main":
		return "cmd/understudy"
	case module:
		return "."
	default:
		return strings.TrimPrefix(p, module+"/")
	}
}

// isPlumbing reports whether every request or job passes through the function's package, so that the function says
// nothing about the work.
func isPlumbing(name string) bool {
	p := packageOf(name)
	return p == "main" || strings.HasPrefix(p, module+"/kit/") || p == module+"/internal/jobs"
}

// entryOf returns the function at which a stack enters the product's code.
func entryOf(stack []frame) string {
	first := ""
	for i := len(stack) - 1; i >= 0; i-- {
		switch name := stack[i].name; {
		case isOurs(name) && !isPlumbing(name):
			return name
		case isOurs(name) && first == "":
			first = name
		}
	}
	return cmp.Or(first, stack[len(stack)-1].name)
}

// sample adds one sample with its stack, value and count.
func (t *tally) sample(stack []frame, v, n int64) {
	self := max(slices.IndexFunc(stack, func(f frame) bool { return isOurs(f.name) }), 0)
	clear(t.seen)
	clear(t.edges)
	for i, f := range stack {
		fn := t.functions[f.name]
		if fn == nil {
			fn = &functionSums{Function{Name: f.name}, map[string]int64{}, map[string]*Share{}, map[string]*Share{}}
			t.functions[f.name] = fn
		}
		if i == 0 {
			fn.function.Flat += v
		}
		if i == self {
			fn.function.Self += v
			fn.function.Count += n
			add(t.packages, packageOf(f.name), v, n)
		}
		if !t.seen[f.name] {
			t.seen[f.name] = true
			fn.function.Cum += v
			fn.function.Through += n
		}
		fn.lines[f.at] += v
		if i == 0 {
			continue
		}
		if edge := [2]string{f.name, stack[i-1].name}; !t.edges[edge] {
			t.edges[edge] = true
			add(fn.callees, edge[1], v, n)
			add(t.functions[edge[1]].callers, f.name, v, n)
		}
	}
	add(t.entries, entryOf(stack), v, n)
}

// largest returns the functions with the largest use, or only the functions that match a text.
func (t *tally) largest(a ReportOptions) []Function {
	out := []Function{}
	for _, f := range t.functions {
		if a.Match != "" && !strings.Contains(f.function.Name, a.Match) || a.Match == "" && f.function.Self == 0 {
			continue
		}
		most := int64(-1)
		for at, v := range f.lines {
			if v = max(v, -v); v > most || v == most && at < f.function.At {
				most, f.function.At = v, at
			}
		}
		f.function.Callers, f.function.Callees = largest(f.callers, maxEdges), largest(f.callees, maxEdges)
		out = append(out, f.function)
	}
	slices.SortFunc(out, func(a, b Function) int {
		return cmp.Or(
			cmp.Compare(max(b.Self, -b.Self), max(a.Self, -a.Self)),
			cmp.Compare(max(b.Cum, -b.Cum), max(a.Cum, -a.Cum)),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return out[:min(len(out), cmp.Or(a.Limit, maxFunctions))]
}

func largest(from map[string]*Share, most int) []Share {
	out := []Share{}
	for _, s := range from {
		if s.Value != 0 {
			out = append(out, *s)
		}
	}
	slices.SortFunc(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(max(b.Value, -b.Value), max(a.Value, -a.Value)), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), most)]
}
