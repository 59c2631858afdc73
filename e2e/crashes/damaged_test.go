// Damaged files: whatever the database has become, the server and `store verify` say so in a
// sentence.

package crashes

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// damages change bytes of a file in place, or cut it off.
var damages = []func(r *rand.Rand, data []byte) []byte{
	func(r *rand.Rand, data []byte) []byte { // bits
		for range 1 + r.IntN(64) {
			data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		}
		return data
	},
	func(r *rand.Rand, data []byte) []byte { // bits of the schema and of the roots below it
		for range 1 + r.IntN(8) {
			data[r.IntN(min(len(data), 32<<10))] ^= 1 << r.IntN(8)
		}
		return data
	},
	func(r *rand.Rand, data []byte) []byte { // pages that change places
		for range 1 + r.IntN(3) {
			a, b := pageOf(r, data), pageOf(r, data)
			kept := bytes.Clone(a)
			copy(a, b)
			copy(b, kept)
		}
		return data
	},
	func(r *rand.Rand, data []byte) []byte { // a page in the place of another
		copy(pageOf(r, data), pageOf(r, data))
		return data
	},
	func(r *rand.Rand, data []byte) []byte { // a page of zeros
		clear(pageOf(r, data))
		return data
	},
	func(r *rand.Rand, data []byte) []byte { return data[:r.IntN(len(data))] }, // the tail
}

// pageOf is one of a file, but the first.
func pageOf(r *rand.Rand, data []byte) []byte {
	const size = 8 << 10
	at := size * (1 + r.IntN(len(data)/size-1))
	return data[at : at+size]
}

// panicked are words that only Go's runtime and our own errors of the inside have.
var panicked = regexp.MustCompile(`goroutine \d|panic:|panic while|runtime error: .*\n.*\n|\.go:\d+ \+0x`)

// TestDamagedFileEndsInASentence: with UNDERSTUDY_PROVE 2,000 files, else 40.
func TestDamagedFileEndsInASentence(t *testing.T) {
	t.Parallel()
	files, served := sample.Count(40, 2000), 13
	if sample.IsFullRun() {
		served = 7 // each of the damages
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	whole := heldDatabase(t)
	for n := range files {
		dir := t.TempDir()
		data := damages[n%len(damages)](r, bytes.Clone(whole))
		if err := os.WriteFile(filepath.Join(dir, "understudy.db"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		said, err := exec.CommandContext(ctx, rig.Program, "store", "verify", "--data", dir).CombinedOutput()
		if ctx.Err() != nil {
			t.Errorf("file %d of seed %d: store verify does not end", n, seed)
		}
		cancel()
		if panicked.Match(said) {
			t.Errorf("file %d of seed %d: store verify: %.3000s", n, seed, said)
		}
		if bytes.Contains(said, []byte("store verify")) {
			t.Errorf("file %d of seed %d: store verify advises itself: %.3000s", n, seed, said)
		}
		if err != nil && len(said) == 0 {
			t.Errorf("file %d of seed %d: store verify fails without a word: %v", n, seed, err)
		}
		if n%served == 0 {
			serveDamaged(t, fmt.Sprintf("file %d of seed %d", n, seed), dir)
		}
	}
}

// damagedDemo is the command line of a demo whose world is the same whenever it starts: a file is of one world.
func damagedDemo(dir string) []string {
	return binary.Demo("--data", dir, "--epoch", "2026-11-01T00:00:00Z")
}

// heldDatabase is the file of a demo that was read.
func heldDatabase(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	s, err := binary.Start(rig.Program, dir, damagedDemo(dir)...)
	if err != nil {
		t.Fatal(err)
	}
	readDamaged(s)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "understudy.db"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readDamaged reads lists, a record and pages of the viewer, whatever they answer.
func readDamaged(s *binary.Server) {
	for _, kind := range []string{"Calls", "Messages", "Conferences"} {
		_, _ = rig.Ask(http.MethodGet, rig.Account+":"+rig.DemoToken, s.URL("twilio")+rig.Base+"/"+kind+".json?PageSize=100", "")
	}
	for _, path := range []string{"/twilio/calls", "/-/search?q=status:completed", "/-/search.json?q=hello", "/-/stats"} {
		_, _ = rig.Ask(http.MethodGet, "", s.URL("viewer")+path, "")
	}
}

// serveDamaged starts a server on a damaged file. It serves, or ends with another status than 0
// and a sentence that names the file.
func serveDamaged(t *testing.T, name, dir string) {
	t.Helper()
	s, err := binary.Start(rig.Program, dir, damagedDemo(dir)...)
	if err == nil {
		readDamaged(s)
		if s.Exited() {
			t.Errorf("%s: the server ended while it served: %s", name, rig.Tail(s.Log(), 3000))
		}
		err = s.Stop()
		if err != nil && panicked.MatchString(s.Log()) {
			t.Errorf("%s: the server ends with %v", name, err)
		}
		if found := panicked.FindString(s.Log()); found != "" {
			t.Errorf("%s: %s: %s", name, found, rig.Tail(s.Log(), 3000))
		}
		return
	}
	_, sentence, _ := strings.Cut(err.Error(), "understudy: ")
	sentence = strings.TrimSpace(sentence)
	if panicked.MatchString(err.Error()) || strings.Contains(sentence, "\n") {
		t.Errorf("%s: serve: %.3000v", name, err)
	}
	if isOfFile := strings.HasPrefix(sentence, "open "+filepath.Join(dir, "understudy.db")+": "); !isOfFile &&
		!strings.HasPrefix(sentence, "this folder holds ") { // what the file says of the world was damaged
		t.Errorf("%s: serve does not name the file: %s", name, sentence)
	}
	if strings.Contains(sentence, "disk image") {
		t.Errorf("%s: serve says SQLite's words: %s", name, sentence)
	}
}
