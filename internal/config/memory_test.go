// Tests of the memory the process should stay under.

package config

import (
	"os"
	"strings"
	"testing"
)

func TestWall(t *testing.T) {
	file := func(text string) func(string) ([]byte, error) {
		return func(string) ([]byte, error) {
			if text == "" {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		}
	}
	for name, c := range map[string]struct {
		set, jobs  size
		file       string
		wall, want int64
	}{
		"nobody says":         {0, 0, "", 0, 256 << 20},
		"no container limit":  {0, 0, "max\n", 0, 256 << 20},
		"a container":         {0, 0, "1000000000\n", 900_000_000, 256 << 20},
		"a small container":   {0, 0, "200000000\n", 180_000_000, 90_000_000},
		"the setting":         {256 << 20, 0, "100\n", 256 << 20, 128 << 20},
		"jobs as set":         {256 << 20, 200 << 20, "", 256 << 20, 200 << 20},
		"nonsense in a file":  {0, 0, "many", 0, 256 << 20},
		"nothing may be used": {0, 0, "0", 0, 256 << 20},
	} {
		cfg := &Settings{}
		cfg.Limits.Memory, cfg.Jobs.Memory = c.set, c.jobs
		if wall := cfg.MemoryLimit(file(c.file)); wall != c.wall || cfg.JobsMemory(wall) != c.want {
			t.Errorf("%s: %d and %d for jobs, want %d and %d", name, wall, cfg.JobsMemory(wall), c.wall, c.want)
		}
	}
}

func TestSettingsThatDoNotFitTheWall(t *testing.T) {
	cfg := &Settings{}
	cfg.Limits.Memory = 1 << 20
	if err := cfg.checkMemory(); err == nil || !strings.Contains(err.Error(), "64MiB") {
		t.Errorf("%v", err)
	}
	cfg.Limits.Memory, cfg.Mirror.Hot, cfg.Jobs.Memory = 256<<20, 100<<20, 200<<20
	if err := cfg.checkMemory(); err == nil || !strings.Contains(err.Error(), "lower them") {
		t.Errorf("%v", err)
	}
	cfg.Jobs.Memory = 100 << 20
	if err := cfg.checkMemory(); err != nil {
		t.Error(err)
	}
}
