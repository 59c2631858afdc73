// Hook routes: the state of webhooks, and pausing or resuming one.

package feed

import (
	"mime"
	"net/http"

	"understudy"
	"understudy/kit/jsonhttp"
	"understudy/request"
)

// maxCommand bounds the body of a command, in bytes.
const maxCommand = 4 << 10

// listHooks answers with the state of every webhook.
func (f *Feed) listHooks(w http.ResponseWriter, r *http.Request) {
	if _, err := f.mayCommand(r); err != nil {
		f.refuse(w, r, err)
		return
	}
	jsonhttp.Write(w, http.StatusOK, struct {
		Webhooks []request.Webhook `json:"webhooks"`
	}{f.Webhooks()})
}

// commandHook resumes a webhook: {"after":N} from behind that change, {} from its position.
// {"pause":true} pauses it.
func (f *Feed) commandHook(w http.ResponseWriter, r *http.Request) {
	c, err := f.mayCommand(r)
	if err != nil {
		f.refuse(w, r, err)
		return
	}
	var command struct {
		After *int64 `json:"after"`
		Pause bool   `json:"pause"`
	}
	// A form of another site cannot send this type without asking first.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		f.refuse(w, r, invalid("the body must be application/json"))
		return
	}
	if err := jsonhttp.Read(w, r, maxCommand, &command); err != nil {
		f.refuse(w, r, invalid(`the body is not what is expected, {"after":N}, {"pause":true} or {}: %w`, understudy.Plain(err)))
		return
	}
	if command.Pause && command.After != nil {
		f.refuse(w, r, invalid("a webhook is paused, or sent what came after a change; write one of pause and after"))
		return
	}
	name, what := r.PathValue("name"), "webhook resume "
	if command.Pause {
		what = "webhook pause "
	}
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: what + understudy.Clip(name)}
	if err := f.audit(r, c, e); err != nil {
		f.refuse(w, r, err)
		return
	}
	if command.Pause {
		err = f.Pause(r.Context(), name, c.Name)
	} else {
		err = f.Resume(r.Context(), name, command.After)
	}
	if err != nil {
		f.refuse(w, r, err)
		return
	}
	for _, s := range f.Webhooks() {
		if s.Name == name {
			jsonhttp.Write(w, http.StatusOK, s)
			return
		}
	}
}
