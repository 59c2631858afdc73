// Loads: how full the house is, and when its settings were read.

package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy/internal/diagnostics"
	"understudy/kit/limiter"
	"understudy/mirror"
	"understudy/upstream"
)

// limits are the limits of the whole house.
func (h *house) limits() map[string]diagnostics.Limit {
	l := h.mirror.Loads()
	out := map[string]diagnostics.Limit{
		"waiters": limitOf(l.Waiters), "waiters_each": limitOf(l.Each),
		"flights": limitOf(l.Flights), "behind": limitOf(l.Behind), "hints": limitOf(l.Hints), "lists": limitOf(l.Lists),
		"feed_subscribers": h.feedLoad(),
		"request_body":     {Limit: int64(h.live.Load().Limits.RequestBody), Refused: h.tooLarge.Load()},
	}
	for name, p := range map[string]*limiter.Limiter{"viewer_exports": h.exports.viewer, "search_exports": h.exports.search} {
		l := p.Load()
		out[name] = diagnostics.Limit{Limit: int64(l.All), Now: int64(l.Now), Refused: l.Refused}
		out[name+"_each"] = diagnostics.Limit{Limit: int64(l.Each), Now: int64(l.Most), Refused: l.RefusedEach}
	}
	return out
}

func limitOf(l mirror.Load) diagnostics.Limit {
	return diagnostics.Limit{Limit: int64(l.Limit), Now: int64(l.Now), Refused: l.Refused}
}

// sourceLimits are those of one source.
func (h *house) sourceLimits(name string, c upstream.Stats) map[string]diagnostics.Limit {
	q, writes := h.clients[name].Queue(), 0
	if p := h.proxies.Load(); p != nil {
		writes = (*p)[name].Writes()
	}
	return map[string]diagnostics.Limit{
		"queue": {Limit: int64(q.Limit), Now: int64(q.Now), Refused: q.Refused,
			OldestMS: q.Oldest.Milliseconds(), LongestMS: q.Longest.Milliseconds()},
		"max_body": {Limit: h.maxBody(name), Refused: c.TooLarge},
		"writes":   {Limit: int64(h.live.Load().Limits.Writes), Now: int64(writes), Refused: h.noPlace[name].Load()},
	}
}

// maxBody is a source's limit on upstream's bodies, which its room knows the
// default of.
func (h *house) maxBody(name string) int64 {
	if n := h.cfg.Sources[name].MaxBody; n > 0 {
		return int64(n)
	}
	return defaultMaxBody
}

const defaultMaxBody = 64 << 20

// faceLoads are the limits of each port.
func (h *house) faceLoads() map[string]diagnostics.Face {
	out := map[string]diagnostics.Face{}
	for _, f := range h.faces {
		b := f.listener
		out[f.name] = diagnostics.Face{Limits: map[string]diagnostics.Limit{
			"connections": {Limit: b.limit.Load(), Now: b.count(), Refused: b.refused.Load(), Dropped: b.dropped.Load()},
			"headers":     {Limit: int64(h.cfg.Limits.Headers), Refused: b.heads.Load()},
			"head_time":   {Limit: int64(h.cfg.Limits.HeadTime.Std() / time.Second), Refused: b.slow.Load()},
		}}
	}
	return out
}

// processNow is what the process holds; what cannot be read is 0.
func processNow() diagnostics.Process {
	p := diagnostics.Process{Goroutines: runtime.NumGoroutine()}
	if dir, err := os.Open("/proc/self/fd"); err == nil {
		if names, err := dir.Readdirnames(-1); err == nil {
			p.Descriptors = len(names) - 1 // less the one that reads
		}
		_ = dir.Close()
	}
	data, err := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(data)); err == nil && len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		p.Resident = pages * int64(os.Getpagesize())
	}
	return p
}

// loads remembers when settings were read, and how the last reading went.
type loads struct {
	mu   sync.Mutex
	last diagnostics.Settings
}

func (l *loads) now() diagnostics.Settings {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// done notes a reading; restart names what waits for a restart.
func (l *loads) done(at time.Time, restart []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.last.FailedAt, l.last.Error = known(at), err.Error()
		return
	}
	l.last = diagnostics.Settings{LoadedAt: known(at), NeedRestart: restart}
}
