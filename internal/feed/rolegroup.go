// Role group: the view of all subscribers of one role, made once for all of them.

package feed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/jsonapi"
	"understudy/kit/jsonspan"
)

type roleGroupKey struct{ source, role string }

// roleGroup is a role before a source under one policy.
type roleGroup struct {
	gate   *access.Gate
	caller understudy.Caller
	source string
	whole  bool     // sees every record: cursors show the number
	ruled  bool     // row rules apply: the records that it may see can change at any time
	seal   *cursors // of the cursors otherwise; a role that sees every record may use them, too
	runs   runs
	slots  []atomic.Pointer[maskedChange]
}

// maskedChange is a change as a role group sees it. It is shared and never changed.
type maskedChange struct {
	n     int64 // the change's number
	shown bool
	seen  understudy.Change
	data  []byte // one line of JSON
	event []byte // the same as an event of a stream, its id before it
}

// change is the JSON of a change.
type change struct {
	N       int64     `json:"n,omitempty"`
	Source  string    `json:"source"`
	Kind    string    `json:"kind"`
	ID      string    `json:"id"`
	What    string    `json:"what"`
	Fields  []string  `json:"fields,omitempty"`
	Version int64     `json:"version,omitempty"`
	At      time.Time `json:"at"`
	Cursor  string    `json:"cursor,omitempty"`
}

// roleGroup is the group of a role.
func (f *Feed) roleGroup(r *policy, source, role string) (*roleGroup, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := roleGroupKey{source, role}
	if a := r.groups[key]; a != nil {
		return a, nil
	}
	s, err := jsonapi.Cursors(f.places.key, "feed", source, role)
	if err != nil {
		return nil, err
	}
	a := &roleGroup{
		gate: r.rules.Gate, caller: understudy.Caller{Name: "feed", Grant: &understudy.Grant{Role: role}}, source: source,
		seal: &cursors{s}, runs: f.places.runs, slots: make([]atomic.Pointer[maskedChange], f.o.Limits.Buffer),
	}
	a.whole, a.ruled = a.gate.CanSeeAll(a.caller, source), a.gate.HasRowRules(a.caller, source)
	r.groups[key] = a
	return a, nil
}

// view is a change as the role group sees it. Recent views are kept for the others. Two
// goroutines that make the same view at once differ only in its cursor. With row rules
// no view is kept: a record that was visible may be hidden by now.
func (a *roleGroup) view(ch *understudy.Change, recent bool) *maskedChange {
	recent = recent && !a.ruled
	slot := &a.slots[uint64(ch.N)%uint64(len(a.slots))]
	if recent {
		if s := slot.Load(); s != nil && s.n == ch.N {
			return s
		}
	}
	s := &maskedChange{n: ch.N}
	if s.seen, s.shown = a.gate.RedactChange(a.caller, *ch); s.shown {
		s.encode(a, ch.N)
	}
	if recent {
		slot.Store(s)
	}
	return s
}

// encode writes the change as it is sent.
func (s *maskedChange) encode(a *roleGroup, n int64) {
	c := change{
		N: s.seen.N, Source: s.seen.Source, Kind: s.seen.Kind, ID: s.seen.ID, What: s.seen.Type.String(), Version: s.seen.Version,
		At: s.seen.At.UTC(),
	}
	for name := range s.seen.Fields.All() {
		c.Fields = append(c.Fields, jsonspan.Name([]byte(name)))
	}
	cursor := a.cursor(n)
	if !a.whole {
		c.Cursor = cursor
	}
	data, err := json.Marshal(c)
	if err != nil { // strings, numbers and a time marshal
		panic("feed: " + err.Error())
	}
	s.event = fmt.Appendf(nil, "id: %s\ndata: %s\n\n", cursor, data)
	s.data = s.event[bytes.IndexByte(s.event, '{') : len(s.event)-2]
}

// cursor is a position in the form that the role group may see.
func (a *roleGroup) cursor(n int64) string {
	if a.whole {
		return string(appendNumber(nil, n, a.runs.now()))
	}
	return string(a.seal.append(nil, n, a.runs.now()))
}

// place reads a cursor. It accepts a number only from a role that sees numbers: another
// role could count changes with it.
func (a *roleGroup) place(cursor string) (int64, error) {
	if cursor == "0" {
		return 0, nil
	}
	n, run, ok := readNumber(cursor)
	if !ok || !a.whole {
		var err error
		if n, run, err = a.seal.open(cursor); err != nil && a.whole {
			return 0, fmt.Errorf("feed: %w: after must be a place in the feed, the number of a change, 0 or now", understudy.ErrInvalid)
		} else if err != nil {
			return 0, err
		}
	}
	if run != 0 && !a.runs.isKnown(a.source, n, run) {
		return 0, fmt.Errorf("feed: %w: that place is not in this feed: the store was put back to an earlier state. "+
			"Read the lists again and go on with after=now", understudy.ErrInvalid)
	}
	return n, nil
}
