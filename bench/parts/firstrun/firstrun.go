// Package firstrun is a part of the bench: how long a newcomer waits for the table of `make run`.
package firstrun

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"understudy/bench/rig"
)

// lastLine is the last line of the table, and patience how long it may take.
const (
	lastLine = "clients, one cold page"
	patience = 10 * time.Minute
)

// Measure times the table from a clone with an empty build cache, whose modules are downloaded, and from a binary that is
// built. Then it reads the factor from the home page.
func Measure(ctx context.Context, r *rig.Run) error {
	bin, err := filepath.Abs(r.Bin)
	if err != nil {
		return err
	}
	program := filepath.Join(r.Dir, "demo")
	if out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./demo").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, out)
	}
	demo := []string{program, bin, "--arrivals", "6", "--viewer", "127.0.0.1:0", "--drop-in", "twilio=127.0.0.1:0",
		"--slowapi", "127.0.0.1:0", "--data", filepath.Join(r.Dir, "built")}
	if r.Quick {
		demo = append(demo, "--latency", "50ms")
	}
	built, err := table(ctx, r.Dir, nil, demo...)
	if err != nil {
		return err
	}
	r.AtMost("the table, from a built binary", built.took.Seconds(), 15, "s")
	r.AtLeast("the factor on the home page", built.factor, 100, "times")
	if r.Quick {
		return nil // compiling takes minutes
	}
	clone := filepath.Join(r.Dir, "clone")
	if out, err := exec.CommandContext(ctx, "git", "clone", "--quiet", "..", clone).CombinedOutput(); err != nil {
		return fmt.Errorf("clone: %w: %s", err, out)
	}
	first, err := table(ctx, clone, []string{"GOCACHE=" + filepath.Join(r.Dir, "cache")}, "make", "run")
	if err != nil {
		return err
	}
	r.AtMost("the table of make run in a clone, empty build cache, modules downloaded", first.took.Seconds(), 75, "s")
	r.AtLeast("the factor on its home page", first.factor, 100, "times")
	r.Say("of it %.1f s were the comparison", (first.took - first.building).Seconds())
	return nil
}

// run is what a run showed.
type run struct {
	took, building time.Duration // to the table, and to the first address
	factor         float64       // of the home page
}

var (
	viewerLine = regexp.MustCompile(`^viewer +(http://\S+)`)
	factorText = regexp.MustCompile(`<b class="figure">([\d,]+)×</b> faster than Twilio`)
)

// table starts a command in a folder, waits for the table, reads the home page, and ends the command.
func table(ctx context.Context, dir string, env []string, args ...string) (out run, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // make has children
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return out, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return out, err
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	viewer := ""
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		text := lines.Text()
		if m := viewerLine.FindStringSubmatch(text); m != nil {
			viewer, out.building = m[1], time.Since(began)
		}
		if strings.Contains(text, lastLine) {
			out.took = time.Since(began)
			break
		}
	}
	if out.took == 0 || viewer == "" {
		return out, errors.Join(errors.New("firstrun: it ended without the table"), lines.Err())
	}
	out.factor, err = factor(ctx, viewer)
	return out, err
}

// factor reads how many times as fast the home page says that Understudy is.
func factor(ctx context.Context, viewer string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, viewer+"/", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	m := factorText.FindSubmatch(body)
	if m == nil {
		return 0, errors.New("firstrun: the home page says no factor")
	}
	return strconv.ParseFloat(strings.ReplaceAll(string(m[1]), ",", ""), 64)
}
