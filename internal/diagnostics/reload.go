// Reload: has the server read its settings, secrets and users again.

package diagnostics

import (
	"context"
	"net/http"
	"time"

	"understudy"
	"understudy/kit/jsonhttp"
)

// Reloaded is the answer of POST /-/reload: what waits for a restart.
type Reloaded struct {
	NeedRestart []string `json:"need_restart,omitempty"`
}

// reloadTime bounds the reading: a secret may be the output of a command.
const reloadTime = 60 * time.Second

// reload takes a command from this machine with the token of run.json. It answers 400
// when the settings are wrong; then the former ones stay.
func (d *Diagnostics) reload(w http.ResponseWriter, r *http.Request) {
	if !d.ours(w, r) {
		return
	}
	if d.o.Reload == nil {
		jsonhttp.Error(w, http.StatusNotFound, "this server has no settings file that can be read again")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), reloadTime)
	defer cancel()
	if err := d.audit(r, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "reload"}); err != nil {
		jsonhttp.Error(w, understudy.OwnStatus(err), understudy.PlainText(err))
		return
	}
	restart, err := d.o.Reload(ctx)
	if err != nil {
		jsonhttp.Error(w, http.StatusBadRequest, understudy.PlainText(err))
		return
	}
	jsonhttp.Write(w, http.StatusOK, Reloaded{NeedRestart: restart})
}
