// Whose records are that do not tell.

package walk

import (
	"testing"
	"testing/synctest"
	"time"
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
				if err := x.due(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		check := func(kind string, want bool) {
			t.Helper()
			if c, ok := x.Covered("post", kind, "", 0, 0); ok != want {
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
		check("letters", true)
		time.Sleep(time.Second)
		if err := x.due(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle()
		check("boxes", true)
	})
}
