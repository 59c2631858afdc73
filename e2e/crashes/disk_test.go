// The disk fills up, the database is locked, its bytes are ruined: answers go
// out all the same, and everything heals by itself where it can.

package crashes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/signin"
)

// disk is what a data folder lies on. With a file system of its own it really
// fills up; where none may be mounted, the server may not let files grow.
type disk struct {
	*testing.T
	data    string
	mounted bool
	full    string // what the answers say then
	server  *binary.Server
}

// small mounts a file system of size bytes over a folder, if that is permitted.
func small(t *testing.T, data string, size int) *disk {
	t.Helper()
	d := &disk{T: t, data: data, full: "disk full"}
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		t.Logf("no small file system may be mounted here (%v); files are kept from growing instead", err)
		d.full = "disk I/O error"
		return d
	}
	d.mounted = true
	t.Cleanup(func() {
		if err := syscall.Unmount(data, 0); err != nil {
			t.Error(err)
		}
	})
	return d
}

// fill leaves no free disk space.
func (d *disk) fill() {
	d.Helper()
	if !d.mounted {
		d.limit(4096)
		return
	}
	f, err := os.OpenFile(filepath.Join(d.data, "filler"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.Error(err)
		return
	}
	defer f.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.Error(err)
	}
}

// free gives it back.
func (d *disk) free() {
	d.Helper()
	if !d.mounted {
		d.limit(1 << 40)
		return
	}
	if err := os.Remove(filepath.Join(d.data, "filler")); err != nil {
		d.Error(err)
	}
}

// limit keeps the server from making files larger (prlimit(2)). One that was
// killed makes none.
func (d *disk) limit(size uint64) {
	d.Helper()
	l := syscall.Rlimit{Cur: size, Max: 1 << 40}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(d.server.Process()), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&l)), 0, 0, 0); errno != 0 && errno != syscall.ESRCH {
		d.Error(errno)
	}
}

// stopped is the folder of a server with its own settings that has ended.
func stopped(t *testing.T, up string) string {
	t.Helper()
	first, dir := rig.StartServer(t, rig.Settings{Upstream: up, Polls: "[calls]", Mirror: "{newest: 2s}"})
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// verified stops the server and reads its whole folder.
func verified(t *testing.T, house *binary.Server, dir string) {
	t.Helper()
	if err := house.Stop(); err != nil {
		t.Error(err)
	}
	cmd := exec.CommandContext(t.Context(), rig.Program, "store", "verify", "--data", rig.DataFolder)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("store verify: %v\n%s", err, rig.Tail(string(out), 3000))
	}
}

// storeOf is the store's part of /-/stats.
func storeOf(t *testing.T, house *binary.Server) (s struct {
	File, Log int64
	Trouble   string
}) {
	t.Helper()
	var all struct{ Store any }
	all.Store = &s
	if err := json.Unmarshal(rig.Get(t, killUser, house.URL("viewer")+"/-/stats").Body, &all); err != nil {
		t.Fatal(err)
	}
	return s
}

// fresh requests lists that were not requested before, and returns their Cache-Status.
type fresh struct {
	*testing.T
	server *binary.Server
	n      int
}

func (p *fresh) ask() string {
	p.Helper()
	p.n++
	r := rig.Get(p, killUser, fmt.Sprintf("%s%s/Messages.json?PageSize=%d", p.server.URL("twilio"), rig.Base, p.n))
	if r.Status != 200 || !json.Valid(r.Body) {
		p.Fatalf("page %d: %d", p.n, r.Status)
	}
	return r.Header.Get("Cache-Status")
}

// until asks until the answer says so.
func (p *fresh) until(want string) {
	p.Helper()
	rig.Await(p, func() string {
		if how := p.ask(); !strings.Contains(how, want) {
			return how
		}
		return ""
	})
}

func polled(t *testing.T, up string) int {
	t.Helper()
	n := 0
	for target, times := range rig.ReadAPIStats(t, up).ByTarget {
		if strings.HasPrefix(target, rig.Base+"/Calls.json") {
			n += times
		}
	}
	return n
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "5ms", "--records", "2000").URL("slowapi")
	dir := stopped(t, up)
	if err := signin.UpdateFile(filepath.Join(dir, "users"), func(u *signin.Users) error { return u.Add("anna", "support", rig.AnnasPassword) }); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(rig.ReadFile(t, filepath.Join(dir, "understudy.yml")), "sign_in: none", "sign_in: users", 1)
	if err := os.WriteFile(filepath.Join(dir, "understudy.yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := small(t, filepath.Join(dir, rig.DataFolder), 12<<20)
	house := rig.StartAgain(t, dir)
	d.server = house
	p := &fresh{T: t, server: house}
	p.until("; stored")
	rig.Await(t, func() string {
		if n := polled(t, up); n < 3 {
			return fmt.Sprintf("%d polls", n)
		}
		return ""
	})
	d.fill()
	p.until(`detail="not stored: ` + d.full + `"`)
	if s := storeOf(t, house); s.Trouble != d.full {
		t.Errorf("stats: %+v", s)
	}
	// Polls rest for a minute; they came every one and a half seconds.
	before := polled(t, up)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		if how := p.ask(); !strings.Contains(how, d.full) {
			t.Fatalf("page %d: %s", p.n, how)
		}
		d.fill() // whatever was set free
	}
	if n := polled(t, up) - before; n > 1 {
		t.Errorf("%d polls while nothing can be saved", n)
	}
	if r := rig.Get(t, "", house.URL("viewer")+"/-/health"); r.Status != 200 {
		t.Errorf("health: %d %s", r.Status, r.Body)
	}
	form := url.Values{"name": {"anna"}, "password": {rig.AnnasPassword}}.Encode()
	r, err := rig.Ask(http.MethodPost, "", house.URL("viewer")+"/-/sign-in", form, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != http.StatusServiceUnavailable || !strings.Contains(string(r.Body), "this server can&#39;t write to its disk") {
		t.Errorf("signing in: %d %.2000s", r.Status, r.Body)
	}
	if n := strings.Count(house.Stderr(), "polls pause"); n != 1 {
		t.Errorf("the log says %d times that nothing can be saved", n)
	}
	d.free()
	p.until("; stored")
	if s := storeOf(t, house); s.Trouble != "" {
		t.Errorf("stats afterwards: %+v", s)
	}
	rig.Await(t, func() string {
		if n := polled(t, up); n < before+3 {
			return fmt.Sprintf("%d polls, want more than %d", n, before+2)
		}
		return ""
	})
	verified(t, house, dir)
}

// The byte of the shared memory that who writes to a database has to lock
// (https://www.sqlite.org/walformat.html, 2.3).
const walWriteLock = 120

func TestStoreLocked(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "5ms", "--records", "2000").URL("slowapi")
	dir := stopped(t, up)
	house := rig.StartAgain(t, dir)
	p := &fresh{T: t, server: house}
	p.until("; stored")
	held := house.URL("twilio") + rig.Base + "/Messages.json?PageSize=1"
	shm, err := os.OpenFile(filepath.Join(dir, rig.DataFolder, "understudy.db-shm"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: walWriteLock, Len: 1}
	if err := syscall.FcntlFlock(shm.Fd(), syscall.F_SETLKW, &lock); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	how := p.ask()
	took := time.Since(began)
	checktest.Contains(t, how, `detail="not stored yet: saving takes long"`, "after %v: how", took)
	checktest.True(t, took >= time.Second, "after %v: took is %v", took, took)
	checktest.True(t, took <= 15*time.Second, "after %v: took is %v", took, took)
	p.until(`detail="not stored: database locked`)
	if r := rig.Get(t, killUser, held); r.Status != 200 || !strings.Contains(r.Header.Get("Cache-Status"), "hit") {
		t.Errorf("what is held, meanwhile: %d %s", r.Status, r.Header.Get("Cache-Status"))
	}
	if r := rig.Get(t, "", house.URL("viewer")+"/-/health"); r.Status != 200 {
		t.Errorf("health: %d %s", r.Status, r.Body)
	}
	if err := shm.Close(); err != nil { // and with it the lock
		t.Fatal(err)
	}
	p.until("; stored")
	verified(t, house, dir)
}

// The bytes of the database are overwritten under a running server. The health
// reports it, the log reports it once, and callers get responses from upstream.
func TestStoreRuined(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "5ms", "--records", "2000").URL("slowapi")
	dir := stopped(t, up)
	house := rig.StartAgain(t, dir)
	p := &fresh{T: t, server: house}
	for range 10 {
		p.ask()
	}
	for _, name := range []string{"understudy.db", "understudy.db-wal"} {
		ruin(t, filepath.Join(dir, rig.DataFolder, name))
	}
	rig.Await(t, func() string {
		p.ask()
		if r := rig.Get(t, "", house.URL("viewer")+"/-/health"); r.Status != 503 || !strings.Contains(string(r.Body), "the store cannot be read") {
			return fmt.Sprintf("health: %d %s", r.Status, r.Body)
		}
		return ""
	})
	for range 20 {
		p.ask()
		rig.Get(t, "", house.URL("viewer")+"/-/health")
	}
	if n := strings.Count(house.Stderr(), "health: the store cannot be read"); n != 1 {
		t.Errorf("the log says %d times that the store cannot be read", n)
	}
	if n := strings.Count(house.Stderr(), "mirror: the store cannot be read"); n > 1 {
		t.Errorf("the mirror says %d times that the store cannot be read", n)
	}
}

// ruin overwrites all of a file but its first bytes, which name it.
func ruin(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	noise := []byte(strings.Repeat("\xa5", 4096))
	for at := int64(100); at < info.Size(); at += int64(len(noise)) {
		if _, err := f.WriteAt(noise[:min(int64(len(noise)), info.Size()-at)], at); err != nil {
			t.Fatal(err)
		}
	}
}
