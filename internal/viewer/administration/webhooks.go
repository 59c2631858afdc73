// The state of the webhooks that receive changes, and the forms that pause and resume a webhook.

package administration

import (
	"errors"
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/request"
)

// webhookView is the state of one webhook.
type webhookView struct {
	Webhook             request.Webhook
	Title, Tone, Action string
	Pause               string // the address of the form that pauses the webhook; empty if it is paused already
	Since, Last         *page.When
}

func webhook(q *page.Exchange, w request.Webhook) webhookView {
	out := webhookView{Webhook: w, Title: w.Source, Since: q.Clock.Moment(w.Failing), Last: q.Clock.Moment(w.At),
		Tone: page.WebhookTone(w.State), Action: Path + "/webhooks/" + w.Name + "/resume"}
	if w.State != "paused" {
		out.Pause = Path + "/webhooks/" + w.Name + "/pause"
	}
	if s := q.V.ByName[w.Source]; s != nil {
		out.Title = s.Spec.Title
	}
	return out
}

// resumeWebhook handles the form that resumes a webhook. The webhook continues where it stopped, or after the change
// whose number is in the form.
func resumeWebhook(q *page.Exchange) error {
	if err := checkWebhooks(q); err != nil {
		return err
	}
	name, what := q.R.PathValue("name"), "webhook resume"
	said := "The webhook " + name + " is running again."
	var after *int64
	if text := strings.TrimSpace(q.R.PostFormValue("after")); text != "" {
		n, err := strconv.ParseInt(strings.NewReplacer(",", "", "\u202f", "").Replace(text), 10, 64)
		if err != nil || n < 0 {
			return page.NewBadRequest("“"+understudy.Clip(text)+"” is not the number of a change",
				"Write 0 or more. 0 sends everything again.", nil)
		}
		after, what = &n, "webhook replay after "+strconv.FormatInt(n, 10)+" of"
		said = "The webhook " + name + " sends everything after change " + strconv.FormatInt(n, 10) + " again."
	}
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: what + " " + understudy.Clip(name)}
	if err := page.WriteAudit(q, e); err != nil {
		return err
	}
	switch err := q.V.Options.Webhooks.Resume(q.Ctx, name, after); {
	case errors.Is(err, understudy.ErrNotFound):
		return newNoWebhook(name)
	case errors.Is(err, understudy.ErrInvalid):
		return page.NewBadRequest("The webhook can't continue from there", page.Sentence(err), nil)
	case err != nil:
		return err
	}
	q.RedirectBack(Path+"#webhooks", said)
	return nil
}

// pauseWebhook handles the form that pauses a webhook until somebody resumes it.
func pauseWebhook(q *page.Exchange) error {
	if err := checkWebhooks(q); err != nil {
		return err
	}
	name := q.R.PathValue("name")
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "webhook pause " + understudy.Clip(name)}
	if err := page.WriteAudit(q, e); err != nil {
		return err
	}
	err := q.V.Options.Webhooks.Pause(q.Ctx, name, q.Rights.Caller.Name)
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		return newNoWebhook(name)
	case err != nil:
		return err
	}
	q.RedirectBack(Path+"#webhooks", "The webhook "+name+" is paused. Changes wait until you resume it.")
	return nil
}

func checkWebhooks(q *page.Exchange) error {
	if q.V.Options.Webhooks == nil {
		return page.NewNotFound("No webhooks are set up", "See docs/reference/feed.md for how to add one.", Path)
	}
	return nil
}

func newNoWebhook(name string) error {
	return page.NewNotFound("There is no webhook "+understudy.Clip(name), "See the list of webhooks.", Path)
}
