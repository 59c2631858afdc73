// This file computes the view of changes that a role has, once for all subscribers with that role.

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

// roleGroup is the view of a role of one source under one policy.
type roleGroup struct {
	gate          *access.Gate
	caller        understudy.Caller
	source        string
	seesAll       bool     // whether the role sees every record, so that its cursors may show the number of a change
	hasRowRules   bool     // whether row rules restrict the role, so that the records it sees can change at any time
	sealedCursors *cursors // encrypt the number of a change; a role with seesAll may also use such cursors
	runs          runs
	slots         []atomic.Pointer[maskedChange]
}

// maskedChange is a change as a role group sees it. It is shared and, except for encoded, immutable.
type maskedChange struct {
	number  int64 // the number of the change
	visible bool
	change  understudy.Change
	data    []byte                 // the change as one line of JSON
	event   []byte                 // the change as a server-sent event, with its id
	encoded atomic.Pointer[[]byte] // the result of Event.Encode; nil before its first call
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

// findRoleGroup returns the group of a role and creates it if needed.
func (f *Feed) findRoleGroup(r *policy, source, role string) (*roleGroup, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := roleGroupKey{source, role}
	if a := r.groups[key]; a != nil {
		return a, nil
	}
	s, err := jsonapi.NewCursorSealer(f.places.key, "feed", source, role)
	if err != nil {
		return nil, err
	}
	a := &roleGroup{
		gate: r.rules.Gate, caller: understudy.Caller{Name: "feed", Grant: &understudy.Grant{Role: role}}, source: source,
		sealedCursors: &cursors{s}, runs: f.places.runs, slots: make([]atomic.Pointer[maskedChange], f.o.Limits.MaxBuffered),
	}
	a.seesAll, a.hasRowRules = a.gate.CanSeeAll(a.caller, source), a.gate.HasRowRules(a.caller, source)
	r.groups[key] = a
	return a, nil
}

// view returns a change as the role group sees it. Views of recent changes are cached. Two goroutines may compute
// the same view at once; the results differ only in the cursor. Under row rules no view is cached, because a
// visible record may become hidden.
func (a *roleGroup) view(ch *understudy.Change, recent bool) *maskedChange {
	recent = recent && !a.hasRowRules
	slot := &a.slots[uint64(ch.N)%uint64(len(a.slots))]
	if recent {
		if s := slot.Load(); s != nil && s.number == ch.N {
			return s
		}
	}
	s := &maskedChange{number: ch.N}
	if s.change, s.visible = a.gate.RedactChange(a.caller, *ch); s.visible {
		s.encode(a, ch.N)
	}
	if recent {
		slot.Store(s)
	}
	return s
}

// encode sets the JSON and the event of a change.
func (s *maskedChange) encode(a *roleGroup, n int64) {
	c := change{
		N: s.change.N, Source: s.change.Source, Kind: s.change.Kind, ID: s.change.ID, What: s.change.Type.String(), Version: s.change.Version,
		At: s.change.At.UTC(),
	}
	for name := range s.change.Fields.All() {
		c.Fields = append(c.Fields, jsonspan.Name([]byte(name)))
	}
	cursor := a.cursor(n)
	if !a.seesAll {
		c.Cursor = cursor
	}
	data, err := json.Marshal(c)
	if err != nil { // cannot fail, because strings, numbers and times can always be encoded
		panic("feed: " + err.Error())
	}
	s.event = fmt.Appendf(nil, "id: %s\ndata: %s\n\n", cursor, data)
	s.data = s.event[bytes.IndexByte(s.event, '{') : len(s.event)-2]
}

// cursor returns the cursor of a position in the form that the role group may see.
func (a *roleGroup) cursor(n int64) string {
	if a.seesAll {
		return string(appendNumber(nil, n, a.runs.currentID()))
	}
	return string(a.sealedCursors.append(nil, n, a.runs.currentID()))
}

// parseCursor returns the number of the change in a cursor. It accepts a plain number only from a role that sees
// every record, because another role could count hidden changes with such numbers.
func (a *roleGroup) parseCursor(cursor string) (int64, error) {
	if cursor == "0" {
		return 0, nil
	}
	n, run, ok := readNumber(cursor)
	if !ok || !a.seesAll {
		var err error
		if n, run, err = a.sealedCursors.open(cursor); err != nil && a.seesAll {
			return 0, fmt.Errorf("feed: %w: after must be a cursor of this feed, the number of a change, 0 or now", understudy.ErrInvalid)
		} else if err != nil {
			return 0, err
		}
	}
	if run != 0 && !a.runs.isKnown(a.source, n, run) {
		return 0, fmt.Errorf("feed: %w: this cursor is not valid any more, because the database was restored to an earlier state. "+
			"Read the lists again and continue with after=now", understudy.ErrInvalid)
	}
	return n, nil
}
