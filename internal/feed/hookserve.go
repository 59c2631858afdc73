// Hook routes: the state of webhooks, and pausing or resuming one.

package feed

import (
	"context"
	"net/http"

	"understudy"
	"understudy/internal/jsonapi"
	"understudy/request"
)

// maxCommand bounds the body of a command, in bytes.
const maxCommand = 4 << 10

// listHooks answers with the state of every webhook.
func (f *Feed) listHooks(context.Context, understudy.Caller, *http.Request) (any, error) {
	return struct {
		Webhooks []request.Webhook `json:"webhooks"`
	}{f.Webhooks()}, nil
}

// hookCommand is the body of a request that resumes a webhook: {"after":N} from behind that change,
// {} from its position. {"pause":true} pauses it.
type hookCommand struct {
	After *int64 `json:"after"`
	Pause bool   `json:"pause"`
}

// commandHook pauses or resumes a webhook.
func (f *Feed) commandHook(ctx context.Context, c understudy.Caller, r *http.Request, command *hookCommand) (any, error) {
	if command.Pause && command.After != nil {
		return nil, invalid("a webhook is paused, or sent what came after a change; write one of pause and after")
	}
	name, what := r.PathValue("name"), "webhook resume "
	if command.Pause {
		what = "webhook pause "
	}
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: what + understudy.Clip(name)}
	err := jsonapi.Audit(ctx, f.o.Audit, c, e)
	switch {
	case err != nil:
	case command.Pause:
		err = f.Pause(ctx, name, c.Name)
	default:
		err = f.Resume(ctx, name, command.After)
	}
	if err != nil {
		return nil, err
	}
	for _, s := range f.Webhooks() {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, nil
}
