// This file erases records from every file for a command, and lists the receipts of erasures.

package diagnostics

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
	"understudy/internal/store/erase"
)

// Erase is the body of POST /-/erase: the records to erase.
type Erase struct {
	Source string `json:"source"`
	What   string `json:"what"`          // a phone number as people write it, or KIND/ID of a record
	Dry    bool   `json:"dry"`           // whether to count the records without erasing them
	Own    bool   `json:"own,omitempty"` // whether to erase also a phone number that belongs to the account
}

// Erasing is the response to POST /-/erase: the records found, and the receipt of the erasure. There is no receipt
// if nothing was found or the request was a dry run.
type Erasing struct {
	Found   map[string]int  `json:"found"`         // the number of records by kind
	Own     bool            `json:"own,omitempty"` // whether the phone number belongs to the account
	Receipt *Receipt        `json:"receipt,omitempty"`
	Residue []erase.Residue `json:"residue,omitempty"` // only in the output of the command
}

// Receipt describes one erasure. It identifies no person, because hash is a keyed hash of the number.
type Receipt struct {
	Number   int64     `json:"number"`
	Source   string    `json:"source"`
	Cause    string    `json:"cause"` // why the records were erased: deleted, redacted, asked or aged
	Hash     string    `json:"hash,omitempty"`
	Begun    time.Time `json:"begun"`
	Done     time.Time `json:"done,omitzero"` // when the erasure was finished; zero before
	Records  int64     `json:"records"`
	Versions int64     `json:"versions"`
	Pages    int64     `json:"pages"`
	Files    int64     `json:"files"`
}

// Receipts is the response to GET /-/erasures, with the newest receipt first.
type Receipts struct {
	Waiting  erase.Waiting   `json:"waiting"`
	Erasures []Receipt       `json:"erasures"`
	Residue  []erase.Residue `json:"residue,omitempty"` // where bytes of erased records may still be; none in a SQLite file
}

const (
	maxErase       = 16 << 10 // the maximum size of an erase request's body, in bytes
	eraseTimeout   = 100 * time.Second
	receiptTimeout = 10 * time.Second
	maxReceipts    = 1000
)

// erase schedules the records that a command names for erasure. The status is as for purge, or 202 if records were
// scheduled.
func (d *Diagnostics) erase(ctx context.Context, c understudy.Caller, _ *http.Request, e *Erase) (any, error) {
	entry := understudy.AuditEntry{Action: understudy.ActionDelete, What: "erase", Source: e.Source, Values: []string{e.What}}
	if e.Dry {
		entry.Action = understudy.ActionSearch
	}
	err := jsonapi.RecordAudit(ctx, d.o.Audit, c, entry)
	var found Erasing
	if err == nil {
		found, err = d.o.Erase(ctx, *e)
	}
	if err != nil {
		if understudy.OwnPathStatus(err) == http.StatusServiceUnavailable {
			d.o.Logger.Error("erase", "source", e.Source, "err", err)
		}
		return nil, err
	}
	if found.Receipt == nil {
		return found, nil
	}
	d.o.Logger.Info("to be erased", "source", e.Source, "receipt", found.Receipt.Number)
	return jsonapi.Response{Status: http.StatusAccepted, Value: found}, nil
}

// isCommand reports whether a request carries a bearer token.
func isCommand(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// admitUnrestricted returns a function that finds the caller of a request. It admits commands, and callers who see
// every record. why is the text of the error for other callers.
func (d *Diagnostics) admitUnrestricted(why string) func(*http.Request) (understudy.Caller, error) {
	return func(r *http.Request) (understudy.Caller, error) {
		if isCommand(r) {
			return jsonapi.AuthorizeCommand(d.o.Token)(r)
		}
		c, err := jsonapi.IdentifyPerson(r, "", d.o.Person)
		if err == nil && !d.o.SeesAll(c) {
			err = fmt.Errorf("%w: %s", understudy.ErrForbidden, why)
		}
		return c, err
	}
}

const receiptsForAll = "receipts are shown to the role " + understudy.RoleAll + " alone, as they count records"

// listReceipts returns receipts. Only commands and callers who see every record are admitted, because receipts
// count erased records.
func (d *Diagnostics) listReceipts(ctx context.Context, _ understudy.Caller, r *http.Request) (any, error) {
	before, limit := int64(0), 100
	for name, to := range map[string]func(int64){
		"before": func(n int64) { before = n },
		"limit":  func(n int64) { limit = int(min(n, maxReceipts)) },
	} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%w: %s is a number from 1", understudy.ErrInvalid, name)
		}
		to(n)
	}
	all, err := d.o.Receipts(ctx, before, limit)
	if err != nil {
		d.logUnreadable(ctx, err)
		return nil, errUnreadable
	}
	if all.Erasures == nil {
		all.Erasures = []Receipt{}
	}
	return all, nil
}
