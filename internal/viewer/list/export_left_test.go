// Exports whose reader leaves.

package list_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

// leaving is a reader that leaves at the first piece of an answer.
type leaving struct {
	*httptest.ResponseRecorder
	leave context.CancelFunc
}

func (l leaving) Write(p []byte) (int, error) {
	l.leave()
	return l.ResponseRecorder.Write(p)
}

// durable keeps entries while somebody waits for them.
type durable struct{ all []understudy.AuditEntry }

func (d *durable) RecordAction(ctx context.Context, e understudy.AuditEntry) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", understudy.ErrNotAudited, ctx.Err())
	}
	d.all = append(d.all, e)
	return nil
}

// What a reader got of an export before it left is in the audit log, and no error is logged for it.
func TestAnExportThatItsReaderLeavesIsAudited(t *testing.T) {
	log, said := &durable{}, &bytes.Buffer{}
	h := viewertest.Open(t, func(o *page.Options) { o.Audit, o.Logger = log, slog.New(slog.NewTextHandler(said, nil)) })
	ctx, leave := context.WithCancel(t.Context())
	n := 0
	h.Mirror.Change = func(a request.Request, answer *request.Response) (*request.Response, error) {
		if a.Local != nil {
			return nil, fmt.Errorf("mirror: %w: nobody has walked it", understudy.ErrNotMirrored)
		}
		if n++; ctx.Err() != nil {
			return nil, ctx.Err()
		}
		turned, p := *answer, *answer.Page
		p.Next = understudy.Key{Source: "twilio", URI: fmt.Sprintf("%s?PageSize=50&Page=%d", p.Key.Path(), n)}
		turned.Page = &p
		return &turned, nil
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/twilio/calls.jsonl", nil)
	r.SetBasicAuth(viewertest.Account, "alltoken")
	h.Viewer.ServeHTTP(leaving{httptest.NewRecorder(), leave}, r)
	last := log.all[len(log.all)-1]
	checktest.Equal(t, last.What, "export", "the last entry is: last.What")
	checktest.True(t, last.Rows != 0, "the last entry is: last.Rows is 0")
	checktest.True(t, len(last.IDs) != 0, "the last entry is: len(last.IDs) is 0")
	if text := said.String(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "level=WARN") {
		t.Error(text)
	}
}
