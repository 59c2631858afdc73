package signin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"understudy"
	"understudy/internal/checktest"
)

const (
	annas = "four odd words of anna"
	bens  = "ben likes other words"
)

// usersOf writes a file of users with what is added.
func usersOf(t *testing.T, names ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "users")
	for _, name := range names {
		if err := UpdateFile(path, func(u *Users) error { return u.Add(name, "support", annas) }); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestUsers(t *testing.T) {
	path := usersOf(t, "anna", "ben@example.com")
	if err := UpdateFile(path, func(u *Users) error { return u.SetPassword("ben@example.com", bens) }); err != nil {
		t.Fatal(err)
	}
	u, err := ReadUsers(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, password string
		want           bool
	}{
		{"anna", annas, true}, {"anna", bens, false}, {"ben@example.com", bens, true}, {"ben@example.com", annas, false},
		{"carl", annas, false}, {"", annas, false}, {"Anna", annas, false},
	} {
		if got, err := u.Check(t.Context(), c.name, c.password); err != nil || got != c.want {
			t.Errorf("%s with %q: %v, %v; want %v", c.name, c.password, got, err, c.want)
		}
	}
	if err := UpdateFile(path, func(u *Users) error { return u.Remove("anna") }); err != nil {
		t.Fatal(err)
	}
	u, err = ReadUsers(path)
	checktest.MustNoError(t, err, "without anna")
	checktest.MustEqual(t, len(u.All()), 1, "without anna: len(u.All())")
	checktest.Equal(t, u.All()[0].Name, "ben@example.com", "without anna: u.All()[0].Name")
	if ok, err := u.Check(t.Context(), "anna", annas); ok || err != nil {
		t.Errorf("anna, who is gone: %v, %v", ok, err)
	}
}

// An edit keeps the comments, and a change that is refused changes nothing.
func TestEdit(t *testing.T) {
	path := usersOf(t, "anna")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("# the team\n\n"), before...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Users) error
		want   error
	}{
		{func(u *Users) error { return u.Add("anna", "support", annas) }, understudy.ErrInvalid},
		{func(u *Users) error { return u.Add("b:n", "support", annas) }, understudy.ErrInvalid},
		{func(u *Users) error { return u.Add("ben", "support", "short") }, understudy.ErrInvalid},
		{func(u *Users) error { return u.SetPassword("ben", annas) }, understudy.ErrNotFound},
		{func(u *Users) error { return u.SetPassword("anna", "short") }, understudy.ErrInvalid},
		{func(u *Users) error { return u.Remove("ben") }, understudy.ErrNotFound},
	} {
		if err := UpdateFile(path, c.change); !errors.Is(err, c.want) {
			t.Errorf("error %v, want %v", err, c.want)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != "# the team\n\n"+string(before) {
		t.Errorf("the file became %q, %v", after, err)
	}
	if err := UpdateFile(path, func(u *Users) error { return u.Add("ben", "support", bens) }); err != nil {
		t.Fatal(err)
	}
	after, err = os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(after), "# the team\n"+string(before)) {
		t.Errorf("the file became %q, %v", after, err)
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("beside the file: %v", err)
	}
}

// Of edits at the same time each is whole or refused: none is lost.
func TestEditsAtOnce(t *testing.T) {
	path := usersOf(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := map[string]bool{}
	for _, name := range []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"} {
		wg.Go(func() {
			err := UpdateFile(path, func(u *Users) error { return u.Add(name, "support", annas) })
			mu.Lock()
			defer mu.Unlock()
			done[name] = err == nil
			if err != nil && !strings.Contains(err.Error(), "another command is changing the users") {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	u, err := ReadUsers(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, was := range done {
		if _, ok := u.find(name); ok != was {
			t.Errorf("%s: added %v, in the file %v", name, was, ok)
		}
	}
}

func TestUsersThatAreRefused(t *testing.T) {
	hash := dummyHash.String()
	for _, c := range []struct{ lines, want string }{
		{"", ""},
		{"# nobody\n\n   \n", ""},
		{"anna:" + hash + ":support\r\n", ""},
		{"anna", "line 1: a line needs name:hash:role"},
		{"# x\nanna:" + hash, "line 2: a line needs name:hash:role"},
		{"anna:" + hash + ":support:x", "a line needs name:hash:role"},
		{":" + hash + ":support", "is not a user name"},
		{"an na:" + hash + ":support", "is not a user name"},
		{strings.Repeat("a", maxName+1) + ":" + hash + ":support", "is not a user name"},
		{"anna:" + hash + ":", "anna has no role"},
		{"anna:secret:support", "anna: it is not an argon2id hash"},
		{"anna:" + hash + ":support\nanna:" + hash + ":support", "line 2: invalid request: the user anna already exists"},
		{strings.Repeat("#", 70_000), "token too long"},
		{strings.Repeat("# a comment\n", maxFile/12+1), "larger than"},
	} {
		_, err := parseUsers(strings.NewReader(c.lines))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.lines, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error repeats the hash: %v", err)
		}
	}
	path := usersOf(t, "anna")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadUsers(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that the group may open: %v", err)
	}
	if _, err := ReadUsers(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// A file of users is read without a panic, and what is read has a name, a role and a hash.
func FuzzUsers(f *testing.F) {
	f.Add("anna:" + dummyHash.String() + ":support\n# x\n\nben:" + theirHash + ":all")
	f.Add("anna:$argon2id$:x")
	f.Fuzz(func(t *testing.T, lines string) {
		u, err := parseUsers(strings.NewReader(lines))
		if err != nil {
			return
		}
		for _, one := range u.All() {
			checktest.MustTrue(t, CheckName(one.Name) == nil, "CheckName(one.Name) != nil")
			checktest.MustTrue(t, one.Role != "", "one.Role is empty")
			checktest.MustTrue(t, one.signInID != "", "one.with is empty")
			checktest.MustContains(t, lines, one.hash.String(), "lines")
		}
	})
}
