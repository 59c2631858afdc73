// Restart: the server becomes its next program under load, and no request fails.

package operation

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/datadir"
	"understudy/internal/sample"
)

// command runs a command of the program in a folder and returns what it prints.
func command(dir string, args ...string) (string, error) {
	cmd := exec.Command(rig.Program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// askForever asks for a path over one connection, which is never opened again, until ctx ends.
func askForever(ctx context.Context, at, user, path string, check func(*http.Response) error) error {
	c, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		return err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for n := 0; ctx.Err() == nil; n++ {
		if err := c.SetDeadline(time.Now().Add(rig.Patience)); err != nil {
			return err
		}
		sign := base64.StdEncoding.EncodeToString([]byte(user))
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\n\r\n", path, sign); err != nil {
			return fmt.Errorf("request %d of %s: %w", n, path, err)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return fmt.Errorf("answer %d of %s: %w", n, path, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err == nil {
			err = check(resp)
		}
		if err != nil {
			return fmt.Errorf("answer %d of %s: %.300s: %w", n, path, body, err)
		}
	}
	return nil
}

// TestRestartUnderLoad: clients with one connection each, and one that opens a connection for each request, ask without a pause. The server
// restarts again and again, and no request fails. Settings and programs that cannot start change nothing.
func TestRestartUnderLoad(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "5ms", "--records", "2000")
	program := filepath.Join(t.TempDir(), "understudy")
	checktest.MustNoError(t, os.Link(rig.Program, program), "link the program")
	server, dir := rig.StartServer(t, rig.Settings{Upstream: up.URL("slowapi"), Program: program})
	user, list := rig.Account+":"+rig.DemoToken, rig.Base+"/Calls.json?PageSize=20"
	checktest.MustEqual(t, rig.Get(t, user, server.URL("twilio")+list).Status, 200, "status of the list")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var answers atomic.Int64
	count := func(r *http.Response) error {
		if answers.Add(1); r.StatusCode != 200 {
			return fmt.Errorf("%s", r.Status)
		}
		return nil
	}
	isHeld := func(r *http.Response) error {
		if how := r.Header.Get("Cache-Status"); !strings.Contains(how, "hit") {
			return fmt.Errorf("a held list was fetched again: %s", how)
		}
		return count(r)
	}
	for range 4 {
		all.Go(func() {
			checktest.NoError(t, askForever(ctx, server.URL("twilio"), user, list, isHeld), "a client of the list")
		})
	}
	all.Go(func() {
		checktest.NoError(t, askForever(ctx, server.URL("viewer"), user, "/-/health", count), "a client of the viewer")
	})
	all.Go(func() {
		for n := 0; ctx.Err() == nil; n++ { // each of these lists is fetched
			r, err := rig.Ask(http.MethodGet, user, fmt.Sprintf("%s%s/Messages.json?PageSize=%d", server.URL("twilio"), rig.Base, 1+n%900), "", "Connection", "close")
			if err != nil || r.Status != 200 {
				t.Errorf("a list that is not held: status %d, %.300s, %v", r.Status, r.Body, err)
				return
			}
			answers.Add(1)
		}
	})
	settings := filepath.Join(dir, "understudy.yml")
	good := rig.ReadFile(t, settings)
	checktest.MustNoError(t, os.WriteFile(settings, []byte(good+"vewer: {}\n"), 0o600), "write wrong settings")
	refuses := func(want string) {
		t.Helper()
		out, err := command(dir, "restart", "--data", "data")
		checktest.True(t, err != nil && strings.Contains(out, "the server goes on, because") && strings.Contains(out, want), "restart says %q, want %q", out, want)
	}
	token := rig.CommandToken(t, dir)
	refuses("did you mean")
	other, err := net.Listen("tcp", "127.0.0.1:0")
	checktest.MustNoError(t, err, "listen")
	defer other.Close()
	taken := strings.Replace(good, "127.0.0.1:0", other.Addr().String(), 1)
	checktest.MustNoError(t, os.WriteFile(settings, []byte(taken), 0o600), "write settings with a port of another program")
	refuses(other.Addr().String() + " is in use by another program; choose another address with viewer.listen")
	checktest.MustNoError(t, os.WriteFile(settings, []byte(good), 0o600), "write right settings")
	if file := filepath.Join(dir, rig.DataFolder, datadir.StoreFile); os.Getenv("UNDERSTUDY_STORE") == "" {
		change := func(text string) {
			t.Helper()
			db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
			checktest.MustNoError(t, err, "open the database")
			defer db.Close()
			_, err = db.Exec(text)
			checktest.MustNoError(t, err, "%s", text)
		}
		change("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)")
		change("UPDATE counter SET needs = needs + 99999")
		refuses("the database was changed by a newer Understudy")
		change("UPDATE counter SET needs = needs - 99999")
		change("DELETE FROM goose_db_version WHERE version_id = 99999")
	}
	checktest.MustNoError(t, os.Rename(program, program+".good"), "replace the program")
	checktest.MustNoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho a library is missing\nexit 1\n"), 0o700), "write a broken program")
	refuses("a library is missing")
	checktest.MustNoError(t, os.Rename(program+".good", program), "replace the program")
	checktest.Equal(t, rig.CommandToken(t, dir), token, "token of the server that went on")
	var slowest time.Duration
	for range sample.Count(1, 100) {
		before, began := answers.Load(), time.Now()
		out, err := command(dir, "restart")
		checktest.MustNoError(t, err, "restart: %s", out)
		slowest = max(slowest, time.Since(began))
		checktest.True(t, strings.HasPrefix(out, fmt.Sprintf("process %d has restarted and listens again after ", server.Process())), "restart says %q", out)
		rig.Await(t, func() string {
			if answers.Load() < before+100 && !t.Failed() {
				return "the clients get no answers"
			}
			return ""
		})
	}
	checktest.True(t, rig.CommandToken(t, dir) != token, "the server has not started again")
	stop()
	all.Wait()
	t.Logf("%d answers, none failed; the slowest restart took %v", answers.Load(), slowest)
}
