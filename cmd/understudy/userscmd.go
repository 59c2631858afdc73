// The users commands: they manage the people who can sign in to the viewer with a password.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"understudy/cmd/understudy/terminal"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/signin"
)

type usersCmd struct {
	Add    usersAddCmd    `cmd:"" help:"Add a user with a role and a password."`
	Passwd usersPasswdCmd `cmd:"" help:"Change the password of a user, and end the user's sessions."`
	List   usersListCmd   `cmd:"" help:"List the users and their roles."`
	Remove usersRemoveCmd `cmd:"" help:"Remove a user, and end the user's sessions."`
}

// usersFileFlag has the flag for the settings file, in which the file of users is named.
type usersFileFlag struct {
	Config string `default:"understudy.yml" placeholder:"FILE" help:"Settings file, which names the file of users (default ${default})."`
}

// read reads the settings, and returns them with the path of the file of users.
func (c *usersFileFlag) read(p *process) (cfg *config.Settings, path string, err error) {
	if cfg, err = config.Read(c.Config, p.env); err != nil {
		return nil, "", err
	}
	if path = cfg.Viewer.UsersFile(filepath.Dir(c.Config)); path == "" {
		return nil, "", fmt.Errorf("%s: people do not sign in with a password; write viewer: {sign_in: users} first", c.Config)
	}
	return cfg, path, nil
}

// change changes the file of users and tells a running server to read it again. done is the message that says what has changed.
func (c *usersFileFlag) change(ctx context.Context, p *process, done string, change func(*signin.Users) error) error {
	cfg, path, err := c.read(p)
	if err != nil {
		return err
	}
	if err := signin.UpdateFile(path, change); err != nil {
		return err
	}
	run, err := datadir.ReadRunning(cfg.Data)
	switch {
	case errors.Is(err, os.ErrNotExist):
		_, err = fmt.Fprintf(p.stdout, "%s in %s; no server is running\n", done, path)
		return err
	case err == nil:
		err = newLocalAdmin(run).ask(ctx, http.MethodPost, "/-/reload", nil, nil)
	}
	if err != nil {
		return fmt.Errorf("%s in %s, but the running server has not read the file yet: %w", done, path, err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s in %s; the running server has read it\n", done, path)
	return err
}

// passwordFlag has the flag that says where to read a password from.
type passwordFlag struct {
	Password string `placeholder:"file:PATH" help:"Password, as file:PATH or cmd:COMMAND (default: ask, or read a line of standard input)."`
}

// read reads a password from the file or the command that the flag names, otherwise from standard input. On a
// terminal, it asks for the password twice.
func (c *passwordFlag) read(ctx context.Context, p *process) (string, error) {
	if c.Password != "" {
		secret, err := config.ReadSecret(ctx, config.SecretRef(c.Password), ".")
		if err != nil {
			return "", fmt.Errorf("--password: %w", err)
		}
		return secret.Reveal(), nil
	}
	if f, ok := p.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return askTwice(p.stderr, int(f.Fd()))
	}
	line, err := bufio.NewReader(io.LimitReader(p.stdin, 1<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// askTwice asks on a terminal for a password, and for the same password again, without showing what is typed.
func askTwice(w io.Writer, terminal int) (string, error) {
	var said [2][]byte
	for i, prompt := range []string{"Password: ", "Once more: "} {
		fmt.Fprint(w, prompt)
		var err error
		said[i], err = term.ReadPassword(terminal)
		fmt.Fprintln(w)
		if err != nil {
			return "", err
		}
	}
	if string(said[0]) != string(said[1]) {
		return "", errors.New("the two passwords differ; nothing was changed")
	}
	return string(said[0]), nil
}

type usersAddCmd struct {
	Name   string        `arg:"" help:"Name of the user."`
	Role   string        `required:"" placeholder:"ROLE" help:"Role of the settings that decides what the user sees."`
	Secret passwordFlag  `embed:""`
	File   usersFileFlag `embed:""`
}

// Run adds a user.
func (c *usersAddCmd) Run(ctx context.Context, p *process) error {
	cfg, _, err := c.File.read(p)
	if err != nil {
		return err
	}
	if err := errors.Join(signin.CheckName(c.Name), cfg.CheckUser(c.Name, c.Role)); err != nil {
		return err
	}
	secret, err := c.Secret.read(ctx, p)
	if err != nil {
		return err
	}
	return c.File.change(ctx, p, "added "+c.Name, func(u *signin.Users) error { return u.Add(c.Name, c.Role, secret) })
}

type usersPasswdCmd struct {
	Name   string        `arg:"" help:"Name of the user."`
	Secret passwordFlag  `embed:""`
	File   usersFileFlag `embed:""`
}

// Run sets the password of a user.
func (c *usersPasswdCmd) Run(ctx context.Context, p *process) error {
	secret, err := c.Secret.read(ctx, p)
	if err != nil {
		return err
	}
	return c.File.change(ctx, p, "changed the password of "+c.Name, func(u *signin.Users) error {
		return u.SetPassword(c.Name, secret)
	})
}

type usersListCmd struct {
	Output outputFlag    `embed:""`
	File   usersFileFlag `embed:""`
}

// Run prints all users.
func (c *usersListCmd) Run(p *process) error {
	_, path, err := c.File.read(p)
	if err != nil {
		return err
	}
	users, err := signin.ReadUsers(path)
	if err != nil {
		return err
	}
	type user struct {
		Name string `json:"name"`
		Role string `json:"role"`
	}
	all := []user{}
	for _, u := range users.All() {
		all = append(all, user{u.Name, u.Role})
	}
	return c.Output.print(p.stdout, map[string]any{"users": all}, func(w io.Writer) error {
		table := terminal.Table{{"USER", "ROLE"}}
		for _, u := range all {
			table.Add(u.Name, u.Role)
		}
		return table.Print(w)
	})
}

type usersRemoveCmd struct {
	Name string        `arg:"" help:"Name of the user."`
	File usersFileFlag `embed:""`
}

// Run removes a user.
func (c *usersRemoveCmd) Run(ctx context.Context, p *process) error {
	return c.File.change(ctx, p, "removed "+c.Name, func(u *signin.Users) error { return u.Remove(c.Name) })
}
