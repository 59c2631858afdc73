// kill -9: no committed page is lost, none is half written.

package store_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// killedRecords is the size of the world both processes know. The child saves
// page after page of it and says so after each.
const killedRecords = 2_500

// killedStep changes one call of each page, in every walk after the first.
func killedStep(w *storetest.World, n int) (from int) {
	from = n * 50 % killedRecords
	if round := n * 50 / killedRecords; round > 0 {
		w.Changed[from+n%50] = round
	}
	return from
}

func killedPage(w *storetest.World, n int) *understudy.Page {
	from := killedStep(w, n)
	p, _ := w.List(50, from/50, from, storetest.Epoch.Add(time.Duration(n)*time.Second))
	return p
}

// TestKilledChild is the child: it does nothing unless TestKillNine starts it.
func TestKilledChild(t *testing.T) {
	path := os.Getenv("UNDERSTUDY_KILLED_CHILD")
	if path == "" {
		return
	}
	first, err := strconv.Atoi(os.Getenv("UNDERSTUDY_KILLED_FROM"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Options{Path: path, Specs: storetest.Specs(t), SaveTime: storetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	w := storetest.NewWorld(11, killedRecords)
	for n := range first {
		killedStep(w, n) // so that the world is where it was
	}
	for n := first; n < first+100_000; n++ {
		if _, err := db.Save(t.Context(), killedPage(w, n)); err != nil {
			t.Fatal(err)
		}
		fmt.Println("saved", n)
	}
}

func TestKillNine(t *testing.T) {
	t.Parallel()
	kills := sample.CountFrom("PROVE_KILLS", 4)
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("PROVE_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("%d kills, PROVE_SEED=%d", kills, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "understudy.db")
	w, pages := storetest.NewWorld(11, killedRecords), []*understudy.Page{}
	for range kills {
		last := killAfter(t, path, len(pages), 1+rng.IntN(15), time.Duration(rng.IntN(3000))*time.Microsecond)
		for len(pages) <= last {
			pages = append(pages, killedPage(w, len(pages)))
		}
		// One more may have been saved before the child could say so.
		next := killedPage(w, len(pages))
		if checkKilled(t, path, pages, next) {
			pages = append(pages, next)
		}
	}
}

// killAfter runs the child until it has said so many saves, waits a little and
// kills it. It returns the last page the child called saved.
func killAfter(t *testing.T, path string, from, saves int, more time.Duration) (last int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledChild$")
	cmd.Env = append(os.Environ(), "UNDERSTUDY_KILLED_CHILD="+path, "UNDERSTUDY_KILLED_FROM="+strconv.Itoa(from))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last = from - 1
	lines := bufio.NewScanner(out)
	note := func() {
		if word, n, _ := strings.Cut(lines.Text(), " "); word == "saved" {
			last, _ = strconv.Atoi(n)
		} else {
			fmt.Fprintln(&errs, lines.Text())
		}
	}
	for last < from-1+saves && lines.Scan() {
		note()
	}
	if last < from {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("the child saved nothing:\n%s", errs.String())
	}
	timer := time.AfterFunc(more, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	for lines.Scan() {
		note()
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	return last
}

// checkKilled opens the store after a kill and looks at everything; it reports
// whether the page that was under way is there.
func checkKilled(t *testing.T, path string, pages []*understudy.Page, next *understudy.Page) bool {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path, Specs: storetest.Specs(t), SaveTime: storetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	newest := map[understudy.Key]*understudy.Page{}
	for _, p := range pages {
		newest[p.Key] = p
	}
	whole := false
	got, err := db.ReadPage(t.Context(), next.Key)
	if err == nil && bytes.Equal(got.Body, next.Body) && got.At.Equal(next.At) {
		whole = true
		newest[next.Key] = next
	}
	for key, want := range newest {
		got, err := db.ReadPage(t.Context(), key)
		checktest.MustNoError(t, err, "page %s was committed and is not there", key)
		checktest.MustTrue(t, bytes.Equal(got.Body, want.Body),
			"page %s was committed and is not there: got.Body is %q, want %q", key, got.Body, want.Body)
		checktest.MustTrue(t, got.At.Equal(want.At),
			"page %s was committed and is not there: got.At.Equal(want.At) is false", key)
	}
	if len(newest) != len(pages) && len(pages)%3 > 0 {
		return whole // all is looked at in the first walk, a third of it later
	}
	r, err := db.Verifier.Verify(t.Context())
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("verify: %v, %v", r.Problems, err)
	}
	if int(r.Pages) != len(newest) {
		t.Fatalf("%d pages are there, want %d", r.Pages, len(newest))
	}
	return whole
}
