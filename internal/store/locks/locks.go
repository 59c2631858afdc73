// Package locks describes which sessions of a database wait for which other sessions, and which session to end. It also
// reads waits for locks from the log of a PostgreSQL server.
package locks

import (
	"cmp"
	"slices"
	"strings"
)

// Session is a session that waits for another one, or for which another one waits.
type Session struct {
	PID     int64   `json:"pid"` // the process, or 0 for a prepared transaction
	User    string  `json:"user,omitempty"`
	Program string  `json:"program,omitempty"`
	State   string  `json:"state,omitempty"`
	Query   string  `json:"query,omitempty"`   // the newest query up to its first value
	Seconds float64 `json:"seconds,omitempty"` // the age of the transaction
	// Wanted is the lock for which the session waits, and Waited how many seconds its query has run.
	Wanted string  `json:"waits_for,omitempty"`
	Waited float64 `json:"waited,omitempty"`
	// Blockers are the processes for which the session waits. Pinners are the processes of which one or more use a page that
	// the session needs alone. PostgreSQL does not say which.
	Blockers []int64 `json:"blocked_by,omitempty"`
	Pinners  []int64 `json:"pinned_by,omitempty"`

	// In a report, the next sessions that are deeper wait for this one. Again says that the session is in the report before.
	Depth int  `json:"depth"`
	Again bool `json:"again,omitempty"`
}

// Report describes the waits in a database. It leaves out sessions that neither wait nor block others.
type Report struct {
	Database string    `json:"database"`
	Sessions []Session `json:"sessions"`
	End      []int64   `json:"end"` // the processes to end so that nobody waits
}

// NewReport returns the report about the sessions of a database.
func NewReport(database string, sessions []Session) *Report {
	r := &Report{Database: database, Sessions: []Session{}, End: []int64{}}
	waiters := map[int64][]Session{}                  // the sessions that wait for a process
	holds, pins := map[int64]bool{}, map[int64]bool{} // whether they wait for its lock, and for a page that it may use
	for _, s := range sessions {
		for _, pid := range s.Blockers {
			holds[pid], waiters[pid] = true, append(waiters[pid], s)
		}
		for _, pid := range s.Pinners {
			pins[pid], waiters[pid] = true, append(waiters[pid], s)
		}
	}
	heads := slices.DeleteFunc(slices.Clone(sessions), func(s Session) bool { return waiters[s.PID] == nil })
	if waiters[0] != nil {
		heads = append(heads, Session{State: "prepared transaction (pg_prepared_xacts)"})
	}
	rank := func(s Session) int {
		switch isWaiting := len(s.Blockers)+len(s.Pinners) > 0; {
		case isWaiting && pins[s.PID]: // PostgreSQL finds no deadlock through a page, so such a wait may never end
			return 0
		case !isWaiting:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(heads, func(a, b Session) int {
		return cmp.Or(rank(a)-rank(b), -cmp.Compare(a.Seconds, b.Seconds), cmp.Compare(a.PID, b.PID))
	})
	seen := map[int64]bool{}
	var add func(s Session, depth int)
	add = func(s Session, depth int) {
		s.Depth, s.Again = depth, seen[s.PID]
		r.Sessions = append(r.Sessions, s)
		if seen[s.PID] = true; s.Again {
			return
		}
		for _, w := range waiters[s.PID] {
			add(w, depth+1)
		}
	}
	for _, s := range heads {
		hasNew := slices.ContainsFunc(waiters[s.PID], func(w Session) bool { return !seen[w.PID] })
		if !seen[s.PID] && (hasNew || holds[s.PID]) {
			r.End = append(r.End, s.PID)
			add(s, 0)
		}
	}
	return r
}

// maxQueryBytes is the maximum length of a query in a report.
const maxQueryBytes = 200

// HideValues returns a query on one line, up to its first value or comment. Values may be personal data.
func HideValues(query string) string {
	end := len(query)
	for i := range len(query) {
		c, before := query[i], byte(' ')
		if i > 0 {
			before = query[i-1]
		}
		isDigit := '0' <= c && c <= '9'
		isValue := c == '\'' || isDigit && !isNamePart(before) || c == '-' && before == '-' || c == '*' && before == '/' ||
			before == '$' && !isDigit
		if isValue || i == maxQueryBytes {
			end = i
			break
		}
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(query[:end], "")), " ")
	if end < len(query) {
		text = strings.TrimSpace(text + " …")
	}
	return text
}

// isNamePart reports whether a digit after c belongs to a name or to the number of a parameter.
func isNamePart(c byte) bool {
	return c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}
