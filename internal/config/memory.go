// Memory: what the process may take, and how much of it jobs may.

package config

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

const (
	leastMemory = 192 << 20 // a busy server takes about as much whatever the limit
	// Where Linux says what a container may take: cgroup v2, then v1.
	cgroupLimit   = "/sys/fs/cgroup/memory.max"
	cgroupLimitV1 = "/sys/fs/cgroup/memory/memory.limit_in_bytes"
	// noCgroupLimit is what v1 says, and more, where there is no limit.
	noCgroupLimit = 1 << 60
	usualJobs     = 256 << 20
	// machineMemory is where Linux says what the machine has, in its first line.
	machineMemory = "/proc/meminfo"
	usualCache    = 64 << 20
	partForCache  = 12 // of a limit below that: hot and express are an eighth of it together
	mostHot       = 1 << 30
	partForHot    = 32
	partForUnread = 8
	mostForms     = 16 << 20
	// A list of 1,000 records takes some megabytes while it is fetched, masked and compressed.
	memoryOfAnswer = 4 << 20
	leastLists     = 16
	usualColumns   = 96 << 20
	idleMemory     = 48 << 20 // a server without work, its caches empty
	usualBody      = 64 << 20
	// Beyond busyMemory a tenth of the limit may be one answer: reading, searching and storing it
	// takes several times its length, and what the former one took is garbage then.
	busyMemory  = 128 << 20
	partForBody = 10
	minBody     = 4 << 20
	mostColumns = 512 << 20
)

// MemoryLimit returns the memory the process should stay under, in bytes, 0 when nothing
// says it: the setting, else nine tenths of what its container may take.
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
		if err == nil && limit > 0 && limit < noCgroupLimit { // v2 writes "max" for none
			return limit / 10 * 9
		}
	}
	return 0
}

// MemoryLimit returns what jobs may weigh together: as set, else 256 MiB, but no more
// than half of the wall: the other half is for readers, and for garbage.
func (j *jobsConfig) MemoryLimit(wall int64) int64 {
	switch {
	case j.Memory > 0:
		return int64(j.Memory)
	case wall > 0:
		return min(usualJobs, wall/2)
	}
	return usualJobs
}

// Shares are what parts of the process may take of its memory, in bytes.
type Shares struct {
	Hot     int64 // pages
	Express int64 // what one drop-in remembers of requests
	Forms   int64 // each cache of other forms of pages, masked or compressed
	Unread  int64 // answers that clients have not read yet; 0: nothing says how much there is
	Lists   int   // lists on their way to callers at once; 0: as many as are asked for
}

// Shares returns the shares: as set, else a part of what the process, its container or the machine has. More pages
// in memory are more answers without a read of the store; the memory is taken when there are so many.
func (c *Settings) Shares(readFile func(string) ([]byte, error)) (s Shares) {
	least := int64(usualCache)
	if limit := c.Limits.MemoryLimit(readFile); limit > 0 {
		least = min(least, limit/partForCache)
	}
	all := memory(c, readFile)
	s.Hot = min(max(all/partForHot, least), mostHot)
	s.Express = max(s.Hot/2, least) // a request weighs a quarter of its page, and half of those kept may be older
	if c.Mirror.Hot > 0 {
		s.Hot = int64(c.Mirror.Hot)
	}
	if c.Limits.Express != nil {
		s.Express = int64(*c.Limits.Express)
	}
	s.Forms, s.Unread = min(s.Hot/4, mostForms), all/partForUnread
	if c.Limits.MemoryLimit(readFile) > 0 {
		s.Lists = int(max(all/memoryOfAnswer, leastLists))
	}
	return s
}

// ColumnsMemory returns the memory for the fields that sums are made of, in bytes: as set, else
// by what the process, its container or the machine has. It is taken by the first sums.
func ColumnsMemory(c *Settings, readFile func(string) ([]byte, error)) int64 {
	if c.Search.Columns > 0 {
		return int64(c.Search.Columns)
	}
	least := int64(usualColumns)
	if limit := c.Limits.MemoryLimit(readFile); limit > 0 {
		least = min(least, limit/4)
	}
	return min(max(memory(c, readFile)/partForHot, least), mostColumns)
}

// memory returns the memory limit or, without one, what the machine has, in bytes; 0 when that is unknown.
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

// checkMemory refuses settings that cannot fit.
func checkMemory(c *Settings) error {
	wall := int64(c.Limits.Memory)
	switch {
	case wall == 0:
		return nil
	case wall < leastMemory:
		return fmt.Errorf("limits.memory: %d bytes are less than a busy server takes; write at least %dMiB", wall, leastMemory>>20)
	}
	need := idleMemory + int64(cmp.Or(c.Mirror.Hot, leastMemory/partForCache)) + int64(c.Jobs.Memory) + int64(c.Search.Columns)
	if c.Limits.Express != nil {
		need += int64(*c.Limits.Express) * int64(len(c.Sources))
	}
	if need > wall {
		return fmt.Errorf("limits.memory: mirror.hot, jobs.memory, search.columns and limits.express (for each source) do not fit into %d MiB; "+
			"lower them or write at least %dMiB", wall>>20, (need+1<<20-1)>>20)
	}
	return nil
}

// MaxBody returns the size of the largest answer that a source may send, in bytes: as set, else
// 64 MiB, but no more than a tenth of what the memory limit leaves beyond 128 MiB.
func MaxBody(c *Settings, source string, readFile func(string) ([]byte, error)) int64 {
	if s := c.Sources[source]; s != nil && s.MaxBody > 0 {
		return int64(s.MaxBody)
	}
	if limit := c.Limits.MemoryLimit(readFile); limit > 0 {
		return min(max((limit-busyMemory)/partForBody, minBody), usualBody)
	}
	return usualBody
}
