// The form of an action: it runs the action once and shows the result.

package actions

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"understudy"
	"understudy/internal/actions"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/kit/charset"
	"understudy/spec"
)

// maxValue is the maximum size in bytes of one value in the form.
const maxValue = 16 << 10

// The values of the form field step.
const (
	stepReview = "review"
	stepDo     = "do"
)

// askPage is the data of the template action.html, which shows the form, or the values in the form for confirmation.
type askPage struct {
	Kind, KindHref string // the title and the address of the list to which the page belongs
	Record         string // the short id of the record to which the link Back leads; empty if it leads to a list
	Path, Back     string // the address of the page itself, and of the link Back
	Title, Warning string
	Key            string
	Facts          []page.Cell
	Inputs         []input
	Review         bool // whether the page shows the values for confirmation and has no inputs
	Refusal        *refusal
	Waiting        bool // whether the action is still running
	Destructive    bool
	Step           bool // whether the next page shows the values for confirmation
}

// input is an input of the form with its value.
type input struct {
	ID, Name, Label, Value string
	Type                   string // the type of the input: tel, text, area or select
	Options                []option
	GSM, Double            string // the characters that take one septet and two septets in an SMS, for the script that counts segments
	Required               bool
	Wrong                  string
	Shown                  page.Cell // the value as the page for confirmation shows it
}

// option is a phone number in a menu, and its text.
type option struct{ Value, Text string }

// refusal is the error with which upstream refused an action.
type refusal struct {
	Title, Words string
	Reason       *plan.Reason
}

// render shows the page of a task with its current values.
func (t *task) render(status int, p askPage) error {
	p.Kind, p.KindHref, p.Record, p.Path, p.Back = t.subjectLink.Text, t.subjectLink.Href, page.ShortID(t.record), t.path, t.back
	p.Title, p.Warning, p.Destructive = t.words.title, t.words.warning, t.words.isFinal
	if p.Inputs == nil {
		p.Inputs = t.inputs(nil)
	}
	p.Step = len(t.fields) > 0 && !p.Review
	if p.Waiting {
		t.q.Reply.W.Header().Set("Retry-After", "5")
	}
	return t.q.Render(status, "action", t.words.title, p)
}

// inputs returns the inputs of the form with their values. wrong has the errors in the values, by the name of the field.
func (t *task) inputs(wrong map[string]string) (all []input) {
	var own []option
	for _, f := range t.fields {
		field, column := t.q.Kind.Spec.Field(f.Field), t.q.Kind.ByField[f.Field]
		in := input{ID: "f-" + f.Name, Name: f.Name, Label: column.Heading, Value: t.values[f.Name], Type: "text", Required: !f.Optional,
			Wrong: wrong[f.Name]}
		switch {
		case field.SMS || field.Class == spec.ClassBody:
			in.Type = "area"
		case f.Own:
			if own == nil {
				for _, number := range ownNumbers(t.q) {
					own = append(own, option{number, plan.GroupPhone(number)})
				}
			}
			in.Type, in.Options = "tel", own
			if len(own) > 0 && (in.Value == "" || slices.ContainsFunc(own, func(o option) bool { return o.Value == in.Value })) {
				in.Type = "select"
			}
		case field.Class == spec.ClassPhone:
			in.Type = "tel"
		}
		in.Shown = page.Cell{Label: in.Label, Text: in.Value, Prose: in.Type == "area"}
		if field.Class == spec.ClassPhone {
			in.Shown.Text = plan.GroupPhone(in.Value)
		}
		if field.SMS {
			in.GSM, in.Double = charset.GSM7, charset.GSM7Extension
			page.DrawSegments(&in.Shown)
		}
		all = append(all, in)
	}
	return all
}

// runTask runs the task if the form has no errors. Otherwise it shows the form again.
func runTask(t *task) error {
	q := t.q
	if err := q.R.ParseForm(); err != nil {
		return errInvalidForm
	}
	key := q.R.PostForm.Get("key")
	if !isValidKey(key) {
		return &page.Problem{Title: "This form is not valid", Hint: "Start again from the page of the action.", Href: t.path,
			Link: "Start again", Kind: understudy.ErrInvalid}
	}
	wrong := t.fill()
	switch {
	case len(wrong) > 0:
		return t.render(http.StatusUnprocessableEntity, askPage{Key: key, Inputs: t.inputs(wrong)})
	case len(t.fields) > 0 && q.R.PostForm.Get("step") != stepDo:
		return t.render(http.StatusOK, askPage{Key: key, Review: q.R.PostForm.Get("step") == stepReview})
	}
	result, err := q.V.Options.Actions.RunOnce(q.Ctx, q.Rights.Caller.Name, t.claim(key), t.doer.Prepare(t))
	return t.answer(result, err, key)
}

// claim returns the name under which the work is done at most once. It contains the values, so that different values
// make different work.
func (t *task) claim(key string) string {
	name := t.q.Source.Name + "\x00" + t.words.name + "\x00" + key
	for _, f := range t.fields {
		name += "\x00" + t.values[f.Name]
	}
	return name
}

// fill reads the values of the form. It returns the errors in them, by the name of the field.
func (t *task) fill() (wrong map[string]string) {
	wrong = map[string]string{}
	for _, f := range t.fields {
		v := strings.ReplaceAll(t.q.R.PostForm.Get(f.Name), "\r\n", "\n") // browsers end lines in a form with CRLF
		if t.q.Kind.Spec.Field(f.Field).Class != spec.ClassBody {
			v = strings.TrimSpace(v)
		}
		t.values[f.Name] = v
		switch {
		case v == "" && !f.Optional:
			wrong[f.Name] = "This field is required."
		case len(v) > maxValue:
			wrong[f.Name] = fmt.Sprintf("This text is longer than %d KiB.", maxValue>>10)
		case !utf8.ValidString(v) || strings.ContainsRune(v, 0):
			wrong[f.Name] = "This is not valid UTF-8 text."
		case v != "" && t.q.Kind.Spec.Field(f.Field).Class == spec.ClassPhone:
			number, ok := readNumber(v, f.Own)
			if !ok {
				wrong[f.Name] = "This is not a whole phone number. Start with a plus and the country code: +1 415 555 0100."
			}
			t.values[f.Name] = number
		}
	}
	return wrong
}

// readNumber returns a phone number in E.164. It accepts the usual spellings, such as +1 (415) 555-0100. It returns
// short codes, other addresses (client:alice) and sender names unchanged.
func readNumber(text string, sender bool) (number string, ok bool) {
	if strings.Contains(text, ":") {
		return text, true
	}
	if p := understudy.ParsePhone(text); p.HasCountryCode {
		return "+" + p.Digits, true
	}
	isShort := len(text) >= 3 && len(text) < understudy.MinPhoneDigits && strings.Trim(text, "0123456789") == ""
	isName := sender && text[0] != '+' && strings.ContainsFunc(text, unicode.IsLetter)
	return text, isShort || isName
}

// answer redirects the browser if the task is done. Otherwise it shows why it is not.
func (t *task) answer(r actions.Result, err error, key string) error {
	title := t.q.Source.Spec.Title
	switch {
	case errors.Is(err, actions.ErrUnderWay):
		return t.render(http.StatusAccepted, askPage{Key: key, Review: true, Waiting: true})
	case errors.Is(err, actions.ErrBusy):
		return &page.Problem{Title: "Nothing was done", Hint: "Too many actions are running. Try again in a moment.",
			Href: t.path, Link: "Start again", Kind: understudy.ErrUnavailable}
	case err != nil:
		t.q.V.Options.Logger.ErrorContext(t.q.Ctx, "viewer: action", "source", t.q.Source.Name, "error", err)
		return &page.Problem{Title: "Nothing was done", Href: t.path, Link: "Start again", Kind: understudy.ErrUnavailable,
			Hint: "The action could not be recorded, so it was not sent. The server's log has the reason."}
	case r.State == actions.Done:
		t.q.RedirectBack(t.doer.Next(t, r.ID), t.words.done)
		return nil
	case r.State == actions.Unknown:
		p := &page.Problem{Title: "The outcome is unknown", Href: t.back, Link: "Check the result",
			Kind: understudy.ErrUnknownOutcome,
			Hint: "It was sent, but " + title + " has not confirmed it. Reloading this page does not send it again. " +
				"Check the result before you try again."}
		if r.Code != "" {
			p.Reason = t.q.Source.Reason(r.Code)
		}
		return p
	case r.State == actions.NotSent:
		p := &page.Problem{Title: "Nothing was done", Hint: r.Why, Href: t.path, Link: "Start again", Kind: understudy.ErrUnavailable}
		if r.Status == http.StatusNotFound {
			p.Href, p.Link, p.Kind = t.subjectLink.Href, "See all "+t.subjectLink.Text, understudy.ErrNotFound
		}
		return p
	}
	return t.showRefusal(r)
}

// showRefusal shows the error with which upstream refused the action. If the action has a form, the form follows.
func (t *task) showRefusal(r actions.Result) error {
	f := refusal{Title: fmt.Sprintf("%s refused this (%d)", t.q.Source.Spec.Title, r.Status), Words: r.Words}
	if r.Code != "" {
		f.Reason = t.q.Source.Reason(r.Code)
	}
	if len(t.fields) > 0 {
		return t.render(http.StatusUnprocessableEntity, askPage{Key: rand.Text(), Refusal: &f})
	}
	hint := f.Words
	hint = cmp.Or(hint, "Nothing was done.")
	return &page.Problem{Title: f.Title, Hint: hint, Reason: f.Reason, Href: t.back, Link: "Back to the " + t.q.Kind.Spec.Singular,
		Kind: understudy.ErrInvalid}
}
