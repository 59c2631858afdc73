package actions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/actions"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/viewer/viewertest"
)

// browser returns a browser of a person with a role, or that of a program.
func browser(role string) viewertest.Browser {
	if role == "program" {
		return viewertest.All
	}
	return viewertest.Person(role)
}

func text(v any) string { return fmt.Sprint(v) }

const (
	sendPath = "/-/do/twilio/messages/send"
	ownPhone = "+12124473827"
)

func TestSend(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	if list := h.Page("/twilio/messages", viewertest.Person("sender")); !strings.Contains(list, `href="`+sendPath+`"`) {
		t.Error("the list does not lead to the form")
	}
	own := text(h.Upstream.First(t, "/IncomingPhoneNumbers.json", "incoming_phone_numbers", nil)["phone_number"])
	if page := h.Page("/twilio/number/"+url.PathEscape(own), viewertest.Person("sender")); !strings.Contains(page, sendPath+"?From=") {
		t.Error("the page of our own number does not lead to the form with it")
	}
	if page := h.Page("/twilio/number/+14155550123", viewertest.Person("sender")); !strings.Contains(page, sendPath+"?To=") {
		t.Error("the page of another's number does not lead to the form with it")
	}
	filled := h.Page(sendPath+"?To=%2B14155550123", viewertest.Person("sender"))
	if !strings.Contains(filled, "\">&#43;1\u00a0") || !strings.Contains(filled, `value="&#43;14155550123"`) {
		t.Errorf("the form: %s", filled)
	}
	form := h.FillForm(viewertest.Person("sender"), sendPath, "From", own, "To", "+1 (415) 555-0123", "Body", "café ☕ <b>", "step", "review")
	review := h.Post(viewertest.Person("sender"), sendPath, form, http.StatusOK, "1 segment", "UCS-2", "&lt;b&gt;", ">Edit<").Body.String()
	if len(h.Upstream.Writes()) > 0 || len(h.Audit.Done()) > 0 {
		t.Error("the review sends it")
	}
	form.Set("step", "do")
	if !strings.Contains(review, form.Get("key")) {
		t.Error("the review has another key")
	}
	w := h.Post(viewertest.Person("sender"), sendPath, form, http.StatusSeeOther)
	id, ok := strings.CutPrefix(w.Header().Get("Location"), "/twilio/messages/")
	checktest.MustTrue(t, ok, "ok is false")
	checktest.MustEqual(t, len(h.Upstream.Writes()), 1, "len(h.Upstream.Writes())")
	checktest.MustEqual(t, h.Upstream.Writes()[0], "POST /Messages.json", "h.Upstream.Writes()[0]")
	_, body := h.Upstream.Ask(t, "/Messages/"+id+".json")
	var made map[string]any
	viewertest.Must(t, json.Unmarshal([]byte(body), &made))
	checktest.Equal(t, made["to"], "+14155550123", `sent: made["to"]`)
	checktest.True(t, made["from"] == own, `sent: made["from"] is %v`, made["from"])
	checktest.Equal(t, made["body"], "café ☕ <b>", `sent: made["body"]`)
	if record := h.Page("/twilio/messages/"+id, viewertest.Person("sender")); !strings.Contains(record, "café ☕ &lt;b&gt;") {
		t.Error("the record's page does not show it")
	}
	e := h.Audit.Done()
	checktest.MustEqual(t, len(e), 2, "audited: len(e)")
	checktest.MustEqual(t, e[1].Action, understudy.ActionSend, "audited: e[1].Action")
	checktest.MustEqual(t, e[1].What, understudy.WhatCreated, "audited: e[1].What")
	checktest.MustTrue(t, slices.Equal(e[1].IDs, []string{id}), "audited: e[1].IDs is %v", e[1].IDs)
	checktest.MustEqual(t, e[1].Status, http.StatusCreated, "audited: e[1].Status")
	checktest.MustEqual(t, e[1].Request, e[0].Request, "audited: e[1].Request")
	checktest.MustTrue(t, e[1].IsFollowUp(), "audited: e[1].IsFollowUp() is false")
	checktest.MustEqual(t, e[1].Caller.Name, "anna", "audited: e[1].Caller.Name")
	checktest.MustTrue(t, e[1].AsPerson, "audited: e[1].AsPerson is false")
	checktest.Equal(t, e[0].Action, understudy.ActionSend, "audited: e[0].Action")
	checktest.MustTrue(t, len(e[0].IDs) <= 0, "audited: len(e[0].IDs) is %v, want <= 0", len(e[0].IDs))
	checktest.Equal(t, e[0].What, "messages.send", "audited: e[0].What")
	checktest.Equal(t, e[0].Caller.Name, "anna", "audited: e[0].Caller.Name")
	checktest.Equal(t, e[0].Kind, "messages", "audited: e[0].Kind")
	checktest.Equal(t, len(e[0].Values), 2, "audited: len(e[0].Values)")
}

func TestWhatIsMissingOrRefusedStandsInTheForm(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	form := h.FillForm(viewertest.Person("sender"), sendPath, "From", ownPhone, "To", "", "Body", "hi")
	h.Post(viewertest.Person("sender"), sendPath, form, http.StatusUnprocessableEntity, "This field is required.", `aria-invalid="true"`, "hi")
	form.Set("To", "x\x00")
	h.Post(viewertest.Person("sender"), sendPath, form, http.StatusUnprocessableEntity, "not valid UTF-8")
	for _, number := range []string{"+1415bad", "415 555 01", "4155550100", "+0155550100", "alice", "12", "+"} {
		form.Set("To", number)
		h.Post(viewertest.Person("sender"), sendPath, form, http.StatusUnprocessableEntity, "not a whole phone number", escape(number))
	}
	if len(h.Upstream.Writes()) > 0 {
		t.Fatalf("sent %v", h.Upstream.Writes())
	}
	form.Set("To", "+14155550100")
	form.Set("Body", strings.Repeat("x", 1601))
	w := h.Post(viewertest.Person("sender"), sendPath, form, http.StatusUnprocessableEntity, "Twilio refused this (400).", "21617",
		"longer than 1600 characters", `href="https://www.twilio.com/docs/api/errors/21617"`, "&#43;14155550100")
	if strings.Contains(w.Body.String(), form.Get("key")) {
		t.Error("a form that is sent again is not something new")
	}
	h.Post(viewertest.Person("sender"), sendPath, form, http.StatusUnprocessableEntity, "21617") // loaded again
	if len(h.Upstream.Writes()) != 1 {
		t.Errorf("sent %v", h.Upstream.Writes())
	}
	for _, key := range []string{"", "x", strings.Repeat("A", 26) + "A"} {
		form.Set("key", key)
		h.Post(viewertest.Person("sender"), sendPath, form, http.StatusBadRequest, "This form is not valid")
	}
	form.Set("Body", strings.Repeat("x", 70_000))
	h.Post(viewertest.Person("sender"), sendPath, form, http.StatusBadRequest, "64 KiB")
}

// escape writes a plus as templates do.
func escape(number string) string { return strings.ReplaceAll(number, "+", "&#43;") }

func TestNumbersAreReviewedInE164(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	for typed, reviewed := range map[string]string{
		"+1 (415) 555-0100": "+14155550100", "0049 30 1234567": "+49301234567", "72345": "72345",
		"whatsapp:+14155550100": "whatsapp:+14155550100", "client:alice": "client:alice",
	} {
		form := h.FillForm(viewertest.Person("sender"), sendPath, "From", ownPhone, "To", typed, "Body", "hi", "step", "review")
		h.Post(viewertest.Person("sender"), sendPath, form, http.StatusOK, `name="To" value="`+escape(reviewed)+`"`)
	}
	form := h.FillForm(viewertest.Person("sender"), sendPath, "From", "Acme", "To", "+14155550100", "Body", "hi", "step", "review")
	h.Post(viewertest.Person("sender"), sendPath, form, http.StatusOK, `name="From" value="Acme"`)
}

// What the spec has for records of each kind, done and seen upstream.
func TestRecords(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	message := h.Upstream.First(t, "/Messages.json", "messages", func(m map[string]any) bool {
		return m["body"] != "" && m["status"] == "delivered"
	})
	sid := text(message["sid"])
	recording := text(h.Upstream.First(t, "/Recordings.json", "recordings", nil)["sid"])
	call := makeCall(t, h)
	for _, c := range []struct {
		role, path, record string
		write, done        string
		next               string
		action             understudy.Action
	}{
		{"support", "messages/redact/" + sid, "/twilio/messages/" + sid, "POST /Messages/" + sid + ".json", "Empty the body",
			"/twilio/messages/" + sid, understudy.ActionSend},
		{understudy.RoleAll, "messages/delete/" + sid, "/twilio/messages/" + sid, "DELETE /Messages/" + sid + ".json", "Delete the message",
			"/twilio/messages", understudy.ActionDelete},
		{understudy.RoleAll, "recordings/delete/" + recording, "/twilio/recordings/" + recording,
			"DELETE /Recordings/" + recording + ".json", "Delete the recording", "/twilio/recordings", understudy.ActionDelete},
		{"sender", "calls/cancel/" + call, "/twilio/calls/" + call, "POST /Calls/" + call + ".json", "End the call",
			"/twilio/calls/" + call, understudy.ActionSend},
	} {
		if page := h.Page(c.record, browser(c.role)); !strings.Contains(page, `href="/-/do/twilio/`+c.path+`">`+c.done) {
			t.Errorf("%s as %s does not lead to %s", c.record, c.role, c.path)
		}
		form := h.FillForm(browser(c.role), "/-/do/twilio/"+c.path)
		w := h.Post(browser(c.role), "/-/do/twilio/"+c.path, form, http.StatusSeeOther)
		all, e := h.Upstream.Writes(), h.Audit.Done()
		if w.Header().Get("Location") != c.next || all[len(all)-1] != c.write {
			t.Errorf("%s: to %s after %v", c.path, w.Header().Get("Location"), all)
		}
		last := e[len(e)-1]
		checktest.Equal(t, last.Action, c.action, "%s: last.Action", c.path)
		checktest.MustEqual(t, len(last.IDs), 1, "%s: len(last.IDs)", c.path)
		checktest.Equal(t, len(e), len(all), "%s: len(e)", c.path)
		h.Post(browser(c.role), "/-/do/twilio/"+c.path, form, http.StatusSeeOther) // loaded again, though the record may be gone
		if len(h.Upstream.Writes()) != len(all) {
			t.Errorf("%s was done again", c.path)
		}
	}
	if status, _ := h.Upstream.Ask(t, "/Messages/"+sid+".json"); status != http.StatusNotFound {
		t.Errorf("the message is there: %d", status)
	}
	if _, body := h.Upstream.Ask(t, "/Calls/"+call+".json"); !strings.Contains(body, `"canceled"`) {
		t.Errorf("the call goes on: %s", body)
	}
	page := h.Page("/twilio/calls/"+call, viewertest.Person("sender"))
	if strings.Contains(page, "calls/cancel/") {
		t.Error("a call that has ended may be ended")
	}
	w := h.Send(t.Context(), viewertest.Person("sender"), "/-/do/twilio/calls/cancel/"+call, nil)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "can&#39;t be done now") {
		t.Errorf("the page of it: %d", w.Code)
	}
}

// makeCall makes a call that waits in the queue, and returns its id.
func makeCall(t *testing.T, h *viewertest.Fixture) string {
	t.Helper()
	form := url.Values{"To": {"+14155550123"}, "From": {ownPhone}, "Url": {"https://example.com/"}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, viewertest.Root+"/Calls.json", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(viewertest.Account, "slowapitoken")
	w := httptest.NewRecorder()
	h.Upstream.API.ServeHTTP(w, r)
	var made struct{ Sid string }
	viewertest.Must(t, json.Unmarshal(w.Body.Bytes(), &made))
	return made.Sid
}

// Equal submissions at once are one write: a claim in the database is for one of them. 1,000
// pairs with UNDERSTUDY_PROVE, else a fiftieth. The browser of a double click leaves the
// first answer: half of the first requests end at once.
func TestDoubleClicks(t *testing.T) {
	pairs := sample.Count(20, 1000)
	h := viewertest.OpenReal(t, nil)
	h.Page("/twilio/messages", viewertest.Person("sender")) // so that our own numbers are held
	slots := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i := range pairs {
		form := h.FillForm(viewertest.Person("sender"), sendPath, "From", ownPhone, "To", "+14155550123", "Body", "pair")
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var both sync.WaitGroup
			var locations [2]string
			for n := range locations {
				ctx, leave := context.WithCancel(context.Background())
				if n == 0 && i%2 == 0 {
					leave()
				}
				both.Go(func() {
					defer leave()
					locations[n] = h.Send(ctx, viewertest.Person("sender"), sendPath, form).Header().Get("Location")
				})
			}
			both.Wait()
			again := h.Send(context.Background(), viewertest.Person("sender"), sendPath, form).Header().Get("Location")
			checktest.True(t, again != "", "pair: again is empty")
			checktest.True(t, !(locations[1] != again && i%2 == 1),
				"pair: locations[1] != again && i%%2 == 1; locations[1] is %v, again is %v, i%%2 is %v",
				locations[1], again, i%2)
			checktest.True(t, !(locations[0] != again && i%2 == 1),
				"pair: locations[0] != again && i%%2 == 1; locations[0] is %v, again is %v, i%%2 is %v",
				locations[0], again, i%2)
		})
	}
	wg.Wait()
	if n := len(h.Upstream.Writes()); n != pairs {
		t.Errorf("%d writes for %d pairs", n, pairs)
	}
	if n := len(h.Audit.Done()); n != 2*pairs { // what is sent, and what it made
		t.Errorf("%d audit entries for %d pairs", n, pairs)
	}
}

// What upstream does not answer in time has an unknown outcome, and loading the page again
// does not repeat it.
func TestAnUnknownOutcomeIsNotRepeated(t *testing.T) {
	h := viewertest.OpenReal(t, func(o *actions.Options) { o.Time = 2 * time.Second })
	h.Upstream.Answer(func(_ http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r) // it is done, and nobody hears of it
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	})
	form := h.FillForm(viewertest.Person("sender"), sendPath, "From", ownPhone, "To", "+14155550123", "Body", "lost")
	for range 3 {
		h.Post(viewertest.Person("sender"), sendPath, form, http.StatusGatewayTimeout, "The outcome is unknown", "does not send it again",
			`href="/twilio/messages"`)
	}
	if n := len(h.Upstream.Writes()); n != 1 {
		t.Errorf("%d writes", n)
	}
	h.Upstream.Answer(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"code":20500,"message":"oh","more_info":"","status":500}`)) // the client reads it
	})
	form = h.FillForm(viewertest.Person("sender"), sendPath, "From", ownPhone, "To", "+14155550123", "Body", "broken")
	h.Post(viewertest.Person("sender"), sendPath, form, http.StatusGatewayTimeout, "The outcome is unknown", "20500", "Internal server error")
}

// A reader who waits longer than a page may is told so, and asks again for the end.
func TestWhatTakesLongerThanAPage(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	release := make(chan struct{})
	h.Upstream.Answer(func(w http.ResponseWriter, r *http.Request, next http.Handler) { <-release; next.ServeHTTP(w, r) })
	form := h.FillForm(viewertest.Person("sender"), sendPath, "From", ownPhone, "To", "+14155550123", "Body", "slow")
	ctx, leave := context.WithCancel(t.Context())
	leave()
	{
		w := h.Send(ctx, viewertest.Person("sender"), sendPath, form)
		checktest.Equal(t, w.Code, http.StatusAccepted, "%d: w.Code; w.Body %s", w.Code, w.Body)
		checktest.Contains(t, w.Body.String(), "Check again", "%d: w.Body.String()", w.Code)
		checktest.Contains(t, w.Body.String(), form.Get("key"), "%d: w.Body.String()", w.Code)
	}
	close(release)
	h.Post(viewertest.Person("sender"), sendPath, form, http.StatusSeeOther)
	if n := len(h.Upstream.Writes()); n != 1 {
		t.Errorf("%d writes", n)
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	sent := h.Upstream.First(t, "/Messages.json", "messages", func(m map[string]any) bool {
		return m["status"] == "delivered" && m["body"] != ""
	})
	id := text(sent["sid"])
	failed := text(h.Upstream.First(t, "/Messages.json", "messages", func(m map[string]any) bool { return m["status"] == "failed" })["sid"])
	h.Page("/twilio/messages/"+id, viewertest.Person(understudy.RoleAll)) // so that both are held, for rules on rows
	h.Page("/twilio/messages/"+failed, viewertest.Person(understudy.RoleAll))
	key := url.Values{"key": {strings.Repeat("A", 26)}, "step": {"do"}, "From": {ownPhone}, "To": {"+14155550123"}, "Body": {"hi"}}
	for _, c := range []struct {
		role, path string
		status     int
	}{
		{"reader", sendPath, 403},
		{"program", sendPath, 403}, // its allow list names nothing
		{"support", sendPath, 403},
		{"support", "/-/do/twilio/messages/delete/" + id, 403},
		{"nobody", sendPath, 403},
		{"few", "/-/do/twilio/messages/delete/" + id, 404}, // a rule on rows hides it
		{"few", "/-/do/twilio/messages/redact/" + id, 403},
		{understudy.RoleAll, "/-/do/twilio/messages/delete/SM" + strings.Repeat("0", 32), 404},
		{understudy.RoleAll, "/-/do/twilio/messages/sendd", 400},
		{understudy.RoleAll, "/-/do/twilio/messages/send/" + id, 400},
		{understudy.RoleAll, "/-/do/twilio/messages/delete", 400},
		{understudy.RoleAll, "/-/do/twilio/nothing/send", 404},
		{understudy.RoleAll, "/-/do/other/messages/send", 404},
	} {
		if w := h.Send(t.Context(), browser(c.role), c.path, nil); w.Code != c.status {
			t.Errorf("GET %s as %s: %d, want %d", c.path, c.role, w.Code, c.status)
		}
		if w := h.Send(t.Context(), browser(c.role), c.path, key); w.Code != c.status {
			t.Errorf("POST %s as %s: %d, want %d\n%s", c.path, c.role, w.Code, c.status, w.Body)
		}
	}
	if len(h.Upstream.Writes()) > 0 || len(h.Audit.Done()) > 0 {
		t.Errorf("upstream had %v", h.Upstream.Writes())
	}
	if page := h.Page("/twilio/messages/"+id, viewertest.Person("reader")); strings.Contains(page, "/-/do/") {
		t.Error("a reader is offered actions")
	}
	h.Post(viewertest.Person("few"), "/-/do/twilio/messages/delete/"+failed,
		h.FillForm(viewertest.Person("few"), "/-/do/twilio/messages/delete/"+failed), http.StatusSeeOther)
	// What it makes it may not find: the list, and no id.
	few := viewertest.Person("few")
	w := h.Post(few, sendPath, h.FillForm(few, sendPath, "From", ownPhone, "To", "+14155550123", "Body", "hi"), http.StatusSeeOther)
	if w.Header().Get("Location") != "/twilio/messages" {
		t.Errorf("leads to %s", w.Header().Get("Location"))
	}
}

// The page of an action shows no more than the role sees, and the offer tells nothing of
// what is hidden.
func TestHiddenFieldsStayHidden(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	m := h.Upstream.First(t, "/Messages.json", "messages", func(m map[string]any) bool {
		return m["body"] != "" && m["status"] == "delivered"
	})
	path := "/-/do/twilio/messages/redact/" + text(m["sid"])
	page := h.Page(path, viewertest.Person("support"))
	for _, name := range []string{"from", "to", "body"} {
		if strings.Contains(page, text(m[name])) || strings.Contains(page, strings.TrimPrefix(text(m[name]), "+")) {
			t.Errorf("%s is shown", name)
		}
	}
	h.Post(viewertest.Person("support"), path, h.FillForm(viewertest.Person("support"), path), http.StatusSeeOther)
	if page := h.Page("/twilio/messages/"+text(m["sid"]), viewertest.Person("support")); !strings.Contains(page, "messages/redact/") {
		t.Error("the offer says that the body is empty")
	}
	if page := h.Page("/twilio/messages/"+text(m["sid"]), viewertest.Person(understudy.RoleAll)); strings.Contains(page, "messages/redact/") {
		t.Error("an empty body may be emptied")
	}
}

// What cannot be audited is not done.
func TestWhatIsNotAuditedIsNotDone(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	h.Audit.Fail(understudy.ErrNotAudited)
	form := h.FillForm(viewertest.Person("sender"), sendPath, "From", ownPhone, "To", "+14155550123", "Body", "hi")
	h.Post(viewertest.Person("sender"), sendPath, form, http.StatusServiceUnavailable, "Nothing was done", "audit log")
	if len(h.Upstream.Writes()) > 0 {
		t.Errorf("upstream had %v", h.Upstream.Writes())
	}
}
