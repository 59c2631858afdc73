// This file decides how much memory the process may use, and how the memory is shared.

package config

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

const (
	minMemory = 192 << 20 // the memory that a busy server uses in any case, in bytes
	// The files in which Linux states the memory limit of a container, first for cgroup v2, then for cgroup v1.
	cgroupLimit   = "/sys/fs/cgroup/memory.max"
	cgroupLimitV1 = "/sys/fs/cgroup/memory/memory.limit_in_bytes"
	// noCgroupLimit is the smallest number by which cgroup v1 says that there is no limit.
	noCgroupLimit = 1 << 60
	defaultJobs   = 256 << 20
	// machineMemory is the file in which Linux states the memory of the machine, in its first line.
	machineMemory = "/proc/meminfo"
	defaultCache  = 64 << 20
	partForCache  = 12 // the divisor of the memory limit; hot and express together take an eighth of a small limit
	maxHot        = 1 << 30
	partForHot    = 32
	partForUnread = 8
	maxForms      = 16 << 20
	// A list of 1,000 records takes some megabytes of memory while it is fetched, masked and compressed.
	memoryPerList  = 4 << 20
	minLists       = 16
	defaultColumns = 96 << 20
	idleMemory     = 48 << 20 // the memory of a server without work and with empty caches, in bytes
	defaultBody    = 64 << 20
	// One response may use a tenth of the memory above busyMemory. To read, search and store it takes several times
	// its length, and the memory of the previous response is garbage at that time.
	busyMemory  = 128 << 20
	partForBody = 10
	minBody     = 4 << 20
	maxColumns  = 512 << 20
)

// MemoryLimit returns the number of bytes under which the process should stay: the setting, else nine tenths of the
// container's limit. It returns 0 if neither is known.
func (l *Limits) MemoryLimit(readFile func(string) ([]byte, error)) int64 {
	if l.Memory > 0 {
		return int64(l.Memory)
	}
	for _, path := range []string{cgroupLimit, cgroupLimitV1} {
		text, err := readFile(path)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && limit > 0 && limit < noCgroupLimit { // cgroup v2 writes "max" if there is no limit
			return limit / 10 * 9
		}
	}
	return 0
}

// MemoryLimit returns how many bytes all jobs together may use: the setting, else 256 MiB, but at most half of
// the memory limit. The other half is for readers and for garbage.
func (j *jobsConfig) MemoryLimit(wall int64) int64 {
	switch {
	case j.Memory > 0:
		return int64(j.Memory)
	case wall > 0:
		return min(defaultJobs, wall/2)
	}
	return defaultJobs
}

// Shares are the amounts of memory that parts of the process may use, in bytes.
type Shares struct {
	Hot     int64 // the memory of cached pages
	Express int64 // the memory of the cache of requests of one drop-in port
	Forms   int64 // the memory of each cache of masked or compressed pages
	Unread  int64 // the memory of responses that clients have not read yet; 0 if the memory of the process is unknown
	Lists   int   // the number of lists that are sent at once; 0 means no limit
}

// Shares returns the shares of memory. They come from the settings, else they are parts of the memory of the
// process, its container or the machine. More pages in memory mean more responses without a read of the store. The
// memory is used only when there are so many pages.
func (c *Settings) Shares(readFile func(string) ([]byte, error)) (s Shares) {
	least := int64(defaultCache)
	if limit := c.Limits.MemoryLimit(readFile); limit > 0 {
		least = min(least, limit/partForCache)
	}
	all := memory(c, readFile)
	s.Hot = min(max(all/partForHot, least), maxHot)
	s.Express = max(s.Hot/2, least) // a request weighs a quarter of its page, and half of the cached requests may be outdated
	if c.Mirror.Hot > 0 {
		s.Hot = int64(c.Mirror.Hot)
	}
	if c.Limits.Express != nil {
		s.Express = int64(*c.Limits.Express)
	}
	s.Forms, s.Unread = min(s.Hot/4, maxForms), all/partForUnread
	if c.Limits.MemoryLimit(readFile) > 0 {
		s.Lists = int(max(all/memoryPerList, minLists))
	}
	return s
}

// ColumnsMemory returns the memory in bytes for the fields from which sums are computed. It is the setting, else a
// part of the memory of the process, its container or the machine. The first sums allocate the memory.
func ColumnsMemory(c *Settings, readFile func(string) ([]byte, error)) int64 {
	if c.Search.Columns > 0 {
		return int64(c.Search.Columns)
	}
	least := int64(defaultColumns)
	if limit := c.Limits.MemoryLimit(readFile); limit > 0 {
		least = min(least, limit/4)
	}
	return min(max(memory(c, readFile)/partForHot, least), maxColumns)
}

// memory returns the memory limit or, without a limit, the memory of the machine, in bytes. It returns 0 if both
// are unknown.
func memory(c *Settings, readFile func(string) ([]byte, error)) int64 {
	if limit := c.Limits.MemoryLimit(readFile); limit > 0 {
		return limit
	}
	var kB int64
	if text, err := readFile(machineMemory); err == nil {
		_, _ = fmt.Sscanf(string(text), "MemTotal: %d kB", &kB)
	}
	return kB << 10
}

// checkMemory returns an error if the memory settings do not fit into the limit.
func checkMemory(c *Settings) error {
	wall := int64(c.Limits.Memory)
	switch {
	case wall == 0:
		return nil
	case wall < minMemory:
		return fmt.Errorf("limits.memory: %d bytes are less than a busy server needs; write at least %dMiB", wall, minMemory>>20)
	}
	need := idleMemory + int64(cmp.Or(c.Mirror.Hot, minMemory/partForCache)) + int64(c.Jobs.Memory) + int64(c.Search.Columns)
	if c.Limits.Express != nil {
		need += int64(*c.Limits.Express) * int64(len(c.Sources))
	}
	if need > wall {
		return fmt.Errorf("limits.memory: mirror.memory, jobs.memory, search.columns and limits.request_memory (for each source) do not "+
			"fit into %d MiB; "+
			"lower them or write at least %dMiB", wall>>20, (need+1<<20-1)>>20)
	}
	return nil
}

// MaxBody returns the maximum size in bytes of a response of a source: the setting, else 64 MiB, but at most a
// tenth of the memory limit beyond 128 MiB.
func MaxBody(c *Settings, source string, readFile func(string) ([]byte, error)) int64 {
	if s := c.Sources[source]; s != nil && s.MaxBody > 0 {
		return int64(s.MaxBody)
	}
	if limit := c.Limits.MemoryLimit(readFile); limit > 0 {
		return min(max((limit-busyMemory)/partForBody, minBody), defaultBody)
	}
	return defaultBody
}
