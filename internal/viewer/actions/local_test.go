package actions_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"understudy"
	"understudy/internal/actions"
	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

// orders is an operator that notes what it is told.
type orders struct {
	mu  sync.Mutex
	all []string
	own bool // what is asked for is one of our own numbers
}

func (o *orders) note(words ...string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, strings.Join(words, " "))
	return nil
}

func (o *orders) Sync(_ context.Context, source, kind string) error {
	return o.note("sync", source, kind)
}

func (o *orders) Purge(_ context.Context, source, kind, id string) error {
	return o.note("purge", source, kind, id)
}

func (o *orders) CountErasable(context.Context, string, string) (map[string]int, bool, error) {
	return map[string]int{"calls": 3, "messages": 41}, o.own, nil
}

func (o *orders) Erase(_ context.Context, source, what string, _ bool) (int64, error) {
	return 1, o.note("erase", source, what)
}

func TestWhatIsHeldHere(t *testing.T) {
	op := &orders{}
	h := viewertest.OpenReal(t, func(o *actions.Options) { o.Operator = op })
	id := text(h.Upstream.First(t, "/Messages.json", "messages", nil)["sid"])
	record, list, number := "/twilio/messages/"+id, "/twilio/messages", "/twilio/number/+14155550123"
	for _, c := range []struct {
		from, path, order, next string
		says                    string
		action                  understudy.Action
	}{
		{list, "/-/do/twilio/messages/sync", "sync twilio messages", list, "every record", understudy.ActionAdminister},
		{record, "/-/do/twilio/messages/purge/" + id, "purge twilio messages " + id, record, "from Twilio again",
			understudy.ActionAdminister},
		{record, "/-/do/twilio/messages/erase/" + id, "erase twilio messages/" + id, list, "Messages to erase", understudy.ActionDelete},
		{number, "/-/do/twilio/number/erase/+14155550123", "erase twilio +14155550123", "/", "41", understudy.ActionDelete},
	} {
		if page := h.Page(c.from, viewertest.Person("keeper")); !strings.Contains(page, `href="`+strings.ReplaceAll(c.path, "+", "&#43;")+`"`) &&
			!strings.Contains(page, `href="`+c.path+`"`) {
			t.Errorf("%s does not lead to %s", c.from, c.path)
		}
		if page := h.Page(c.from, viewertest.Person("reader")); strings.Contains(page, "/-/do/") {
			t.Errorf("%s offers a reader something", c.from)
		}
		if w := h.Send(t.Context(), viewertest.Person("reader"), c.path, nil); w.Code != http.StatusForbidden {
			t.Errorf("%s as reader: %d", c.path, w.Code)
		}
		if page := h.Page(c.path, viewertest.Person("keeper")); !strings.Contains(page, c.says) {
			t.Errorf("%s does not say %q: %s", c.path, c.says, page)
		}
		crumb := `<a href="` + record + `">` + id[:6] + "…" + id[len(id)-4:] + `</a> <span aria-hidden="true">/</span>`
		if page := h.Page(c.path, viewertest.Person("keeper")); strings.Contains(page, crumb) != (c.from == record) {
			t.Errorf("%s: its path names the record: %v", c.path, c.from != record)
		}
		form := h.FillForm(viewertest.Person("keeper"), c.path)
		for range 2 {
			if w := h.Post(viewertest.Person("keeper"), c.path, form, http.StatusSeeOther); w.Header().Get("Location") != c.next {
				t.Errorf("%s leads to %s", c.path, w.Header().Get("Location"))
			}
		}
		e := h.Audit.Done()
		checktest.Equal(t, op.all[len(op.all)-1], c.order, "%s: op.all[len(op.all)-1]", c.path)
		checktest.MustEqual(t, len(op.all), len(e), "%s: len(op.all)", c.path)
		checktest.Equal(t, e[len(e)-1].Action, c.action, "%s: e[len(e)-1].Action", c.path)
	}
	if len(h.Upstream.Writes()) > 0 {
		t.Errorf("upstream had %v", h.Upstream.Writes())
	}
}

func TestWhatIsNotErased(t *testing.T) {
	op := &orders{}
	h := viewertest.OpenReal(t, func(o *actions.Options) { o.Operator = op })
	m := h.Upstream.First(t, "/Messages.json", "messages", func(m map[string]any) bool { return m["status"] == "delivered" })
	h.Page("/twilio/messages/"+text(m["sid"]), viewertest.Person(understudy.RoleAll)) // so that it is held, for rules on rows
	key := url.Values{"key": {strings.Repeat("A", 26)}, "step": {"do"}}
	for _, c := range []struct {
		role, path string
		get, post  int
	}{
		{"few", "/-/do/twilio/messages/erase/" + text(m["sid"]), 404, 404}, // a rule on rows hides it
		{"few", "/-/do/twilio/number/erase/+14155550123", 403, 403},        // it may not see all that would go
		{"program", "/-/do/twilio/messages/sync", 403, 403},
		{"keeper", "/-/do/twilio/number/erase/anna", 404, 404},
		{"keeper", "/-/do/twilio/messages/erase", 400, 400},
		{"keeper", "/-/do/twilio/messages/purge/SM" + strings.Repeat("0", 32), 404, 404},
	} {
		if w := h.Send(t.Context(), browser(c.role), c.path, nil); w.Code != c.get {
			t.Errorf("GET %s as %s: %d, want %d", c.path, c.role, w.Code, c.get)
		}
		if w := h.Send(t.Context(), browser(c.role), c.path, key); w.Code != c.post {
			t.Errorf("POST %s as %s: %d, want %d", c.path, c.role, w.Code, c.post)
		}
	}
	op.own = true
	w := h.Send(t.Context(), viewertest.Person("keeper"), "/-/do/twilio/number/erase/+14155550123", nil)
	if w.Code != http.StatusBadRequest {
		t.Error("one of our own numbers may be erased")
	}
	if len(op.all) > 0 {
		t.Errorf("ordered %v", op.all)
	}
}

// What cannot be taken back stands at the end of a page, under a heading of its own, and its button is marked.
func TestWhatRemovesStandsLast(t *testing.T) {
	h := viewertest.OpenReal(t, func(o *actions.Options) { o.Operator = &orders{} })
	m := h.Upstream.First(t, "/Messages.json", "messages", func(m map[string]any) bool { return m["status"] == "delivered" })
	record := "/twilio/messages/" + text(m["sid"])
	for from, path := range map[string]string{
		record:                        "/-/do/twilio/messages/redact/" + text(m["sid"]),
		"/twilio/number/+14155550123": "/-/do/twilio/number/erase/+14155550123",
	} {
		role := map[bool]string{true: "support", false: "keeper"}[from == record]
		page := strings.ReplaceAll(h.Page(from, viewertest.Person(role)), "&#43;", "+")
		_, last, ok := strings.Cut(page, `id="removing"`)
		if !ok || !strings.Contains(last, `href="`+path+`"`) {
			t.Errorf("%s: %s does not stand under what removes: %s", from, path, page)
		}
		if strings.Count(page, path) != 1 {
			t.Errorf("%s leads to %s %d times", from, path, strings.Count(page, path))
		}
		if page := h.Page(path, viewertest.Person(role)); !strings.Contains(page, `class="primary bad"`) {
			t.Errorf("%s: the button is not marked: %s", path, page)
		}
	}
}
