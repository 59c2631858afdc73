// Lists whose rows say more than the list of all records does.

package mirror

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/mirror/shadow"
	"understudy/request"
	"understudy/spec"
)

// taped is a world with one call and its one recording, whose status may
// change.
func taped(w *world, status *string) {
	w.page = func(f request.Fetch) *understudy.Page {
		t := f.Target
		if t.List == nil || t.Kind.Name != "recordings" {
			return nil
		}
		track := ""
		if t.List.Shape == "call_recordings" {
			track = `,"track":"inbound"`
		}
		row := fmt.Sprintf(`{"account_sid":%q,"call_sid":%q,"sid":"RE%032x","status":%q%s}`, account, sid(1), 1, *status, track)
		p := page(t, http.StatusOK, `{"end":0,"first_page_uri":"`+t.Key.Path()+`?PageSize=50&Page=0","next_page_uri":null,"page":0,`+
			`"page_size":50,"previous_page_uri":null,"start":0,"uri":"`+
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, status := &claims{kind: "recordings"}, "processing"
		s := open(t, 1, pinned(shadow.Records), func(o *Options) {
			o.Coverage, o.KV = c, valuesOf(o.Store)
		})
		taped(s.world, &status)
		all, of := s.target(t, "Recordings.json", ""), s.target(t, "Calls/"+sid(1)+"/Recordings.json", "")
		for _, target := range []*spec.Target{s.target(t, "Calls.json", ""), all} {
			if _, err := s.Fill(t.Context(), request.Fill{Target: target, RecordsOnly: true}); err != nil {
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
		want(t, a, request.Cold, "")
		time.Sleep(time.Minute) // past fresh
		b := s.get(t, of)
		want(t, b, request.Composed, "composed")
		if string(a.Page.Body) != string(b.Page.Body) {
			t.Errorf("composed\n%s\nupstream\n%s", b.Page.Body, a.Page.Body)
		}

		status = "completed"
		if _, err := s.Fill(t.Context(), request.Fill{Target: all, RecordsOnly: true}); err != nil {
			t.Fatal(err)
		}
		walked()
		time.Sleep(time.Second)
		want(t, s.get(t, of), request.Stale, "") // what is held, and upstream is asked behind it
		time.Sleep(time.Minute)
		want(t, s.get(t, of), request.Composed, "composed")
		for _, f := range s.Shadow().Scores("twilio") {
			if f.Path == of.List.Path && (f.Samples != 2 || f.Equal != 2) {
				t.Errorf("what upstream said was compared: %+v", f)
			}
		}
	})
}

// keyring is a world in which two accounts have a key each.
func keyring(w *world) {
	w.page = func(f request.Fetch) *understudy.Page {
		t := f.Target
		if t.List == nil || t.Kind.Name != "keys" {
			return nil
		}
		id := "SK" + t.Var("AccountSid")[2:]
		link := t.Key.Path() + `?PageSize=50&Page=0`
		row := fmt.Sprintf(`{"date_created":"Fri, 01 May 2026 12:00:00 +0000","sid":%q}`, id)
		p := page(t, http.StatusOK, `{"end":0,"first_page_uri":"`+link+`","next_page_uri":null,"page":0,"page_size":50,`+
			`"previous_page_uri":null,"start":0,"uri":"`+link+`","keys":[`+row+`]}`)
		end := len(p.Body) - len(`]}`)
		p.Rows, p.Shape = []understudy.Row{{ID: id, Start: end - len(row), End: end}}, t.StorageShape(account)
		return p
	}
}

// TestKeysOfTwoAccounts: keys do not tell whose they are; those of another
// account, which were read, are in no list of the user's.
func TestKeysOfTwoAccounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &claims{kind: "keys"}
		s := open(t, 0, pinned(shadow.Records), func(o *Options) {
			o.Coverage, o.KV = c, valuesOf(o.Store)
		})
		keyring(s.world)
		list := s.target(t, "Keys.json", "")
		walk := func() {
			t.Helper()
			c.since(time.Now(), time.Now())
			c.c.Shapes = []string{"keys"}
			if _, err := s.Fill(t.Context(), request.Fill{Target: list, RecordsOnly: true}); err != nil {
				t.Fatal(err)
			}
		}
		walk()
		other, err := s.spec.Resolve("twilio", "/2010-04-01/Accounts/AC00000000000000000000000000000002/Keys.json", "")
		if err != nil {
			t.Fatal(err)
		}
		want(t, s.get(t, other), request.Cold, "")
		a := s.get(t, list)
		want(t, a, request.Composed, "composed")
		if ids := shown(a.Page); len(ids) != 1 || ids[0] != "SK"+account[2:] {
			t.Errorf("the user's keys: %v", ids)
		}

		// What is held from before the walk and was not seen by it may be anybody's.
		stray := page(list, http.StatusOK, `{"keys":[{"sid":"SK9"}]}`)
		stray.At, stray.Rows = time.Now(), []understudy.Row{{ID: "SK9", Start: 9, End: 22}}
		if _, err := s.store.Save(t.Context(), stray); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		walk()
		if a := s.get(t, list); a.Outcome == request.Composed {
			t.Errorf("composed of what the walk did not see: %v", shown(a.Page))
		}
	})
}

func TestWhatArrivesIsInTheNextList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := covered(t, 7, pinned(shadow.Records))
		target := s.target(t, "Calls.json", "PageSize=3")
		want(t, s.get(t, target), request.Composed, "composed")
		s.set(sid(8), "queued", false)
		if _, err := s.Fill(t.Context(), request.Fill{Target: s.newest(t), RecordsOnly: true}); err != nil {
			t.Fatal(err)
		}
		a := s.get(t, target)
		want(t, a, request.Composed, "composed")
		if got := shown(a.Page); got[0] != sid(8) {
			t.Errorf("the list shows %v", got)
		}
	})
}
