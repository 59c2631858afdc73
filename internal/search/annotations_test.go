package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/store/annotations"
)

// written is what people wrote, for those whom the gate lets note.
type written struct {
	*annotations.Book
	gate *access.Gate
}

func (w written) CanSeeAnnotations(c understudy.Caller, source string) bool {
	return w.gate.CheckPermission(c, source, access.PermitNote) == nil
}

func TestAnnotationsAreFound(t *testing.T) {
	r := newRig(t, true)
	db := r.store
	r.s = r.with(func(o *Options) { o.Annotations = written{db.Annotations, r.gate} })
	find := func(role, text string) (ids []string, err error) {
		t.Helper()
		found, err := r.s.Find(t.Context(), as(role), query.SearchRequest{Text: text, Facets: true})
		if err != nil {
			return nil, err
		}
		if found.Total.N != int64(len(found.Hits)) && found.Next == "" {
			t.Errorf("%s: %d hits, counted %d", text, len(found.Hits), found.Total.N)
		}
		for _, h := range found.Hits {
			ids = append(ids, h.ID)
		}
		slices.Sort(ids)
		return ids, nil
	}
	failed, err := find("all", "kind:calls status:failed")
	if err != nil || len(failed) < 3 {
		t.Fatalf("%d failed calls, %v", len(failed), err)
	}
	for i, n := range []understudy.Note{{Text: "Called her back, über Nacht", By: "anna"}, {Text: "the carrier is down", By: "ben"}} {
		if err := db.Annotations.AddNote(t.Context(), "twilio", "calls", failed[i], n); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Annotations.MarkHandled(t.Context(), "twilio", "calls", failed[0], &understudy.Mark{By: "Anna"}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"note:called": failed[:1], "note:UBER": failed[:1], `note:"carrier is"`: failed[1:2], "note:carr*": failed[1:2],
		"note:nothing":        nil,
		"note:called,carrier": failed[:2], "noted:yes": failed[:2], "noted:ben": failed[1:2], "noted:b*": failed[1:2], "noted:carl": nil,
		"handled:yes": failed[:1], "handled:anna": failed[:1], "handled:ANNA": failed[:1], "handled:ben": nil,
		"status:failed kind:calls handled:no": failed[1:], "status:failed kind:calls -handled:yes": failed[1:],
		"kind:messages noted:yes": nil, "status:failed kind:calls (handled:no OR note:called)": failed,
	} {
		if ids, err := find("all", text); err != nil || !slices.Equal(ids, want) {
			t.Errorf("%s: %d found, %v; want %d", text, len(ids), err, len(want))
		}
	}
	// The count that is kept is of before.
	if err := db.Annotations.MarkHandled(t.Context(), "twilio", "calls", failed[1], &understudy.Mark{By: "ben"}); err != nil {
		t.Fatal(err)
	}
	if ids, err := find("all", "status:failed kind:calls handled:no"); err != nil || !slices.Equal(ids, failed[2:]) {
		t.Errorf("after one more was handled: %d, %v", len(ids), err)
	}
	for _, text := range []string{"note:called", "noted:yes", "handled:no", "-handled:anna"} {
		var e *query.SyntaxError
		if _, err := find("open", text); !errors.As(err, &e) || !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("%s of a role that sees no notes: %v", text, err)
		}
	}
	for _, text := range []string{"note>called", "handled>=yes", "note:…"} {
		if _, err := find("all", text); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A hit has its notes, for those alone who see them.
func TestHitsHaveNotes(t *testing.T) {
	r := newRig(t, true)
	db := r.store
	r.s = r.with(func(o *Options) { o.Annotations = written{db.Annotations, r.gate} })
	one, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: "kind:calls", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	h := one.Hits[0]
	err = errors.Join(db.Annotations.AddNote(t.Context(), h.Source, h.Kind, h.ID, understudy.Note{Text: "called back", By: "anna", At: epoch}),
		db.Annotations.MarkHandled(t.Context(), h.Source, h.Kind, h.ID, &understudy.Mark{By: "ben", At: epoch}))
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[string]bool{"all": true, "open": false} {
		found, err := r.s.Find(t.Context(), as(role), query.SearchRequest{Text: "id:" + h.ID})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := json.Marshal(found)
		says := strings.Contains(string(body), `"text":"called back","by":"anna"`) &&
			strings.Contains(string(body), `"handled":{"by":"ben","at":`+fmt.Sprintf("%q", epoch.Format("2006-01-02T15:04:05Z")))
		none := !strings.Contains(string(body), "called back") && !strings.Contains(string(body), "handled")
		checktest.MustEqual(t, len(found.Hits), 1, "role %s: len(found.Hits); body %s", role, body)
		checktest.Equal(t, says, want, "role %s: says; body %s", role, body)
		checktest.True(t, none != want, "role %s: none is %v; body %s", role, none, body)
	}
}
