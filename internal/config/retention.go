// This file contains the settings for how long records are kept, and those of regular backups.

package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy"
	"understudy/internal/store/contents"
	"understudy/kit/suggest"
	"understudy/spec"
)

// minKeep is the shortest retention. A shorter retention would remove records that were just read.
const minKeep = time.Hour

// RetentionTimes returns how long records are kept, by source and kind.
func (c *Settings) RetentionTimes() map[string]map[string]time.Duration {
	all := map[string]map[string]time.Duration{}
	for source, kinds := range c.Retention {
		all[source] = map[string]time.Duration{}
		for kind, keep := range kinds {
			all[source][kind] = keep.Std()
		}
	}
	return all
}

// checkRetention returns an error for unknown sources and kinds, and for times that are too short.
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
			case keep != 0 && keep < minKeep:
				return fmt.Errorf("retention.%s.%s: %v is too short; write at least %v", name, kind, keep, minKeep)
			}
		}
	}
	return nil
}

// backupConfig says where and when the server writes backups.
type backupConfig struct {
	To      string   `yaml:"to"`
	Every   Duration `yaml:"every"`
	Keep    int      `yaml:"keep"`
	KeepFor Duration `yaml:"keep_for"`
	Keys    bool     `yaml:"keys"`
}

// checkBackup returns an error if backups go to a bucket that the settings do not describe.
func (c *storeConfig) checkBackup(to string) error {
	if !contents.IsS3(to) {
		return nil
	}
	_, _, err := contents.ParseS3(to)
	return cmp.Or(err, c.S3.check())
}
