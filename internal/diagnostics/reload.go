// Reload: has the server read its settings, secrets and users again.

package diagnostics

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
)

// Reloaded is the answer of POST /-/reload: what waits for a restart.
type Reloaded struct {
	NeedRestart []string `json:"need_restart,omitempty"`
}

// reloadTime bounds the reading: a secret may be the output of a command.
const reloadTime = 60 * time.Second

// reload reads the settings again. It answers 400 when they are wrong; then the former ones stay.
func (d *Diagnostics) reload(ctx context.Context, c understudy.Caller, _ *http.Request) (any, error) {
	if d.o.Reload == nil {
		return nil, fmt.Errorf("%w: this server has no settings file that can be read again", understudy.ErrNotFound)
	}
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "reload"}
	if err := jsonapi.Audit(ctx, d.o.Audit, c, e); err != nil {
		return nil, err
	}
	restart, err := d.o.Reload(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", understudy.ErrInvalid, understudy.PlainText(err))
	}
	return Reloaded{NeedRestart: restart}, nil
}
