// Tests of the memory the process should stay under.

package config

import (
	"os"
	"strings"
	"testing"

	"understudy/spec"
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
		if wall := cfg.Limits.MemoryLimit(file(c.file)); wall != c.wall || cfg.Jobs.MemoryLimit(wall) != c.want {
			t.Errorf("%s: %d and %d for jobs, want %d and %d", name, wall, cfg.Jobs.MemoryLimit(wall), c.wall, c.want)
		}
	}
}

func TestMemoryLimitOfOlderContainersIsRead(t *testing.T) {
	for text, want := range map[string]int64{"1000000000\n": 900_000_000, "9223372036854771712\n": 0} {
		got := new(Limits).MemoryLimit(func(path string) ([]byte, error) {
			if path != cgroupLimitV1 {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		})
		if got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestCachesGoByTheMemoryThereIs(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		limit, hot, express int64 // as set, in MiB; express less than 0: not set
		container, machine  string
		wantHot, wantEach   int64
		wantColumns         int64
	}{
		"nothing is known":      {0, 0, -1, "", "", 64, 64, 96},
		"a small machine":       {0, 0, -1, "", "MemTotal:        1024000 kB\nMemFree: 1 kB\n", 64, 64, 96},
		"a machine of 16 GiB":   {0, 0, -1, "", "MemTotal:       16777216 kB\n", 512, 256, 512},
		"a large machine":       {0, 0, -1, "max\n", "MemTotal:       167772160 kB\n", 1024, 512, 512},
		"a container":           {0, 0, -1, "4773000000\n", "MemTotal: 16777216 kB\n", 128, 64, 128},
		"a small container":     {0, 0, -1, "320000000\n", "MemTotal: 16777216 kB\n", 22, 22, 68},
		"a limit of its own":    {6400, 0, -1, "100\n", "MemTotal: 16777216 kB\n", 200, 100, 200},
		"both as set":           {0, 25, 3, "", "MemTotal: 16777216 kB\n", 25, 3, 512},
		"no lane":               {0, 0, 0, "", "", 64, 0, 96},
		"nonsense in that file": {0, 0, -1, "", "MemTotal: much\n", 64, 64, 96},
	} {
		cfg := &Settings{}
		cfg.Limits.Memory, cfg.Mirror.Hot = size(c.limit*mib), size(c.hot*mib)
		if c.express >= 0 {
			cfg.Limits.Express = new(size)
			*cfg.Limits.Express = size(c.express * mib)
		}
		read := func(path string) ([]byte, error) {
			if text := map[string]string{cgroupLimit: c.container, machineMemory: c.machine}[path]; text != "" {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		}
		if got := ColumnsMemory(cfg, read) / mib; got != c.wantColumns {
			t.Errorf("%s: %d MiB for sums, want %d", name, got, c.wantColumns)
		}
		shares := cfg.Shares(read)
		hot, each := shares.Hot, shares.Express
		if hot/mib != c.wantHot || each/mib != c.wantEach {
			t.Errorf("%s: %d and %d MiB, want %d and %d", name, hot/mib, each/mib, c.wantHot, c.wantEach)
		}
	}
}

func TestSettingsThatDoNotFitTheWall(t *testing.T) {
	cfg := &Settings{}
	cfg.Limits.Memory = 1 << 20
	if err := checkMemory(cfg); err == nil || !strings.Contains(err.Error(), "192MiB") {
		t.Errorf("%v", err)
	}
	cfg.Limits.Memory, cfg.Mirror.Hot, cfg.Jobs.Memory = 256<<20, 100<<20, 200<<20
	if err := checkMemory(cfg); err == nil || !strings.Contains(err.Error(), "lower them") {
		t.Errorf("%v", err)
	}
	cfg.Jobs.Memory = 100 << 20
	if err := checkMemory(cfg); err != nil {
		t.Error(err)
	}
}

func TestMemoryThatIsSetMustFitTheLimit(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"limits: {memory: 192MiB}", ""},
		{"limits: {memory: 192MiB}\nmirror: {memory: 144MiB}", ""},
		{"limits: {memory: 192MiB}\nmirror: {memory: 180MiB}", "at least 228MiB"},
		{"limits: {memory: 192MiB}\nsearch: {columns: 2GiB}", "at least 2112MiB"},
		{"limits: {memory: 1GiB, request_memory: 500MiB}", "at least 1064MiB"},
		{"limits: {memory: 1GiB}\njobs: {memory: 960MiB}", ""},
		{"limits: {memory: 1GiB}\njobs: {memory: 961MiB}", "at least 1025MiB"},
		{"limits: {request_memory: 500MiB}", ""},
	} {
		const sources = "\nsources:\n  a: {spec: twilio, user: u, secret: \"file:x\"}\n  b: {spec: twilio, user: u, secret: \"file:x\"}\n"
		_, err := Parse([]byte(c.text+sources), noEnv)
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestMaxBodyFollowsTheMemoryLimit(t *testing.T) {
	none := func(string) ([]byte, error) { return nil, os.ErrNotExist }
	for _, c := range []struct{ limit, set, want int64 }{{0, 0, 64}, {192, 0, 6}, {512, 0, 38}, {4096, 0, 64}, {192, 40, 40}} {
		cfg := &Settings{Sources: map[string]*Source{"a": {MaxBody: size(c.set << 20)}}}
		cfg.Limits.Memory = size(c.limit << 20)
		if got := MaxBody(cfg, "a", none) >> 20; got != c.want {
			t.Errorf("limit %d, set to %d: %d MiB, want %d", c.limit, c.set, got, c.want)
		}
		warned := strings.Contains(strings.Join(cfg.Warnings("", []*spec.Source{{Name: "a", Spec: &spec.Spec{}}}), "\n"), "max_body")
		if want := c.set > 0; warned != want {
			t.Errorf("limit %d, set to %d: warned %v, want %v", c.limit, c.set, warned, want)
		}
	}
}
