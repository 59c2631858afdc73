// Audit: what a caller did, as the audit log lists it.

package understudy

import (
	"context"
	"time"
)

// Action is a class of what callers do. The settings say by role which classes are listed.
type Action string

// The actions.
const (
	ActionList       Action = "list"       // looked at a list of records that no value was given for
	ActionRecord     Action = "record"     // looked at a record, or at versions of it
	ActionSearch     Action = "search"     // searched, filtered, looked at a number, or summed up what a search finds
	ActionPlay       Action = "play"       // got the content of a record
	ActionExport     Action = "export"     // took rows away
	ActionSend       Action = "send"       // made or changed something upstream
	ActionDelete     Action = "delete"     // removed something, upstream or here
	ActionNote       Action = "note"       // wrote a note on a record, or marked it as handled
	ActionSignIn     Action = "sign-in"    // signed in or out, or was refused
	ActionAdminister Action = "administer" // changed how the server works: credentials, jobs, webhooks, watches, saved searches
)

// Actions are all of them, in the order in which the documents list them.
var Actions = []Action{
	ActionList, ActionRecord, ActionSearch, ActionPlay, ActionExport, ActionSend, ActionDelete, ActionNote, ActionSignIn,
	ActionAdminister,
}

// manyRows is how many rows a list has at most that is no export.
const manyRows = 100

// ListAction returns what a person does who is shown rows of a list: one that is not asked from its
// beginning, or has many rows, takes rows away. values are those it was asked with.
func ListAction(first bool, rows int, values []string) Action {
	switch {
	case !first || rows > manyRows:
		return ActionExport
	case len(values) > 0:
		return ActionSearch
	}
	return ActionList
}

// AuditEntry is one thing that a caller did. Values of records stand in Values alone: the
// log keeps them as keyed hashes.
type AuditEntry struct {
	At           time.Time // zero: now
	Caller       Caller    // one that has a source is a program
	Action       Action
	What         string // a short text of ours: "credentials make billing"; never a value of a record
	Source, Kind string
	IDs          []string // of records
	Rows         int      // that were shown
	Values       []string // searched words, filtered numbers
	Request      string   // the id of the HTTP request
	Status       int      // of the answer, when it was refused; upstream's, when a send made a record
	AsPerson     bool     // asked where people ask: what a program does there is listed as of a person
}

// WhatMade is the What of the entry that names a record once a send has made it.
const WhatMade = "made"

// Done reports whether the entry says what was done before: when it cannot be written this is
// logged, and is no error.
func (e *AuditEntry) Done() bool { return e.What == WhatMade }

// Audit has an auditor list an entry. Without one, nil, nothing is listed.
func Audit(ctx context.Context, a Auditor, e AuditEntry) error {
	if a == nil {
		return nil
	}
	return a.RecordAction(ctx, e)
}

// Auditor keeps audit entries; package audit fills it.
type Auditor interface {
	// Audit returns nil when the entry is durable, or when the settings say that it is not
	// listed, or was done before. On an error the answer must not be given: it is ErrNotAudited.
	RecordAction(ctx context.Context, e AuditEntry) error
}
