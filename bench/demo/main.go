// Command demo is what `make run` starts: understudy's own demo, and a comparison of the simulated API asked directly
// with the same API asked through Understudy.
//
//	demo PROGRAM FLAGS…
//
// The flags are those of `understudy demo`. It prints what the program prints, then the comparison, has every
// record fetched, and ends when the program ends.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		code = cmp.Or(code, 1)
	}
	os.Exit(code)
}

// demo is the program at work.
type demo struct {
	program, folder string
	addresses       map[string]string // the addresses by the first word of the line that names them
	ready           chan struct{}     // closed when the program has printed all addresses
}

// run starts the program, measures it and waits for its end. It returns the program's exit code.
func run(args []string) (code int, err error) {
	if len(args) == 0 {
		return 2, errors.New("usage: demo PROGRAM FLAGS…")
	}
	d := &demo{program: args[0], addresses: map[string]string{}, ready: make(chan struct{})}
	if i := slices.Index(args, "--data"); i >= 0 && i+1 < len(args) {
		d.folder = args[i+1]
	} else {
		if d.folder, err = os.MkdirTemp("", "understudy-demo-"); err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(d.folder)) }()
		args = append(args, "--data", d.folder)
	}
	if err := os.MkdirAll(d.folder, 0o700); err != nil {
		return 1, err
	}
	// A hundred lines of requests would bury the table.
	access, err := os.OpenFile(filepath.Join(d.folder, "access.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 1, err
	}
	defer access.Close()
	cmd := exec.Command(d.program, append([]string{"demo"}, args[1:]...)...)
	cmd.Stdout = &lineWriter{do: d.readLine}
	cmd.Stderr = &lineWriter{do: func(line []byte) error {
		to := os.Stderr
		if accessLine.Match(line) {
			to = access
		}
		_, err := to.Write(line)
		return err
	}}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		end()
	}()
	compared := make(chan struct{})
	go func() {
		defer close(compared)
		select {
		case <-d.ready:
			d.compare(ctx)
		case <-ctx.Done():
		}
	}()
	for {
		select {
		case <-signals: // the second one ends the program at once
			end()
			_ = cmd.Process.Signal(syscall.SIGTERM)
		case err := <-ended:
			<-compared
			if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
				return cmp.Or(max(failed.ExitCode(), 0), 1), nil // it has said why
			}
			return 0, err
		}
	}
}

var (
	addressLine = regexp.MustCompile(`^(\w+) +(http://\S+)`)
	accessLine  = regexp.MustCompile(`^time=\S+ (id|method)=`)
)

// readLine prints a line of the program, and notes the address in it.
func (d *demo) readLine(line []byte) error {
	_, err := os.Stdout.Write(line)
	if m := addressLine.FindSubmatch(line); m != nil {
		d.addresses[string(m[1])] = string(m[2])
	}
	if string(line) == "Ctrl-C ends it\n" {
		close(d.ready)
	}
	return err
}

// lineWriter calls do with each whole line that is written to it.
type lineWriter struct {
	do   func(line []byte) error
	rest []byte
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		if err := w.do(w.rest[:i+1]); err != nil {
			return 0, err
		}
		w.rest = w.rest[i+1:]
	}
}
