// Audit: the log of what callers do, and how it is joined to the application.

package app

import (
	"context"
	"os"
	"time"

	"understudy"
	"understudy/internal/audit"
	"understudy/internal/proxy"
	"understudy/internal/viewer/page"
)

// audits joins the audit log to the application.
type audits struct{ *App }

// open makes the audit log of the data folder, which its first entry opens.
func (h audits) open(ctx context.Context, b Options) error {
	if b.Settings.Audit.Off {
		return nil
	}
	o, err := b.Settings.AuditOptions(ctx, b.Dir.Path, b.Secrets)
	if err != nil {
		return err
	}
	o.Now, o.Logger = time.Now, h.log
	if b.Headless || b.Offline {
		o.Send = audit.SendOptions{} // the server sends it
	}
	o.Send.KV = h.db
	o.Send.Host, _ = os.Hostname() // without a name none is said
	h.audit = audit.New(o)
	h.closers = append(h.closers, h.audit.Close)
	return nil
}

// auditor is what handlers ask; nil: nothing is listed.
func (h audits) auditor() proxy.Auditor {
	if h.audit == nil {
		return nil
	}
	return h.audit
}

// hungUp lists that a signal has the settings read again.
func (h audits) hungUp(ctx context.Context) error {
	if h.audit == nil {
		return nil
	}
	return h.audit.Audit(ctx, understudy.AuditEntry{Caller: understudy.Caller{Name: "SIGHUP"}, Action: understudy.ActionAdminister,
		What: "reload"})
}

// trail is the log, read; nil: nothing is listed.
func (h audits) trail() page.Trail {
	if h.audit == nil {
		return nil
	}
	return h.audit
}
