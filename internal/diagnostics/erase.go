// Erase: erasing records from every file, and the receipts.

package diagnostics

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/store/erase"
	"understudy/kit/accesslog"
	"understudy/kit/jsonhttp"
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

// erase takes the command from this machine with the token of run.json. Answers: as of
// purge; 202 when something was listed.
func (d *Diagnostics) erase(w http.ResponseWriter, r *http.Request) {
	if !d.ours(w, r) {
		return
	}
	var e Erase
	if err := jsonhttp.Read(w, r, maxErase, &e); err != nil {
		jsonhttp.Error(w, http.StatusBadRequest, understudy.PlainText(err))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), eraseTime)
	defer cancel()
	action := understudy.ActionDelete
	if e.Dry {
		action = understudy.ActionSearch
	}
	err := d.audit(r, understudy.AuditEntry{Action: action, What: "erase", Source: e.Source, Values: []string{e.What}})
	var found Erasing
	if err == nil {
		found, err = d.o.Erase(ctx, e)
	}
	switch status := understudy.OwnStatus(err); {
	case status == http.StatusServiceUnavailable:
		d.o.Logger.Error("erase", "source", e.Source, "err", err)
		fallthrough
	case err != nil:
		jsonhttp.Error(w, status, understudy.PlainText(err))
	case found.Receipt != nil:
		d.o.Logger.Info("to be erased", "source", e.Source, "receipt", found.Receipt.Number)
		jsonhttp.Write(w, http.StatusAccepted, found)
	default:
		jsonhttp.Write(w, http.StatusOK, found)
	}
}

// ours admits requests from this machine with the token of run.json. It has answered
// all others.
func (d *Diagnostics) ours(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !jsonhttp.Local(r):
		jsonhttp.Error(w, http.StatusForbidden, "only from the machine the server runs on")
	case !jsonhttp.Bears(r, d.o.Token):
		w.Header().Set("WWW-Authenticate", `Bearer realm="run.json"`)
		jsonhttp.Error(w, http.StatusUnauthorized, "the token of run.json is needed")
	default:
		accesslog.Of(r.Context()).Caller = understudy.CommandCaller.Name
		return true
	}
	return false
}

// audit lists what a command is about to do.
func (d *Diagnostics) audit(r *http.Request, e understudy.AuditEntry) error {
	e.Caller, e.Request = understudy.CommandCaller, accesslog.Of(r.Context()).ID
	return understudy.Audit(r.Context(), d.o.Audit, e)
}

// receipts shows receipts to callers that see every record, because receipts count
// erased records, and to callers that may erase.
func (d *Diagnostics) receipts(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		if !d.ours(w, r) {
			return
		}
	} else if caller, ok := d.known(w, r); !ok {
		return
	} else if !d.o.All(caller) {
		jsonhttp.Error(w, http.StatusForbidden, "receipts are shown to the role "+understudy.RoleAll+" alone, as they count records")
		return
	}
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
			jsonhttp.Error(w, http.StatusBadRequest, name+" is a number from 1")
			return
		}
		to(n)
	}
	ctx, cancel := context.WithTimeout(r.Context(), receiptTime)
	defer cancel()
	all, err := d.o.Receipts(ctx, before, limit)
	if err != nil {
		d.unread(ctx, err)
		jsonhttp.Error(w, http.StatusServiceUnavailable, "the store cannot be read")
		return
	}
	if all.Erasures == nil {
		all.Erasures = []Receipt{}
	}
	jsonhttp.Write(w, http.StatusOK, all)
}
