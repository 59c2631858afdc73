// The export of audit entries as a CSV file.

package trail

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/audit"
	"understudy/internal/viewer/page"
	"understudy/kit/csvline"
)

// csvPath is the path of the file.
const csvPath = Path + page.CsvSuffix

// writeTimeout is how long a client may take to receive the audit entries that one read of the log has found.
const writeTimeout = 30 * time.Second

var csvHeads = []string{"at", "caller", "role", "action", "what", "source", "kind", "ids", "rows", "request", "status", "count"}

// serveCSV sends the audit entries that match the filters, newest first. The limits of exports apply.
func serveCSV(q *page.Exchange) error {
	_, f, err := readFilters(q)
	if err != nil {
		return err
	}
	under, err := q.V.Options.Exports.Begin(q.Rights.Caller)
	if err != nil {
		return &page.Problem{Title: "Too many exports are running", Hint: "Try again when one of them has ended.",
			Kind: understudy.ErrUnavailable}
	}
	defer under.End()
	ctx, cancel := context.WithTimeout(q.Ctx, q.V.Options.ExportTime)
	defer cancel()
	if err := page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionExport, What: whatLog}); err != nil {
		return err
	}
	f.Limit = audit.MaxFound
	found, err := q.V.Options.Trail.Search(ctx, f)
	if err != nil {
		return err
	}
	h := q.Reply.W.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", `attachment; filename="audit-`+q.Clock.Start.UTC().Format("20060102T150405Z")+`.csv"`)
	h.Set("Cache-Control", "private, no-store")
	q.Reply.Started = true
	buf, rows := csvline.Append(nil, csvHeads), 0
	for {
		for i := range found.Entries {
			buf = csvline.Append(buf, cellsOf(&found.Entries[i]))
		}
		rows += len(found.Entries)
		rest := ""
		switch {
		case found.Next == "":
		case rows >= q.V.Options.ExportRows:
			rest = "an export has " + page.Thousands(int64(q.V.Options.ExportRows)) + " rows at most"
		case under.MustEnd():
			rest = "your access rights changed during the export; export again"
		default:
			if err := send(q, &buf); err != nil {
				return nil // the client has closed the connection
			}
			f.Before = found.Next
			if found, err = q.V.Options.Trail.Search(ctx, f); err == nil && ctx.Err() == nil {
				continue
			}
			rest = "the remaining rows could not be read; export again"
		}
		if rest != "" {
			buf = csvline.Append(buf, []string{"# not complete after " + strconv.Itoa(rows) + " rows: " + rest})
		}
		_ = send(q, &buf) // an error means that the client has closed the connection
		return nil
	}
}

// send sends the lines that have been collected so far.
func send(q *page.Exchange, buf *[]byte) error {
	// an error means that this writer has no deadlines; the server's deadline then applies
	_ = http.NewResponseController(q.Reply.W).SetWriteDeadline(q.V.Options.Now().Add(writeTimeout))
	_, err := q.Reply.W.Write(*buf)
	*buf = (*buf)[:0]
	return err
}

// cellsOf returns an audit entry as a line of the CSV file.
func cellsOf(e *audit.Entry) []string {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	cells := []string{e.At.UTC().Format(time.RFC3339Nano), e.Caller, e.Role, string(e.Action), e.What, e.Source, e.Kind,
		strings.Join(e.IDs, " "), number(e.Rows), e.Request, number(int64(e.Status)), number(e.Count)}
	for i := range cells {
		cells[i] = csvline.EscapeFormulas(cells[i])
	}
	return cells
}
