// Tests of regular backups: in a folder and in a bucket, how long they are kept, and what a failure leaves.

package operations

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"understudy"
	"understudy/internal/backup"
	"understudy/internal/checktest"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/internal/store"
	"understudy/internal/store/contents"
)

// newArchiver returns an archiver of a new store. It writes its log to log.
func newArchiver(t *testing.T, to string, log *bytes.Buffer) *Archiver {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, datadir.StoreFile)
	db, err := store.Open(t.Context(), store.Options{Path: path})
	checktest.MustNoError(t, err, "open the store")
	t.Cleanup(func() { checktest.NoError(t, db.Close(), "close") })
	copied := func(ctx context.Context, path string) error { return store.Copy(ctx, db, path) }
	return &Archiver{DB: db, Parts: backup.Options{Dir: dir, Copy: copied, CopyPath: path + BackupSuffix, Now: time.Now},
		Log: slog.New(slog.NewTextHandler(log, nil)), Wake: make(chan diagnostics.Backup, 1),
		Schedule: Schedule{To: to, Every: time.Hour, Keep: 3, KeepFor: 48 * time.Hour}}
}

// nameOf returns the name of the backup that was written some hours ago.
func nameOf(hours int) string {
	return started.Add(time.Duration(-hours) * time.Hour).Format(backupName)
}

var started = time.Now().UTC()

// restorable checks that a backup can be restored, and that the copy is a store.
func restorable(t *testing.T, data []byte) {
	t.Helper()
	dir := t.TempDir()
	_, err := backup.Restore(t.Context(), bytes.NewReader(data), dir)
	checktest.MustNoError(t, err, "restore")
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, datadir.StoreFile)})
	checktest.MustNoError(t, err, "open the copy")
	checktest.NoError(t, db.Close(), "close")
}

func TestOldBackupsAreDeleted(t *testing.T) {
	var log bytes.Buffer
	h := newArchiver(t, "", &log)
	for name, one := range map[string]struct{ files, want []string }{
		"too many":         {[]string{nameOf(1), nameOf(2), nameOf(3), nameOf(4)}, []string{nameOf(1), nameOf(2)}},
		"too old":          {[]string{nameOf(1), nameOf(49)}, []string{nameOf(1)}},
		"not complete":     {[]string{nameOf(1) + ".partial"}, nil},
		"of a clock ahead": {[]string{nameOf(-9), nameOf(-8), nameOf(-7), nameOf(1)}, []string{nameOf(-9), nameOf(-8)}},
		"of other names": {[]string{"understudy-monday.tar.zst", "notes", nameOf(99) + ".asc"},
			[]string{"understudy-monday.tar.zst", "notes", nameOf(99) + ".asc"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			h.Schedule.To = folder
			for _, file := range one.files {
				checktest.MustNoError(t, os.WriteFile(filepath.Join(folder, file), nil, 0o600), "write")
			}
			checktest.MustNoError(t, h.saveRegular(t.Context(), nil), "saveRegular")
			entries, err := os.ReadDir(folder)
			checktest.MustNoError(t, err, "read the folder")
			var left, written []string
			for _, e := range entries {
				if slices.Contains(one.files, e.Name()) {
					left = append(left, e.Name())
				} else {
					written = append(written, e.Name())
				}
			}
			slices.Sort(one.want)
			checktest.Equal(t, strings.Join(left, " "), strings.Join(one.want, " "), "earlier files")
			checktest.MustEqual(t, len(written), 1, "backups written")
			data, err := os.ReadFile(filepath.Join(folder, written[0]))
			checktest.MustNoError(t, err, "read the backup")
			restorable(t, data)
			last, err := h.ReadLast(t.Context())
			checktest.MustNoError(t, err, "ReadLast")
			checktest.True(t, last.Error == "" && !last.Late && time.Since(last.At) < time.Minute, "the last backup: %+v", last)
		})
	}
}

// TestFailedBackupIsShown: a failure is shown, also by other processes, until a backup succeeds. It deletes no backup.
func TestFailedBackupIsShown(t *testing.T) {
	var log bytes.Buffer
	folder := filepath.Join(t.TempDir(), "not-mounted")
	h := newArchiver(t, folder, &log)
	readLast := func() diagnostics.LastBackup {
		other := &Archiver{DB: h.DB, Parts: h.Parts, Schedule: h.Schedule}
		last, err := other.ReadLast(t.Context())
		checktest.MustNoError(t, err, "ReadLast")
		return last
	}
	checktest.True(t, h.saveRegular(t.Context(), nil) != nil, "no error without the folder")
	checktest.Contains(t, readLast().Error, "no such file", "the error")
	checktest.MustNoError(t, os.Mkdir(folder, 0o700), "make the folder")
	checktest.MustNoError(t, h.saveRegular(t.Context(), nil), "saveRegular")
	checktest.Equal(t, readLast().Error, "", "the error after a backup")

	h.Parts.Now = func() time.Time { return time.Now().Add(100 * 24 * time.Hour) }
	checktest.True(t, readLast().Late, "a backup of 100 days ago is not too old")
	h.Parts.Copy = func(context.Context, string) error { return errors.New("the disk is full") }
	checktest.True(t, h.saveRegular(t.Context(), nil) != nil, "no error")
	checktest.Contains(t, readLast().Error, "the disk is full", "the error")
	entries, err := os.ReadDir(folder)
	checktest.True(t, err == nil && len(entries) == 1, "%d files after a failure: %v", len(entries), err)
	ended, end := context.WithCancel(t.Context())
	end()
	checktest.True(t, errors.Is(h.saveRegular(ended, nil), context.Canceled), "the process ends")
	checktest.Contains(t, readLast().Error, "the disk is full", "the error after an interruption")
}

// TestBackupsInABucket: a command and the schedule store whole objects, and old ones are deleted.
func TestBackupsInABucket(t *testing.T) {
	bucket := s3mem.New()
	checktest.MustNoError(t, bucket.CreateBucket("backups"), "create the bucket")
	server := httptest.NewServer(gofakes3.New(bucket).Server())
	defer server.Close()
	var log bytes.Buffer
	h := newArchiver(t, "s3://backups/node", &log)
	h.Bucket = func(_ context.Context, url string) (*contents.Archive, string, error) {
		return contents.OpenArchive(contents.S3{URL: url, Endpoint: server.URL, Key: "key", Secret: understudy.NewSecret("secret")}, time.Now)
	}
	old := "node/" + nameOf(49)
	_, err := bucket.PutObject("backups", old, nil, strings.NewReader(""), 0, nil)
	checktest.MustNoError(t, err, "put an old backup")
	checktest.MustNoError(t, h.saveRegular(t.Context(), nil), "saveRegular")
	to := diagnostics.Backup{To: "s3://backups/node/mine.tar.zst"}
	_, err = h.write(t.Context(), to, nil)
	checktest.MustNoError(t, err, "write")
	_, err = h.write(t.Context(), to, nil)
	checktest.True(t, err != nil && strings.Contains(err.Error(), "exists already"), "the second one: %v", err)
	list, err := bucket.ListBucket("backups", &gofakes3.Prefix{HasPrefix: true, Prefix: "node/"}, gofakes3.ListBucketPage{})
	checktest.MustNoError(t, err, "list")
	checktest.MustEqual(t, len(list.Contents), 2, "objects")
	for _, one := range list.Contents {
		a, name, err := h.Bucket(t.Context(), "s3://backups/"+one.Key)
		checktest.MustNoError(t, err, "Bucket")
		in, err := a.Get(t.Context(), name)
		checktest.MustNoError(t, err, "Get")
		var data bytes.Buffer
		_, err = data.ReadFrom(in)
		checktest.True(t, err == nil && in.Close() == nil, "%s: %v", one.Key, err)
		restorable(t, data.Bytes())
	}
	left, err := filepath.Glob(h.Parts.CopyPath + "*")
	checktest.True(t, err == nil && len(left) == 0, "left in the data folder: %v (%v)", left, err)
}
