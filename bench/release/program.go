// This file builds the program for each platform.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// platform is an operating system and a processor, as Go names them.
type platform struct{ os, arch string }

var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

func (p platform) String() string { return p.os + "/" + p.arch }

// suffix returns what the name of a program ends with.
func (p platform) suffix() string {
	if p.os == "windows" {
		return ".exe"
	}
	return ""
}

// program returns a name for the program that is different for each platform.
func (p platform) program() string { return "understudy-" + p.os + "-" + p.arch + p.suffix() }

// environment returns the variables by which go builds for the platform. They replace those of the caller that change the bytes.
func (p platform) environment() []string {
	return []string{"GOOS=" + p.os, "GOARCH=" + p.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off"}
}

// maxProgramBytes is the largest size of a program.
const maxProgramBytes = 48e6

// compile builds the program for a platform, without symbols and without paths of this machine. It returns the program.
func (r *release) compile(ctx context.Context, p platform, path string) ([]byte, error) {
	fmt.Println("building", p)
	flags := fmt.Sprintf("-s -w -X main.release=%s -X main.commit=%s -X main.commitDate=%s", r.version, r.commit, r.date.Format(time.RFC3339))
	_, err := output(ctx, r.root, p.environment(), goCommand(), "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", path, "./cmd/understudy")
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err == nil && len(program) > maxProgramBytes {
		err = fmt.Errorf("the program for %s has %d bytes; %d are allowed", p, len(program), int(maxProgramBytes))
	}
	return program, err
}

// goCommand returns the name of the command go.
func goCommand() string {
	if name := os.Getenv("GO"); name != "" {
		return name
	}
	return "go"
}

// describe returns the man pages and the completions that a program prints, by the folders where systems look for them.
func describe(ctx context.Context, program, manFolder string) (tree, error) {
	if _, err := output(ctx, "", nil, program, "man", "--dir", manFolder); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(manFolder)
	if err != nil {
		return nil, err
	}
	var all tree
	for _, page := range pages {
		data, err := os.ReadFile(filepath.Join(manFolder, page.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: "share/man/man1/" + page.Name(), data: data})
	}
	for shell, name := range completions {
		script, err := output(ctx, "", nil, program, "completion", shell)
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: name, data: []byte(script)})
	}
	return all, nil
}

// completions are the files in which shells look for the completions of the program.
var completions = map[string]string{
	"bash": "share/bash-completion/completions/understudy",
	"zsh":  "share/zsh/site-functions/_understudy",
	"fish": "share/fish/vendor_completions.d/understudy.fish",
}
