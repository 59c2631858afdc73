package actions_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

func TestNotes(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	id := text(h.Upstream.First(t, "/Messages.json", "messages", func(m map[string]any) bool { return m["status"] == "failed" })["sid"])
	record, path := "/twilio/messages/"+id, "/-/do/twilio/messages/note/"+id
	if page := h.Page(record, viewertest.Person("sender")); !strings.Contains(page, `action="`+path+`"`) ||
		!strings.Contains(page, "Mark as handled") {
		t.Errorf("the record has no form for notes: %s", page)
	}
	add := url.Values{"do": {"add"}, "text": {"Called <b>her</b>\nback"}}
	for range 2 { // a double click
		if w := h.Post(viewertest.Person("sender"), path, add, http.StatusSeeOther); w.Header().Get("Location") != record {
			t.Errorf("leads to %s", w.Header().Get("Location"))
		}
	}
	h.Post(viewertest.Person("sender"), path, url.Values{"do": {"handled"}}, http.StatusSeeOther)
	page := h.Page(record, viewertest.Person("sender"))
	if strings.Count(page, "Called &lt;b&gt;her&lt;/b&gt;\nback</p>") != 1 || !strings.Contains(page, "Reopen") {
		t.Errorf("the record shows no note: %s", page)
	}
	if list := h.Page("/twilio/messages", viewertest.Person("sender")); !strings.Contains(list, `title="Handled by anna">handled</span>`) ||
		!strings.Contains(list, ">1 note</span>") {
		t.Error("the list does not show it")
	}
	for _, role := range []string{"reader", "keeper", "program"} {
		for _, at := range []string{record, "/twilio/messages"} {
			page := h.Send(t.Context(), browser(role), at, nil).Body.String()
			for _, telling := range []string{"Called", "handled", "1 note", path} {
				if strings.Contains(page, telling) {
					t.Errorf("%s as %s says %q", at, role, telling)
				}
			}
		}
		h.Post(browser(role), path, add, http.StatusForbidden)
	}
	h.Post(viewertest.Person("few"), path, url.Values{"do": {"open"}}, http.StatusSeeOther)
	number := h.Store.Annotations.Annotation("twilio", "messages", id).Notes[0].Number
	if h.Store.Annotations.Annotation("twilio", "messages", id).Handled != nil {
		t.Error("the mark is still there")
	}
	h.Post(viewertest.Person(understudy.RoleAll), path, url.Values{"do": {"remove"}, "number": {fmt.Sprint(number)}}, http.StatusSeeOther)
	if a := h.Store.Annotations.Annotation("twilio", "messages", id); a != nil {
		t.Errorf("there is still %+v", a)
	}
	h.Post(viewertest.Person(understudy.RoleAll), path, url.Values{"do": {"remove"}, "number": {fmt.Sprint(number)}}, http.StatusNotFound)
	e := h.Audit.Done()
	var did []string
	for i := range e {
		checktest.Equal(t, e[i].Action, understudy.ActionNote, "audited: e[i].Action")
		checktest.MustEqual(t, len(e[i].IDs), 1, "audited: len(e[i].IDs)")
		checktest.Equal(t, e[i].IDs[0], id, "audited: e[i].IDs[0]")
		checktest.Equal(t, e[i].Kind, "messages", "audited: e[i].Kind")
		checktest.True(t, len(e[i].Values) <= 0, "audited: len(e[i].Values) is %v, want <= 0", len(e[i].Values))
		did = append(did, e[i].What)
	}
	if got := strings.Join(did, "; "); got != "write a note; write a note; mark as handled; remove the mark as handled; "+
		"remove a note; remove a note" {
		t.Errorf("audited: %s", got)
	}
}

func TestNotesThatAreNotWritten(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	delivered := text(h.Upstream.First(t, "/Messages.json", "messages", func(m map[string]any) bool {
		return m["status"] == "delivered"
	})["sid"])
	h.Page("/twilio/messages/"+delivered, viewertest.Person(understudy.RoleAll)) // so that it is held
	base := "/-/do/twilio/messages/note/"
	add := url.Values{"do": {"add"}, "text": {"hello"}}
	for _, c := range []struct {
		role, id string
		form     url.Values
		want     int
		says     string
	}{
		{"few", delivered, add, http.StatusNotFound, ""}, // a rule on rows hides it
		{"few", "SM" + strings.Repeat("0", 32), add, http.StatusNotFound, ""},
		{"sender", "SM" + strings.Repeat("0", 32), add, http.StatusNotFound, ""},
		{"sender", "nonsense", add, http.StatusNotFound, ""},
		{"sender", delivered, url.Values{"do": {"add"}, "text": {" "}}, http.StatusBadRequest, "The note is empty"},
		{"sender", delivered, url.Values{"do": {"add"}, "text": {strings.Repeat("x", 4001)}}, http.StatusBadRequest, "4000 at most"},
		{"sender", delivered, url.Values{"do": {"add"}, "text": {"\xff"}}, http.StatusBadRequest, "UTF-8"},
		{"sender", delivered, url.Values{"do": {"shout"}}, http.StatusBadRequest, "shout"},
		{"sender", delivered, url.Values{"do": {"remove"}, "number": {"x"}}, http.StatusBadRequest, "This form is not valid"},
		{"sender", delivered, url.Values{"do": {"add"}, "text": {strings.Repeat("x", 70_000)}}, http.StatusBadRequest, "64 KiB"},
	} {
		h.Post(browser(c.role), base+c.id, c.form, c.want, c.says)
	}
	h.Audit.Fail(understudy.ErrNotAudited)
	h.Post(viewertest.Person("sender"), base+delivered, add, http.StatusServiceUnavailable)
	if a := h.Store.Annotations.Annotation("twilio", "messages", delivered); a != nil {
		t.Errorf("written: %+v", a)
	}
}

// A note is removed by who wrote it, and by role all.
func TestNotesOfOthers(t *testing.T) {
	h := viewertest.OpenReal(t, nil)
	id := text(h.Upstream.First(t, "/Messages.json", "messages", nil)["sid"])
	h.Page("/twilio/messages/"+id, viewertest.Person("sender"))
	viewertest.Must(t, h.Store.Annotations.AddNote(t.Context(), "twilio", "messages", id, understudy.Note{Text: "of ben", By: "ben"}))
	number := h.Store.Annotations.Annotation("twilio", "messages", id).Notes[0].Number
	if page := h.Page("/twilio/messages/"+id, viewertest.Person("sender")); !strings.Contains(page, "of ben") ||
		strings.Contains(page, ">Remove</button>") {
		t.Error("a note of another can be removed")
	}
	path, form := "/-/do/twilio/messages/note/"+id, url.Values{"do": {"remove"}, "number": {fmt.Sprint(number)}}
	h.Post(viewertest.Person("sender"), path, form, http.StatusForbidden)
	h.Post(viewertest.Person(understudy.RoleAll), path, form, http.StatusSeeOther)
}
