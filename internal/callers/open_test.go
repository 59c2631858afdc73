// Open: sources that programs on this machine need no credential for.

package callers

import (
	"errors"
	"testing"

	"understudy"
)

func TestOpenSources(t *testing.T) {
	b := book(t, Options{Open: []string{"open"}, Credentials: []Credential{credential("shop", "open", "shop", "shop secret 1234", "few")}})
	for _, c := range []struct {
		name   string
		source string
		peer   string
		header []string
		want   string // the caller; "": nobody
	}{
		{"on this machine", "open", "127.0.0.1:5000", nil, "loopback"},
		{"with a credential of ours", "open", "127.0.0.1:5000", []string{"Authorization", basicHeader("shop", "shop secret 1234")}, "shop"},
		{"with one of upstream's", "open", "127.0.0.1:5000", []string{"Authorization", basicHeader("them", "x")}, "loopback"},
		{"from elsewhere", "open", "10.0.0.1:5000", nil, ""},
		{"from elsewhere, with a credential", "open", "10.0.0.1:5000",
			[]string{"Authorization", basicHeader("shop", "shop secret 1234")}, "shop"},
		{"by a proxy", "open", "127.0.0.1:5000", []string{"X-Forwarded-For", "10.0.0.1"}, ""},
		{"another source", "twilio", "127.0.0.1:5000", nil, ""},
	} {
		r := local(c.peer, "127.0.0.1:4114", c.header...)
		got, err := b.Identify(r, c.source)
		if got.Name != c.want || (c.want == "") != errors.Is(err, understudy.ErrUnauthorized) {
			t.Errorf("%s: %q %v", c.name, got.Name, err)
		}
		if c.want == "loopback" && (got.Source != c.source || got.Role() != understudy.RoleAll) {
			t.Errorf("%s: %+v", c.name, got)
		}
		if _, admit := b.Admit(r, c.source); (admit != nil) != (c.want != "") {
			t.Errorf("%s: admitted later is %t", c.name, admit != nil)
		}
	}
	if _, err := b.Identify(local("127.0.0.1:5000", "evil.example:4114"), "open"); !errors.Is(err, understudy.ErrUnauthorized) {
		t.Errorf("under another name: %v", err)
	}
	b = book(t, Options{Open: []string{"open"}, BehindProxy: true})
	if _, err := b.Identify(local("127.0.0.1:5000", "127.0.0.1:4114"), "open"); err == nil {
		t.Error("behind a proxy everybody is on this machine")
	}
}
