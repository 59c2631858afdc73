// Tests of what needs a restart.

package config

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestNeedRestart(t *testing.T) {
	const text = `
data: d
viewer: {listen: "127.0.0.1:1", role: all}
sources:
  web: {spec: twilio, user: u, secret: "file:x", rate: 5}
mirror: {hot: 10MiB, newest: 10s}
`
	read := func(change ...string) *Settings {
		t.Helper()
		c, err := Parse([]byte(strings.NewReplacer(change...).Replace(text)), noEnv)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, c := range []struct {
		change []string
		want   string
	}{
		{nil, ""},
		{[]string{"rate: 5", "rate: 6, polls: []", "file:x", "file:y", "role: all", "role: \"\"", "newest: 10s", "newest: 1s"}, ""},
		{[]string{"data: d", "data: e"}, "data"},
		{[]string{"user: u", "user: v"}, "sources.web.user"},
		{[]string{"user: u", "user: u, login: k"}, "sources.web.login"},
		{[]string{"hot: 10MiB", "hot: 20MiB", "127.0.0.1:1", "127.0.0.1:2"}, "mirror.hot viewer.listen"},
		{[]string{"mirror:", "limits: {headers: 9KiB, waiters: 3, head_time: 1s}\nmirror:"}, "limits.head_time limits.headers"},
		{[]string{"rate: 5", "rate: 5, timeouts: {total: 3s}"}, "sources.web.timeouts.total"},
	} {
		if got := strings.Join(NeedRestart(read(), read(c.change...)), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.change, got, c.want)
		}
	}
}

// Every setting named as live exists, and the document names the same ones.
func TestLiveSettingsAreDocumented(t *testing.T) {
	known := map[string]bool{}
	settingNames(reflect.TypeFor[Settings](), "", known)
	data, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(data), "\n## Reading them again")
	if !ok {
		t.Fatal("docs/settings.md does not say what SIGHUP does")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range live {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("docs/settings.md does not say that %s is read again", name)
		}
		found := slices.ContainsFunc(slices.Collect(func(yield func(string) bool) {
			for k := range known {
				if !yield(k) {
					return
				}
			}
		}), func(k string) bool {
			return k == name || strings.HasPrefix(k, name+".") || strings.HasPrefix(k, name+"[]")
		})
		if !found {
			t.Errorf("%s is no setting", name)
		}
	}
}
