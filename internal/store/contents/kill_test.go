//go:build linux

// Contents and kill -9; contents and a full disk.

package contents_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// killedText is the n-th content the child keeps, under one of 12 keys. Some
// are large enough to be killed in the middle.
func killedText(n int) string {
	return strings.Repeat(fmt.Sprintf("content %d,", n), 1+n%7*3000)
}

// TestKilledFilesChild is the child: it does nothing unless TestFilesKillNine
// starts it.
func TestKilledFilesChild(t *testing.T) {
	dir := os.Getenv("UNDERSTUDY_KILLED_FILES")
	if dir == "" {
		return
	}
	first, err := strconv.Atoi(os.Getenv("UNDERSTUDY_KILLED_FROM"))
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{TB: t, dir: dir, now: time.Now()}
	if endpoint := os.Getenv("UNDERSTUDY_KILLED_BUCKET"); endpoint != "" {
		s.bucket = &bucket{s3: bucketAt(endpoint)}
	}
	s.open()
	f := s.Store
	for n := first; ; n++ {
		s.now = time.Now()
		if n%5 == 4 {
			if _, err := f.Forget("twilio", "recordings", contentOf(n%12).ID); err != nil {
				t.Fatal(err)
			}
			fmt.Println("forgot", n)
			continue
		}
		if _, err := f.Put(t.Context(), contentOf(n%12), strings.NewReader(killedText(n))); err != nil {
			t.Fatal(err)
		}
		fmt.Println("kept", n)
	}
}

func TestFilesKillNine(t *testing.T) {
	inEveryStore(t, func(t *testing.T, newShelf shelfMaker) {
		kills := sample.CountFrom("PROVE_KILLS", 4)
		seed := uint64(time.Now().UnixNano())
		if n, err := strconv.ParseUint(os.Getenv("PROVE_SEED"), 10, 64); err == nil {
			seed = n
		}
		t.Logf("%d kills, PROVE_SEED=%d", kills, seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		s := newShelf(t)
		held := map[int]string{} // by key, what the child said last; "" = nothing
		next := 0
		for range kills {
			next = killFiles(t, s, next, 1+rng.IntN(20), time.Duration(rng.IntN(4000))*time.Microsecond, held)
			s.open()
			for key := range 12 {
				got, _ := s.text(key) // checks that it is whole
				if got == held[key] {
					continue
				}
				// One more may have been done before the child could say so.
				if done := next; done%12 == key && (done%5 == 4 && got == "" || done%5 != 4 && got == killedText(done)) {
					held[key] = got
					continue
				}
				t.Fatalf("key %d after %d: %d bytes %.20q, want %d bytes %.20q", key, next, len(got), got, len(held[key]), held[key])
			}
			checktest.Equal(t, s.onDisk("new"), 0, `s.onDisk("new")`)
			checktest.Equal(t, s.onDisk("index"), int(s.Stats().Files), `s.onDisk("index")`)
			checktest.True(t, s.onDisk("content") <= s.onDisk("index"), `s.onDisk("content") > s.onDisk("index")`)
			next++
		}
	})
}

// killFiles runs the child until it has said so many lines, waits a little and
// kills it. It returns the first step it did not speak of.
func killFiles(t *testing.T, s *shelf, from, lines int, more time.Duration, held map[int]string) (next int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledFilesChild$")
	cmd.Env = append(os.Environ(), "UNDERSTUDY_KILLED_FILES="+s.dir, "UNDERSTUDY_KILLED_FROM="+strconv.Itoa(from))
	if s.bucket != nil {
		cmd.Env = append(cmd.Env, "UNDERSTUDY_KILLED_BUCKET="+s.bucket.s3.Endpoint)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	next = from
	in := bufio.NewScanner(out)
	note := func() {
		word, n, _ := strings.Cut(in.Text(), " ")
		at, err := strconv.Atoi(n)
		if err != nil {
			t.Fatalf("the child said %q", in.Text())
		}
		if held[at%12] = killedText(at); word == "forgot" {
			held[at%12] = ""
		}
		next = at + 1
	}
	for range lines {
		if !in.Scan() {
			t.Fatal("the child ended by itself")
		}
		note()
	}
	time.Sleep(more) // the point of the kill is random
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for in.Scan() {
		note()
	}
	_ = cmd.Wait() // it was killed
	return next
}

// A disk that is full keeps nothing half, serves what is held, and takes more
// once there is room.
func TestFilesDiskFull(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s := &shelf{TB: t, dir: filepath.Join(dir, "media"), now: filesEpoch}
	s.open()
	kept := 0
	for ; kept < 12; kept++ {
		_, err := s.Put(t.Context(), contentOf(kept), strings.NewReader(strings.Repeat(fmt.Sprint(kept%10), 60_000)))
		if err == nil {
			continue
		}
		var short interface{ ShortString() string }
		checktest.MustTrue(t, errors.Is(err, understudy.ErrNotStored), "err is %v, want understudy.ErrNotStored",
			err)
		checktest.MustTrue(t, errors.As(err, &short), "errors.As(err, &short) is false")
		checktest.MustEqual(t, short.ShortString(), "disk full", "short.ShortString(); %v", err)
		break
	}
	if kept == 0 || kept == 12 {
		t.Fatalf("%d contents fit", kept)
	}
	want := make([]int, kept)
	for n := range want {
		want[n] = n
	}
	s.holds(want...)
	if s.onDisk("content") != kept {
		t.Errorf("%d contents, want %d", s.onDisk("content"), kept)
	}
	if _, err := s.Forget("twilio", "recordings", contentOf(0).ID); err != nil {
		t.Fatal(err)
	}
	s.put(0, strings.Repeat("x", 50_000))
	s.open()
	s.holds(want...)
}
