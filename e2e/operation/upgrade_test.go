// Upgrades: this program opens what former versions have left.

package operation

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	domain "understudy"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/config"
	"understudy/internal/store"
	"understudy/spec"
)

var (
	former  = flag.String("former", "", "write testdata/VERSION as this version leaves it, such as v0.2.0; it must not be there yet")
	program = flag.String("program", "", "the program of that version, from make release")
)

// A folder of testdata is what a version has left: settings, a spec, the data folder, a backup, and the list of all records.
const (
	formerData    = "data.zip"
	formerBackup  = "backup.tar.zst"
	formerRecords = "records.txt"
	maxFormer     = 900 << 10 // bytes of the data folder and the backup
)

// formerSettings are the settings of a version. Their upstreams are two servers that are gone when the test reads them.
const formerSettings = `data: ./data
viewer: {listen: "127.0.0.1:0", sign_in: none, role: all}
sources:
  twilio: {spec: twilio, upstream: %[1]q, user: %[2]s, secret: "cmd:printf %[4]s", listen: "127.0.0.1:0", rate: 2000, concurrency: 50}
  library: {spec: ./library.yaml, upstream: %[3]q, secret: "cmd:printf %[4]s", listen: "127.0.0.1:0"}
credentials:
  - {name: demo, source: twilio, user: %[2]s, secret: "cmd:printf %[5]s", role: all, allow: [POST /2010-04-01/Accounts/*/Messages.json]}
  - {name: reader, source: library, secret: "cmd:printf %[5]s", role: all}
roles: {support: {twilio: {"*": see, phone: last4, body: hide}}}
mirror: {newest: 1s, stale: 1h}
store: {limit: 1GiB, erase_after: 50ms}
retention: {twilio: {calls: 9000d}}
jobs: {keep: 100, kinds: {send-mail: {}}}
log: {access: access.log, format: json}
`

const formerSpec = `name: library
title: Town library
hosts: [{url: "https://library.invalid", prefixes: [/v3]}]
auth: {style: bearer}
whole_lists: true
paging: {style: cursor, next: more, cursor: after, size: limit, default_size: 10, envelope: [{name: more, type: bool}]}
kinds:
  - name: books
    id: [id]
    columns: [title, year]
    lists: [{path: /v3/books, key: books, filters: [{name: year, field: year, type: int}]}]
    instances: [{path: "/v3/books/{id}", id: [id]}]
    fields: [{name: id}, {name: title}, {name: year, type: int}]
`

// TestFormerVersions opens what each former version has left. Every record has its content, and the store, the audit log, the backup,
// the settings and the spec are accepted.
func TestFormerVersions(t *testing.T) {
	if *former != "" {
		writeFormer(t, filepath.Join("testdata", *former))
	}
	folders, err := filepath.Glob("testdata/v*")
	checktest.MustTrue(t, err == nil && len(folders) > 0, "no former versions: %v", err)
	for _, from := range folders {
		t.Run(filepath.Base(from), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			checktest.MustNoError(t, os.CopyFS(dir, os.DirFS(from)), "copy")
			packed, err := zip.OpenReader(filepath.Join(dir, formerData))
			checktest.MustNoError(t, err, "open the data folder")
			checktest.MustNoError(t, os.CopyFS(filepath.Join(dir, "data"), packed), "unpack")
			checktest.MustNoError(t, packed.Close(), "close")
			want := rig.ReadFile(t, filepath.Join(dir, formerRecords))
			understudy(t, dir, "check")
			checkFormer(t, dir, want)
			refuseNewer(t, dir)

			checktest.MustNoError(t, os.RemoveAll(filepath.Join(dir, "data")), "remove the data")
			understudy(t, dir, "restore", formerBackup)
			checkFormer(t, dir, want)
		})
	}
}

// checkFormer verifies a data folder, and compares its records with a list.
func checkFormer(t *testing.T, dir, want string) {
	t.Helper()
	checktest.Contains(t, understudy(t, dir, "store", "verify"), "no damage found", "store verify")
	understudy(t, dir, "audit", "verify")
	checktest.Contains(t, understudy(t, dir, "credentials", "list"), "billing", "credentials")
	if got := listRecords(t, dir); got != want {
		t.Errorf("the records are not those of the version: %s", rig.FirstDifference([]byte(want), []byte(got)))
	}
}

// refuseNewer checks that a program refuses a store whose schema is newer than its own, in one sentence.
func refuseNewer(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "data", "understudy.db")
	before := rig.ReadFile(t, path)
	db, err := sql.Open("sqlite", path)
	checktest.MustNoError(t, err, "open")
	_, err = db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1); UPDATE counter SET needs = 99")
	checktest.MustNoError(t, err, "raise the schema")
	checktest.MustNoError(t, db.Close(), "close")
	cmd := exec.CommandContext(t.Context(), rig.Program, "store", "verify")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	checktest.True(t, err != nil, "a newer store is opened")
	checktest.Contains(t, string(out), "newer Understudy", "the error")
	checktest.Equal(t, strings.Count(string(out), "\n"), 1, "lines of %q", out)
	checktest.MustNoError(t, os.WriteFile(path, []byte(before), 0o600), "write the store")
}

// listRecords returns a line for each record of a data folder, with the hash of all its versions and notes, and a line for each job.
func listRecords(t *testing.T, dir string) string {
	t.Helper()
	c, err := config.Read(filepath.Join(dir, "understudy.yml"), os.LookupEnv)
	checktest.MustNoError(t, err, "read the settings")
	sources, err := c.ReadSources(dir)
	checktest.MustNoError(t, err, "read the specs")
	specs := map[string]*spec.Spec{}
	for _, src := range sources {
		specs[src.Name] = src.Spec
	}
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "data", "understudy.db"), Specs: specs})
	checktest.MustNoError(t, err, "open the store")
	defer db.Close()
	lines := map[string]struct{}{}
	for name := range specs {
		changes, err := db.ReadChanges(t.Context(), name, 0, store.MaxChanges)
		checktest.MustTrue(t, err == nil && len(changes) < store.MaxChanges, "%d changes: %v", len(changes), err)
		for _, change := range changes {
			versions, err := db.ReadHistory(t.Context(), name, change.Kind, change.ID, 1000)
			checktest.MustNoError(t, err, "history of %s", change.ID)
			hash, noted := sha256.New(), ""
			for _, v := range versions {
				fmt.Fprintf(hash, "%s %v %d %s\n", v.Shape, v.Gone, v.From.UnixNano(), v.Body)
			}
			if a := db.Annotations.Annotation(name, change.Kind, change.ID); a != nil {
				noted = " noted"
				for _, n := range a.Notes {
					fmt.Fprintf(hash, "note %s by %s\n", n.Text, n.By)
				}
			}
			lines[fmt.Sprintf("%s %s %s %d versions %x%s\n", name, change.Kind, change.ID, len(versions), hash.Sum(nil), noted)] = struct{}{}
		}
	}
	jobs, err := db.Jobs.ReadJobs(t.Context(), domain.JobFilter{Kind: "send-mail"})
	checktest.MustNoError(t, err, "read the jobs")
	for _, j := range jobs {
		lines[fmt.Sprintf("job %s %s %s\n", j.Kind, j.Key, j.State)] = struct{}{}
	}
	return strings.Join(slices.Sorted(maps.Keys(lines)), "")
}

// writeFormer lets a program fill a new folder, as a server does in use.
func writeFormer(t *testing.T, to string) {
	t.Helper()
	api := rig.StartAPI(t, "--latency", "1ms", "--records", "24", "--seed", "40").URL("slowapi")
	rig.Program = cmp.Or(*program, rig.Program)
	checktest.MustContains(t, understudy(t, "", "version"), " "+filepath.Base(to)+" ", "version of the program; name it with -program")
	checktest.MustNoError(t, os.Mkdir(to, 0o755), "make the folder; a version is written once")
	books := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"books":[{"id":"b1","title":"Emma","year":1815},{"id":"b2","title":"Dracula","year":1897}],"more":false}`)
	}))
	defer books.Close()
	write := func(name, text string) {
		checktest.MustNoError(t, os.WriteFile(filepath.Join(to, name), []byte(text), 0o644), "write")
	}
	write("understudy.yml", fmt.Sprintf(formerSettings, api, rig.Account, books.URL, rig.APIToken, rig.DemoToken))
	write("library.yaml", formerSpec)
	s := rig.StartAgain(t, to)
	for _, list := range []string{"Calls", "Messages", "Recordings", "Conferences", "IncomingPhoneNumbers"} {
		checktest.MustEqual(t, rig.Get(t, reader, s.URL("twilio")+rig.Base+"/"+list+".json").Status, 200, "%s", list)
	}
	checktest.MustEqual(t, rig.Get(t, "", s.URL("library")+"/v3/books", "Authorization", "Bearer "+rig.DemoToken).Status, 200, "books")
	r, err := rig.Ask("POST", reader, s.URL("twilio")+rig.Base+"/Messages.json", "To=%2B14155550100&From=%2B14155550101&Body=later",
		"Content-Type", "application/x-www-form-urlencoded")
	checktest.MustTrue(t, err == nil && r.Status == 201, "a write: %d %v %s", r.Status, err, r.Body)
	sid := string(r.Body[strings.Index(string(r.Body), "SM"):][:34])
	rig.Control(t, api, "/-/edit", fmt.Sprintf(`{"kind":"messages","records":[{"sid":%q,"price":"-8.0000"}]}`, sid))
	rig.Await(t, func() string {
		r := rig.Get(t, reader, s.URL("twilio")+rig.Base+"/Messages/"+sid+".json", "Cache-Control", "no-cache")
		if !strings.Contains(string(r.Body), "-8.0000") {
			return "the message has a second version"
		}
		return ""
	})
	web := s.URL("viewer")
	r, err = rig.Ask("POST", "", web+"/-/do/twilio/messages/note/"+sid, "do=add&text=call+back", "Origin", web,
		"Content-Type", "application/x-www-form-urlencoded")
	checktest.MustTrue(t, err == nil && r.Status == 303, "a note: %d %v %s", r.Status, err, r.Body)
	r, err = rig.Ask("PUT", "", web+"/-/jobs/send-mail/0f3b0c52-5d0c-4c2a-9c7e-6a1f5f0d7f11", `{"data":{}}`,
		"Content-Type", "application/json", "Authorization", "Bearer "+rig.CommandToken(t, to))
	checktest.MustTrue(t, err == nil && r.Status == 200, "add a job: %d %v %s", r.Status, err, r.Body)
	understudy(t, to, "credentials", "make", "billing", "--source", "twilio", "--role", "support")
	understudy(t, to, "backup", "--keys", formerBackup)
	checktest.MustNoError(t, s.Stop(), "stop")
	write(formerRecords, listRecords(t, to))
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	data := filepath.Join(to, "data")
	checktest.MustNoError(t, errors.Join(z.AddFS(os.DirFS(data)), z.Close(), os.RemoveAll(data), os.Remove(filepath.Join(to, "access.log"))), "pack")
	write(formerData, packed.String())
	size := packed.Len() + len(rig.ReadFile(t, filepath.Join(to, formerBackup)))
	checktest.MustTrue(t, size <= maxFormer, "%d bytes are more than %d", size, maxFormer)
}
