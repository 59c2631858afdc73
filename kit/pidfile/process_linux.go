// This file reads from /proc when processes have started.

package pidfile

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ticks is how many units a second has in /proc/PID/stat. The kernel reports hundredths to programs (proc_pid_stat(5), USER_HZ).
const ticks = 100

// bootID returns the id that the kernel has taken at its start.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it, the time of the start has to do
	return strings.TrimSpace(string(id))
})

// startOf returns when a process started, in ticks since the boot, and whether it lives. A process that has ended and whose parent has not
// asked for its exit code (a zombie) does not live. At an exec, the first thread is a zombie for a moment, while another one lives.
func startOf(pid int) (start uint64, alive bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The second field is the name in parentheses, which may contain any byte. State is the third field, the number of threads the 20th, and
	// the start the 22nd.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || fields[0][0] == 'Z' && string(fields[17]) == "1" || fields[0][0] == 'X' {
		return 0, false
	}
	start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return start, err == nil
}

// uptime returns how long the machine is up, or 0 if the system does not say.
func uptime() time.Duration {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}
