// This file makes the server read its settings, secrets and users again, and says what that would change. It also restarts the server.

package diagnostics

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
)

// Reloaded is the response to POST /-/reload: the changes that need a restart.
type Reloaded struct {
	NeedRestart []string `json:"need_restart,omitempty"`
}

// reloadTimeout is the maximum time of a reload, including the commands that print secrets.
const reloadTimeout = 60 * time.Second

var errNoSettingsFile = fmt.Errorf("%w: this server has no settings file that can be read again", understudy.ErrNotFound)

// compare says what a reload or a restart would change. If the file is invalid, the status is 400.
func (d *Diagnostics) compare(ctx context.Context, _ understudy.Caller, _ *http.Request) (any, error) {
	if d.o.Compare == nil {
		return nil, errNoSettingsFile
	}
	changes, err := d.o.Compare(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", understudy.ErrInvalid, understudy.PlainText(err))
	}
	return changes, nil
}

// reload reads the settings again. If they are invalid, the status is 400 and the former settings stay valid.
func (d *Diagnostics) reload(ctx context.Context, c understudy.Caller, _ *http.Request) (any, error) {
	if d.o.Reload == nil {
		return nil, errNoSettingsFile
	}
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "reload"}
	if err := jsonapi.RecordAudit(ctx, d.o.Audit, c, e); err != nil {
		return nil, err
	}
	restart, err := d.o.Reload(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", understudy.ErrInvalid, understudy.PlainText(err))
	}
	return Reloaded{NeedRestart: restart}, nil
}

// restart begins a restart of the server. If the next program cannot start, the status is 400 and the server goes on.
func (d *Diagnostics) restart(ctx context.Context, c understudy.Caller, _ *http.Request) (any, error) {
	if d.o.Restart == nil {
		return nil, fmt.Errorf("%w: this server can't restart itself", understudy.ErrNotFound)
	}
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "restart"}
	if err := jsonapi.RecordAudit(ctx, d.o.Audit, c, e); err != nil {
		return nil, err
	}
	if err := d.o.Restart(ctx); err != nil {
		return nil, fmt.Errorf("%w: %s", understudy.ErrInvalid, understudy.PlainText(err))
	}
	return nil, nil
}
