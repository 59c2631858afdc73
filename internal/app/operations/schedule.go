// This file writes backups regularly and deletes old ones.

package operations

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/diagnostics"
	"understudy/internal/jobs"
	"understudy/internal/store/contents"
)

const (
	lastBackup = "backup/last" // the key of the state in the KV store
	backupName = "understudy-20060102T150405Z.tar.zst"
)

// regularName matches the names of regular backups and of those that are not complete. The names sort by time.
var regularName = regexp.MustCompile(`^understudy-\d{8}T\d{6}Z\.tar\.zst(\.partial)?$`)

// Schedule says where regular backups are written, how often, and how long they are kept.
type Schedule struct {
	To      string // a folder or s3://BUCKET/FOLDER; "" means that there are none
	Every   time.Duration
	Keep    int
	KeepFor time.Duration
	Keys    bool
}

// JobKind returns the kind of the job that writes a regular backup. One of several processes runs it.
func (h *Archiver) JobKind() jobs.Kind {
	return jobs.Kind{Name: "back up", Run: h.saveRegular, Concurrency: 1, Attempts: 4, Backoff: time.Minute, MaxBackoff: time.Hour,
		Schedule: jobs.Every(h.Schedule.Every)}
}

// ReadLast returns the state of regular backups, which the process that ran the last job has stored.
func (h *Archiver) ReadLast(ctx context.Context) (last diagnostics.LastBackup, err error) {
	err = understudy.ReadJSON(ctx, h.DB.KV, lastBackup, &last)
	last.Late = !last.At.IsZero() && h.Parts.Now().Sub(last.At) > 2*h.Schedule.Every
	return last, err
}

// saveRegular writes a regular backup, and deletes old ones.
func (h *Archiver) saveRegular(ctx context.Context, _ *jobs.Run) error {
	last, err := h.ReadLast(ctx)
	if err != nil {
		return err
	}
	now := h.Parts.Now().UTC()
	to := strings.TrimSuffix(h.Schedule.To, "/") + "/" + now.Format(backupName)
	_, err = h.write(ctx, diagnostics.Backup{To: to, Contents: true, Keys: h.Schedule.Keys}, nil)
	if last.Error = ""; err != nil {
		last.Error = understudy.PlainText(err)
	} else {
		last.At = now
		if derr := h.deleteOld(ctx, to, now); derr != nil {
			last.Error = "old backups were not deleted: " + understudy.PlainText(derr)
		}
	}
	return cmp.Or(err, ctx.Err(), understudy.WriteJSON(ctx, h.DB.KV, lastBackup, last))
}

// deleteOld deletes regular backups that are too old or too many, and those that a crash has left incomplete. It keeps the newest.
func (h *Archiver) deleteOld(ctx context.Context, newest string, now time.Time) error {
	names, remove, err := h.listRegular(ctx, newest)
	if err != nil {
		return err
	}
	oldest := now.Add(-h.Schedule.KeepFor).Format(backupName)
	kept := 1
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		switch isWhole := strings.HasSuffix(name, ".zst"); {
		case !regularName.MatchString(name) || strings.HasSuffix(newest, "/"+name):
		case isWhole && kept < h.Schedule.Keep && name >= oldest:
			kept++
		default:
			if err := remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// listRegular returns the names of the files beside a backup, and a function that deletes one.
func (h *Archiver) listRegular(ctx context.Context, to string) (names []string, remove func(name string) error, err error) {
	if contents.IsS3(to) {
		a, _, err := h.Bucket(ctx, to)
		if err != nil {
			return nil, nil, err
		}
		names, err = a.List(ctx, "understudy-")
		return names, func(name string) error { return a.Remove(ctx, name) }, err
	}
	folder := filepath.Dir(to)
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, func(name string) error { return os.Remove(filepath.Join(folder, name)) }, err
}
