// This file serves the routes that show the state of webhooks, and pause, resume or test a webhook.

package feed

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
	"understudy/internal/outbox"
	"understudy/internal/publish"
	"understudy/kit/jsonspan"
	"understudy/request"
)

// maxCommandBytes is the maximum size of a command's body, in bytes.
const maxCommandBytes = 4 << 10

// listHooks answers with the state of every webhook.
func (f *Feed) listHooks(context.Context, understudy.Caller, *http.Request) (any, error) {
	return struct {
		Webhooks []request.Webhook `json:"webhooks"`
	}{f.Webhooks()}, nil
}

// hookCommand is the body of a command to a webhook. {"after":N} resumes deliveries after change N, and {} at the
// saved position. {"pause":true} pauses the webhook. {"test":true} sends a test message.
type hookCommand struct {
	After *int64 `json:"after"`
	Pause bool   `json:"pause"`
	Test  bool   `json:"test"`
}

// HookTest is the result of a test message.
type HookTest struct {
	Webhook      string `json:"webhook"`
	Delivered    bool   `json:"delivered"`        // whether the receiver answered with a 2xx status
	Status       int    `json:"status,omitempty"` // the status of the receiver's answer; 0 if there was no answer
	Milliseconds int64  `json:"milliseconds"`
	Why          string `json:"why,omitempty"` // why the message was not delivered
}

// sendTest sends a signed message of the type "test" to a webhook, even if the webhook is paused. It changes neither
// the position nor the state. It returns ErrNotFound for an unknown name.
func (f *Feed) sendTest(ctx context.Context, name string) (*HookTest, error) {
	one := f.hooks.get(name)
	if one == nil {
		return nil, fmt.Errorf("feed: %w: no webhook is called %q", understudy.ErrNotFound, understudy.Clip(name))
	}
	began := f.o.Now()
	id := outbox.MessageID(f.places.key, "test\x00%s\x00%d", name, began.UnixNano()).ShortString()
	body := fmt.Sprintf(`{"type":"test","timestamp":%q,"data":{"webhook":%s,"source":%s}}`, began.UTC().Format(time.RFC3339Nano),
		jsonspan.Quote(nil, name), jsonspan.Quote(nil, one.settings.Source))
	answer, err := one.send(ctx, id, []byte(body), []publish.Message{{ID: id, Key: "test", At: began, Data: []byte(body)}})
	result := &HookTest{Webhook: name, Delivered: err == nil, Status: answer.Status, Milliseconds: f.o.Now().Sub(began).Milliseconds()}
	if err != nil {
		result.Why = understudy.PlainText(err)
	}
	return result, nil
}

// handleCommand pauses, resumes or tests a webhook.
func (f *Feed) handleCommand(ctx context.Context, c understudy.Caller, r *http.Request, command *hookCommand) (any, error) {
	if command.Pause && command.After != nil || command.Test && (command.Pause || command.After != nil) {
		return nil, newInvalid("write only one of pause, after and test")
	}
	name, what := r.PathValue("name"), "webhook resume "
	switch {
	case command.Pause:
		what = "webhook pause "
	case command.Test:
		what = "webhook test "
	}
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: what + understudy.Clip(name)}
	err := jsonapi.RecordAudit(ctx, f.o.Audit, c, e)
	switch {
	case err != nil:
	case command.Test:
		return f.sendTest(ctx, name)
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
