package app

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/signin"
)

// The policy of the start is read before the audit log is opened.
func TestSignInsOfTheFirstPolicyAreListed(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "users"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse([]byte(`
viewer: {listen: "127.0.0.1:0", sign_in: users}
sources:
  twilio: {spec: twilio, user: AC00000000000000000000000000000001, secret: "file:one", upstream: "http://127.0.0.1:1",
    listen: "127.0.0.1:0"}
`), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Log.Access = "off"
	dir, err := datadir.Open(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	a, err := Build(t.Context(), Options{Settings: cfg, Folder: folder, Secrets: namedSecrets, Dir: dir, By: "config", Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if a.enforcer.current.Load().policy.people.Audit == nil {
		t.Error("sign-ins are not listed")
	}
}

// A change of the file of users takes effect before it is confirmed. A change that the settings would refuse changes nothing.
func TestUsersChangeInTheViewer(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "users")
	checktest.MustNoError(t, os.WriteFile(path, []byte("# kept\n"), 0o600), "create")
	cfg, err := config.Parse([]byte(`
viewer: {listen: "127.0.0.1:0", sign_in: users}
sources:
  twilio: {spec: twilio, user: AC00000000000000000000000000000001, secret: "file:one", upstream: "http://127.0.0.1:1",
    listen: "127.0.0.1:0"}
credentials:
  - {name: reports, source: twilio, user: reports, secret: "file:two", role: all}
`), noEnv)
	checktest.MustNoError(t, err, "settings")
	cfg.Log.Access = "off"
	dir, err := datadir.Open(t.TempDir(), false)
	checktest.MustNoError(t, err, "folder")
	defer dir.Close()
	a, err := Build(t.Context(), Options{Settings: cfg, Folder: folder, Secrets: namedSecrets, Dir: dir, By: "config", Stderr: io.Discard,
		ReadSettings: func() (*config.Settings, error) { return cfg, nil }})
	checktest.MustNoError(t, err, "build")
	defer a.close()
	people := func() *signin.People { return a.enforcer.current.Load().policy.people }
	add := func(name, role string) error {
		return people().File.Change(t.Context(), func(u *signin.Users) error { return u.Add(name, role, "correct horse battery") })
	}
	for _, wrong := range [][2]string{{"reports", "all"}, {"ben", "owner"}, {"loopback", "all"}} {
		if err := add(wrong[0], wrong[1]); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	checktest.MustNoError(t, add("anna", "all"), "add")
	checktest.Equal(t, len(people().Users.All()), 1, "users")
	checktest.True(t, people().Users.Has("anna"), "anna is not there")
	checktest.MustNoError(t, os.Remove(path), "remove")
	checktest.MustNoError(t, os.Mkdir(path, 0o700), "a folder in its place")
	if err := add("ben", "all"); !errors.Is(err, understudy.ErrNotStored) {
		t.Errorf("the file cannot be written: %v", err)
	}
}

// The browser of a person whose credential the settings no longer have receives nothing from the reload on.
func TestReloadRemovesReceiversOfRemovedPeople(t *testing.T) {
	e := openExporting(t)
	names := []string{"receiver/a/1", "receiver/b/2"}
	for i, owner := range []string{"reports", "desk"} {
		value := []byte(`{"owner":{"name":"` + owner + `","source":"twilio"}}`)
		checktest.MustNoError(t, e.h.db.KV.SetValue(t.Context(), names[i], value), "store")
	}
	for _, want := range []int{2, 1} {
		_, err := e.h.enforcer.reload(t.Context())
		checktest.MustNoError(t, err, "reload")
		left, err := e.h.db.KV.ReadValues(t.Context(), "receiver/")
		checktest.NoError(t, err, "read")
		checktest.Equal(t, len(left), want, "receivers")
		checktest.True(t, left[names[1]] != nil, "the receiver of a person with access is removed")
		e.settings = strings.Replace(e.settings, "- {name: reports", "- {name: others", 1)
	}
}
