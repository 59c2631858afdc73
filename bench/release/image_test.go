// The image for containers, and the signature.

package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/sample"
)

var bothLinux = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}}

// untar returns the files of a tar archive, and their headers.
func untar(t *testing.T, in io.Reader) (data map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	data, headers = map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return data, headers
		}
		checktest.MustNoError(t, err, "tar")
		headers[h.Name] = h
		data[h.Name], err = io.ReadAll(r)
		checktest.MustNoError(t, err, "tar")
	}
}

// decode decodes a document of an image, after it has compared its hash and its size.
func decode(t *testing.T, blobs map[string][]byte, d descriptor, into any) []byte {
	t.Helper()
	data := blobs["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
	checktest.MustEqual(t, d.Digest, fmt.Sprintf("sha256:%x", sha256.Sum256(data)), "hash of a %s", d.MediaType)
	checktest.MustEqual(t, d.Size, len(data), "size of a %s", d.MediaType)
	if into != nil {
		checktest.MustNoError(t, json.Unmarshal(data, into), "a %s", d.MediaType)
	}
	return data
}

func TestImageIsAnOCILayout(t *testing.T) {
	r := testRelease(t)
	programs := map[platform][]byte{}
	for _, p := range bothLinux {
		programs[p] = []byte(script + p.arch)
	}
	packed := r.image(programs, bothLinux, []byte("licences"))
	checktest.True(t, bytes.Equal(packed.data, r.image(programs, bothLinux, []byte("licences")).data), "two images of the same files differ")
	blobs, _ := untar(t, bytes.NewReader(packed.data))
	var top, index manifest
	checktest.MustNoError(t, json.Unmarshal(blobs["index.json"], &top), "index.json")
	checktest.MustEqual(t, len(top.Manifests), 1, "images")
	decode(t, blobs, top.Manifests[0], &index)
	checktest.MustEqual(t, len(index.Manifests), 2, "platforms")
	for i, d := range index.Manifests {
		var m manifest
		var config imageConfig
		decode(t, blobs, d, &m)
		decode(t, blobs, *m.Config, &config)
		checktest.Equal(t, config.Architecture, bothLinux[i].arch, "architecture")
		checktest.Equal(t, config.Config.User, "65532:65532", "user")
		z, err := gzip.NewReader(bytes.NewReader(decode(t, blobs, m.Layers[0], nil)))
		checktest.MustNoError(t, err, "gzip")
		layer, err := io.ReadAll(z)
		checktest.MustNoError(t, err, "gzip")
		checktest.Equal(t, config.RootFS.DiffIDs[0], fmt.Sprintf("sha256:%x", sha256.Sum256(layer)), "hash of the layer")
		files, headers := untar(t, bytes.NewReader(layer))
		checktest.Equal(t, string(files["usr/bin/understudy"]), script+bothLinux[i].arch, "program")
		checktest.Equal(t, headers["usr/bin/understudy"].Mode, 0o755, "mode of the program")
		checktest.Equal(t, headers["data/"].Uid, imageUser, "owner of the data")
		checktest.True(t, bytes.Count(files["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")) > 80, "authorities are missing")
	}
}

// TestChecksumsAreSigned signs with a new key, and verifies as the documentation says. A changed file is refused.
func TestChecksumsAreSigned(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Fatal("ssh-keygen is missing: apt-get install openssh-client")
	}
	r := testRelease(t)
	folder := t.TempDir()
	r.key = filepath.Join(folder, "key")
	run(t, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", r.key)
	checktest.MustNoError(t, tree{{name: "one", data: []byte("1")}}.save(r.out), "save")
	checktest.MustNoError(t, r.sign(t.Context()), "sign")
	public, err := os.ReadFile(r.key + ".pub")
	checktest.MustNoError(t, err, "key")
	signers := filepath.Join(folder, "signers")
	checktest.MustNoError(t, os.WriteFile(signers, append([]byte("release "), public...), 0o600), "signers")
	verify := func() error {
		_, err := output(t.Context(), r.out, nil, "sh", "-c",
			"ssh-keygen -Y verify -f "+signers+" -I release -n understudy-release -s SHA256SUMS.sig <SHA256SUMS")
		return err
	}
	checktest.NoError(t, verify(), "verify")
	checktest.MustNoError(t, tree{{name: "one", data: []byte("2")}}.save(r.out), "save another file")
	checktest.True(t, verify() != nil, "changed checksums are accepted")
}

// TestImageInAContainer builds the image, unpacks it with buildah, and runs it as a user without rights. The sign-in page is there after less
// than a minute.
func TestImageInAContainer(t *testing.T) {
	if !sample.IsFullRun() {
		t.Skip("runs a container; a part of make prove")
	}
	if os.Getuid() != 0 {
		t.Skip("buildah's chroot needs root")
	}
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Fatal("buildah is missing: apt-get install buildah")
	}
	module, work := filepath.Join(t.TempDir(), "module"), t.TempDir()
	copyModule(t, module)
	r := release{version: "v0.1.0", root: module}
	checktest.MustNoError(t, r.readCommit(t.Context(), false), "commit")
	checktest.MustNoError(t, r.write(t.Context(), []platform{{"linux", own.arch}}), "release")

	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	buildah := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "buildah", append([]string{"--storage-driver", "vfs", "--root", filepath.Join(work, "root"),
			"--runroot", filepath.Join(work, "run")}, args...)...)
		cmd.Env = append(os.Environ(), "BUILDAH_ISOLATION=chroot")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		return cmd
	}
	out, err := buildah("from", "--name", "one", "oci-archive:"+filepath.Join(r.out, "understudy-v0.1.0.oci.tar")).CombinedOutput()
	checktest.MustNoError(t, err, "buildah from: %s", out)
	settings, data := filepath.Join(work, "settings"), filepath.Join(work, "data")
	checktest.MustNoError(t, errors.Join(os.Mkdir(settings, 0o755), os.Mkdir(data, 0o700), os.Chown(data, imageUser, imageUser)), "folders")
	text := "sources: {web: {generic: \"http://127.0.0.1:9\", listen: \"127.0.0.1:0\", loopback: true}}\nviewer: {listen: \"127.0.0.1:0\", sign_in: users}\ntls: self\n"
	checktest.MustNoError(t, os.WriteFile(filepath.Join(settings, "understudy.yml"), []byte(text), 0o644), "settings")
	users := filepath.Join(settings, "users")
	checktest.MustNoError(t, errors.Join(os.WriteFile(users, nil, 0o600), os.Chown(users, imageUser, imageUser)), "users")
	inside := func(args ...string) *exec.Cmd {
		return buildah(append([]string{"run", "--isolation", "chroot", "--volume", settings + ":/etc/understudy:ro", "--volume", data + ":/data", "one",
			"--", "/usr/bin/understudy"}, args...)...)
	}
	served := inside("serve", "--config", "/etc/understudy/understudy.yml", "--data", "/data")
	var log bytes.Buffer
	served.Stderr = &log
	lines, err := served.StdoutPipe()
	checktest.MustNoError(t, err, "pipe")
	checktest.MustNoError(t, served.Start(), "start")
	address := ""
	for in := bufio.NewScanner(lines); address == "" && in.Scan(); {
		if m := regexp.MustCompile(`viewer .*(https?://\S+)`).FindStringSubmatch(in.Text()); m != nil {
			address = m[1]
		}
	}
	if address == "" {
		_ = served.Wait()
		t.Fatalf("the server printed no address of the viewer; its log:\n%s", log.Bytes())
	}
	authority, err := inside("cert", "--config", "/etc/understudy/understudy.yml", "--data", "/data").Output()
	checktest.MustNoError(t, err, "certificate")
	roots := x509.NewCertPool()
	checktest.MustTrue(t, roots.AppendCertsFromPEM(authority), "no certificate: %s", authority)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	checktest.MustTrue(t, strings.HasPrefix(address, "https://"), "address %s", address)
	answer, err := client.Get(address + "/-/sign-in")
	checktest.MustNoError(t, err, "request")
	body, err := io.ReadAll(answer.Body)
	checktest.MustTrue(t, err == nil && answer.Body.Close() == nil && answer.StatusCode == 200, "sign-in page: %d %v", answer.StatusCode, err)
	checktest.Contains(t, string(body), `type="password"`, "sign-in page")
	t.Logf("the sign-in page was there %s after the image", time.Since(begun).Round(time.Millisecond))
	out, err = inside("status", "--config", "/etc/understudy/understudy.yml", "--data", "/data").CombinedOutput()
	checktest.MustNoError(t, err, "health check: %s", out)
	info, err := os.Stat(filepath.Join(data, "understudy.db"))
	checktest.MustNoError(t, err, "the store")
	checktest.Equal(t, info.Sys().(*syscall.Stat_t).Uid, uint32(imageUser), "owner of the store")
	out, err = inside("stop", "--config", "/etc/understudy/understudy.yml", "--data", "/data").CombinedOutput()
	checktest.MustNoError(t, err, "stop: %s", out)
	checktest.NoError(t, served.Wait(), "the server ended: %s", &log)
}
