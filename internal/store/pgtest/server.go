package pgtest

import (
	"bufio"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"understudy/internal/datadir"
)

const (
	// startTimeout is how long a server may take to start. It takes about a second.
	startTimeout = time.Minute

	// owner is the role that owns the databases of tests. As in most installations, it is not a superuser.
	owner = "understudy"

	superuser = "postgres"
)

//go:embed watchdog.sh
var watchdog string

// defaults are the settings of a server. The data need not survive a power failure, because the server ends with the test binary.
var defaults = []string{
	"listen_addresses=", "port=5432", "max_connections=200", "shared_buffers=32MB",
	"fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0", "max_wal_size=256MB",
	"checkpoint_timeout=1h", "log_checkpoints=off", "autovacuum=off", "jit=off",
	"dynamic_shared_memory_type=mmap", // in the server's folder, so that only the folder has to be removed
	"log_line_prefix=%m [%p] %d: ", "log_lock_waits=on",
}

// server is a running PostgreSQL server. It stops when its pipe is closed, at the latest when the process ends.
type server struct {
	folder   string // the folder with the socket, the log and the data
	pipe     *os.File
	watchdog *exec.Cmd
}

// shared returns the server that the pools of this test binary share. It runs until the process ends.
var shared = sync.OnceValues(func() (*server, error) {
	s, err := startServer(newFolder(), "")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return s, s.administer(ctx, `CREATE ROLE `+owner+` LOGIN`)
})

// Server starts a PostgreSQL server for one test. Settings such as "autovacuum=on" replace the usual ones. Server returns
// the data source name of the superuser. When the test ends, the server is stopped and its files are removed.
func Server(t testing.TB, settings ...string) (dsn string) {
	t.Helper()
	return startFor(t, "", settings)
}

// Standby starts an asynchronous standby of a server for one test, as Server does. primary is the data source name of the primary's
// superuser. The primary needs the same settings as the standby.
func Standby(t testing.TB, primary string, settings ...string) (dsn string) {
	t.Helper()
	return startFor(t, primary, settings)
}

// startFor starts a server that runs until the test ends.
func startFor(t testing.TB, primary string, settings []string) (dsn string) {
	t.Helper()
	s, err := startServer(newFolder(), primary, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("pgtest: stop the server: %v", err)
		}
	})
	return s.dsn(superuser, "postgres")
}

// Start starts a PostgreSQL server for a measurement. Its files are in a temporary folder on a disk. Settings such as "fsync=on" replace
// those of tests. Start returns the data source name of the superuser, and a function that stops the server and removes its files.
func Start(settings ...string) (dsn string, stop func() error, err error) {
	s, err := startServer(folderIn(os.TempDir()), "", settings...)
	if err != nil {
		return "", nil, err
	}
	return s.dsn(superuser, "postgres"), s.stop, nil
}

// Query returns the text of a query's only value.
func Query(t testing.TB, dsn, text string) (value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.QueryRow(ctx, text).Scan(&value), conn.Close(ctx)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// ReadLog returns the log of the server that dsn names.
func ReadLog(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(u.Query().Get("host"), "log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// startServer starts a server in a new folder and waits until it accepts connections. It is a standby if primary is not empty.
func startServer(folder, primary string, settings ...string) (*server, error) {
	programs, err := findPrograms("/usr/lib/postgresql/*/bin", os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	attributes, err := serverAttributes()
	if err != nil {
		return nil, err
	}
	s := &server{folder: folder}
	args := []string{"-c", watchdog, "pgtest", s.folder, programs}
	for _, setting := range slices.Concat(defaults, []string{"cluster_name=" + filepath.Base(s.folder)}, settings) {
		args = append(args, "-c", setting)
	}
	s.watchdog = exec.Command("/bin/sh", args...)
	s.watchdog.Dir = "/"
	s.watchdog.Env = []string{"PATH=" + os.Getenv("PATH"), "TZ=UTC", "PRIMARY=" + primary} // without PGPORT and PGDATA
	s.watchdog.SysProcAttr = attributes
	if err := s.start(); err != nil {
		return nil, fmt.Errorf("pgtest: start PostgreSQL in %s: %w", s.folder, err)
	}
	return s, nil
}

func (s *server) start() error {
	stdin, pipe, err := os.Pipe()
	if err != nil {
		return err
	}
	answer, stdout, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close(), pipe.Close())
	}
	defer answer.Close()
	s.pipe, s.watchdog.Stdin, s.watchdog.Stdout, s.watchdog.Stderr = pipe, stdin, stdout, stdout
	err = s.watchdog.Start()
	if err := errors.Join(err, stdin.Close(), stdout.Close()); err != nil {
		return errors.Join(err, pipe.Close())
	}
	if err := readReady(answer); err != nil {
		return errors.Join(err, pipe.Close(), ignoreExit(s.watchdog.Wait()))
	}
	return nil
}

// readReady waits for the line "ready". If the line is missing, the error contains the other lines.
func readReady(answer *os.File) error {
	if err := answer.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	var lines []string
	for r := bufio.NewReader(answer); ; {
		line, err := r.ReadString('\n')
		if line == "ready\n" {
			return nil
		}
		lines = append(lines, line)
		if err != nil {
			return fmt.Errorf("%w: %s", err, strings.Join(lines, ""))
		}
	}
}

// stop stops the server and waits until its folder is removed.
func (s *server) stop() error {
	return errors.Join(s.pipe.Close(), ignoreExit(s.watchdog.Wait()))
}

// ignoreExit returns err, or nil if err only says that the watchdog's exit code was not 0.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// dsn returns the data source name of a database. It contains the port, because otherwise PGPORT would set it.
func (s *server) dsn(role, database string) string {
	query := url.Values{"host": {s.folder}, "port": {"5432"}}
	u := url.URL{Scheme: "postgres", User: url.User(role), Path: "/" + database, RawQuery: query.Encode()}
	return u.String()
}

// administer executes a statement as the superuser.
func (s *server) administer(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.dsn(superuser, "postgres"))
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	if _, err = conn.Exec(ctx, statement); err != nil {
		err = fmt.Errorf("pgtest: %s: %w", statement, err)
	}
	return errors.Join(err, conn.Close(ctx))
}

// logSize returns the size of the server's log.
func (s *server) logSize() int64 {
	info, err := os.Stat(filepath.Join(s.folder, "log"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// readLog returns the log's last lines about a database, at most max lines, starting after the byte from.
func (s *server) readLog(database string, from int64, max int) []string {
	data, err := os.ReadFile(filepath.Join(s.folder, "log"))
	if err != nil || from > int64(len(data)) {
		return nil
	}
	var lines []string
	matches := false
	for line := range strings.Lines(string(data[from:])) {
		if !strings.HasPrefix(line, "\t") { // all other lines begin an entry
			matches = strings.Contains(line, "] "+database+": ")
		}
		if matches {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines[len(lines)-min(len(lines), max):]
}

// findPrograms returns the folder of the newest server among the folders that match pattern. If none matches, it searches
// the folders of path.
func findPrograms(pattern, path string) (string, error) {
	folders, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	version := func(folder string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
		return n
	}
	slices.SortFunc(folders, func(a, b string) int { return version(b) - version(a) })
	for _, folder := range append(folders, filepath.SplitList(path)...) {
		_, noServer := exec.LookPath(filepath.Join(folder, "postgres"))
		_, noInit := exec.LookPath(filepath.Join(folder, "initdb"))
		if noServer == nil && noInit == nil {
			return folder, nil
		}
	}
	return "", errors.New("pgtest: PostgreSQL is not installed; make setup installs it, and on Debian: apt-get install postgresql")
}

// newFolder returns the path of a folder that does not exist. The path is short, because the path of a socket has at most
// 107 bytes. The folder is in memory if there is enough memory. Files are created there ten times as fast as on a disk,
// and a database has hundreds of files.
func newFolder() string {
	const memory, minFree = "/dev/shm", 4 << 30
	parent := "/tmp"
	if free, err := datadir.CountFree(memory); err == nil && free >= minFree {
		parent = memory
	}
	return folderIn(parent)
}

// folderIn returns the path of a folder in parent that does not exist.
func folderIn(parent string) string {
	return filepath.Join(parent, fmt.Sprintf("pgtest-%d-%s", os.Getpid(), strings.ToLower(rand.Text()[:6])))
}
