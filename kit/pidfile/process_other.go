//go:build !linux

// This file is for systems that do not tell when a process started.

package pidfile

import "time"

const ticks = 100

func bootID() string { return "" }

func startOf(int) (start uint64, alive bool) { return 0, true }

func uptime() time.Duration { return 0 }
