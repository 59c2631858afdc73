// Export: every record of a list or a search, as CSV, JSON or JSON lines, sent
// while it is read: memory holds one page of it at a time.

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

// The pieces of an export.
const (
	piece      = 64 << 10         // bytes that are sent at once
	readerTime = 30 * time.Second // for the reader to take them
	auditTime  = 10 * time.Second // for an entry of the audit log
)

// supply gives the records of an export one after another. rest says why there
// are more than it gave, "" when there are none.
type supply func(ctx context.Context, take func(exported) error) (rest string, err error)

// exported is one record of an export.
type exported struct {
	kind *plan.Kind
	row  access.Row
	hit  *query.SearchHit // nil: it was not searched for
}

// encoder is how an export is written: what comes first, each row, and what
// comes last; rest is not empty when rows are missing.
type encoder interface {
	begin(dst []byte) []byte
	row(dst []byte, one exported) []byte
	end(dst []byte, rows int, rest string) []byte
}

// errEnough ends a supply whose rows are as many as an export may have, errOver
// one of whose caller another policy decides otherwise.
var (
	errEnough = errors.New("viewer: the export is full")
	errOver   = errors.New("viewer: what the caller may see has changed")
)

// exporter writes one export.
type exporter struct {
	q    *page.Exchange
	w    encoder
	mime string
	name string // of the file
	buf  []byte
	zip  *gzip.Writer
	rows int

	values []string // for the audit log: what it was searched or filtered by
	ids    []string // of the first records
	listed int      // rows that its newest entry tells of; -1: it has none
	under  *export.Export
}

// mostListed bounds the ids of an entry.
const mostListed = 100

// encoderOf is how a form of data is written. columns are those of a list; of a
// search of several kinds there are none, and each row is whole.
func encoderOf(q *page.Exchange, columns []*plan.Column, kinds bool) (w encoder, mime string) {
	switch q.Data {
	case page.CsvSuffix:
		return &csvEncoder{q: q, columns: columns, kinds: kinds}, "text/csv; charset=utf-8; header=present"
	case page.LinesSuffix:
		return &linesEncoder{columns: columns, kinds: kinds}, "application/jsonl; charset=utf-8"
	}
	return &jsonEncoder{linesEncoder: linesEncoder{columns: columns, kinds: kinds}}, "application/json"
}

// exportRows sends everything a supply gives. As long as nothing has gone out an
// error is an error page; afterwards it is a mark at the end of the file.
func exportRows(q *page.Exchange, e *exporter, from supply) error {
	under, err := q.V.Options.Exports.Begin(q.Rights.Caller)
	switch {
	case errors.Is(err, limiter.ErrEach):
		return &page.Problem{Title: "You have too many exports under way", Hint: "Try again when one of them has ended.",
			Kind: understudy.ErrUnavailable}
	case err != nil:
		return &page.Problem{Title: "Too many exports are under way", Hint: "Try again when one of them has ended.",
			Kind: understudy.ErrUnavailable}
	}
	defer under.End()
	e.q, e.under, e.listed = q, under, -1
	ctx, cancel := context.WithTimeout(q.R.Context(), q.V.Options.ExportTime)
	defer cancel()
	if q.R.Method == http.MethodHead { // as GET begins
		if _, err := from(ctx, func(exported) error { return errEnough }); err != nil && err != errEnough {
			return err
		}
		if err := e.audit("export begins"); err != nil {
			return err
		}
		e.head()
		q.Reply.W.WriteHeader(http.StatusOK)
		return nil
	}
	e.buf = e.w.begin(make([]byte, 0, piece+piece/4))
	rest, err := from(ctx, e.take)
	switch {
	case err == errEnough:
		rest = fmt.Sprintf("an export has %s rows at most", page.Thousands(int64(q.V.Options.ExportRows)))
	case err == errOver:
		rest = "what you may see has changed meanwhile; export it again"
	case err != nil && !q.Reply.Sent:
		return err
	case q.R.Context().Err() != nil:
		q.V.Options.Logger.InfoContext(ctx, "viewer: the reader of an export has left", "path", q.R.URL.Path, "rows", e.rows)
		return e.audit("export")
	case err != nil:
		q.V.Options.Logger.WarnContext(ctx, "viewer: export broken off", "path", q.R.URL.Path, "rows", e.rows, "error", err)
		rest = "reading on failed"
	}
	e.buf = e.w.end(e.buf, e.rows, rest)
	if err := e.audit("export"); err != nil {
		return err
	}
	e.finish()
	return nil
}

func (e *exporter) take(one exported) error {
	if e.under.MustEnd() {
		return errOver
	}
	if e.rows == e.q.V.Options.ExportRows {
		return errEnough
	}
	e.rows++
	if len(e.ids) < mostListed {
		e.ids = append(e.ids, one.row.ID)
	}
	if e.buf = e.w.row(e.buf, one); len(e.buf) >= piece {
		return e.flush()
	}
	return nil
}

// head sets what goes before the first byte.
func (e *exporter) head() {
	h := e.q.Reply.W.Header()
	h.Set("Content-Type", e.mime)
	h.Set("Content-Disposition", `attachment; filename="`+e.name+`"`)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Accept-Encoding, Authorization, Cookie")
	if page.AcceptsGzip(e.q.R) {
		h.Set("Content-Encoding", "gzip")
	}
}

// flush sends what is written so far. A reader that does not take it in time
// ends the export.
func (e *exporter) flush() error {
	if !e.q.Reply.Sent {
		if err := e.audit("export begins"); err != nil {
			return err
		}
		e.head()
		if page.AcceptsGzip(e.q.R) {
			zw, err := gzip.NewWriterLevel(e.q.Reply.W, gzip.BestSpeed)
			if err != nil {
				return fmt.Errorf("viewer: export: %w", err)
			}
			e.zip = zw
		}
		e.q.Reply.Sent = true
		e.q.Reply.W.WriteHeader(http.StatusOK)
	}
	// A writer that knows no deadline has the server's.
	_ = http.NewResponseController(e.q.Reply.W).SetWriteDeadline(e.q.V.Options.Now().Add(readerTime))
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

// audit lists the export, with the rows so far, unless its newest entry tells of them.
// One that is sent in pieces is listed before its first piece and before its last.
func (e *exporter) audit(what string) error {
	if e.listed == e.rows {
		return nil
	}
	e.listed = e.rows
	// A reader who leaves has got rows all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.q.Ctx), auditTime)
	defer cancel()
	entry := understudy.AuditEntry{Action: understudy.ActionExport, What: what, Values: e.values, IDs: e.ids, Rows: e.rows}
	return page.AuditLater(e.q, entry)(ctx)
}

// finish sends the rest. A reader who has gone gets none.
func (e *exporter) finish() {
	if e.flush() == nil && e.zip != nil {
		_ = e.zip.Close()
	}
}

// exportName is an export's name: what it is of, and of when.
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
	return name + "-" + at.UTC().Format("20060102T150405Z") + q.Data
}

// exportList sends a list of upstream's. What is composed from records is sent
// whole; else the page the address means, and those after it that are held:
// upstream is asked for no more than a page of the viewer asks for.
func (lv listing) exportList() error {
	columns := lv.chosen()
	w, mime := encoderOf(lv.q, columns, false)
	e := &exporter{w: w, mime: mime, name: exportName(lv.q, lv.q.Source.Name, lv.q.Kind.Spec.Name)}
	e.values = page.FilterValues(lv.ask.target.List, lv.ask.target.Query)
	return exportRows(lv.q, e,
		func(ctx context.Context, take func(exported) error) (string, error) {
			if err := lv.q.Rights.Gate.Read(lv.q.Rights.Caller, lv.ask.target); err != nil {
				return "", err
			}
			position := func(p understudy.Param) bool { return plan.IsPosition(lv.ask.list.PagingStyle, p.Name) }
			first, err := lv.q.Source.Spec.Target(lv.q.Source.Name, lv.ask.target.Key.Path(), lv.ask.query.Without(position).String())
			if err != nil {
				return "", err
			}
			return walkList(ctx, lv.q, first, take)
		})
}

// walkList reads a list from its newest page on.
func walkList(ctx context.Context, q *page.Exchange, t *spec.Target, take func(exported) error) (rest string, err error) {
	whole, end, unmade := q.Clock.AsOf.At.IsZero(), listEnd{}, error(nil) // unmade: why the list is not made from records
	var pages cycle.Pages
	for first := true; ; first = false {
		r := q.ReadOn(ctx, t, whole, first)
		notComposed := errors.Is(r.Err, understudy.ErrNotMirrored) || errors.Is(r.Err, understudy.ErrNotHeld) ||
			errors.Is(r.Err, understudy.ErrInvalid) // or the request is wrong: then it is refused again
		if whole && first && notComposed { // of a list that cannot be composed what is held is sent
			whole, unmade = false, r.Err
			r = q.ReadOn(ctx, t, whole, first)
		}
		switch {
		case r.Err != nil && first && !q.Clock.AsOf.At.IsZero():
			return "", page.RefusedThen(q, r.Err)
		case r.Err != nil && first:
			return "", r.Err
		case errors.Is(r.Err, understudy.ErrNotHeld):
			return nextNotHeld(q, unmade), nil
		case r.Err != nil:
			return "", r.Err
		case r.Answer.Page.Status != http.StatusOK:
			q.Answer = r.Answer
			return "", q.Rights.Refused(q.Kind, q.Answer.Page.Status, r.View.Body)
		}
		if first {
			q.Answer = r.Answer // for the access log
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
		end.saw(t.List, page)
		switch {
		case next.Zero() && end.lost != "":
			return end.lost, nil
		case next.Zero() && !q.Rights.Counts(q.Kind) && end.open(t, page) != "":
			return "the list may go on behind its last page here", nil // the reason may count what is hidden
		case next.Zero():
			return end.open(t, page), nil
		case next == t.Key:
			return "upstream's next link leads to its own page", nil
		}
		if why := pages.EndlessReason(next.URI, idsOf(page)); why != "" {
			return "upstream's " + why, nil
		}
		if t, err = q.Source.Spec.Target(q.Source.Name, next.Path(), next.Query()); err != nil {
			return "", err
		}
	}
}

// nextNotHeld says why an export ends before a page of its list. unmade is why the list is not made from records.
func nextNotHeld(q *page.Exchange, unmade error) string {
	why := "cannot be made from records"
	switch {
	case !q.Clock.AsOf.At.IsZero():
		return "the next page of the list is not kept as it was then"
	case errors.Is(unmade, understudy.ErrNotMirrored) && q.Rights.Counts(q.Kind): // else the reason may count what is hidden
		why = "is not made from records: " + strings.TrimPrefix(understudy.PlainText(unmade), understudy.ErrNotMirrored.Error()+": ")
	}
	held := "is not held here"
	if q.Rights.Caller.Grant != nil && q.Rights.Caller.Grant.MaxStale != nil {
		held += " or is older than you may get"
	}
	return "the next page of the list " + held + " and upstream is asked for the first one alone; the list " + why
}

// idsOf are the ids of a page's records.
func idsOf(p *understudy.Page) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range p.Rows {
			if !yield(p.Rows[i].ID) {
				return
			}
		}
	}
}

// exportFound sends everything a search finds, page by page. columns are those of
// a list; without them rows say of which kind they are, and as CSV have the fields.
func exportFound(q *page.Exchange, name string, search query.SearchRequest, columns []*plan.Column, fields []string) error {
	w, mime := encoderOf(q, columns, columns == nil)
	if table, ok := w.(*csvEncoder); ok {
		table.fields = fields
	}
	e := &exporter{w: w, mime: mime, name: exportName(q, name), values: valuesOf(search)}
	return exportRows(q, e, func(ctx context.Context, take func(exported) error) (string, error) {
		search.Limit, search.Facets = query.MostHits, false
		window, rest := 0, ""
		picked := pickedIDs(search.Text)
		ofIDs := len(picked) > 0
		for {
			r, err := q.V.Options.Search.Find(ctx, q.Rights.Caller, search)
			if err != nil {
				return "", searchFailed(err)
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
				rest = "only the newest " + page.Thousands(int64(window)) + " matches can be had in this order"
				return rest, nil
			case r.Next == "" && ofIDs && len(picked) == 0:
				return "", nil // what was picked came, whatever else is not held
			case r.Next == "":
				return r.Unheld, nil
			case r.Next == search.Cursor:
				return "", fmt.Errorf("viewer: export: a search is followed by itself")
			}
			search.Cursor = r.Next
		}
	})
}
