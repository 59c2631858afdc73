// Servers that are killed while they give audited answers.

package audit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/sample"
)

// TestMain is the server that is killed, when its environment names a data folder.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDIT_SERVE"); dir != "" {
		fmt.Println(serveForever(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serveForever answers each request when its entry is durable.
func serveForever(dir string) error {
	key, err := ReadKey(filepath.Join(dir, "audit.key"), false)
	if err != nil {
		return err
	}
	l := New(Options{Dir: filepath.Join(dir, "audit"), Heads: filepath.Join(dir, "audit.heads"), Key: key, SegmentSize: 16 << 10})
	go func() { _ = l.Run(context.Background()) }() // until it is killed
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")
		if err := l.RecordAction(r.Context(), record(id, "+14155550100")); err != nil {
			http.Error(w, err.Error(), understudy.Status(err))
			return
		}
		_, _ = io.WriteString(w, id)
	}))
}

// TestKilled kills a server with SIGKILL at random moments: every answer that a reader has
// had has its entry, and the chain is what was written. 10 kills, 500 with
// UNDERSTUDY_PROVE=1.
func TestKilled(t *testing.T) {
	kills := sample.Count(10, 500)
	f, chance := newFolder(t), rand.New(rand.NewPCG(sample.Seed(t), 12))
	answered := 0
	for n := range kills {
		given := f.killed(n, time.Duration(chance.IntN(20_000))*time.Microsecond)
		answered += len(given)
		listed := map[string]bool{}
		for filter := (Filter{Limit: MaxFound}); ; {
			found, err := f.reader().Search(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range found.Entries {
				listed[e.IDs[0]] = true
			}
			if filter.Before = found.Next; filter.Before == "" || len(listed) > 2*len(given)+100 {
				break
			}
		}
		for _, id := range given {
			if !listed[id] {
				t.Fatalf("kill %d: the answer %s was given and is not listed", n, id)
			}
		}
	}
	f.sound()
	if answered == 0 {
		t.Error("no answer was given before a kill")
	}
	t.Logf("%d kills, %d answers", kills, answered)
}

// killed has a server answer four readers, kills it some time after its first answer, and
// returns what the readers have had.
func (f *folder) killed(n int, after time.Duration) (given []string) {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "AUDIT_SERVE="+f.dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		f.t.Fatal("the server does not begin")
	}
	address := lines.Text()
	var mu sync.Mutex
	var readers sync.WaitGroup
	for r := range 4 {
		readers.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("CA%d.%d.%d", n, r, i)
				resp, err := http.Get("http://" + address + "/?id=" + id)
				if err != nil {
					return // it is killed
				}
				body, err := io.ReadAll(resp.Body)
				if bad := resp.Body.Close(); err != nil || bad != nil {
					return
				}
				if resp.StatusCode != http.StatusOK || string(body) != id {
					f.t.Errorf("%s: %d %s", id, resp.StatusCode, body)
					return
				}
				mu.Lock()
				if given = append(given, id); len(given) == 1 {
					time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
				}
				mu.Unlock()
			}
		})
	}
	readers.Wait()
	_ = cmd.Wait() // it was killed
	return given
}
