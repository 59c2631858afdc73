// Command release writes what is published of a version: archives of the program for each platform, Debian packages, the licences and
// the list of all dependencies, an installer, an image for containers, and checksums. Run it by make release VERSION=v0.1.0.
//
// Two runs on one commit with the same version of Go write the same bytes.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// files has the installer and what the Debian package contains beside the program.
//
//go:embed files
var files embed.FS

// versionForm matches a version with "v", such as v0.1.0 or v0.2.0-rc.1.
var versionForm = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z]+(\.[0-9A-Za-z]+)*)?$`)

// release says what is released, from which commit, and where to.
type release struct {
	version string
	commit  string
	date    time.Time // when the commit was made, and the time of each file in an archive
	url     string    // where the files will be downloaded from; may be empty
	root    string    // folder of the product's module
	out     string    // folder of the files
	key     string    // whole path of an SSH key that signs the checksums; may be empty
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := release{}
	flag.StringVar(&r.version, "version", "", "the version, such as v0.1.0")
	flag.StringVar(&r.url, "url", "", "where the files will be downloaded from; without it, users name it when they run install.sh")
	flag.StringVar(&r.root, "root", "..", "folder of the product's module")
	flag.StringVar(&r.out, "out", "", "folder for the files (default bin/release/VERSION in the module)")
	flag.StringVar(&r.key, "key", "", "whole path of an SSH key, or of its public half if an agent has it, that signs the checksums")
	changed := flag.Bool("changed", false, "also release files that are not committed; the commit is marked with +changes")
	only := flag.String("only", "", "build only this platform, such as linux/amd64")
	flag.Parse()
	err := r.readCommit(ctx, *changed)
	if err == nil {
		err = r.write(ctx, slices.DeleteFunc(slices.Clone(platforms), func(p platform) bool { return *only != "" && p.String() != *only }))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	fmt.Println("wrote", r.out)
}

// readCommit checks the version, and sets the commit and the folder for the files.
func (r *release) readCommit(ctx context.Context, changed bool) error {
	if !versionForm.MatchString(r.version) {
		return fmt.Errorf("the version is %q; write it as in: make release VERSION=v0.1.0", r.version)
	}
	r.url = strings.TrimSuffix(r.url, "/")
	root, err := filepath.Abs(r.root)
	if err != nil {
		return err
	}
	r.root, r.out = root, cmp.Or(r.out, filepath.Join(root, "bin", "release", r.version))
	commit, err := output(ctx, root, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	hash, second, _ := strings.Cut(strings.TrimSpace(commit), " ")
	seconds, err := strconv.ParseInt(second, 10, 64)
	if err != nil {
		return fmt.Errorf("date of the commit: %w", err)
	}
	dirty, err := output(ctx, root, nil, "git", "status", "--porcelain")
	switch {
	case err != nil:
		return err
	case dirty != "" && !changed:
		return fmt.Errorf("these files are not committed; commit them, or take them away:\n%s", dirty)
	case dirty != "":
		hash = hash[:min(12, len(hash))] + "+changes"
	}
	r.commit, r.date = hash, time.Unix(seconds, 0).UTC()
	return nil
}

// write builds the program for each platform, and writes all files of the release.
func (r *release) write(ctx context.Context, chosen []platform) error {
	work, err := os.MkdirTemp("", "release-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	own := platform{runtime.GOOS, runtime.GOARCH}
	programs := map[platform][]byte{}
	for _, p := range append([]platform{own}, chosen...) {
		if programs[p] != nil {
			continue
		}
		if programs[p], err = r.compile(ctx, p, filepath.Join(work, p.program())); err != nil {
			return err
		}
	}
	// The man pages and the completions come from the program that runs here.
	common, err := describe(ctx, filepath.Join(work, own.program()), filepath.Join(work, "man"))
	if err != nil {
		return err
	}
	parts, err := readDependencies(ctx, r.root, chosen)
	if err != nil {
		return err
	}
	licences := writeLicences(parts)
	for _, name := range []string{"LICENSE", "CHANGELOG.md", "README.md"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		common = append(common, file{name: "share/doc/understudy/" + name, data: data})
	}
	common = append(common, file{name: "share/doc/understudy/" + licencesName, data: licences})
	published := tree{{name: licencesName, data: licences}, {name: "install.sh", data: r.installer(), run: true}}
	bill, err := r.writeBill(parts)
	if err != nil {
		return err
	}
	published = append(published, file{name: "understudy-" + r.version + ".cdx.json", data: bill})
	for _, p := range chosen {
		published = append(published, r.archive(p, programs[p], common))
		if p.os == "linux" {
			published = append(published, r.debianPackage(p, programs[p], common))
		}
	}
	if err := append(published, r.image(programs, chosen, licences)).save(r.out); err != nil {
		return err
	}
	return r.sign(ctx)
}

// sign signs the checksums with the SSH key r.key, if there is one.
func (r *release) sign(ctx context.Context) error {
	if r.key == "" {
		return nil
	}
	_, err := output(ctx, r.out, nil, "ssh-keygen", "-Y", "sign", "-n", "understudy-release", "-f", r.key, "SHA256SUMS")
	return err
}

// installer returns the script that downloads this version.
func (r *release) installer() []byte {
	return []byte(strings.NewReplacer("@VERSION@", r.version, "@URL@", r.url).Replace(read("install.sh")))
}

// save writes the files and their checksums to a folder.
func (t tree) save(folder string) error {
	var sums strings.Builder
	slices.SortFunc(t, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	for _, f := range t {
		if err := os.WriteFile(filepath.Join(folder, f.name), f.data, os.FileMode(f.mode())); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.data), f.name)
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// read returns an embedded file.
func read(name string) string {
	data, err := files.ReadFile("files/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(data)
}

// output runs a command in a folder and returns what it prints.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr, cmd.Env = dir, &stderr, append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
