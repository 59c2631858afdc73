// This file stores the profiles on disk, up to a size limit. The oldest profiles are removed first.

package profile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"understudy"
)

// Kept is a profile that is stored on disk.
type Kept struct {
	ID      string        `json:"id"` // the name of the profile
	Kind    string        `json:"kind"`
	From    time.Time     `json:"from"`
	Took    time.Duration `json:"took"` // the length of the profile in nanoseconds, rounded to milliseconds
	Version string        `json:"version"`
	Bytes   int64         `json:"bytes"`
}

// idTimeLayout is the layout of the time at the beginning of a profile's name. Names with this layout sort by time.
const idTimeLayout = "20060102T150405.000Z"

// FileName returns the name of the file: in pprof's compressed format, or in that of go tool trace.
func (k Kept) FileName() string {
	if k.Kind == Trace {
		return k.ID + ".trace"
	}
	return k.ID + ".pb.gz"
}

// idPattern matches the name of a profile: its time, kind, length and version.
var idPattern = regexp.MustCompile(`^(\d{8}T\d{6}\.\d{3}Z)_(allocs|cpu|trace)_(\d{1,9})ms_([0-9A-Za-z.+-]{1,80})$`)

// plainVersion returns a version without the characters that the name of a profile may not contain.
func plainVersion(v string) string {
	v = strings.Map(func(r rune) rune {
		if r == '.' || r == '+' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, v)
	v = strings.Trim(v, "-")
	return cmp.Or(v[:min(len(v), 80)], "unknown")
}

// parseID parses the name of a profile.
func parseID(id string) (Kept, bool) {
	m := idPattern.FindStringSubmatch(id)
	if m == nil {
		return Kept{}, false
	}
	from, err := understudy.ParseTime(m[1], time.UTC, idTimeLayout)
	took, terr := time.ParseDuration(m[3] + "ms")
	return Kept{ID: id, Kind: m[2], From: from, Took: took, Version: m[4]}, err == nil && terr == nil
}

// keep writes a profile, either completely or not at all, and removes older profiles.
func (r *Recorder) keep(kind string, from time.Time, took time.Duration, write func(io.Writer) error) (*Kept, error) {
	took = took.Round(time.Millisecond)
	id := fmt.Sprintf("%s_%s_%dms_%s", from.UTC().Format(idTimeLayout), kind, took.Milliseconds(), plainVersion(r.o.Version))
	r.ring.Lock()
	defer r.ring.Unlock()
	if err := os.MkdirAll(r.o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("profile: keep: %w", err)
	}
	kept := Kept{ID: id, Kind: kind, From: from, Took: took, Version: plainVersion(r.o.Version)}
	path := filepath.Join(r.o.Dir, kept.FileName())
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("profile: keep: %w", err)
	}
	defer os.Remove(f.Name()) // after the rename this file no longer exists, and an error is ignored
	err = errors.Join(write(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return nil, fmt.Errorf("profile: keep: %w", err)
	}
	all, err := r.list()
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(k Kept) bool { return k.ID == id }); i >= 0 {
		kept = all[i]
	}
	return &kept, r.evict(all)
}

// evict removes all recordings but the newest, and the oldest profiles while all profiles together exceed the limit. It
// keeps the newest profile, and the newest profile of allocations of the previous version.
func (r *Recorder) evict(all []Kept) error {
	sum := int64(0)
	for _, k := range all {
		sum += k.Bytes
	}
	spared := ""
	if i := slices.IndexFunc(all, func(k Kept) bool { return k.Kind == Allocs && k.Version != plainVersion(r.o.Version) }); i >= 0 {
		spared = all[i].ID
	}
	traces := 0
	for _, k := range all {
		if k.Kind == Trace {
			traces++
		}
	}
	for i := len(all) - 1; i > 0; i-- {
		isTrace := all[i].Kind == Trace
		if all[i].ID == spared || sum <= r.o.Limit && !(isTrace && traces > maxTraces) {
			continue
		}
		if isTrace {
			traces--
		}
		if err := os.Remove(filepath.Join(r.o.Dir, all[i].FileName())); err != nil {
			return fmt.Errorf("profile: let go: %w", err)
		}
		sum -= all[i].Bytes
	}
	return nil
}

// List returns the stored profiles, the newest first.
func (r *Recorder) List() ([]Kept, error) {
	r.ring.Lock()
	defer r.ring.Unlock()
	return r.list()
}

// list returns the stored profiles, the newest first. The caller must hold r.ring.
func (r *Recorder) list() ([]Kept, error) {
	files, err := os.ReadDir(r.o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("profile: list: %w", err)
	}
	var all []Kept
	for _, f := range files {
		id, _ := strings.CutSuffix(strings.TrimSuffix(f.Name(), ".pb.gz"), ".trace")
		k, ok := parseID(id)
		if !ok || k.FileName() != f.Name() {
			continue
		}
		if info, err := f.Info(); err == nil { // an error means that the file was just removed
			k.Bytes = info.Size()
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b Kept) int { return cmp.Compare(b.ID, a.ID) })
	return all, nil
}

// Find returns a stored profile by its ID or by a word. The word "today" means the first profile of the kind on
// this day (UTC). The word "version" means the last profile of the previous version. The error is ErrNotFound.
func (r *Recorder) Find(kind, word string) (*Kept, error) {
	all, err := r.List()
	if err != nil {
		return nil, err
	}
	today := r.o.Now().UTC().Format("20060102")
	var found *Kept
	for i := range all {
		k := &all[i]
		switch {
		case k.ID == word:
			return k, nil
		case k.Kind == kind && word == "today" && strings.HasPrefix(k.ID, today):
			found = k
		case k.Kind == kind && word == "version" && k.Version != plainVersion(r.o.Version):
			return k, nil
		}
	}
	if found == nil {
		return nil, fmt.Errorf("profile: %w: %w", understudy.ErrNotFound, errNoProfile)
	}
	return found, nil
}

// Read returns the file of a stored profile and its name, or ErrNotFound.
func (r *Recorder) Read(id string) (data []byte, name string, err error) {
	kept, ok := parseID(id)
	if !ok {
		return nil, "", fmt.Errorf("profile: %w: %w", understudy.ErrNotFound, errNoProfile)
	}
	data, err = os.ReadFile(filepath.Join(r.o.Dir, kept.FileName()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("profile: %w: %w", understudy.ErrNotFound, errNoProfile)
	}
	if err != nil {
		return nil, "", fmt.Errorf("profile: read: %w", err)
	}
	return data, kept.FileName(), nil
}

// open reads and parses a stored profile.
func (r *Recorder) open(id string) (*profile.Profile, error) {
	data, _, err := r.Read(id)
	if err != nil {
		return nil, err
	}
	if kept, _ := parseID(id); kept.Kind == Trace {
		return nil, fmt.Errorf("profile: %w: this is a recording of events; open its file with go tool trace", understudy.ErrInvalid)
	}
	p, err := profile.ParseData(data)
	if err != nil {
		return nil, fmt.Errorf("profile: read %s: %w", id, err)
	}
	return p, nil
}
