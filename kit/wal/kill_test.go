// Processes that are killed while they append.

package wal

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/sample"
)

// TestMain is the process that appends, when its environment says so.
func TestMain(m *testing.M) {
	if dir := os.Getenv("WAL_APPEND"); dir != "" {
		if err := appendForever(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// appendForever appends from several goroutines and prints the number of each entry
// that is durable.
func appendForever(dir string) error {
	l, err := Open(dir, Options{SegmentSize: 1 << 14})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	failed := make(chan error)
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				n, err := l.Append(context.Background(), fmt.Appendf(nil, "%d.%d.%d", os.Getpid(), w, i))
				if err == nil && w == 0 && i%50 == 49 {
					err = l.RemoveBefore(max(n, 4000) - 4000)
				}
				if err != nil {
					failed <- err
					return
				}
				mu.Lock()
				fmt.Printf("%d %d.%d.%d\n", n, os.Getpid(), w, i)
				mu.Unlock()
			}
		}()
	}
	return <-failed
}

// TestKilled kills the process that appends: every entry that it was told to be
// durable is there as it was. 10 kills, 500 with UNDERSTUDY_PROVE=1.
func TestKilled(t *testing.T) {
	kills := sample.Count(10, 500)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 24))
	dir, told := t.TempDir(), map[uint64]string{}
	for range kills {
		killed(t, dir, time.Duration(chance.IntN(30))*time.Millisecond, told)
		l, err := Open(dir, Options{SegmentSize: 1 << 14})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range l.Entries(0) {
			if err != nil {
				t.Fatal(err)
			}
			if want, ok := told[e.Number]; ok && want != string(e.Data) {
				t.Fatalf("entry %d is %q, was %q", e.Number, e.Data, want)
			}
			delete(told, e.Number)
		}
		for n, data := range told {
			if n >= l.FirstNumber() {
				t.Fatalf("entry %d, %q, is lost; the log has %d to %d", n, data, l.FirstNumber(), l.LastNumber())
			}
		}
		clear(told)
		closed(t, l)
	}
}

// killed lets a process append, kills it some time after its first entry, and notes
// what it was told.
func killed(t *testing.T, dir string, after time.Duration, told map[uint64]string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "WAL_APPEND="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var end *time.Timer
	for lines.Scan() {
		if end == nil {
			end = time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		number, data, ok := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || !ok {
			if end != nil && data == "" {
				break // the last line, cut short
			}
			t.Fatal(lines.Text())
		}
		told[n] = data
	}
	_ = cmd.Wait() // it was killed
	if end == nil {
		t.Fatal("the process appended nothing")
	}
}
