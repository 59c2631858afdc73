// Sign-in: how people come into the viewer.

package config

import (
	"fmt"
	"path/filepath"
	"slices"

	"understudy/internal/signin"
	"understudy/kit/suggest"
)

// The ways of viewer.sign_in.
const (
	signInNone  = "none"
	signInUsers = "users"
)

func (c *Settings) checkSignIn() error {
	v, ways := &c.Viewer, []string{signInNone, signInUsers}
	switch {
	case v.SignIn != "" && !slices.Contains(ways, v.SignIn):
		return fmt.Errorf("sign_in: %q is not known; write none or users%s", v.SignIn, suggest.Hint(v.SignIn, ways))
	case v.SignIn == signInUsers && v.Role != "":
		return fmt.Errorf("role: nobody has it, since people sign in (viewer.sign_in: users); take one of both out")
	case v.SignIn != signInUsers && v.Users != defaultUsers:
		return fmt.Errorf("users: nobody signs in with it; write viewer.sign_in: users")
	}
	return nil
}

// UsersFile is the path of the file of users, "" when nobody signs in with one. folder is
// what it is relative to.
func (c *Settings) UsersFile(folder string) string {
	switch {
	case c.Viewer.SignIn != signInUsers:
		return ""
	case filepath.IsAbs(c.Viewer.Users):
		return c.Viewer.Users
	}
	return filepath.Join(folder, c.Viewer.Users)
}

// ReadUsers reads the file of users; nil: nobody signs in with one. A user whose role is
// not there, or who has the name of a credential, is an error.
func (c *Settings) ReadUsers(folder string) (*signin.Users, error) {
	path := c.UsersFile(folder)
	if path == "" {
		return nil, nil
	}
	users, err := signin.ReadUsers(path)
	if err != nil {
		return nil, fmt.Errorf("viewer.users: %w", err)
	}
	for _, u := range users.All() {
		if err := c.CheckUser(u.Name, u.Role); err != nil {
			return nil, fmt.Errorf("viewer.users: %s: %s: %w", path, u.Name, err)
		}
	}
	return users, nil
}

// CheckUser refuses a user whose role is not there, or whose name means somebody else.
func (c *Settings) CheckUser(name, role string) error {
	if err := c.checkRole(role); err != nil {
		return fmt.Errorf("role: %w", err)
	}
	for _, cred := range c.Credentials {
		if cred.Name == name {
			return fmt.Errorf("name: a credential is called that, too")
		}
	}
	if reserved(name) {
		return fmt.Errorf("name: %s is what people on this machine and commands are called", name)
	}
	return nil
}

// reserved reports whether a name means somebody without a credential.
func reserved(name string) bool { return name == "loopback" || name == "run.json" }
