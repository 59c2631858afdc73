// Exports: all records of a list or search as CSV, JSON or JSON lines. The records are sent while they are read, so
// that only one page of them is in memory.

package list

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/export"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/kit/cycle"
	"understudy/kit/limiter"
	"understudy/spec"
)

// The limits of an export.
const (
	flushBytes   = 64 << 10         // the number of bytes that are collected before they are sent to the client
	writeTimeout = 30 * time.Second // how long the client may take to receive flushBytes
	auditTimeout = 10 * time.Second // how long the writing of an audit entry may take
)

// recordSupply reads the records of an export and calls take for each. rest says why records are missing; it is empty if none are.
type recordSupply func(ctx context.Context, take func(exported) error) (rest string, err error)

// exported is one record of an export.
type exported struct {
	kind *plan.Kind
	row  access.Row
	hit  *query.SearchHit // the match with the words that the search found; nil if the record comes from a list
}

// encoder writes the parts of an exported file. rest says why rows are missing; it is empty if none are.
type encoder interface {
	begin(dst []byte) []byte
	row(dst []byte, one exported) []byte
	end(dst []byte, rows int, rest string) []byte
}

// The errors that end an export early. errFull means that the export has the maximum number of rows, and
// errRightsChanged that the policy for the caller has changed.
var (
	errFull          = errors.New("viewer: the export is full")
	errRightsChanged = errors.New("viewer: the caller's access rights have changed")
)

// exporter writes one export.
type exporter struct {
	q    *page.Exchange
	w    encoder
	mime string
	name string // the name of the exported file without its extension
	buf  []byte
	zip  *gzip.Writer
	rows int

	values      []string // the text of the search or the values of the filters, for the audit log
	ids         []string // the ids of the first exported records, for the audit log
	auditedRows int      // the number of rows in the newest audit entry of this export; -1 if there is no entry yet
	slot        *export.Export
}

// maxListedIDs is the maximum number of ids in an audit entry.
const maxListedIDs = 100

// newEncoder returns the encoder for the requested data format. columns are the columns of a list. A search in
// several kinds has no columns, and its rows then have all fields.
func newEncoder(q *page.Exchange, columns []*plan.Column, kinds bool) (w encoder, mime string) {
	switch q.DataFormat {
	case page.CsvSuffix:
		return &csvEncoder{q: q, columns: columns, withKinds: kinds}, "text/csv; charset=utf-8; header=present"
	case page.LinesSuffix:
		return &linesEncoder{columns: columns, withKinds: kinds}, "application/jsonl; charset=utf-8"
	}
	return &jsonEncoder{linesEncoder: linesEncoder{columns: columns, withKinds: kinds}}, "application/json"
}

// exportRows sends all records of a supply. An error before the first byte is sent as an error page. After that, it
// becomes a note at the end of the file.
func exportRows(q *page.Exchange, e *exporter, from recordSupply) error {
	under, err := q.V.Options.Exports.Begin(q.Rights.Caller)
	switch {
	case errors.Is(err, limiter.ErrEach):
		return &page.Problem{Title: "You have too many running exports", Hint: "Try again when one of them has ended.",
			Kind: understudy.ErrUnavailable}
	case err != nil:
		return &page.Problem{Title: "Too many exports are running", Hint: "Try again when one of them has ended.",
			Kind: understudy.ErrUnavailable}
	}
	defer under.End()
	e.q, e.slot, e.auditedRows = q, under, -1
	ctx, cancel := context.WithTimeout(q.R.Context(), q.V.Options.ExportTime)
	defer cancel()
	if q.R.Method == http.MethodHead { // a HEAD request gets the same headers as a GET request
		if _, err := from(ctx, func(exported) error { return errFull }); err != nil && err != errFull {
			return err
		}
		if err := e.writeAudit("export begins"); err != nil {
			return err
		}
		e.setHeaders()
		q.Reply.W.WriteHeader(http.StatusOK)
		return nil
	}
	e.buf = e.w.begin(make([]byte, 0, flushBytes+flushBytes/4))
	rest, err := from(ctx, e.take)
	switch {
	case err == errFull:
		rest = fmt.Sprintf("an export has at most %s rows; narrow it with filters", page.Thousands(int64(q.V.Options.ExportRows)))
	case err == errRightsChanged:
		rest = "your access rights changed during the export; export again"
	case err != nil && !q.Reply.Started:
		return err
	case q.R.Context().Err() != nil:
		q.V.Options.Logger.InfoContext(ctx, "viewer: client disconnected during an export", "path", q.R.URL.Path, "rows", e.rows)
		return e.writeAudit("export")
	case err != nil:
		q.V.Options.Logger.WarnContext(ctx, "viewer: export failed before its end", "path", q.R.URL.Path, "rows", e.rows, "error", err)
		rest = "the remaining rows could not be read; export again"
	}
	e.buf = e.w.end(e.buf, e.rows, rest)
	if err := e.writeAudit("export"); err != nil {
		return err
	}
	if e.flush() == nil && e.zip != nil {
		_ = e.zip.Close()
	}
	return nil
}

func (e *exporter) take(one exported) error {
	if e.slot.MustEnd() {
		return errRightsChanged
	}
	if e.rows == e.q.V.Options.ExportRows {
		return errFull
	}
	e.rows++
	if len(e.ids) < maxListedIDs {
		e.ids = append(e.ids, one.row.ID)
	}
	if e.buf = e.w.row(e.buf, one); len(e.buf) >= flushBytes {
		return e.flush()
	}
	return nil
}

func (e *exporter) setHeaders() {
	h := e.q.Reply.W.Header()
	h.Set("Content-Type", e.mime)
	h.Set("Content-Disposition", `attachment; filename="`+e.name+`"`)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Accept-Encoding, Authorization, Cookie")
	if page.IsGzipAccepted(e.q.R) {
		h.Set("Content-Encoding", "gzip")
	}
}

// flush sends the bytes collected so far. The export ends if the client does not receive them within writeTimeout.
func (e *exporter) flush() error {
	if !e.q.Reply.Started {
		if err := e.writeAudit("export begins"); err != nil {
			return err
		}
		e.setHeaders()
		if page.IsGzipAccepted(e.q.R) {
			zw, err := gzip.NewWriterLevel(e.q.Reply.W, gzip.BestSpeed)
			if err != nil {
				return fmt.Errorf("viewer: export: %w", err)
			}
			e.zip = zw
		}
		e.q.Reply.Started = true
		e.q.Reply.W.WriteHeader(http.StatusOK)
	}
	// An error means that this writer has no deadlines. The server's deadline then applies.
	_ = http.NewResponseController(e.q.Reply.W).SetWriteDeadline(e.q.V.Options.Now().Add(writeTimeout))
	err := error(nil)
	if e.zip != nil {
		_, err = e.zip.Write(e.buf)
	} else {
		_, err = e.q.Reply.W.Write(e.buf)
	}
	e.buf = e.buf[:0]
	if err != nil {
		return fmt.Errorf("viewer: export: %w", err)
	}
	return nil
}

// writeAudit writes an audit entry with the number of rows so far, unless the newest entry has the same number. It is
// called before the first bytes of an export are sent, and again before the last.
func (e *exporter) writeAudit(what string) error {
	if e.auditedRows == e.rows {
		return nil
	}
	e.auditedRows = e.rows
	// The log must contain rows that were sent, even if the client has closed the connection.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.q.Ctx), auditTimeout)
	defer cancel()
	entry := understudy.AuditEntry{Action: understudy.ActionExport, What: what, Values: e.values, IDs: e.ids, Rows: e.rows}
	return page.PrepareAudit(e.q, entry)(ctx)
}

// exportName returns the name of an exported file. It consists of the parts and the time of the export.
func exportName(q *page.Exchange, parts ...string) string {
	at := q.Clock.Start
	if !q.Clock.AsOf.At.IsZero() {
		at = q.Clock.AsOf.At
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, strings.Join(parts, "-"))
	return name + "-" + at.UTC().Format("20060102T150405Z") + q.DataFormat
}

// exportList exports a list of upstream. If the list can be composed from stored records, the export has all of them.
// Otherwise it has the first page of the list and the stored pages that follow it. An export sends no more requests
// to upstream than a page of the viewer does.
func (lv listing) exportList() error {
	columns := lv.columns()
	w, mime := newEncoder(lv.q, columns, false)
	e := &exporter{w: w, mime: mime, name: exportName(lv.q, lv.q.Source.Name, lv.q.Kind.Spec.Name)}
	e.values = page.FilterValues(lv.ask.target.List, lv.ask.target.Query)
	return exportRows(lv.q, e,
		func(ctx context.Context, take func(exported) error) (string, error) {
			if err := lv.q.Rights.Gate.CheckRead(lv.q.Rights.Caller, lv.ask.target); err != nil {
				return "", err
			}
			position := func(p understudy.Param) bool { return plan.IsPosition(lv.ask.list.PagingStyle, p.Name) }
			first, err := lv.q.Source.Spec.Resolve(lv.q.Source.Name, lv.ask.target.Key.Path(), lv.ask.query.Remove(position).String())
			if err != nil {
				return "", err
			}
			return walkList(ctx, lv.q, first, take)
		})
}

// walkList reads a list from its newest page to its end, and calls take for each record. rest says why records are
// missing; it is empty if none are.
func walkList(ctx context.Context, q *page.Exchange, t *spec.Target, take func(exported) error) (rest string, err error) {
	// unmade is the error that says why the list cannot be composed from records
	whole, end, unmade := q.Clock.AsOf.At.IsZero(), listEnd{}, error(nil)
	var pages cycle.Pages
	for first := true; ; first = false {
		r := q.ReadExportPage(ctx, t, whole, first)
		notComposed := errors.Is(r.Err, understudy.ErrNotMirrored) || errors.Is(r.Err, understudy.ErrNoStoredAnswer) ||
			errors.Is(r.Err, understudy.ErrInvalid) // if the request itself is wrong, the second attempt returns the same error
		if whole && first && notComposed { // the list cannot be composed from records, so its stored pages are read
			whole, unmade = false, r.Err
			r = q.ReadExportPage(ctx, t, whole, first)
		}
		switch {
		case r.Err != nil && first && !q.Clock.AsOf.At.IsZero():
			return "", page.ExplainPastError(q, r.Err)
		case r.Err != nil && first:
			return "", r.Err
		case errors.Is(r.Err, understudy.ErrNoStoredAnswer):
			return incompleteReason(q, unmade), nil
		case r.Err != nil:
			return "", r.Err
		case r.Answer.Page.Status != http.StatusOK:
			q.Answer = r.Answer
			return "", q.Rights.NewRefusal(q.Kind, q.Answer.Page.Status, r.View.Body)
		}
		if first {
			q.Answer = r.Answer // the access log shows where the first page came from
			if err := page.CheckReadable(r); err != nil {
				return "", err
			}
		}
		for _, row := range r.View.Rows() {
			if err := take(exported{q.Kind, row, nil}); err != nil {
				return "", err
			}
		}
		page := r.Answer.Page
		next := page.Next
		end.addPage(t.List, page)
		switch {
		case next.IsZero() && end.problem != "":
			return end.problem, nil
		case next.IsZero() && !q.Rights.CanCount(q.Kind) && end.unprovenEndReason(t, page) != "":
			// the complete reason could reveal how many records are hidden from the caller
			return "the list may continue after the last page stored here", nil
		case next.IsZero():
			return end.unprovenEndReason(t, page), nil
		case next == t.Key:
			return "upstream's link to the next page leads back to the same page", nil
		}
		if why := pages.EndlessReason(next.URI, idsOf(page)); why != "" {
			return "upstream's " + why, nil
		}
		if t, err = q.Source.Spec.Resolve(q.Source.Name, next.Path(), next.Query()); err != nil {
			return "", err
		}
	}
}

// incompleteReason returns why an export ends before the end of its list. unmade is the error that says why the list
// cannot be composed from records.
func incompleteReason(q *page.Exchange, unmade error) string {
	why := "can't be built from stored records"
	switch {
	case !q.Clock.AsOf.At.IsZero():
		return "the next page of the list was not stored at that time"
	// for callers that may not know the number of records, this reason could reveal how many are hidden
	case errors.Is(unmade, understudy.ErrNotMirrored) && q.Rights.CanCount(q.Kind):
		why = "can't be built from stored records yet: " +
			strings.TrimPrefix(understudy.PlainText(unmade), understudy.ErrNotMirrored.Error()+": ")
	}
	held := "is not stored here"
	if q.Rights.Caller.Grant != nil && q.Rights.Caller.Grant.MaxStale != nil {
		held += " or is older than your credential accepts"
	}
	return "the next page of the list " + held + " and an export requests only the first page from upstream; the list " + why
}

func idsOf(p *understudy.Page) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range p.Rows {
			if !yield(p.Rows[i].ID) {
				return
			}
		}
	}
}

// exportFound exports all records that a search finds, page by page. columns are the columns of a list. If they are
// nil, each row also has its kind, and a CSV file has a column for each of fields.
func exportFound(q *page.Exchange, name string, search query.SearchRequest, columns []*plan.Column, fields []string) error {
	w, mime := newEncoder(q, columns, columns == nil)
	if table, ok := w.(*csvEncoder); ok {
		table.fields = fields
	}
	e := &exporter{w: w, mime: mime, name: exportName(q, name), values: searchValues(search)}
	return exportRows(q, e, func(ctx context.Context, take func(exported) error) (string, error) {
		search.Limit, search.Facets = query.MaxHits, false
		window, rest := 0, ""
		picked := searchedIDs(search.Text)
		ofIDs := len(picked) > 0
		for {
			r, err := q.V.Options.Search.Find(ctx, q.Rights.Caller, search)
			if err != nil {
				return "", explainFailure(err)
			}
			if r.Window > 0 && r.More {
				window = r.Window
			}
			for _, h := range q.Rights.Hits(q.Ctx, r) {
				if err := take(exported{h.Kind, h.Row, h.SearchHit}); err != nil {
					return "", err
				}
				picked = slices.DeleteFunc(picked, func(id string) bool { return id == h.SearchHit.ID })
			}
			switch {
			case r.Next == "" && window > 0:
				rest = "only the newest " + page.Thousands(int64(window)) + " matches can be exported in this order; sort by time to export all"
				return rest, nil
			case r.Next == "" && ofIDs && len(picked) == 0:
				return "", nil // the search was for ids and has found all of them, so nothing can be missing
			case r.Next == "":
				return r.Incomplete, nil
			case r.Next == search.Cursor:
				return "", fmt.Errorf("viewer: export: a search is followed by itself")
			}
			search.Cursor = r.Next
		}
	})
}
