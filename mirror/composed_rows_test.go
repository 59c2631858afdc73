// Lists whose rows say more than the list of all records does.

package mirror

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
)

// taped is a world with one call and its one recording, whose status may
// change.
func taped(w *world, status *string) {
	w.page = func(f understudy.Fetch) *understudy.Page {
		t := f.Target
		if t.List == nil || t.Kind.Name != "recordings" {
			return nil
		}
		track := ""
		if t.List.Shape == "call_recordings" {
			track = `,"track":"inbound"`
		}
		row := fmt.Sprintf(`{"account_sid":%q,"call_sid":%q,"sid":"RE%032x","status":%q%s}`, account, sid(1), 1, *status, track)
		p := page(t, http.StatusOK, `{"end":0,"first_page_uri":"`+t.Key.Path()+`?PageSize=50&Page=0","next_page_uri":null,"page":0,"page_size":50,"previous_page_uri":null,"start":0,"uri":"`+
			t.Key.Path()+`?PageSize=50&Page=0","recordings":[`+row+`]}`)
		end := len(p.Body) - len(`]}`)
		p.Rows = []understudy.Row{{ID: fmt.Sprintf("RE%032x", 1), Start: end - len(row), End: end}}
		return p
	}
}

// TestRowsOfTheirOwn: the recordings of a call say what the list of all does
// not. They are given as they were seen there, once they were, until the list
// of all shows that something changed.
func TestRowsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, status := &claims{kind: "recordings"}, "processing"
		s := open(t, 1, pinned(AnswersRecords), func(o *Options) {
			o.Coverage, o.Notes = c, o.Store.(Notes)
		})
		taped(s.world, &status)
		all, of := s.target(t, "Recordings.json", ""), s.target(t, "Calls/"+sid(1)+"/Recordings.json", "")
		for _, target := range []*understudy.Target{s.target(t, "Calls.json", ""), all} {
			if _, err := s.Fill(t.Context(), understudy.Fill{Target: target, RecordsOnly: true}); err != nil {
				t.Fatal(err)
			}
		}
		walked := func() {
			c.since(time.Now(), time.Now())
			c.c.Shapes = []string{"recordings"}
		}
		walked()
		time.Sleep(time.Second)
		a := s.get(t, of)
		want(t, a, understudy.Cold, "")
		time.Sleep(time.Minute) // past fresh
		b := s.get(t, of)
		want(t, b, understudy.Composed, "composed")
		if string(a.Page.Body) != string(b.Page.Body) {
			t.Errorf("composed\n%s\nupstream\n%s", b.Page.Body, a.Page.Body)
		}

		status = "completed"
		if _, err := s.Fill(t.Context(), understudy.Fill{Target: all, RecordsOnly: true}); err != nil {
			t.Fatal(err)
		}
		walked()
		time.Sleep(time.Second)
		want(t, s.get(t, of), understudy.Stale, "") // what is held, and upstream is asked behind it
		time.Sleep(time.Minute)
		want(t, s.get(t, of), understudy.Composed, "composed")
	})
}
