// Erase: erasing records from every file, and the receipts.

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

// Erase is the body of POST /-/erase: whose records are to be erased.
type Erase struct {
	Source string `json:"source"`
	What   string `json:"what"`          // a number as people write it, or KIND/ID
	Dry    bool   `json:"dry"`           // only say what would go
	Own    bool   `json:"own,omitempty"` // a number of the account's own, too
}

// Erasing is the response: what was found, and the job that erases it. There is no
// job if nothing was found or the request was a dry run.
type Erasing struct {
	Found   map[string]int `json:"found"`         // records by kind
	Own     bool           `json:"own,omitempty"` // it is a number of the account's own
	Receipt *Receipt       `json:"receipt,omitempty"`
}

// Receipt is one erasure. It identifies no person: hash is a keyed hash of the
// number.
type Receipt struct {
	Number   int64     `json:"number"`
	Source   string    `json:"source"`
	Cause    string    `json:"cause"` // deleted, redacted, asked, aged
	Hash     string    `json:"hash,omitempty"`
	Begun    time.Time `json:"begun"`
	Done     time.Time `json:"done,omitzero"` // none: it is under way
	Records  int64     `json:"records"`
	Versions int64     `json:"versions"`
	Pages    int64     `json:"pages"`
	Files    int64     `json:"files"`
}

// Receipts is the body of GET /-/erasures, the newest first.
type Receipts struct {
	Waiting  erase.Waiting `json:"waiting"`
	Erasures []Receipt     `json:"erasures"`
}

const (
	maxErase    = 16 << 10 // bytes of a body
	eraseTime   = 100 * time.Second
	receiptTime = 10 * time.Second
	mostAsked   = 1000
)

// erase lists the records that a command names. Answers: as of purge; 202 when something was listed.
func (d *Diagnostics) erase(ctx context.Context, c understudy.Caller, _ *http.Request, e *Erase) (any, error) {
	entry := understudy.AuditEntry{Action: understudy.ActionDelete, What: "erase", Source: e.Source, Values: []string{e.What}}
	if e.Dry {
		entry.Action = understudy.ActionSearch
	}
	err := jsonapi.Audit(ctx, d.o.Audit, c, entry)
	var found Erasing
	if err == nil {
		found, err = d.o.Erase(ctx, *e)
	}
	if err != nil {
		if understudy.OwnStatus(err) == http.StatusServiceUnavailable {
			d.o.Logger.Error("erase", "source", e.Source, "err", err)
		}
		return nil, err
	}
	if found.Receipt == nil {
		return found, nil
	}
	d.o.Logger.Info("to be erased", "source", e.Source, "receipt", found.Receipt.Number)
	return jsonapi.Answer{Status: http.StatusAccepted, Value: found}, nil
}

// isCommand reports whether a request carries a token.
func isCommand(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// whoSeesAll admits the commands, and callers that see every record. why says in an error why others
// are not admitted.
func (d *Diagnostics) whoSeesAll(why string) func(*http.Request) (understudy.Caller, error) {
	return func(r *http.Request) (understudy.Caller, error) {
		if isCommand(r) {
			return jsonapi.Command(d.o.Token)(r)
		}
		c, err := jsonapi.Person(r, "", d.o.Person)
		if err == nil && !d.o.All(c) {
			err = fmt.Errorf("%w: %s", understudy.ErrForbidden, why)
		}
		return c, err
	}
}

const receiptsForAll = "receipts are shown to the role " + understudy.RoleAll + " alone, as they count records"

// receipts shows receipts to callers that see every record, because receipts count
// erased records, and to callers that may erase.
func (d *Diagnostics) receipts(ctx context.Context, _ understudy.Caller, r *http.Request) (any, error) {
	before, limit := int64(0), 100
	for name, to := range map[string]func(int64){
		"before": func(n int64) { before = n },
		"limit":  func(n int64) { limit = int(min(n, mostAsked)) },
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
		d.unread(ctx, err)
		return nil, errUnread
	}
	if all.Erasures == nil {
		all.Erasures = []Receipt{}
	}
	return all, nil
}
