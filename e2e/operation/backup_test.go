// Backups: of a server under load, killed while it writes one, and a restored copy that sends nothing.

package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store/pgtest"
)

const reader = rig.Account + ":" + rig.DemoToken

// understudy runs a command in a folder and returns its output.
func understudy(t *testing.T, dir string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, rig.Program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("understudy %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// restoreCopy restores a backup to a new folder with the settings of another one, and verifies it.
func restoreCopy(t *testing.T, from, backup string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	entries, err := os.ReadDir(from)
	checktest.MustNoError(t, err, "read the folder")
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != rig.AccessLog {
			checktest.MustNoError(t, os.WriteFile(filepath.Join(dir, e.Name()), []byte(rig.ReadFile(t, filepath.Join(from, e.Name()))), 0o600), "copy")
		}
	}
	understudy(t, dir, "restore", backup)
	checktest.MustContains(t, understudy(t, dir, "store", "verify"), "no damage found", "store verify")
	understudy(t, dir, "audit", "verify")
	return dir
}

// readBeside lets readers ask for pages of different sizes until stop is called.
func readBeside(t *testing.T, url string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var read atomic.Int64
	for i := range 3 {
		wg.Go(func() {
			for size := 1 + i; ctx.Err() == nil; size = size%40 + 3 {
				r, err := rig.Ask("GET", reader, fmt.Sprint(url, rig.Base, "/Calls.json?PageSize=", size), "", "Cache-Control", "no-cache")
				if err != nil || r.Status != 200 {
					t.Errorf("a read beside the backup: %d %v", r.Status, err)
					return
				}
				read.Add(1)
			}
		})
	}
	rig.Await(t, func() string {
		if read.Load() < 10 {
			return "pages were read"
		}
		return ""
	})
	return func() { cancel(); wg.Wait() }
}

// readFeed returns all changes of a feed, and the place after the last one.
func readFeed(t *testing.T, viewer string) (changes []string, next string) {
	t.Helper()
	for next = "0"; ; {
		var page struct {
			Changes []json.RawMessage
			Next    string
		}
		r := rig.Get(t, reader, viewer+"/-/feed.json?limit=1000&after="+next)
		if err := json.Unmarshal(r.Body, &page); err != nil || r.Status != 200 {
			t.Fatalf("feed: %d %v %.300s", r.Status, err, r.Body)
		}
		if len(page.Changes) == 0 {
			return changes, next
		}
		for _, c := range page.Changes {
			changes = append(changes, string(c))
		}
		next = page.Next
	}
}

// claimJob asks for a job as a worker does, and returns the status.
func claimJob(t *testing.T, viewer string) int {
	t.Helper()
	r, err := rig.Ask("POST", "", viewer+"/-/jobs/claim", `{"kinds":["send-mail"],"wait":"1s"}`, "Content-Type", "application/json",
		"Authorization", "Bearer "+rig.DemoToken+rig.DemoToken)
	checktest.MustNoError(t, err, "claim a job")
	return r.Status
}

// TestRestoredServerSendsNothing writes backups of a server under load. The restored copy has the same records and changes, and sends
// nothing before the command resume: to no webhook, to no worker, and not to upstream.
func TestRestoredServerSendsNothing(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer receiver.Close()
	api := rig.StartAPI(t, "--latency", "2ms", "--records", "300").URL("slowapi")
	s, dir := rig.StartServer(t, rig.Settings{Upstream: api, Polls: "[calls]", Mirror: "{newest: 1s}",
		More: "  - {name: worker, secret: \"cmd:printf " + rig.DemoToken + rig.DemoToken + "\", allow: jobs}\n", Store: fmt.Sprintf(`store: {limit: 1GiB}
jobs: {kinds: {send-mail: {}}}
webhooks: [{name: crm, url: %q, secret: "cmd:printf whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", role: all, allow_private: true}]
`, receiver.URL)})
	r, err := rig.Ask("PUT", "", s.URL("viewer")+"/-/jobs/send-mail/0f3b0c52-5d0c-4c2a-9c7e-6a1f5f0d7f11", `{"data":{}}`,
		"Content-Type", "application/json", "Authorization", "Bearer "+rig.CommandToken(t, dir))
	checktest.MustTrue(t, err == nil && r.Status == 200, "add a job: %d %v %s", r.Status, err, r.Body)
	stop := readBeside(t, s.URL("twilio"))
	understudy(t, dir, "backup", "first.tar.zst")
	understudy(t, dir, "backup", "second.tar.zst", "--keys")
	stop()
	_, before := readFeed(t, s.URL("viewer"))
	r, err = rig.Ask("POST", reader, s.URL("twilio")+rig.Base+"/Messages.json", "To=%2B14155550100&From=%2B14155550101&Body=later",
		"Content-Type", "application/x-www-form-urlencoded")
	checktest.MustTrue(t, err == nil && r.Status == 201, "a write after the backup: %d %v %s", r.Status, err, r.Body)
	whole, after := readFeed(t, s.URL("viewer"))
	checktest.MustTrue(t, before != after, "the write is no change")
	checktest.MustNoError(t, s.Stop(), "stop the server")
	checktest.MustTrue(t, sent.Load() > 0, "the server has not tried the webhook")

	copied := restoreCopy(t, dir, filepath.Join(dir, "second.tar.zst"))
	former, asked := sent.Load(), rig.ReadAPIStats(t, api).Requests
	second := rig.StartAgain(t, copied)
	viewer := second.URL("viewer")
	checktest.Contains(t, second.Stderr(), "paused until understudy resume", "the log")
	checktest.Contains(t, string(rig.Get(t, "", viewer+"/-/health").Body), "paused until understudy resume", "/-/health")
	changes, _ := readFeed(t, viewer)
	checktest.MustTrue(t, len(changes) > 0 && len(changes) < len(whole), "the copy has %d of %d changes", len(changes), len(whole))
	for i, c := range changes {
		checktest.MustEqual(t, c, whole[i], "change %d", i)
	}
	checktest.Equal(t, rig.Get(t, reader, viewer+"/-/feed.json?after="+after).Status, 400, "a place after the backup")
	understudy(t, copied, "store", "rebuild") // jobs that send nothing run
	checktest.Equal(t, claimJob(t, viewer), 204, "a worker's claim")
	checktest.Equal(t, sent.Load(), former, "requests to the webhook")
	checktest.Equal(t, rig.ReadAPIStats(t, api).Requests, asked, "requests to upstream")

	checktest.Contains(t, understudy(t, copied, "resume"), "resumed", "resume")
	rig.Await(t, func() string {
		if sent.Load() == former || rig.ReadAPIStats(t, api).Requests == asked {
			return "the webhook and upstream get requests"
		}
		return ""
	})
	var run struct{ Viewer string }
	data, err := os.ReadFile(filepath.Join(copied, rig.DataFolder, "run.json"))
	checktest.MustTrue(t, err == nil && json.Unmarshal(data, &run) == nil, "run.json: %v %s", err, data)
	checktest.Equal(t, claimJob(t, run.Viewer), 200, "a worker's claim after resume")
	checktest.Lacks(t, string(rig.Get(t, "", run.Viewer+"/-/health").Body), "resume", "/-/health after resume")
}

// TestBackupInABucket stores backups in a bucket, by a command and regularly, and restores both.
func TestBackupInABucket(t *testing.T) {
	t.Parallel()
	bucket := s3mem.New()
	checktest.MustNoError(t, bucket.CreateBucket("backups"), "create the bucket")
	store := httptest.NewServer(gofakes3.New(bucket).Server())
	defer store.Close()
	api := rig.StartAPI(t, "--latency", "2ms", "--records", "50").URL("slowapi")
	s, dir := rig.StartServer(t, rig.Settings{Upstream: api, Store: fmt.Sprintf(`store: {limit: 1GiB, s3: {endpoint: %q, key: id, secret: "cmd:printf key"}}
backup: {to: s3://backups/regular, every: 1h, keys: true}
`, store.URL)})
	checktest.MustEqual(t, rig.Get(t, reader, s.URL("twilio")+rig.Base+"/Calls.json").Status, 200, "a read")
	const mine = "s3://backups/by/hand.tar.zst"
	checktest.Contains(t, understudy(t, dir, "backup", "--keys", mine), mine+": ", "backup")
	regular := ""
	rig.Await(t, func() string {
		list, err := bucket.ListBucket("backups", &gofakes3.Prefix{HasPrefix: true, Prefix: "regular/understudy-"}, gofakes3.ListBucketPage{})
		if err != nil || len(list.Contents) != 1 {
			return "a regular backup is in the bucket"
		}
		regular = "s3://backups/" + list.Contents[0].Key
		return ""
	})
	rig.Await(t, func() string {
		if !strings.Contains(string(rig.Get(t, reader, s.URL("viewer")+"/-/stats").Body), `"backup":{"at":"2`) {
			return "/-/stats says when the backup was written"
		}
		return ""
	})
	whole, _ := readFeed(t, s.URL("viewer"))
	checktest.MustNoError(t, s.Stop(), "stop the server")
	for _, from := range []string{mine, regular} {
		restoreCopy(t, dir, from)
	}
	second := rig.StartAgain(t, restoreCopy(t, dir, mine))
	changes, _ := readFeed(t, second.URL("viewer"))
	checktest.Equal(t, len(changes), len(whole), "changes of the copy")
}

// databases are empty databases of a PostgreSQL server.
var databases pgtest.Pool

// dumps is a tenth of the full count.
const (
	dumps    = 1
	allDumps = 10
)

// TestBackupOnPostgreSQL copies the database of a server under load with pg_dump, and the rest with the command backup. What pg_restore
// and the command restore make of both passes the checks, and has the first changes.
func TestBackupOnPostgreSQL(t *testing.T) {
	t.Parallel()
	api := rig.StartAPI(t, "--latency", "2ms", "--records", "300").URL("slowapi")
	dsn := databases.Database(t)
	s, dir := rig.StartServer(t, rig.Settings{Upstream: api, Store: fmt.Sprintf("store: {dsn: %q}\n", dsn)})
	type copied struct{ dump, rest string }
	var all []copied
	for i := range sample.Count(dumps, allDumps) {
		one := copied{filepath.Join(dir, fmt.Sprint(i, ".dump")), filepath.Join(dir, fmt.Sprint(i, ".tar.zst"))}
		stop := readBeside(t, s.URL("twilio"))
		runTool(t, "pg_dump", "--format=custom", "--file="+one.dump, dsn)
		checktest.Contains(t, understudy(t, dir, "backup", "--keys", one.rest), "pg_dump --format=custom", "backup")
		stop()
		all = append(all, one)
	}
	whole, _ := readFeed(t, s.URL("viewer"))
	checktest.MustNoError(t, s.Stop(), "stop the server")
	settings := rig.ReadFile(t, filepath.Join(dir, "understudy.yml"))
	for i, one := range all {
		target := databases.Database(t)
		runTool(t, "pg_restore", "--no-owner", "--exit-on-error", "--dbname="+target, one.dump)
		text := strings.Replace(settings, fmt.Sprintf("%q", dsn), fmt.Sprintf("%q", target), 1)
		checktest.MustContains(t, text, target, "settings")
		checktest.MustNoError(t, os.WriteFile(filepath.Join(dir, "understudy.yml"), []byte(text), 0o600), "write the settings")
		second := rig.StartAgain(t, restoreCopy(t, dir, one.rest))
		checktest.Contains(t, second.Stderr(), "paused until understudy resume", "the log")
		changes, _ := readFeed(t, second.URL("viewer"))
		checktest.MustTrue(t, len(changes) > 0 && len(changes) <= len(whole), "copy %d has %d of %d changes", i, len(changes), len(whole))
		for n, c := range changes {
			checktest.MustEqual(t, c, whole[n], "change %d of copy %d", n, i)
		}
		checktest.MustNoError(t, second.Stop(), "stop the copy")
	}
	t.Logf("%d dumps under load were restored", len(all))
}

// runTool runs a program of PostgreSQL.
func runTool(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	checktest.MustNoError(t, err, "%s: %s", strings.Join(args, " "), out)
}

// killedBackups is a tenth of the full count.
const (
	killedBackups    = 3
	allKilledBackups = 30
)

// TestKillBackingUp kills the server at random moments while it writes a backup. The file is either not there or whole, and the next
// start removes the copy of the database.
func TestKillBackingUp(t *testing.T) {
	t.Parallel()
	api := rig.StartAPI(t, "--latency", "2ms", "--records", "300").URL("slowapi")
	s, dir := rig.StartServer(t, rig.Settings{Upstream: api})
	for size := 1; size < 50; size += 7 {
		rig.Get(t, reader, fmt.Sprint(s.URL("twilio"), rig.Base, "/Calls.json?PageSize=", size))
	}
	checktest.MustNoError(t, s.Stop(), "stop the server")
	random := rig.Random(t)
	whole := 0
	kills := sample.Count(killedBackups, allKilledBackups)
	for i := range kills {
		server, err := binary.Start(rig.Program, dir, "serve")
		checktest.MustNoError(t, err, "start the server")
		left, err := filepath.Glob(filepath.Join(dir, rig.DataFolder, "understudy.db-backup*"))
		checktest.True(t, err == nil && len(left) == 0, "the start leaves %v (%v)", left, err)
		name := filepath.Join(dir, fmt.Sprint(i, ".tar.zst"))
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		cmd := exec.CommandContext(ctx, rig.Program, "backup", name, "--keys")
		cmd.Dir = dir
		checktest.MustNoError(t, cmd.Start(), "begin the backup")
		for left == nil && !server.Exited() { // until the copy is begun
			left, _ = filepath.Glob(filepath.Join(dir, rig.DataFolder, "understudy.db-backup*"))
			rig.Pause(ctx, time.Millisecond)
			if ctx.Err() != nil {
				t.Fatal("no backup was begun")
			}
		}
		rig.Pause(ctx, time.Duration(random.IntN(100))*time.Millisecond)
		server.Kill()
		_ = cmd.Wait() // it has lost its server, or has ended before
		cancel()
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		whole++
		restoreCopy(t, dir, name)
	}
	t.Logf("%d kills, %d backups were complete before", kills, whole)
}
