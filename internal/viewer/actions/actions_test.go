package actions_test

import (
	"context"
	"encoding/json"
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
	"understudy/internal/sample"
)

const (
	sendPath = "/-/do/twilio/messages/send"
	ownPhone = "+12124473827"
)

func TestSend(t *testing.T) {
	h := open(t, nil)
	if list := h.get("sender", "/twilio/messages"); !strings.Contains(list, `href="`+sendPath+`"`) {
		t.Error("the list does not lead to the form")
	}
	own := text(h.first("/IncomingPhoneNumbers.json", "incoming_phone_numbers", nil)["phone_number"])
	if page := h.get("sender", "/twilio/number/"+url.PathEscape(own)); !strings.Contains(page, sendPath+"?From=") {
		t.Error("the page of our own number does not lead to the form with it")
	}
	if page := h.get("sender", "/twilio/number/+14155550123"); !strings.Contains(page, sendPath+"?To=") {
		t.Error("the page of another's number does not lead to the form with it")
	}
	filled := h.get("sender", sendPath+"?To=%2B14155550123")
	if !strings.Contains(filled, "\">&#43;1\u00a0") || !strings.Contains(filled, `value="&#43;14155550123"`) {
		t.Errorf("the form: %s", filled)
	}
	form := h.form("sender", sendPath, "From", own, "To", "+1 (415) 555-0123", "Body", "café ☕ <b>", "step", "review")
	review := h.post("sender", sendPath, form, http.StatusOK, "1 segment", "UCS-2", "&lt;b&gt;", "Change it").Body.String()
	if len(h.written()) > 0 || len(h.audited()) > 0 {
		t.Error("the review sends it")
	}
	form.Set("step", "do")
	if !strings.Contains(review, form.Get("key")) {
		t.Error("the review has another key")
	}
	w := h.post("sender", sendPath, form, http.StatusSeeOther)
	id, ok := strings.CutPrefix(w.Header().Get("Location"), "/twilio/messages/")
	if !ok || len(h.written()) != 1 || h.written()[0] != "POST /Messages.json" {
		t.Fatalf("%s after %v", w.Header().Get("Location"), h.written())
	}
	_, body := h.upstreamGet("/Messages/" + id + ".json")
	var made map[string]any
	must(t, json.Unmarshal([]byte(body), &made))
	if made["to"] != "+14155550123" || made["from"] != own || made["body"] != "café ☕ <b>" {
		t.Errorf("sent %v", made)
	}
	if record := h.get("sender", "/twilio/messages/"+id); !strings.Contains(record, "café ☕ &lt;b&gt;") {
		t.Error("the record's page does not show it")
	}
	e := h.audited()
	if len(e) != 2 || e[1].Action != understudy.ActionSend || e[1].What != understudy.WhatMade || !slices.Equal(e[1].IDs, []string{id}) ||
		e[1].Status != http.StatusCreated || e[1].Request != e[0].Request || !e[1].Done() || e[1].Caller.Name != "anna" || !e[1].AsPerson {
		t.Fatalf("audited %+v", e)
	}
	if e[0].Action != understudy.ActionSend || len(e[0].IDs) > 0 || e[0].What != "messages.send" || e[0].Caller.Name != "anna" ||
		e[0].Kind != "messages" || len(e[0].Values) != 2 {
		t.Errorf("audited %+v", e)
	}
}

func TestWhatIsMissingOrRefusedStandsInTheForm(t *testing.T) {
	h := open(t, nil)
	form := h.form("sender", sendPath, "From", ownPhone, "To", "", "Body", "hi")
	h.post("sender", sendPath, form, http.StatusUnprocessableEntity, "This is needed.", `aria-invalid="true"`, "hi")
	form.Set("To", "x\x00")
	h.post("sender", sendPath, form, http.StatusUnprocessableEntity, "no text in UTF-8")
	for _, number := range []string{"+1415bad", "415 555 01", "4155550100", "+0155550100", "alice", "12", "+"} {
		form.Set("To", number)
		h.post("sender", sendPath, form, http.StatusUnprocessableEntity, "no number in E.164", escape(number))
	}
	if len(h.written()) > 0 {
		t.Fatalf("sent %v", h.written())
	}
	form.Set("To", "+14155550100")
	form.Set("Body", strings.Repeat("x", 1601))
	w := h.post("sender", sendPath, form, http.StatusUnprocessableEntity, "Twilio refused this (400).", "21617",
		"longer than 1600 characters", `href="https://www.twilio.com/docs/api/errors/21617"`, "&#43;14155550100")
	if strings.Contains(w.Body.String(), form.Get("key")) {
		t.Error("a form that is sent again is not something new")
	}
	h.post("sender", sendPath, form, http.StatusUnprocessableEntity, "21617") // loaded again
	if len(h.written()) != 1 {
		t.Errorf("sent %v", h.written())
	}
	for _, key := range []string{"", "x", strings.Repeat("A", 26) + "A"} {
		form.Set("key", key)
		h.post("sender", sendPath, form, http.StatusBadRequest, "not one of ours")
	}
	form.Set("Body", strings.Repeat("x", 70_000))
	h.post("sender", sendPath, form, http.StatusBadRequest, "64 KiB")
}

// escape writes a plus as templates do.
func escape(number string) string { return strings.ReplaceAll(number, "+", "&#43;") }

func TestNumbersAreReviewedInE164(t *testing.T) {
	h := open(t, nil)
	for typed, reviewed := range map[string]string{
		"+1 (415) 555-0100": "+14155550100", "0049 30 1234567": "+49301234567", "72345": "72345",
		"whatsapp:+14155550100": "whatsapp:+14155550100", "client:alice": "client:alice",
	} {
		form := h.form("sender", sendPath, "From", ownPhone, "To", typed, "Body", "hi", "step", "review")
		h.post("sender", sendPath, form, http.StatusOK, `name="To" value="`+escape(reviewed)+`"`)
	}
	form := h.form("sender", sendPath, "From", "Acme", "To", "+14155550100", "Body", "hi", "step", "review")
	h.post("sender", sendPath, form, http.StatusOK, `name="From" value="Acme"`)
}

// What the spec has for records of each kind, done and seen upstream.
func TestRecords(t *testing.T) {
	h := open(t, nil)
	message := h.first("/Messages.json", "messages", func(m map[string]any) bool { return m["body"] != "" && m["status"] == "delivered" })
	sid := text(message["sid"])
	recording := text(h.first("/Recordings.json", "recordings", nil)["sid"])
	call := h.call1(t)
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
		if page := h.get(c.role, c.record); !strings.Contains(page, `href="/-/do/twilio/`+c.path+`">`+c.done) {
			t.Errorf("%s as %s does not lead to %s", c.record, c.role, c.path)
		}
		form := h.form(c.role, "/-/do/twilio/"+c.path)
		w := h.post(c.role, "/-/do/twilio/"+c.path, form, http.StatusSeeOther)
		all, e := h.written(), h.audited()
		if w.Header().Get("Location") != c.next || all[len(all)-1] != c.write {
			t.Errorf("%s: to %s after %v", c.path, w.Header().Get("Location"), all)
		}
		if last := e[len(e)-1]; last.Action != c.action || len(last.IDs) != 1 || len(e) != len(all) {
			t.Errorf("%s: audited %+v", c.path, last)
		}
		h.post(c.role, "/-/do/twilio/"+c.path, form, http.StatusSeeOther) // loaded again, though the record may be gone
		if len(h.written()) != len(all) {
			t.Errorf("%s was done again", c.path)
		}
	}
	if status, _ := h.upstreamGet("/Messages/" + sid + ".json"); status != http.StatusNotFound {
		t.Errorf("the message is there: %d", status)
	}
	if _, body := h.upstreamGet("/Calls/" + call + ".json"); !strings.Contains(body, `"canceled"`) {
		t.Errorf("the call goes on: %s", body)
	}
	page := h.get("sender", "/twilio/calls/"+call)
	if strings.Contains(page, "calls/cancel/") {
		t.Error("a call that has ended may be ended")
	}
	w := h.call(t.Context(), "sender", "/-/do/twilio/calls/cancel/"+call, nil)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "cannot be done now") {
		t.Errorf("the page of it: %d", w.Code)
	}
}

// call1 makes a call that waits in the queue, and is its id.
func (h *fixture) call1(t *testing.T) string {
	t.Helper()
	form := url.Values{"To": {"+14155550123"}, "From": {ownPhone}, "Url": {"https://example.com/"}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, root+"/Calls.json", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(account, "slowapitoken")
	w := httptest.NewRecorder()
	h.api.ServeHTTP(w, r)
	var made struct{ Sid string }
	must(t, json.Unmarshal(w.Body.Bytes(), &made))
	return made.Sid
}

// Equal submissions at once are one write: a claim in the database is for one of them. 1,000
// pairs with UNDERSTUDY_PROVE, else a fiftieth. The browser of a double click leaves the
// first answer: half of the first requests end at once.
func TestDoubleClicks(t *testing.T) {
	pairs := sample.Count(20, 1000)
	h := open(t, nil)
	h.get("sender", "/twilio/messages") // so that our own numbers are held
	slots := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i := range pairs {
		form := h.form("sender", sendPath, "From", ownPhone, "To", "+14155550123", "Body", "pair")
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
					locations[n] = h.call(ctx, "sender", sendPath, form).Header().Get("Location")
				})
			}
			both.Wait()
			again := h.call(context.Background(), "sender", sendPath, form).Header().Get("Location")
			if again == "" || locations[1] != again && i%2 == 1 || locations[0] != again && i%2 == 1 {
				t.Errorf("pair %d leads to %v, and again to %q", i, locations, again)
			}
		})
	}
	wg.Wait()
	if n := len(h.written()); n != pairs {
		t.Errorf("%d writes for %d pairs", n, pairs)
	}
	if n := len(h.audited()); n != 2*pairs { // what is sent, and what it made
		t.Errorf("%d audit entries for %d pairs", n, pairs)
	}
}

// What upstream does not answer in time has an unknown outcome, and loading the page again
// does not repeat it.
func TestAnUnknownOutcomeIsNotRepeated(t *testing.T) {
	h := open(t, func(o *actions.Options) { o.Time = 2 * time.Second })
	h.answer = func(_ http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r) // it is done, and nobody hears of it
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	form := h.form("sender", sendPath, "From", ownPhone, "To", "+14155550123", "Body", "lost")
	for range 3 {
		h.post("sender", sendPath, form, http.StatusGatewayTimeout, "The outcome is unknown", "does not send it again",
			`href="/twilio/messages"`)
	}
	if n := len(h.written()); n != 1 {
		t.Errorf("%d writes", n)
	}
	h.answer = func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"code":20500,"message":"oh","more_info":"","status":500}`)) // the client reads it
	}
	form = h.form("sender", sendPath, "From", ownPhone, "To", "+14155550123", "Body", "broken")
	h.post("sender", sendPath, form, http.StatusGatewayTimeout, "The outcome is unknown", "20500", "Internal server error")
}

// A reader who waits longer than a page may is told so, and asks again for the end.
func TestWhatTakesLongerThanAPage(t *testing.T) {
	h := open(t, nil)
	release := make(chan struct{})
	h.answer = func(w http.ResponseWriter, r *http.Request, next http.Handler) { <-release; next.ServeHTTP(w, r) }
	form := h.form("sender", sendPath, "From", ownPhone, "To", "+14155550123", "Body", "slow")
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if w := h.call(ctx, "sender", sendPath, form); w.Code != http.StatusAccepted || !strings.Contains(w.Body.String(), "Look again") ||
		!strings.Contains(w.Body.String(), form.Get("key")) {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	close(release)
	h.post("sender", sendPath, form, http.StatusSeeOther)
	if n := len(h.written()); n != 1 {
		t.Errorf("%d writes", n)
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	h := open(t, nil)
	sent := h.first("/Messages.json", "messages", func(m map[string]any) bool { return m["status"] == "delivered" && m["body"] != "" })
	id := text(sent["sid"])
	failed := text(h.first("/Messages.json", "messages", func(m map[string]any) bool { return m["status"] == "failed" })["sid"])
	h.get(understudy.RoleAll, "/twilio/messages/"+id) // so that both are held, for rules on rows
	h.get(understudy.RoleAll, "/twilio/messages/"+failed)
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
		if w := h.call(t.Context(), c.role, c.path, nil); w.Code != c.status {
			t.Errorf("GET %s as %s: %d, want %d", c.path, c.role, w.Code, c.status)
		}
		if w := h.call(t.Context(), c.role, c.path, key); w.Code != c.status {
			t.Errorf("POST %s as %s: %d, want %d\n%s", c.path, c.role, w.Code, c.status, w.Body)
		}
	}
	if len(h.written()) > 0 || len(h.audited()) > 0 {
		t.Errorf("upstream had %v", h.written())
	}
	if page := h.get("reader", "/twilio/messages/"+id); strings.Contains(page, "/-/do/") {
		t.Error("a reader is offered actions")
	}
	h.post("few", "/-/do/twilio/messages/delete/"+failed, h.form("few", "/-/do/twilio/messages/delete/"+failed), http.StatusSeeOther)
	// What it makes it may not find: the list, and no id.
	w := h.post("few", sendPath, h.form("few", sendPath, "From", ownPhone, "To", "+14155550123", "Body", "hi"), http.StatusSeeOther)
	if w.Header().Get("Location") != "/twilio/messages" {
		t.Errorf("leads to %s", w.Header().Get("Location"))
	}
}

// The page of an action shows no more than the role sees, and the offer tells nothing of
// what is hidden.
func TestHiddenFieldsStayHidden(t *testing.T) {
	h := open(t, nil)
	m := h.first("/Messages.json", "messages", func(m map[string]any) bool { return m["body"] != "" && m["status"] == "delivered" })
	path := "/-/do/twilio/messages/redact/" + text(m["sid"])
	page := h.get("support", path)
	for _, name := range []string{"from", "to", "body"} {
		if strings.Contains(page, text(m[name])) || strings.Contains(page, strings.TrimPrefix(text(m[name]), "+")) {
			t.Errorf("%s is shown", name)
		}
	}
	h.post("support", path, h.form("support", path), http.StatusSeeOther)
	if page := h.get("support", "/twilio/messages/"+text(m["sid"])); !strings.Contains(page, "messages/redact/") {
		t.Error("the offer says that the body is empty")
	}
	if page := h.get(understudy.RoleAll, "/twilio/messages/"+text(m["sid"])); strings.Contains(page, "messages/redact/") {
		t.Error("an empty body may be emptied")
	}
}

// What cannot be audited is not done.
func TestWhatIsNotAuditedIsNotDone(t *testing.T) {
	h := open(t, nil)
	h.audit.fail = understudy.ErrNotAudited
	form := h.form("sender", sendPath, "From", ownPhone, "To", "+14155550123", "Body", "hi")
	h.post("sender", sendPath, form, http.StatusServiceUnavailable, "Nothing was done", "audit log")
	if len(h.written()) > 0 {
		t.Errorf("upstream had %v", h.written())
	}
}
