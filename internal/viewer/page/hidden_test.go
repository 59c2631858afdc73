// Hidden: people who may find some records alone see no other on any page.

package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access/accesstest"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/viewer"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/spec"
	"understudy/spec/spectest"
)

// asRole names a person by the role.
type asRole string

func (a asRole) IdentifyPerson(*http.Request) (understudy.Caller, error) {
	return understudy.Caller{Name: string(a), Grant: &understudy.Grant{Role: string(a)}}, nil
}

func openHidden(t *testing.T, role string, held bool) (*accesstest.World, *viewer.Viewer) {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	w := &accesstest.World{Source: &spec.Source{Name: "twilio", Spec: sp, User: viewertest.Account}, Now: viewertest.Noon, Held: held}
	gate, err := w.Gate(accesstest.Rules())
	viewertest.Must(t, err)
	counts := func(context.Context, string) page.Snapshot {
		s := page.Snapshot{State: "ok", Kinds: map[string]page.StoredKind{}}
		for _, k := range sp.Kinds {
			s.Kinds[k.Name] = page.StoredKind{Records: 998877, Complete: true, Running: true, Done: 998877, Total: 998877,
				CaughtUp: viewertest.Noon.Add(-time.Hour)}
		}
		return s
	}
	v, err := viewer.New(page.Options{Sources: []*spec.Source{w.Source}, Mirror: w, Media: w, History: w, Gate: gate, Callers: asRole(role),
		Snapshot: counts, Now: func() time.Time { return viewertest.Noon }})
	viewertest.Must(t, err)
	t.Cleanup(func() { viewertest.Must(t, v.Visitor.Close()) })
	return w, v
}

// pagesAbout are addresses of everything the viewer could show of records with
// these ids and of a number.
func pagesAbout(w *accesstest.World, id func(string) string, number string) []string {
	all := []string{"/", "/index.json", "/twilio/number/" + number, "/twilio/number/" + number + ".json",
		"/twilio/number/" + number + "/" + accesstest.OwnNumber, "/twilio/number/" + number + "/" + accesstest.OwnNumber + ".json"}
	for _, k := range w.Source.Spec.Kinds {
		at := "/twilio/" + k.Name
		for _, form := range []string{"", ".json", ".csv", ".jsonl"} {
			all = append(all, at+form, at+form+"?understudy.as_of=2026-05-31T00:00:00Z")
			for i, l := range k.Lists {
				if i > 0 || len(l.Filters) > 0 {
					all = append(all, at+form+"?CallSid="+id("calls")+"&ConferenceSid="+id("conferences")+"&MessageSid="+id("messages"))
				}
			}
		}
		for _, l := range k.Lists {
			for _, f := range l.Filters {
				all = append(all, at+"?"+url.QueryEscape(f.Name)+"=x7")
			}
			for _, v := range []string{"CallSid", "ConferenceSid", "MessageSid", "QueueSid", "RecordingSid"} {
				if l.Template().Has(v) {
					of := map[string]string{"CallSid": "calls", "ConferenceSid": "conferences", "MessageSid": "messages", "QueueSid": "queues",
						"RecordingSid": "recordings"}[v]
					all = append(all, at+"?"+v+"="+id(of), at+".json?"+v+"="+id(of))
				}
			}
		}
		if len(k.ID) == 0 {
			continue
		}
		one := at + "/" + id(k.Name)
		for _, query := range []string{"", "?understudy.as_of=2026-05-31T00:00:00Z", "?compare=2026-06-01T10:30:00Z..2026-06-01T11:30:00Z",
			"?understudy.versions=5",
			"?MessageSid=" + id("messages"), "?CallSid=" + id("calls")} {
			all = append(all, one+query)
		}
		all = append(all, one+".json", one+".json?MessageSid="+id("messages"), "/search?q="+id(k.Name), "/search.json?q="+id(k.Name))
	}
	return all
}

func visitHidden(v *viewer.Viewer, at string) (int, string, string) {
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, at, nil)
	r.Header.Set("Prefer", "wait=20")
	v.ServeHTTP(rec, r)
	head := rec.Header().Clone()
	for _, name := range []string{"Set-Cookie", "X-Request-Id"} {
		head.Del(name)
	}
	return rec.Code, fmt.Sprint(head), rec.Body.String()
}

func TestHiddenRecordsAreOnNoPage(t *testing.T) {
	for _, role := range []string{"age", "number", "sub"} { // the others differ in the gate alone
		for _, held := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, held %v", role, held), func(t *testing.T) {
				w, v := openHidden(t, role, held)
				var asked []string
				for _, k := range w.Source.Spec.Kinds {
					if len(k.ID) > 0 {
						asked = append(asked, strings.Split(w.Hidden(k.Name), "~")...)
					}
				}
				asked = append(asked, "+44 999 888 7770", "+449998887770", "449998887770", "C99999999…", "999999…")
				hidden, never, shown := pagesAbout(w, w.Hidden, "+449998887770"), pagesAbout(w, w.Never, "+440008887770"),
					pagesAbout(w, w.Shown, accesstest.OwnNumber)
				run := sample.OneIn(t, 20)
				for i, at := range hidden {
					if !run() {
						continue
					}
					status, head, body := visitHidden(v, at)
					if m := accesstest.Marked(head+body, asked...); m != "" {
						t.Fatalf("%s tells: %s", at, m)
					}
					statusN, headN, bodyN := visitHidden(v, never[i])
					as := strings.NewReplacer(strings.Repeat("9", 32), strings.Repeat("0", 32), "99999999", "00000000", "9998887770", "0008887770",
						"999\u00a0888\u00a07770", "000\u00a0888\u00a07770").Replace
					checktest.MustEqual(t, status, statusN, "%s: status", at)
					checktest.MustEqual(t, as(head), headN, "%s: as(head)", at)
					checktest.MustEqual(t, as(body), bodyN, "%s: as(body)", at)
				}
				for _, at := range shown {
					if !run() {
						continue
					}
					if _, head, body := visitHidden(v, at); accesstest.Marked(head+body) != "" {
						t.Fatalf("%s tells: %s", at, accesstest.Marked(head+body))
					}
				}
			})
		}
	}
}

func TestFoundRecordsAreOnTheirPages(t *testing.T) {
	w, v := openHidden(t, "age", true)
	for _, kind := range []string{"calls", "messages", "conferences", "recordings", "alerts"} {
		for _, at := range []string{"/twilio/" + kind, "/twilio/" + kind + "/" + w.Shown(kind), "/twilio/" + kind + "/" + w.Shown(kind) + ".json",
			"/twilio/" + kind + ".json"} {
			if status, _, body := visitHidden(v, at); status != http.StatusOK || !strings.Contains(body, w.Shown(kind)[:12]) {
				t.Errorf("%s: %d %.300s", at, status, body)
			}
		}
	}
	if status, _, body := visitHidden(v, "/twilio/calls/"+w.Shown("calls")); status != http.StatusOK || !strings.Contains(body, "former") {
		t.Errorf("its timeline: %d", status)
	}
}
