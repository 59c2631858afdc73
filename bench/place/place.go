// Where and of what something was measured.

// Package place names the revision and the machine behind a measurement.
package place

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// results are the files of measurements. A change of only these files does not make another revision.
var results = []string{"--", ":/", ":!/bench/results", ":!/bench/prove.txt"}

// Revision returns the last commit of a checkout that changed more than results, in 12 digits. It ends with a plus
// if there are changes that are not committed. Outside of git it returns "unknown".
func Revision(dir string) string {
	rev, err := exec.Command("git", append([]string{"-C", dir, "log", "-1", "--abbrev=12", "--format=%h"}, results...)...).Output()
	if err != nil {
		return "unknown"
	}
	text := strings.TrimSpace(string(rev))
	changed, err := exec.Command("git", append([]string{"-C", dir, "status", "--porcelain"}, results...)...).Output()
	if err != nil || len(bytes.TrimSpace(changed)) > 0 {
		text += "+"
	}
	return text
}

// Machine returns the processor, cores, memory, kernel and Go version of this machine, and its load now.
func Machine() string {
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	return fmt.Sprintf("%s, %d cores, %s memory, Linux %s, %s, load %s", field(read("/proc/cpuinfo"), "model name"), runtime.NumCPU(),
		field(read("/proc/meminfo"), "MemTotal"), strings.TrimSpace(read("/proc/sys/kernel/osrelease")), runtime.Version(), load)
}

func read(path string) string {
	data, _ := os.ReadFile(path) // what is not there is not named
	return string(data)
}

func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
