// Archives, packages, licences and the installer, with a small script in place of the program.

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
)

// testDate is a date of a commit.
var testDate = time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC)

// script stands in for the program.
const script = "#!/bin/sh\necho \"understudy $1 of a script\"\n"

// own is the platform of the test.
var own = platform{runtime.GOOS, runtime.GOARCH}

func testRelease(t *testing.T) *release {
	t.Helper()
	return &release{version: "v0.1.0", commit: "1234567890ab", date: testDate, root: "../..", out: t.TempDir()}
}

// commonFiles are some files that every archive has.
func commonFiles() tree {
	return tree{
		{name: "share/man/man1/understudy.1", data: []byte(".TH UNDERSTUDY 1\n")},
		{name: completions["zsh"], data: []byte("#compdef understudy\n")},
		{name: "share/doc/understudy/LICENSE", data: []byte("A licence\n")},
	}
}

// TestArchivesDependOnlyOnTheFiles: the order of the files, the time and the machine change no byte, and every file has the commit's
// time and belongs to root.
func TestArchivesDependOnlyOnTheFiles(t *testing.T) {
	r := testRelease(t)
	for _, p := range []platform{{"linux", "amd64"}, {"windows", "amd64"}} {
		other := commonFiles()
		slices.Reverse(other)
		if a, b := r.archive(p, []byte(script), commonFiles()), r.archive(p, []byte(script), other); !bytes.Equal(a.data, b.data) {
			t.Errorf("%s: two archives of the same files differ", a.name)
		}
		if a, b := r.debianPackage(p, []byte(script), commonFiles()), r.debianPackage(p, []byte(script), other); !bytes.Equal(a.data, b.data) {
			t.Errorf("%s: two packages of the same files differ", a.name)
		}
	}
	z, err := gzip.NewReader(bytes.NewReader(r.archive(platform{"linux", "arm64"}, []byte(script), commonFiles()).data))
	checktest.MustNoError(t, err, "gzip")
	modes := map[string]int64{}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		checktest.MustNoError(t, err, "tar")
		if !h.ModTime.Equal(testDate) || h.Uid != 0 || h.Gid != 0 || h.Uname != "root" {
			t.Errorf("%s has the time %s and belongs to %d:%d (%s)", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname)
		}
		modes[h.Name] = h.Mode
	}
	checktest.Equal(t, modes["understudy-v0.1.0-linux-arm64/bin/understudy"], 0o755, "mode of the program")
	checktest.Equal(t, modes["understudy-v0.1.0-linux-arm64/share/man/man1/understudy.1"], 0o644, "mode of a man page")
	checktest.Equal(t, len(modes), 4, "files in the archive")
	zipped := r.archive(platform{"windows", "amd64"}, []byte(script), commonFiles())
	checktest.Equal(t, zipped.name, "understudy-v0.1.0-windows-amd64.zip", "name")
	in, err := zip.NewReader(bytes.NewReader(zipped.data), int64(len(zipped.data)))
	checktest.MustNoError(t, err, "zip")
	checktest.Equal(t, in.File[0].Name, "understudy-v0.1.0-windows-amd64/bin/understudy.exe", "the first file")
	checktest.True(t, in.File[0].Modified.Equal(testDate), "time of the first file: %s", in.File[0].Modified)
}

// serveRelease publishes a release of the script on a server, after damage has changed its files. It returns the address.
func serveRelease(t *testing.T, damage func(published map[string][]byte)) string {
	t.Helper()
	r := testRelease(t)
	published := map[string][]byte{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		data, ok := published[strings.TrimPrefix(q.URL.Path, "/v0.1.0/")]
		if !ok {
			http.NotFound(w, q)
			return
		}
		_, _ = w.Write(data)
	}))
	r.url = "http://" + server.Listener.Addr().String() + "/v0.1.0"
	all := tree{r.archive(own, []byte(script), commonFiles()), {name: "install.sh", data: r.installer(), run: true}}
	checktest.MustNoError(t, all.save(r.out), "save")
	for _, name := range []string{all[0].name, all[1].name, "SHA256SUMS"} {
		data, err := os.ReadFile(filepath.Join(r.out, name))
		checktest.MustNoError(t, err, "read %s", name)
		published[name] = data
	}
	damage(published)
	server.Start()
	t.Cleanup(server.Close)
	return r.url
}

// install runs the one line that installs a release, with a folder to install into. It returns what is printed.
func install(t *testing.T, url, prefix string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "curl -fsSL "+url+"/install.sh | sh")
	cmd.Env = append(os.Environ(), "UNDERSTUDY_PREFIX="+prefix, "TMPDIR="+t.TempDir(), "UNDERSTUDY_URL=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestInstallerInstallsFiles(t *testing.T) {
	url := serveRelease(t, func(map[string][]byte) {})
	prefix := t.TempDir()
	for range 2 { // a second time it replaces the files
		out, err := install(t, url, prefix)
		checktest.MustNoError(t, err, "install: %s", out)
		checktest.Contains(t, out, "understudy version of a script\n", "output")
	}
	for name, mode := range map[string]os.FileMode{"bin/understudy": 0o755, "share/man/man1/understudy.1": 0o644, completions["zsh"]: 0o644} {
		info, err := os.Stat(filepath.Join(prefix, name))
		checktest.MustNoError(t, err, "installed")
		checktest.Equal(t, info.Mode(), mode, "mode of %s", name)
	}
}

// TestInstallerRefusesWhatIsDamaged: after each damage the installer says what is wrong, and nothing is installed.
func TestInstallerRefusesWhatIsDamaged(t *testing.T) {
	archive := "understudy-v0.1.0-" + own.os + "-" + own.arch + ".tar.gz"
	for _, c := range []struct {
		name, want string
		damage     func(published map[string][]byte)
	}{
		{"one bit of the archive", "the checksum of " + archive, func(m map[string][]byte) { m[archive][len(m[archive])/2] ^= 1 }},
		{"half of the archive", "the checksum of " + archive, func(m map[string][]byte) { m[archive] = m[archive][:len(m[archive])/2] }},
		{"no archive", "cannot download", func(m map[string][]byte) { delete(m, archive) }},
		{"no checksums", "cannot download", func(m map[string][]byte) { delete(m, "SHA256SUMS") }},
		{"a wrong checksum", "the checksum of " + archive, func(m map[string][]byte) {
			m["SHA256SUMS"] = []byte(strings.Repeat("0", 64) + "  " + archive + "\n")
		}},
		{"a checksum of another file", "does not name " + archive, func(m map[string][]byte) {
			m["SHA256SUMS"] = bytes.ReplaceAll(m["SHA256SUMS"], []byte("  understudy"), []byte("  x-understudy"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := serveRelease(t, c.damage)
			prefix := t.TempDir()
			out, err := install(t, url, prefix)
			checktest.True(t, err != nil, "the installer succeeded")
			checktest.Contains(t, out, c.want, "output")
			left, err := os.ReadDir(prefix)
			checktest.MustNoError(t, err, "read the folder")
			checktest.Equal(t, len(left), 0, "files installed")
		})
	}
}

// TestHalfAnInstallerDoesNothing: a connection may end while the shell already reads the script.
func TestHalfAnInstallerDoesNothing(t *testing.T) {
	url := serveRelease(t, func(published map[string][]byte) {
		whole := published["install.sh"]
		published["install.sh"] = whole[:bytes.LastIndex(whole, []byte("\ninstall_understudy"))+1]
	})
	prefix := t.TempDir()
	out, err := install(t, url, prefix)
	checktest.NoError(t, err, "install")
	checktest.Equal(t, out, "", "output")
	left, err := os.ReadDir(prefix)
	checktest.MustNoError(t, err, "read the folder")
	checktest.Equal(t, len(left), 0, "files installed")
}

// run runs a command and returns what it prints.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := output(t.Context(), dir, nil, name, args...)
	checktest.MustNoError(t, err, "run")
	return out
}

// TestDebianReadsThePackage reads the package with Debian's tools.
func TestDebianReadsThePackage(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("this is no Debian system")
	}
	r := testRelease(t)
	r.version = "v0.1.0-rc.1"
	f := r.debianPackage(platform{"linux", "amd64"}, []byte(script), commonFiles())
	checktest.Equal(t, f.name, "understudy_0.1.0~rc.1_amd64.deb", "name")
	path := filepath.Join(r.out, f.name)
	checktest.MustNoError(t, os.WriteFile(path, f.data, 0o600), "write")
	run(t, "", "dpkg", "--compare-versions", r.debianVersion(), "lt", "0.1.0")
	checktest.Equal(t, run(t, "", "dpkg-deb", "--field", path, "Version", "Architecture"), "Version: 0.1.0~rc.1\nArchitecture: amd64\n", "fields")
	contents := run(t, "", "dpkg-deb", "--contents", path)
	for _, want := range []string{
		"-rwxr-xr-x root/root", "./usr/bin/understudy\n", "./usr/share/man/man1/understudy.1.gz\n", "./usr/share/zsh/vendor-completions/_understudy\n",
		"./usr/share/doc/understudy/copyright\n", "drwxr-xr-x root/root         0 2026-11-30 ", "./usr/lib/systemd/system/\n",
	} {
		checktest.Contains(t, contents, want, "contents")
	}
	unpacked := filepath.Join(r.out, "unpacked")
	run(t, "", "dpkg-deb", "--raw-extract", path, unpacked)
	run(t, unpacked, "md5sum", "--check", "--quiet", "DEBIAN/md5sums")
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		run(t, unpacked, "sh", "-n", "DEBIAN/"+script)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		return
	}
	// The service may do little: 0 is nothing, and 100 is everything.
	run(t, unpacked, "systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=20", "usr/lib/systemd/system/understudy.service")
}

// TestEveryDependencyHasALicence reads the licences of what is in the program for this platform.
func TestEveryDependencyHasALicence(t *testing.T) {
	parts, err := readDependencies(t.Context(), "../..", []platform{{"linux", "amd64"}})
	checktest.MustNoError(t, err, "dependencies")
	names := map[string]dependency{}
	for _, d := range parts {
		names[d.path] = d
	}
	checktest.Contains(t, strings.Join(names["modernc.org/sqlite"].licences, " "), "BSD-3-Clause", "licence of SQLite's driver")
	checktest.Equal(t, strings.Join(names["github.com/alecthomas/kong"].licences, " "), "MIT", "licence of kong")
	checktest.True(t, names["std"].version != "", "Go's library has no version")
	if len(parts) < 25 {
		t.Errorf("only %d dependencies", len(parts))
	}
	text := string(writeLicences(parts))
	for _, d := range parts {
		checktest.Contains(t, text, "\n"+d.path+" "+d.version+" (", "licences")
	}
	bill, err := testRelease(t).writeBill(parts)
	checktest.MustNoError(t, err, "bill")
	var read struct {
		BOMFormat  string `json:"bomFormat"`
		Components []component
	}
	checktest.MustNoError(t, json.Unmarshal(bill, &read), "bill")
	checktest.Equal(t, read.BOMFormat, "CycloneDX", "format")
	checktest.Equal(t, len(read.Components), len(parts), "components")
}

func TestUnknownLicenceStopsARelease(t *testing.T) {
	d := dependency{path: "example.com/closed", version: "v1.0.0", texts: map[string]string{"LICENSE": "All rights reserved."}}
	err := d.nameLicences()
	checktest.MustTrue(t, err != nil, "a licence that nobody has read is accepted")
	checktest.Contains(t, err.Error(), "the licence of example.com/closed v1.0.0 is not known", "error")
}

func TestVersionMustHaveItsForm(t *testing.T) {
	for version, want := range map[string]bool{
		"v0.1.0": true, "v1.20.3-rc.1": true, "": false, "0.1.0": false, "v1": false, "v1.2.3 ": false, "v1.2.3-": false, "v1.2.3;x": false,
	} {
		checktest.Equal(t, versionForm.MatchString(version), want, "%q is a version", version)
	}
}
