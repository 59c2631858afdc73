// Trees of waits, queries without values, and the process that writes to a file.

package locks_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"understudy/internal/checktest"
	"understudy/internal/store/locks"
)

// draw returns the tree of sessions, each with its depth, and the sessions to end.
func draw(all ...locks.Session) string {
	var b strings.Builder
	r := locks.NewReport("test", all)
	for _, row := range r.Sessions {
		fmt.Fprintf(&b, "%s%d", strings.Repeat(">", row.Depth), row.PID)
		if row.Again {
			b.WriteString("!")
		}
		b.WriteString(" ")
	}
	return fmt.Sprintf("%send %v", b.String(), r.End)
}

func TestTheTreeNamesTheSessionToEnd(t *testing.T) {
	t.Parallel()
	pids := func(all ...int64) []int64 { return all }
	for name, c := range map[string]struct {
		sessions []locks.Session
		want     string
	}{
		"nobody waits":           {[]locks.Session{{PID: 1}, {PID: 2}}, "end []"},
		"a chain":                {[]locks.Session{{PID: 3, Blockers: pids(2)}, {PID: 2, Blockers: pids(1)}, {PID: 1}}, "1 >2 >>3 end [1]"},
		"two holders":            {[]locks.Session{{PID: 3, Blockers: pids(1, 2)}, {PID: 2}, {PID: 1, Seconds: 9}}, "1 >3 2 >3! end [1 2]"},
		"a prepared transaction": {[]locks.Session{{PID: 3, Blockers: pids(0)}}, "0 >3 end [0]"},
		"a cycle through a page": {[]locks.Session{{PID: 1, Seconds: 5, Blockers: pids(2)}, {PID: 2, Seconds: 1, Pinners: pids(1)}},
			"1 >2 >>1! end [1]"},
		"a cycle through a page beside an innocent reader": {[]locks.Session{{PID: 1, Blockers: pids(2)}, {PID: 2, Pinners: pids(1, 3)},
			{PID: 3, Seconds: 9}, {PID: 4, Blockers: pids(1)}}, "1 >2 >>1! >4 end [1]"},
		"a page without a cycle": {[]locks.Session{{PID: 2, Pinners: pids(1)}, {PID: 1}}, "1 >2 end [1]"},
		"a deadlock":             {[]locks.Session{{PID: 1, Seconds: 5, Blockers: pids(2)}, {PID: 2, Blockers: pids(1)}}, "1 >2 >>1! end [1]"},
	} {
		checktest.Equal(t, draw(c.sessions...), c.want, "%s: tree", name)
	}
}

var hidden = map[string]string{
	"ALTER TABLE  calls\n ADD COLUMN x1 int":  "ALTER TABLE calls ADD COLUMN x1 int",
	"VACUUM (FREEZE) messages":                "VACUUM (FREEZE) messages",
	"SELECT * FROM t WHERE a = $1 AND b=$23":  "SELECT * FROM t WHERE a = $1 AND b=$23",
	"UPDATE t SET body = 'Anna' WHERE id = 1": "UPDATE t SET body = …",
	"DELETE FROM t WHERE number=4155550100":   "DELETE FROM t WHERE number= …",
	"DELETE FROM t WHERE n > .5":              "DELETE FROM t WHERE n > . …",
	"SELECT $$Anna$$":                         "SELECT $ …",
	"SELECT $a$Anna$a$":                       "SELECT $ …",
	"COMMIT -- Anna":                          "COMMIT - …",
	"COMMIT /* Anna */":                       "COMMIT / …",
	"SELECT E'An\\'na'":                       "SELECT E …",
}

func TestQueriesAreShownUpToTheirFirstValue(t *testing.T) {
	t.Parallel()
	for query, want := range hidden {
		checktest.Equal(t, locks.HideValues(query), want, "%q without values", query)
	}
	checktest.Equal(t, len(locks.HideValues(strings.Repeat("a ", 1000))), 200+len("…"), "length of a long query")
}

func FuzzHideValues(f *testing.F) {
	for query := range hidden {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := locks.HideValues(query)
		if strings.ContainsAny(got, "'\n") {
			t.Errorf("%q: %q contains a text or a second line", query, got)
		}
		// A value that another one follows is never shown.
		if tail := locks.HideValues(query + " 'secret'"); strings.Contains(tail, "secret") && !strings.Contains(query, "secret") {
			t.Errorf("%q: %q contains the value", query, tail)
		}
	})
}

const holderVariable = "UNDERSTUDY_TEST_HOLDS"

// TestMain holds the write lock of a file if a test has started the binary for this.
func TestMain(m *testing.M) {
	if path := os.Getenv(holderVariable); path != "" {
		os.Exit(hold(path))
	}
	os.Exit(m.Run())
}

// hold locks a file of SQLite for writing until the standard input ends.
func hold(path string) int {
	conn, err := sql.Open("sqlite", "file:"+path)
	if err == nil {
		defer conn.Close()
		conn.SetMaxOpenConns(1)
		for _, text := range []string{"PRAGMA journal_mode = WAL", "CREATE TABLE IF NOT EXISTS t (a)", "BEGIN IMMEDIATE"} {
			if _, err = conn.Exec(text); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("holds")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

func TestTheProcessThatWritesToAFileIsFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	pid, err := locks.FindWriter(path)
	checktest.NoError(t, err, "without a file")
	checktest.Equal(t, pid, 0, "the writer without a file")
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(slices.Clone(os.Environ()), holderVariable+"="+path)
	in, err := c.StdinPipe()
	checktest.MustNoError(t, err, "StdinPipe")
	out, err := c.StdoutPipe()
	checktest.MustNoError(t, err, "StdoutPipe")
	checktest.MustNoError(t, c.Start(), "start the process that writes")
	line, err := bufio.NewReader(out).ReadString('\n')
	checktest.MustNoError(t, err, "read from the process that writes")
	checktest.Equal(t, line, "holds\n", "what the process says")
	pid, err = locks.FindWriter(path)
	checktest.NoError(t, err, "FindWriter")
	checktest.Equal(t, pid, int64(c.Process.Pid), "the process that writes")
	checktest.NoError(t, in.Close(), "end the process")
	checktest.NoError(t, c.Wait(), "wait for the process")
	pid, err = locks.FindWriter(path)
	checktest.NoError(t, err, "FindWriter at the end")
	checktest.Equal(t, pid, 0, "the writer at the end")
}
