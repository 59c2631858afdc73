// This file reads waits for locks from the log of a PostgreSQL server.

package locks

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Event is a wait for a lock, or the end of a wait, in the log of a server.
type Event struct {
	Prefix       string  `json:"prefix,omitempty"` // what log_line_prefix has added, such as the time
	What         string  `json:"what"`             // such as "still waiting for", "acquired" or "canceling autovacuum task"
	PID          int64   `json:"pid,omitempty"`
	Lock         string  `json:"lock,omitempty"`
	On           string  `json:"on,omitempty"` // such as "relation 16387 of database 16385"
	Milliseconds float64 `json:"ms,omitempty"`
	Holders      []int64 `json:"holders,omitempty"`
	Queue        []int64 `json:"queue,omitempty"`
	Statement    string  `json:"statement,omitempty"` // up to its first value
	Context      string  `json:"context,omitempty"`   // up to its first value
}

var (
	logLine = regexp.MustCompile(`^(.*?)\b(LOG|ERROR|WARNING|FATAL|PANIC|NOTICE|INFO|DEBUG[1-5]?|` +
		`DETAIL|HINT|CONTEXT|STATEMENT|QUERY|LOCATION): {1,2}(.*)$`)
	logWait = regexp.MustCompile(`^process (\d+) (still waiting for|acquired|failed to acquire|avoided deadlock for|` +
		`detected deadlock while waiting for) (\w+) on (.+?) (?:by rearranging queue order )?after (\d+\.\d+) ms$`)
	logQueue = regexp.MustCompile(`^Process(?:es)? holding the lock: ([\d, ]*)\. Wait queue: ([\d, ]*)\.$`)
)

// maxLogLine is the maximum number of bytes of a line that ReadLog reads. It ignores the rest of the line.
const maxLogLine = 64 << 10

// ReadLog reads the log of a server in the format stderr, and calls each with every event. The server must have the setting
// log_lock_waits.
func ReadLog(r io.Reader, each func(Event) error) error {
	lines := bufio.NewReaderSize(r, maxLogLine)
	var open *Event // the event to which the next lines belong
	finish := func() error {
		e := open
		if open = nil; e == nil {
			return nil
		}
		return each(*e)
	}
	for {
		line, isCut, err := lines.ReadLine()
		text := string(line)
		for isCut && err == nil {
			_, isCut, err = lines.ReadLine()
		}
		switch {
		case errors.Is(err, io.EOF):
			return finish()
		case err != nil:
			return err
		}
		m := logLine.FindStringSubmatch(text)
		if m == nil || strings.HasPrefix(text, "\t") { // a message goes on after a tab
			continue
		}
		switch m[2] {
		case "DETAIL", "STATEMENT", "CONTEXT":
			if open != nil {
				open.add(m[2], m[3])
			}
		case "HINT", "QUERY", "LOCATION":
		default:
			if err := finish(); err != nil {
				return err
			}
			open = newEvent(strings.TrimSpace(m[1]), m[3])
		}
	}
}

// newEvent returns the event that a message describes, or nil if the message is about something else.
func newEvent(prefix, message string) *Event {
	if message == "canceling autovacuum task" {
		return &Event{Prefix: prefix, What: message}
	}
	m := logWait.FindStringSubmatch(message)
	if m == nil {
		return nil
	}
	pid, err := strconv.ParseInt(m[1], 10, 64)
	ms, perr := strconv.ParseFloat(m[5], 64)
	if err != nil || perr != nil {
		return nil
	}
	return &Event{Prefix: prefix, What: m[2], PID: pid, Lock: m[3], On: m[4], Milliseconds: ms}
}

// add adds a line that belongs to the event.
func (e *Event) add(name, text string) {
	switch name {
	case "STATEMENT":
		e.Statement = HideValues(text)
	case "CONTEXT":
		e.Context = HideValues(text)
	default:
		if m := logQueue.FindStringSubmatch(text); m != nil {
			e.Holders, e.Queue = parseProcesses(m[1]), parseProcesses(m[2])
		}
	}
}

func parseProcesses(list string) (all []int64) {
	for word := range strings.SplitSeq(list, ", ") {
		if pid, err := strconv.ParseInt(word, 10, 64); err == nil {
			all = append(all, pid)
		}
	}
	return all
}
