package pgtest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// lastPort is the port of the newest PgBouncer. The port is a part of the name of its socket.
var lastPort atomic.Int64

// bouncerScript runs PgBouncer until standard input ends. The test binary holds the other end of that pipe.
const bouncerScript = `"$1" "$2" </dev/null >"$2.log" 2>&1 & while read -r _; do :; done; kill "$!"; wait`

// bouncerSettings are the usual settings of PgBouncer. Consecutive transactions of a client run in different sessions of the
// server. docs/how-to/nodes.md recommends the size of the pool and the last limit.
const bouncerSettings = `[databases]
%s = host=%s port=5432 user=%s
[pgbouncer]
pool_mode = transaction
server_round_robin = 1
server_login_retry = 0.1
default_pool_size = 16
query_wait_timeout = 5
server_idle_timeout = 5
auth_type = any
listen_addr =
listen_port = %d
unix_socket_dir = %s
max_client_conn = 200
%s
`

// Bouncer starts PgBouncer in transaction mode before the database that dsn names. Settings such as
// "default_pool_size=3" replace the usual ones. Bouncer returns the data source name of the database behind PgBouncer.
// PgBouncer ends with the test, at the latest with the test binary. Its files are in the server's folder.
func Bouncer(t testing.TB, dsn string, settings ...string) (through string) {
	t.Helper()
	through, stop, err := startBouncer(dsn, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("pgtest: stop PgBouncer: %v", err)
		}
	})
	return through
}

// startBouncer starts PgBouncer and waits until it accepts connections.
func startBouncer(dsn string, settings ...string) (through string, stop func() error, err error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", nil, err
	}
	attributes, err := serverAttributes()
	if err != nil {
		return "", nil, err
	}
	query := u.Query()
	folder, port := query.Get("host"), 6432+lastPort.Add(1)
	file := filepath.Join(folder, fmt.Sprintf("bouncer-%d", port))
	text := fmt.Sprintf(bouncerSettings, strings.TrimPrefix(u.Path, "/"), folder, u.User.Username(), port, folder,
		strings.Join(settings, "\n"))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return "", nil, err
	}
	stdin, pipe, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", bouncerScript, "pgtest", "/usr/sbin/pgbouncer", file)
	cmd.Stdin, cmd.Dir = stdin, "/"
	cmd.SysProcAttr = attributes
	if err := errors.Join(cmd.Start(), stdin.Close()); err != nil {
		return "", nil, errors.Join(err, pipe.Close())
	}
	stop = func() error { return errors.Join(pipe.Close(), ignoreExit(cmd.Wait())) }
	if err := awaitBouncer(fmt.Sprintf("%s/.s.PGSQL.%d", folder, port), file+".log"); err != nil {
		return "", nil, errors.Join(err, stop())
	}
	query.Set("port", fmt.Sprint(port))
	u.RawQuery = query.Encode()
	return u.String(), stop, nil
}

// awaitBouncer waits until PgBouncer accepts connections.
func awaitBouncer(socket, log string) error {
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			return conn.Close()
		}
		text, _ := os.ReadFile(log)
		if strings.Contains(string(text), "FATAL") || strings.Contains(string(text), "not found") || time.Now().After(deadline) {
			return fmt.Errorf("pgtest: start PgBouncer (make setup installs it): %w: %s", err, text)
		}
	}
}
