// The release with the real program, as make prove runs it.

package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// copyModule copies the files of the module that git knows, and those that are new, to a repository with one commit.
func copyModule(t *testing.T, to string) {
	t.Helper()
	list := run(t, "../..", "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join("../..", name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		checktest.MustNoError(t, err, "read")
		info, err := os.Stat(filepath.Join("../..", name))
		checktest.MustNoError(t, err, "stat")
		path := filepath.Join(to, name)
		checktest.MustNoError(t, os.MkdirAll(filepath.Dir(path), 0o755), "folder")
		checktest.MustNoError(t, os.WriteFile(path, data, info.Mode()), "write")
	}
	same := []string{
		"GIT_AUTHOR_DATE=2026-11-30T09:30:00Z", "GIT_COMMITTER_DATE=2026-11-30T09:30:00Z", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a.invalid",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a.invalid",
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A", "-f"}, {"commit", "-q", "--no-verify", "-m", "one"}} {
		_, err := output(t.Context(), to, same, "git", args...)
		checktest.MustNoError(t, err, "git")
	}
}

// makeRelease runs make release in a copy of the module, and returns the folder of the release.
func makeRelease(t *testing.T, root, version string, env ...string) string {
	t.Helper()
	_, err := output(t.Context(), root, env, "make", "release", "VERSION="+version, "URL=https://downloads.invalid/"+version)
	checktest.MustNoError(t, err, "make release")
	return filepath.Join(root, "bin", "release", version)
}

// readProgram returns the program in an archive.
func readProgram(t *testing.T, archive string) []byte {
	t.Helper()
	data, err := os.ReadFile(archive)
	checktest.MustNoError(t, err, "archive")
	if strings.HasSuffix(archive, ".zip") {
		in, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		checktest.MustNoError(t, err, "zip")
		f, err := in.File[0].Open()
		checktest.MustNoError(t, err, "zip")
		program, err := io.ReadAll(f)
		checktest.MustNoError(t, err, "zip")
		return program
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	checktest.MustNoError(t, err, "gzip")
	in := tar.NewReader(z)
	for {
		h, err := in.Next()
		checktest.MustNoError(t, err, "tar")
		if strings.HasSuffix(h.Name, "/bin/understudy") {
			program, err := io.ReadAll(in)
			checktest.MustNoError(t, err, "tar")
			return program
		}
	}
}

// TestReleaseIsReproducible builds a release twice, in two folders and with nothing compiled before the second time.
func TestReleaseIsReproducible(t *testing.T) {
	if !sample.IsFullRun() {
		t.Skip("compiles everything for five platforms twice; a part of make prove")
	}
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "another folder")
	copyModule(t, first)
	copyModule(t, second)
	published := makeRelease(t, first, "v0.1.0")
	sums, err := os.ReadFile(filepath.Join(published, "SHA256SUMS"))
	checktest.MustNoError(t, err, "sums")
	again, err := os.ReadFile(filepath.Join(makeRelease(t, second, "v0.1.0", "GOCACHE="+t.TempDir(), "TZ=Asia/Tokyo", "LC_ALL=C"), "SHA256SUMS"))
	checktest.MustNoError(t, err, "sums")
	checktest.Equal(t, string(again), string(sums), "checksums of the second build")
	checktest.Equal(t, strings.Count(string(sums), "\n"), 11, "files of a release")
	run(t, published, "sha256sum", "--check", "--quiet", "SHA256SUMS")

	bill, err := os.ReadFile(filepath.Join(published, "understudy-v0.1.0.cdx.json"))
	checktest.MustNoError(t, err, "bill")
	var listed struct{ Components []component }
	checktest.MustNoError(t, json.Unmarshal(bill, &listed), "bill")
	for _, p := range platforms {
		end := ".tar.gz"
		if p.os == "windows" {
			end = ".zip"
		}
		program := readProgram(t, filepath.Join(published, "understudy-v0.1.0-"+p.os+"-"+p.arch+end))
		if len(program) > maxProgramBytes {
			t.Errorf("%s: %d bytes", p, len(program))
		}
		info, err := buildinfo.Read(bytes.NewReader(program))
		checktest.MustNoError(t, err, "build information of %s", p)
		for _, m := range info.Deps {
			if !slices.ContainsFunc(listed.Components, func(c component) bool { return c.Name == m.Path && c.Version == m.Version }) {
				t.Errorf("%s: the list of parts lacks %s %s", p, m.Path, m.Version)
			}
		}
		for _, root := range []string{first, runtimeHome(t)} {
			checktest.True(t, !bytes.Contains(program, []byte(root)), "%s contains the folder %s", p, root)
		}
		fmt.Printf("%s: %d bytes\n", p, len(program))
	}
	// The installer of the release, from a server of this machine.
	server := httptest.NewServer(http.StripPrefix("/", http.FileServer(http.Dir(published))))
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(published, "install.sh"))
	cmd.Env = append(os.Environ(), "UNDERSTUDY_URL="+server.URL, "UNDERSTUDY_PREFIX="+t.TempDir())
	out, err := cmd.CombinedOutput()
	checktest.MustNoError(t, err, "install: %s", out)
	commit := strings.TrimSpace(run(t, first, "git", "rev-parse", "HEAD"))
	checktest.Contains(t, string(out), "understudy v0.1.0 go", "output")
	checktest.Contains(t, string(out), " (commit "+commit[:12]+", 2026-11-30T09:30:00Z)\n", "output")
}

// runtimeHome returns the folder of the user's files.
func runtimeHome(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	checktest.MustNoError(t, err, "home")
	return home + "/"
}

// TestOtherPlatformsCompile vets the product for systems on which the tests do not run, and compiles its tests.
func TestOtherPlatformsCompile(t *testing.T) {
	if !sample.IsFullRun() {
		t.Skip("compiles everything for two platforms; a part of make prove")
	}
	for _, p := range []platform{{"windows", "amd64"}, {"darwin", "arm64"}} {
		for _, args := range [][]string{{"vet", "./..."}, {"test", "-c", "-o", os.DevNull, "./..."}} {
			if _, err := output(t.Context(), "../..", append(p.environment(), "GOFLAGS=-ldflags=-s"), goCommand(), args...); err != nil {
				t.Errorf("%s: %v", p, err)
			}
		}
	}
}

// debian is a Debian system in a folder.
type debian struct {
	t    *testing.T
	root string
}

// makeDebian makes a small Debian system of the release on which the test runs, from the same servers of packages.
func makeDebian(t *testing.T) debian {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("chroot needs root")
	}
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		t.Fatal("mmdebstrap is missing: apt-get install mmdebstrap")
	}
	d := debian{t, filepath.Join(t.TempDir(), "debian")}
	about, err := os.ReadFile("/etc/os-release")
	checktest.MustNoError(t, err, "os-release")
	suite := regexp.MustCompile(`(?m)^VERSION_CODENAME=(\w+)$`).FindSubmatch(about)
	checktest.MustTrue(t, suite != nil, "no code name of a Debian release in /etc/os-release")
	out, err := exec.CommandContext(t.Context(), "mmdebstrap", "--variant=minbase", "--include=adduser,ca-certificates,procps",
		string(suite[1]), d.root).CombinedOutput()
	checktest.MustNoError(t, err, "mmdebstrap: %s", out)
	return d
}

// command returns a command in the system.
func (d debian) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "chroot", append([]string{d.root}, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", "HOME=/root"}
	return cmd
}

// run runs a command in the system and returns what it prints.
func (d debian) run(args ...string) string {
	d.t.Helper()
	out, err := d.command(d.t.Context(), args...).CombinedOutput()
	checktest.MustNoError(d.t, err, "%s: %s", strings.Join(args, " "), out)
	return string(out)
}

// install installs a package from a file.
func (d debian) install(path string) {
	d.t.Helper()
	data, err := os.ReadFile(path)
	checktest.MustNoError(d.t, err, "package")
	checktest.MustNoError(d.t, os.WriteFile(filepath.Join(d.root, "tmp", "understudy.deb"), data, 0o644), "package")
	d.run("dpkg", "--install", "/tmp/understudy.deb")
}

// exists reports whether a file is in the system.
func (d debian) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(d.root, path))
	return err == nil
}

// serve runs the service's command as its user until it answers, reloads the settings as the service does, and ends it.
func (d debian) serve(want string) {
	d.t.Helper()
	unit, err := os.ReadFile(filepath.Join(d.root, "usr/lib/systemd/system/understudy.service"))
	checktest.MustNoError(d.t, err, "unit")
	setting := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindSubmatch(unit)
		checktest.MustTrue(d.t, m != nil, "the unit has no %s", name)
		return string(m[1])
	}
	ctx, stop := context.WithTimeout(d.t.Context(), time.Minute)
	defer stop()
	user := setting("User")
	cmd := d.command(ctx, slices.Concat([]string{"setpriv", "--reuid", user, "--regid", setting("Group"), "--clear-groups", "--no-new-privs"},
		strings.Fields(setting("ExecStart")))...)
	out, err := cmd.StdoutPipe()
	checktest.MustNoError(d.t, err, "pipe")
	log, err := os.Create(filepath.Join(d.t.TempDir(), "log"))
	checktest.MustNoError(d.t, err, "log")
	defer log.Close()
	cmd.Stderr = log
	checktest.MustNoError(d.t, cmd.Start(), "start")
	var address string
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Ctrl-C") {
		if m := regexp.MustCompile(`web .*(http://127\.0\.0\.1:\d+)`).FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	if address == "" {
		text, _ := os.ReadFile(log.Name())
		d.t.Fatalf("the service printed no address of the source; its log:\n%s", text)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	answer, err := http.Get(address + "/hello")
	checktest.MustNoError(d.t, err, "request")
	body, err := io.ReadAll(answer.Body)
	checktest.MustNoError(d.t, err, "request")
	answer.Body.Close()
	checktest.Equal(d.t, string(body), want, "answer of the service")
	d.run(strings.Fields(strings.Replace(setting("ExecReload"), "$MAINPID", fmt.Sprint(cmd.Process.Pid), 1))...)
	reloaded := func() bool {
		text, err := os.ReadFile(log.Name())
		return err != nil || strings.Contains(string(text), "settings loaded again")
	}
	for !reloaded() && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	checktest.True(d.t, ctx.Err() == nil, "the settings were not read again")
	checktest.MustNoError(d.t, cmd.Process.Signal(syscall.SIGTERM), "signal")
	checktest.NoError(d.t, cmd.Wait(), "the service ended")
}

// TestDebianPackageInItsSystem installs the package, uses it, upgrades, removes and purges it.
func TestDebianPackageInItsSystem(t *testing.T) {
	if !sample.IsFullRun() {
		t.Skip("makes a Debian system; a part of make prove")
	}
	d := makeDebian(t)
	before := d.run("find", "/etc", "/usr", "/var/lib", "/home", "-xdev", "-path", "/var/lib/dpkg", "-prune", "-o", "-print")
	checktest.Contains(t, before, "/etc/passwd\n", "files of the system")
	module := filepath.Join(t.TempDir(), "module")
	copyModule(t, module)
	var packages []string
	for _, version := range []string{"v0.1.0-rc.1", "v0.1.0"} {
		r := release{version: version, root: module}
		checktest.MustNoError(t, r.readCommit(t.Context(), false), "commit")
		checktest.MustNoError(t, r.write(t.Context(), []platform{{"linux", own.arch}}), "release")
		packages = append(packages, filepath.Join(r.out, "understudy_"+r.debianVersion()+"_"+own.arch+".deb"))
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "from upstream") }))
	defer upstream.Close()

	d.install(packages[0])
	checktest.Contains(t, d.run("understudy", "version"), "understudy v0.1.0-rc.1 ", "version")
	checktest.Contains(t, d.run("getent", "passwd", "understudy"), ":/var/lib/understudy:/usr/sbin/nologin", "user")
	checktest.Equal(t, d.run("stat", "-c", "%U:%G %a", "/var/lib/understudy", "/etc/understudy"), "understudy:understudy 700\nroot:understudy 750\n", "folders")
	checktest.True(t, d.exists("/etc/systemd/system/multi-user.target.wants/understudy.service"), "the service is not enabled")
	checktest.Equal(t, d.run("dpkg", "--verify", "understudy"), "", "files that differ from the package")
	settings := "sources: {web: {generic: \"" + upstream.URL + "\", listen: \"127.0.0.1:0\", loopback: true}}\nviewer: {listen: \"127.0.0.1:0\", role: all}\n"
	checktest.MustNoError(t, os.WriteFile(filepath.Join(d.root, "etc/understudy/understudy.yml"), []byte(settings), 0o644), "settings")
	d.serve("from upstream")
	checktest.True(t, d.exists("/var/lib/understudy/understudy.db"), "the service stored nothing in its folder")

	upstream.Config.Handler = http.NotFoundHandler() // from here on only what is stored is the same
	d.install(packages[1])
	checktest.Contains(t, d.run("understudy", "version"), "understudy v0.1.0 ", "version after the upgrade")
	kept, err := os.ReadFile(filepath.Join(d.root, "etc/understudy/understudy.yml"))
	checktest.MustNoError(t, err, "settings after the upgrade")
	checktest.Equal(t, string(kept), settings, "settings after the upgrade")
	d.run("setpriv", "--reuid", "understudy", "--regid", "understudy", "--clear-groups", "understudy", "store", "verify", "--data", "/var/lib/understudy")

	d.run("dpkg", "--remove", "understudy")
	checktest.True(t, !d.exists("/usr/bin/understudy"), "the program is still there after remove")
	checktest.True(t, d.exists("/var/lib/understudy/understudy.db"), "the data are gone after remove")
	d.install(packages[1])
	d.run("dpkg", "--purge", "understudy")
	after := d.run("find", "/etc", "/usr", "/var/lib", "/home", "-xdev", "-path", "/var/lib/dpkg", "-prune", "-o", "-print")
	known := strings.Fields(before)
	for _, path := range strings.Fields(after) {
		if !slices.Contains(known, path) && !strings.HasSuffix(path, "-") { // passwd- and group- are copies of what adduser changed
			t.Errorf("%s is left after purge", path)
		}
	}
	checktest.Contains(t, d.run("getent", "passwd", "understudy"), "understudy:", "user after purge")
}

// TestRenamedModuleIsBuiltElsewhere renames a copy of the module, publishes it in a folder, and builds a program on it.
func TestRenamedModuleIsBuiltElsewhere(t *testing.T) {
	if !sample.IsFullRun() {
		t.Skip("compiles the product under another name; a part of make prove")
	}
	const path = "code.example.org/team/understudy"
	base := t.TempDir()
	module := filepath.Join(base, "module")
	copyModule(t, module)
	run(t, module, "make", "module", "PATH=old.example.org/understudy")
	run(t, module, "make", "module", "PATH="+path)
	checktest.Equal(t, run(t, module, goCommand(), "list", "-m"), path+"\n", "module")
	run(t, module, "git", "add", "-A")
	for _, folder := range []string{".", "e2e", "bench"} {
		run(t, filepath.Join(module, folder), goCommand(), "vet", "./...")
	}
	run(t, module, goCommand(), "test", "./internal/house", "./internal/diagnostics/profile")
	run(t, module, "tools/steps", "build")

	publishModule(t, module, path, filepath.Join(base, "proxy"))
	user := filepath.Join(base, "user")
	checktest.MustNoError(t, os.Mkdir(user, 0o755), "folder")
	checktest.MustNoError(t, os.WriteFile(filepath.Join(user, "main.go"), []byte(userProgram), 0o644), "program")
	env := []string{
		"GOPROXY=file://" + filepath.Join(base, "proxy"), "GOMODCACHE=" + filepath.Join(base, "cache"), "GOFLAGS=-modcacherw", "GOSUMDB=off",
		"GONOPROXY=none", "GONOSUMDB=none", "GOPRIVATE=", "GOWORK=off",
	}
	for _, args := range [][]string{{"mod", "init", "example.net/user"}, {"get", path + "@v0.1.0"}, {"build", "-o", "user", "."}} {
		_, err := output(t.Context(), user, env, goCommand(), args...)
		checktest.MustNoError(t, err, "go")
	}
	checktest.Equal(t, run(t, user, "./user"), "time=1970-01-01T00:00:00.000Z level=INFO msg=\"a change\" id=CA1 what=came\n", "output of the program")
}

// userProgram is what a user of two packages writes.
const userProgram = `package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"code.example.org/team/understudy/follow"
	"code.example.org/team/understudy/kit/logline"
)

func main() {
	feed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write([]byte("id: 8\ndata: {\"n\":8,\"kind\":\"calls\",\"id\":\"CA1\",\"what\":\"came\"}\n\n"))
	}))
	log := logline.New(os.Stdout, logline.Options{Levels: &logline.Levels{}})
	_ = follow.Receive(context.Background(), follow.Options{URL: feed.URL, After: "7"}, func(c follow.Change) error {
		_ = log.Begin(time.Unix(0, 0), slog.LevelInfo, "a change").Attr(slog.String("id", c.ID)).Attr(slog.String("what", c.What)).Write()
		return errors.New("enough")
	})
}
`

// publishModule writes version v0.1.0 of a module to a folder as a proxy for modules serves it.
func publishModule(t *testing.T, module, path, proxy string) {
	t.Helper()
	folder := filepath.Join(proxy, path, "@v")
	checktest.MustNoError(t, os.MkdirAll(folder, 0o755), "folder")
	var all tree
	list := run(t, module, "git", "ls-files", "-z")
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		if top, _, _ := strings.Cut(name, "/"); slices.Contains([]string{"e2e", "bench", "tools"}, top) {
			continue // modules of their own
		}
		data, err := os.ReadFile(filepath.Join(module, name))
		checktest.MustNoError(t, err, "read")
		all = append(all, file{name: name, data: data})
	}
	goMod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	checktest.MustNoError(t, err, "go.mod")
	slices.SortFunc(all, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	for name, data := range map[string][]byte{
		"list": []byte("v0.1.0\n"), "v0.1.0.info": []byte(`{"Version":"v0.1.0","Time":"2026-11-30T09:30:00Z"}`), "v0.1.0.mod": goMod,
		"v0.1.0.zip": all.below(path + "@v0.1.0/").zipped(testDate),
	} {
		checktest.MustNoError(t, os.WriteFile(filepath.Join(folder, name), data, 0o644), "publish")
	}
}
