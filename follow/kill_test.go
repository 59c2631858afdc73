// kill -9: a follower that keeps its number sees every change once, however often it is
// killed and the connection cut. Each time it follows over another wire.

package follow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/follow"
	"understudy/internal/access"
	"understudy/internal/feed"
	"understudy/internal/feed/wires"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// TestKilledFollower is the child: it does nothing unless TestKillFollower
// starts it. It keeps the numbers it saw in a file, one a line, each by one
// write; the last is its place.
func TestKilledFollower(t *testing.T) {
	path := os.Getenv("UNDERSTUDY_KILLED_FOLLOWER")
	if path == "" {
		return
	}
	seen, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	wire, err := strconv.Atoi(os.Getenv("UNDERSTUDY_KILLED_WIRE"))
	if err != nil {
		t.Fatal(err)
	}
	err = follow.Receive(t.Context(), follow.Options{URL: os.Getenv("UNDERSTUDY_KILLED_FEED"), After: lastOf(seen),
		Wire: follow.Wire(wire), MinPause: time.Millisecond},
		func(ch follow.Change) error {
			_, err := out.WriteString(ch.Cursor + "\n")
			return err
		})
	t.Fatal(err)
}

// lastOf is the last number that stands in a file whole.
func lastOf(seen []byte) string {
	end := bytes.LastIndexByte(seen, '\n')
	if end < 0 {
		return "0"
	}
	return string(seen[bytes.LastIndexByte(seen[:end], '\n')+1 : end])
}

// everyone sees everything.
type everyone struct{}

func (everyone) IdentifyPerson(*http.Request) (understudy.Caller, error) {
	return understudy.Caller{Name: "child", Grant: &understudy.Grant{Role: understudy.RoleAll}}, nil
}

// source is a feed of a real store in which calls change all the time.
type source struct {
	db     *store.DB
	feed   *feed.Feed
	server *httptest.Server
}

func openSource(t *testing.T) *source {
	t.Helper()
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]*spec.Spec{storetest.Source: sp}
	db, err := store.Open(t.Context(), store.Options{Path: storetest.File(t), Specs: specs})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := access.New(specs, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.New(t.Context(), feed.Options{
		Sources: []*spec.Source{{Name: storetest.Source, Spec: sp}}, Store: db, KV: db.KV,
		Policy: feed.Policy{Gate: gate, Callers: everyone{}}, Limits: feed.Limits{MaxBuffered: 64},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	handler := wires.New(f)
	s := &source{db: db, feed: f, server: httptest.NewServer(handler)}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() { s.change(ctx, t) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := handler.Close(); err != nil {
			t.Error(err)
		}
		s.server.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// change saves page after page, each with a few changes, a few hundred a second.
func (s *source) change(ctx context.Context, t *testing.T) {
	w := storetest.NewWorld(3, 500)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		from := n * 10 % 500
		for i := range 3 {
			w.Changed[from+i] = n
		}
		p, _ := w.List(10, from/10, from, storetest.Epoch.Add(time.Duration(n)*time.Second))
		saved, err := s.db.Save(ctx, p)
		switch {
		case errors.Is(err, context.Canceled):
			return
		case err != nil:
			t.Error(err)
			return
		}
		s.feed.NotifyPage(request.PageSaved{Page: saved.Page, Changes: saved.Changes})
	}
}

func TestKillFollower(t *testing.T) {
	t.Parallel()
	kills := sample.CountFrom("PROVE_KILLS", 4)
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("PROVE_SEED"), 10, 64); err == nil {
		seed = n
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	s := openSource(t)
	path := filepath.Join(t.TempDir(), "seen")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range kills {
		seen := countOf(t, path)
		child := begin(t, s.server.URL, path, follow.Wire(i)%(follow.Connect+1))
		// It has to come so far that it is killed at its work.
		for countOf(t, path) < seen+1+rng.IntN(40) {
			if rng.IntN(200) == 0 {
				s.server.CloseClientConnections()
			}
			child.alive(t)
		}
		timer := time.NewTimer(time.Duration(rng.IntN(5000)) * time.Microsecond)
		<-timer.C
		child.kill()
	}
	last, err := s.db.ReadLastChange(t.Context(), storetest.Source)
	if err != nil {
		t.Fatal(err)
	}
	child := begin(t, s.server.URL, path, follow.Connect)
	for int64(countOf(t, path)) < last {
		child.alive(t)
	}
	child.kill()
	seen, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.SplitSeq(bytes.TrimSuffix(seen, []byte("\n")), []byte("\n")) {
		if n++; !bytes.HasPrefix(line, []byte(strconv.Itoa(n)+".")) {
			t.Fatalf("line %d of what was seen is %q (PROVE_SEED=%d)", n, line, seed)
		}
	}
	t.Logf("%d kills, %d changes each seen once", kills, n)
}

func countOf(t *testing.T, path string) int {
	t.Helper()
	seen, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(seen, []byte("\n"))
}

// child is a follower in a process of its own.
type child struct {
	cmd   *exec.Cmd
	out   bytes.Buffer
	ended chan struct{}
	limit *time.Timer
}

func begin(t *testing.T, url, path string, wire follow.Wire) *child {
	t.Helper()
	c := &child{cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledFollower$"), ended: make(chan struct{}),
		limit: time.NewTimer(time.Minute)}
	c.cmd.Env = append(os.Environ(), "UNDERSTUDY_KILLED_FOLLOWER="+path, "UNDERSTUDY_KILLED_FEED="+url,
		fmt.Sprint("UNDERSTUDY_KILLED_WIRE=", int(wire)))
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait() // it is killed
	}()
	return c
}

// alive fails when the child has ended or takes too long.
func (c *child) alive(t *testing.T) {
	t.Helper()
	tick := time.NewTimer(time.Millisecond)
	defer tick.Stop()
	select {
	case <-tick.C:
	case <-c.ended:
		t.Fatalf("the follower ended by itself:\n%s", &c.out)
	case <-c.limit.C:
		c.kill()
		t.Fatalf("the follower does not get on:\n%s", &c.out)
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
	c.limit.Stop()
}
