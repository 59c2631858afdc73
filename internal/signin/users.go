// This file reads and writes the file of users, which has a line for each person.

package signin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"understudy"
	"understudy/internal/smallfile"
)

// User is a person in the file of users, whose line is name:hash:role.
type User struct {
	Name     string
	Role     string
	hash     hash
	signInID string // a text that identifies the hash without revealing it
}

// The limits of the file of users.
const (
	maxUsers = 10_000
	maxName  = 64 // the maximum length of a name, in bytes
	maxFile  = 4 << 20
)

// Users are the people in a file of users.
type Users struct {
	all    []User // the users in the order of the file
	byName map[string]int
}

// dummyHash is computed for an unknown name if the file has no users.
var dummyHash = hash{memory: hashMemory, passes: hashPasses, lanes: hashLanes, salt: make([]byte, saltBytes), key: make([]byte, keyBytes)}

// ReadUsers reads a file of users. It returns an error if others than the file's owner can read the file. Errors
// name the line and never contain a hash.
func ReadUsers(path string) (*Users, error) {
	f, err := smallfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w; understudy users add creates it", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s: other users can open the file (mode %04o); run chmod 600 on it", path, info.Mode().Perm())
	}
	u, err := parseUsers(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return u, nil
}

// parseUsers parses the lines of the file. It skips empty lines and lines that begin with #.
func parseUsers(r io.Reader) (*Users, error) {
	u := &Users{byName: map[string]int{}}
	lines := bufio.NewScanner(io.LimitReader(r, maxFile+1))
	size := 0
	for n := 1; lines.Scan(); n++ {
		if size += len(lines.Bytes()) + 1; size > maxFile {
			return nil, fmt.Errorf("larger than %d bytes", maxFile)
		}
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		one, err := parseUser(line)
		if err == nil {
			err = u.add(one)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return u, nil
}

// parseUser parses one line: name:hash:role.
func parseUser(line string) (u User, err error) {
	parts := strings.Split(line, ":")
	if len(parts) != 3 {
		return u, errors.New("a line needs name:hash:role; understudy users add writes one")
	}
	u.Name, u.Role = parts[0], parts[2]
	if err := CheckName(u.Name); err != nil {
		return u, err
	}
	if u.Role == "" {
		return u, fmt.Errorf("%s has no role", u.Name)
	}
	if u.hash, err = parseHash(parts[1]); err != nil {
		return u, fmt.Errorf("%s: %w", u.Name, err)
	}
	return u, nil
}

// CheckName returns an error for a name that cannot stand in a line of the file.
func CheckName(name string) error {
	odd := strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-@+", r)
	})
	if name == "" || len(name) > maxName || odd {
		return fmt.Errorf("%w: %q is not a user name; write 1 to %d letters, digits, or any of ._-@+", understudy.ErrInvalid,
			understudy.Clip(name), maxName)
	}
	return nil
}

func (u *Users) add(one User) error {
	if _, twice := u.byName[one.Name]; twice {
		return fmt.Errorf("%w: the user %s already exists", understudy.ErrInvalid, one.Name)
	}
	if len(u.all) == maxUsers {
		return fmt.Errorf("more than %d users", maxUsers)
	}
	u.byName[one.Name] = len(u.all)
	one.setHash(one.hash)
	u.all = append(u.all, one)
	return nil
}

func (u *User) setHash(h hash) {
	sum := sha256.Sum256([]byte(h.String()))
	u.hash, u.signInID = h, hex.EncodeToString(sum[:8])
}

// All returns the users in the order of the file.
func (u *Users) All() []User { return u.all }

// Has reports whether there is a user with a given name.
func (u *Users) Has(name string) bool {
	_, ok := u.byName[name]
	return ok
}

// find returns the user with a given name.
func (u *Users) find(name string) (one User, ok bool) {
	i, ok := u.byName[name]
	if !ok {
		return one, false
	}
	return u.all[i], true
}

// Check reports whether a password is correct. For an unknown name it takes the same time, because it computes
// the hash of the first user. Errors: ErrTooMany.
func (u *Users) Check(ctx context.Context, name, password string) (bool, error) {
	h := dummyHash
	if len(u.all) > 0 {
		h = u.all[0].hash
	}
	one, known := u.find(name)
	if known {
		h = one.hash
	}
	right, err := h.match(ctx, password)
	return right && known, err
}

// Add adds a user with a password.
func (u *Users) Add(name, role, password string) error {
	if err := errors.Join(CheckName(name), CheckPassword(name, password)); err != nil {
		return err
	}
	return u.add(User{Name: name, Role: role, hash: hashOf(password)})
}

// SetPassword gives a user another password. It returns ErrNotFound if there is no such user.
func (u *Users) SetPassword(name, password string) error {
	i, ok := u.byName[name]
	if !ok {
		return newNotFound(name)
	}
	if err := CheckPassword(name, password); err != nil {
		return err
	}
	u.all[i].setHash(hashOf(password))
	return nil
}

// SetRole gives a user another role. It returns ErrNotFound if there is no such user.
func (u *Users) SetRole(name, role string) error {
	i, ok := u.byName[name]
	if !ok {
		return newNotFound(name)
	}
	u.all[i].Role = role
	return nil
}

// Remove removes a user. It returns ErrNotFound if there is no such user.
func (u *Users) Remove(name string) error {
	i, ok := u.byName[name]
	if !ok {
		return newNotFound(name)
	}
	u.all = slices.Delete(u.all, i, i+1)
	delete(u.byName, name)
	for j := i; j < len(u.all); j++ {
		u.byName[u.all[j].Name] = j
	}
	return nil
}

func newNotFound(name string) error {
	return fmt.Errorf("%w: there is no user %q", understudy.ErrNotFound, understudy.Clip(name))
}

// UpdateFile changes the file of users, or creates it. Either the whole change is written, or nothing. Comments are
// kept, and move to the beginning of the file. If two updates run at the same time, the second is refused.
func UpdateFile(path string, change func(*Users) error) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: another command is changing the users, or was killed; remove the file if no command is running", next)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(write(f, path, change), f.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return os.Rename(next, path)
}

// write writes the changed file.
func write(f *os.File, path string, change func(*Users) error) error {
	u, err := ReadUsers(path)
	if errors.Is(err, fs.ErrNotExist) {
		u, err = &Users{byName: map[string]int{}}, nil
	}
	if err != nil {
		return err
	}
	comments, err := readComments(path)
	if err != nil {
		return err
	}
	if err := change(u); err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	_, _ = w.Write(comments) // an error is ignored here, because Flush returns it
	for _, one := range u.all {
		fmt.Fprintf(w, "%s:%s:%s\n", one.Name, one.hash, one.Role)
	}
	return errors.Join(w.Flush(), f.Sync())
}

// readComments returns the comments of a file of users.
func readComments(path string) ([]byte, error) {
	data, err := smallfile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var kept []byte
	for line := range bytes.Lines(data) {
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] == '#' {
			kept = append(append(kept, text...), '\n')
		}
	}
	return kept, err
}
