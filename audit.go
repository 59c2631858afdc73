// This file declares the entries of the audit log, which say what a caller did.

package understudy

import (
	"context"
	"time"
)

// Action is a class of things that callers do. The settings say for each role which classes are written to the
// audit log.
type Action string

// The actions that the audit log distinguishes.
const (
	ActionList       Action = "list"       // the caller read a list of records without giving a value to look for
	ActionRecord     Action = "record"     // the caller read a record or its earlier versions
	ActionSearch     Action = "search"     // the caller searched, filtered, looked up a number, or computed sums over a search
	ActionPlay       Action = "play"       // the caller read the content of a record, such as a recording
	ActionExport     Action = "export"     // the caller exported rows to a file
	ActionSend       Action = "send"       // the caller created or changed something in the upstream API
	ActionDelete     Action = "delete"     // the caller deleted something, in the upstream API or in the store
	ActionNote       Action = "note"       // the caller wrote a note on a record, or marked the record as handled
	ActionSignIn     Action = "sign-in"    // the caller signed in, signed out, or was refused
	ActionAdminister Action = "administer" // the caller changed the server: credentials, jobs, webhooks, watches or saved searches
)

// Actions lists every action in the order that the documents use.
var Actions = []Action{
	ActionList, ActionRecord, ActionSearch, ActionPlay, ActionExport, ActionSend, ActionDelete, ActionNote, ActionSignIn,
	ActionAdminister,
}

// maxListRows is the largest number of rows that counts as reading a list. More rows count as an export.
const maxListRows = 100

// ListAction returns the action of a person who reads rows of a list. Reading past the first page or many rows
// at once is an export. values are the search values of the request.
func ListAction(first bool, rows int, values []string) Action {
	switch {
	case !first || rows > maxListRows:
		return ActionExport
	case len(values) > 0:
		return ActionSearch
	}
	return ActionList
}

// AuditEntry is one thing that a caller did. Only the field Values holds values of records. The log stores them
// as keyed hashes.
type AuditEntry struct {
	At           time.Time // the time of the action; the zero time means now
	Caller       Caller    // the person or program that did it; a caller with a Source is a program
	Action       Action
	What         string // short fixed text such as "credentials make billing"; never a value of a record
	Source, Kind string
	IDs          []string // the ids of the records that the action read or changed
	Rows         int      // the number of rows that were shown to the caller
	Values       []string // the words that the caller searched for and the numbers that it filtered by
	Request      string   // the id of the HTTP request
	Status       int      // the HTTP status of a refusal, or the upstream's status for a request that created a record
	AsPerson     bool     // the request used a path for people, so the entry counts as a person's although a program sent it
}

// WhatCreated is the What of a follow-up entry: it names the record that an earlier send created.
const WhatCreated = "made"

// IsFollowUp reports whether the entry describes an action that already happened. If it cannot be written, the
// failure is only logged.
func (e *AuditEntry) IsFollowUp() bool { return e.What == WhatCreated }

// RecordAudit writes an entry to an auditor. A nil auditor writes nothing.
func RecordAudit(ctx context.Context, a Auditor, e AuditEntry) error {
	if a == nil {
		return nil
	}
	return a.RecordAction(ctx, e)
}

// Auditor stores audit entries. Package audit implements it.
type Auditor interface {
	// RecordAction returns nil once the entry is durable. It also returns nil if the settings exclude the entry, and
	// for a follow-up entry. On an error (ErrNotAudited) the caller must not send the answer.
	RecordAction(ctx context.Context, e AuditEntry) error
}
