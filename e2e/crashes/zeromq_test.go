// ZeroMQ: the documented subscriber, with ZeroMQ's own library, through kill -9 of itself and of the server.

package crashes

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// documentedSubscriber writes the program of the document to a file.
func documentedSubscriber(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "follow.py")
	for _, b := range rig.ReadBlocks(t, "../../docs/reference/feed.md") {
		if text := b.Text(); b.Language == "python" && strings.Contains(text, "import sqlite3") {
			checktest.MustNoError(t, os.WriteFile(path, []byte(text), 0o600), "write")
			return path
		}
	}
	t.Fatal("the document has no program")
	return ""
}

// subscriber is the documented program.
type subscriber struct {
	cmd  *exec.Cmd
	said bytes.Buffer
}

func startSubscriber(t *testing.T, args ...string) *subscriber {
	t.Helper()
	s := &subscriber{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), rig.Python, args...)}
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	checktest.MustNoError(t, s.cmd.Start(), "start the subscriber")
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the subscriber ended (%v) and wrote:\n%s", s.cmd.ProcessState, s.said.Bytes())
		}
	})
	return s
}

func (s *subscriber) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// readStored returns the numbers of the changes that the program has stored, in order, and how many records they name.
func readStored(db *sql.DB) (numbers []int64, records int, err error) {
	rows, err := db.Query("select change from changes order by rowid")
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	ids := map[string]bool{}
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, 0, err
		}
		var ch struct {
			N  int64
			ID string
		}
		if err := json.Unmarshal([]byte(text), &ch); err != nil {
			return nil, 0, err
		}
		numbers, ids[ch.ID] = append(numbers, ch.N), true
	}
	return numbers, len(ids), rows.Err()
}

func TestZeroMQSubscriberThroughKills(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(sample.Seed(t), 0))
	address, file := rig.FreeAddress(t), filepath.Join(t.TempDir(), "changes.db")
	args := []string{documentedSubscriber(t), "tcp://" + address, rig.Account, rig.DemoToken, file}
	program := startSubscriber(t, args...) // before the server
	up := rig.StartAPI(t, "--latency", "1ms", "--records", "200").URL("slowapi")
	house, dir := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: fmt.Sprintf("{}\nfeed: {zmq: %q}", address)})
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&_pragma=busy_timeout(10000)")
	checktest.MustNoError(t, err, "open")
	defer db.Close()
	sent := 0
	var took []time.Duration
	write := func() {
		r, err := rig.Ask(http.MethodPost, rig.Account+":"+rig.DemoToken, house.URL("twilio")+rig.Base+"/Messages.json",
			fmt.Sprintf("To=%%2B1555%07d&From=%%2B15005550006&Body=x", sent))
		checktest.MustNoError(t, err, "POST")
		checktest.MustEqual(t, r.Status, http.StatusCreated, "POST: %s", r.Body)
		sent++
	}
	await := func() {
		began := time.Now()
		rig.Await(t, func() string {
			if _, records, err := readStored(db); err != nil || records < sent {
				return fmt.Sprintf("%d of %d records are stored: %v", records, sent, err)
			}
			return ""
		})
		took = append(took, time.Since(began))
	}
	for range sample.Count(3, 100) {
		write()
		await()
		took = took[:len(took)-1] // nothing was restarted before it
		isServer, isEarly := random.IntN(2) == 0, random.IntN(2) == 0
		if isEarly { // the last change is on its way
			write()
		}
		if isServer {
			house.Kill()
			house = rig.Start(t, dir, "serve")
		} else {
			program.kill()
			write()
			program = startSubscriber(t, args...)
		}
		write()
		await()
	}
	numbers, records, err := readStored(db)
	checktest.MustNoError(t, err, "the stored changes")
	checktest.Equal(t, records, sent, "records")
	for i, n := range numbers {
		checktest.MustEqual(t, n, int64(i+1), "the number of the stored change after %d", i)
	}
	slices.Sort(took)
	fast, _ := slices.BinarySearch(took, time.Second)
	t.Logf("%d restarts: 0 lost, 0 doubled; the changes around a restart were stored within %v (median), %v (maximum), %d within 1 s",
		len(took), took[len(took)/2], took[len(took)-1], fast)
}

// A peer that leaves before it reads its answer keeps nobody waiting.
func TestZeroMQPeersThatAreKilled(t *testing.T) {
	t.Parallel()
	address := rig.FreeAddress(t)
	up := rig.StartAPI(t, "--latency", "1ms", "--records", "200").URL("slowapi")
	rig.StartServer(t, rig.Settings{Upstream: up, Role: "all", Mirror: fmt.Sprintf("{}\nfeed: {zmq: %q}", address)})
	for range 3 {
		waiting := startSubscriber(t, "-u", "-c", fmt.Sprintf(`
import zmq
s = zmq.Context.instance().socket(zmq.REQ)
s.plain_username, s.plain_password = b%q, b%q
s.connect("tcp://%s")
s.send_multipart([b"twilio", b"", b"wait=0s"])
s.recv_multipart()
s.send_multipart([b"twilio", b"", b"wait=60s"])
print("sent")
s.recv_multipart()
`, rig.Account, rig.DemoToken, address))
		answer := string(rig.AskZeroMQ(t, address, rig.Account, rig.DemoToken, "20000"))
		waiting.kill()
		checktest.Contains(t, answer, "200\n0.", "the answer beside a peer that waits")
	}
	answer := string(rig.AskZeroMQ(t, address, rig.Account, rig.DemoToken, "20000"))
	checktest.Contains(t, answer, `"type":"start"`, "the subscription after peers that left")
	checktest.Equal(t, string(rig.AskZeroMQ(t, address, rig.Account, "wrong", "1000")), "", "the answer to a wrong secret")
	answer = string(rig.AskZeroMQ(t, address, "", "", "20000"))
	checktest.Contains(t, answer, "200\n0.", "the answer to a person on this machine, who needs no credential")
}
