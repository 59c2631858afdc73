// Whose records are that do not tell.

package crawl

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
)

// What was walked for another user, or by a program that did not keep users
// apart, is not believed of records that do not tell whose they are.
func TestRecordsThatDoNotTellAreTheUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["boxes"], w.things["letters"] = letters(3, time.Hour, time.Now()), letters(3, time.Hour, time.Now())
		x := w.walker(Settings{})
		for _, kind := range []string{"boxes", "letters"} {
			if err := x.Keep(t.Context(), "post", kind); err != nil {
				t.Fatal(err)
			}
		}
		settle := func() {
			t.Helper()
			for range 3 {
				if err := w.work(t.Context(), x); err != nil {
					t.Fatal(err)
				}
				for _, kind := range []string{"boxes", "letters"} {
					w.poll(x, kind)
				}
				if err := x.enqueueDue(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		check := func(kind string, want bool) {
			t.Helper()
			if c, ok := x.Coverage("post", kind, "", "", 0, 0); ok != want {
				t.Errorf("%s: covered %v: %+v", kind, ok, c)
			}
		}
		settle()
		check("boxes", true)
		check("letters", true)
		time.Sleep(time.Minute)
		w.src.User = "you"
		x = w.walker(Settings{})
		if err := x.Load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		check("boxes", false)
		check("letters", false) // those of another were walked
		time.Sleep(time.Second)
		if err := x.enqueueDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle()
		check("boxes", true)
		check("letters", true)
	})
}

// What a caller read under another user's path is not missing from the walked
// lists: it is not asked for there, where it is not found, and does not go.
func TestAnotherUsersRecordsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 20, Settings{})
		now := time.Now().Unix()
		for _, one := range []thing{
			{id: "theirs", clock: now - 3600, whose: "you"}, {id: "theirs-open", clock: now - 3600, whose: "you", open: true},
			{id: "mine-gone", clock: now - 3600, whose: "me"},
		} {
			w.keep(&understudy.Page{Kind: "letters"}, one)
		}
		w.take()
		for range 3 {
			time.Sleep(26 * time.Hour)
			w.poll(x, "letters")
			if err := x.enqueueDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := w.work(t.Context(), x); err != nil {
				t.Fatal(err)
			}
		}
		has := w.has("letters")
		for id, want := range map[string]bool{"theirs": true, "theirs-open": true, "mine-gone": false} {
			if slices.Contains(has, id) != want {
				t.Errorf("%s is held: %v", id, !want)
			}
		}
		for _, asked := range w.take() {
			if strings.Contains(asked, "theirs") {
				t.Errorf("asked for %s", asked)
			}
		}
	})
}
