// Bounds: settings of searches, jobs and syncs, and how far they go.

package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy"
	"understudy/kit/suggest"
	"understudy/mirror"
	"understudy/spec"
)

// searchConfig bounds searching.
type searchConfig struct {
	Time        Duration `yaml:"time"`         // of one answer, default 5s
	Look        int      `yaml:"look"`         // records looked at for one answer, default 50000
	Window      int      `yaml:"window"`       // newest matches put in order, default 10000
	Count       Duration `yaml:"count"`        // of one count, default 50ms
	Facets      Duration `yaml:"facets"`       // of all counts of an answer, default 300ms
	Sum         Duration `yaml:"sum"`          // of waiting for a complete sum, default 400ms
	Columns     size     `yaml:"columns"`      // memory of the fields that sums are made of, default by the memory there is
	AtOnce      int      `yaml:"at_once"`      // searches at once, default 32
	Exports     int      `yaml:"exports"`      // exports at once, default 4
	ExportsEach int      `yaml:"exports_each"` // of one credential, default half of them
	Silence     Duration `yaml:"silence"`      // an export that comes no further ends, default 30s
	Saved       int      `yaml:"saved"`        // saved searches, default 1000
	SavedEach   int      `yaml:"saved_each"`   // of one owner, default 100
}

// Limits of what the settings take.
const (
	mostSearchTime = time.Minute // an answer has to be read, too, before the port ends it
	mostWindow     = 100_000
	mostSaved      = 9_000 // a store lists no more notes
)

func (s *searchConfig) check() error {
	for name, n := range map[string]int{"look": s.Look, "window": s.Window, "at_once": s.AtOnce, "exports": s.Exports,
		"exports_each": s.ExportsEach, "saved": s.Saved, "saved_each": s.SavedEach} {
		if n < 0 || n > 10_000_000 {
			return fmt.Errorf("%s: want 0 to 10000000, not %d", name, n)
		}
	}
	switch {
	case s.Time.Std() > mostSearchTime:
		return fmt.Errorf("time: %v is too long; write at most %v", s.Time.Std(), mostSearchTime)
	case s.Window > mostWindow:
		return fmt.Errorf("window: %d; write at most %d", s.Window, mostWindow)
	case s.Saved > mostSaved:
		return fmt.Errorf("saved: %d; write at most %d", s.Saved, mostSaved)
	case s.Count.Std() > mostSearchTime || s.Facets.Std() > mostSearchTime || s.Sum.Std() > mostSearchTime:
		return fmt.Errorf("count, facets and sum: write at most %v", mostSearchTime)
	}
	return nil
}

// jobsConfig bounds promised work.
type jobsConfig struct {
	Workers int      `yaml:"workers"`  // jobs that run at once, default 8
	Memory  size     `yaml:"memory"`   // what they may weigh together, default 256MiB
	Lease   Duration `yaml:"lease"`    // how long a run is waited for that is not heard of, default 30s
	Keep    int      `yaml:"keep"`     // archived jobs kept, of each state, default 1000
	KeepFor Duration `yaml:"keep_for"` // how long at most, default 720h
}

// Limits of what the settings take.
const (
	mostWorkers = 256
	mostKept    = 1_000_000
)

// leastLease leaves a run time to be heard of three times.
const leastLease = 3 * time.Second

func (j *jobsConfig) check() error {
	switch {
	case j.Workers < 0 || j.Workers > mostWorkers:
		return fmt.Errorf("workers: %d; write a number from 1 to %d", j.Workers, mostWorkers)
	case j.Keep < 0 || j.Keep > mostKept:
		return fmt.Errorf("keep: %d; write a number from 1 to %d", j.Keep, mostKept)
	case j.Lease != 0 && j.Lease.Std() < leastLease:
		return fmt.Errorf("lease: %v is too short; write at least %v", j.Lease.Std(), leastLease)
	}
	return nil
}

// syncConfig says how whole kinds are kept.
type syncConfig struct {
	Horizon Duration `yaml:"horizon"` // how far back, default 0: all upstream gives
	Sweep   Duration `yaml:"sweep"`   // what was not walked for so long is not complete, default 24h
	Window  Duration `yaml:"window"`  // how long what is not final is looked at again, default 168h
	Slice   Duration `yaml:"slice"`   // one stretch of a list, default 672h
	Overlap Duration `yaml:"overlap"` // of stretches, default 24h
	Slices  int      `yaml:"slices"`  // walked beside each other, default 4
	Page    int      `yaml:"page"`    // records asked for at once, default the most upstream gives
	Pages   int      `yaml:"pages"`   // of one walk over one list, default 100000
}

// mostSlices bounds what a sync has under way: where each goes on is in one mark.
const mostSlices = 32

func (s *syncConfig) check() error {
	switch {
	case s.Slices < 0 || s.Slices > mostSlices:
		return fmt.Errorf("slices: %d; write a number from 1 to %d", s.Slices, mostSlices)
	case s.Page < 0:
		return fmt.Errorf("page: %d is negative", s.Page)
	case s.Pages < 0:
		return fmt.Errorf("pages: %d is negative", s.Pages)
	case s.Slice != 0 && s.Slice.Std() < time.Hour:
		return fmt.Errorf("slice: %v is too short; write at least 1h", s.Slice.Std())
	case s.Sweep != 0 && s.Sweep.Std() < 10*time.Second:
		return fmt.Errorf("sweep: %v is too short; write at least 10s", s.Sweep.Std())
	}
	return nil
}

func Ages(m *Mirror) mirror.Ages {
	return mirror.Ages{
		Newest: m.Newest.Std(), Older: m.Older.Std(), Final: m.Final.Std(), Other: m.Other.Std(), NotFound: m.NotFound.Std(),
		Records: m.Records.Std(),
		Stale:   m.Stale.Std(), Hard: m.Hard.Std(), Wait: m.Wait.Std(), Try: m.Try.Std(),
	}
}

func MirrorLimits(l *Limits) mirror.Limits {
	return mirror.Limits{Waiters: l.Waiters, Each: l.WaitersEach, Flights: l.Flights, Behind: l.Behind, Hints: l.Hints, Lists: l.Lists}
}

// leastKeep is the shortest retention: a shorter one would empty what was just read.
const leastKeep = time.Hour

// Retained returns how long records are kept, by source and kind.
func (c *Settings) Retained() map[string]map[string]time.Duration {
	all := map[string]map[string]time.Duration{}
	for source, kinds := range c.Retention {
		all[source] = map[string]time.Duration{}
		for kind, keep := range kinds {
			all[source][kind] = keep.Std()
		}
	}
	return all
}

// checkRetention refuses sources and kinds that are not there, and times too
// short to mean it.
func (c *Settings) checkRetention(sources []*spec.Source) error {
	specs := map[string]*spec.Spec{}
	for _, src := range sources {
		specs[src.Name] = src.Spec
	}
	for _, name := range slices.Sorted(maps.Keys(c.Retention)) {
		sp := specs[name]
		if sp == nil {
			return fmt.Errorf("retention.%s: no source is called that%s", name, suggest.Hint(name, slices.Sorted(maps.Keys(specs))))
		}
		var known []string
		for _, k := range sp.Kinds {
			if len(k.ID) > 0 {
				known = append(known, k.Name)
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(c.Retention[name])) {
			switch keep := c.Retention[name][kind].Std(); {
			case !slices.Contains(known, kind):
				text := understudy.Clip(kind)
				return fmt.Errorf("retention.%s: %s has no records of %q%s", name, sp.Title, text, suggest.Hint(text, known))
			case keep != 0 && keep < leastKeep:
				return fmt.Errorf("retention.%s.%s: %v is too short; write at least %v", name, kind, keep, leastKeep)
			}
		}
	}
	return nil
}
