package diagnostics

import (
	"encoding/json"
	"strings"
	"testing"

	"understudy/kit/lockwatch"
)

func TestLocksAreWatchedUntilTheyAreNot(t *testing.T) {
	h, _ := profiling(t)
	t.Cleanup(lockwatch.Stop)
	read := func() (r lockwatch.Report) {
		t.Helper()
		a := serve(h, "GET", "/-/locks?format=json", "", "Role", "all")
		if err := json.Unmarshal(a.Body.Bytes(), &r); err != nil || a.Code != 200 {
			t.Fatalf("status %d, %v: %s", a.Code, err, a.Body)
		}
		return r
	}
	for _, body := range []string{"", "watch=perhaps"} {
		if a := serve(h, "POST", "/-/locks", body, "Role", "all"); a.Code != 400 || !strings.Contains(a.Body.String(), "write on or off") {
			t.Errorf("%q: %d %s", body, a.Code, a.Body)
		}
	}
	if a := serve(h, "POST", "/-/locks", "watch=on", "Role", "all"); a.Code != 303 || !read().Watching {
		t.Errorf("on: %d, %+v", a.Code, read())
	}
	var m lockwatch.Mutex
	m.Lock()
	defer m.Unlock()
	holder := "diagnostics." + t.Name() + " (locks_test.go:"
	if a := serve(h, "GET", "/-/locks", "", "Role", "all"); !strings.Contains(a.Body.String(), holder) {
		t.Errorf("the page lacks the holder: %s", a.Body)
	}
	if a := serve(h, "POST", "/-/locks", "watch=off", "Role", "all"); a.Code != 303 || read().Watching {
		t.Errorf("off: %d, %+v", a.Code, read())
	}
}
