// Media: the folder of contents, who may play them, and their counts.

package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"time"

	"understudy/internal/diagnostics"
	"understudy/internal/store"
	"understudy/internal/viewer/page"
)

// mediaFolder holds the contents of records in the data folder.
const mediaFolder = "media"

// openMedia opens the folder of contents, and makes the seals of their
// addresses in the viewer, which outlive any policy.
func (h *house) openMedia(b blueprint) (err error) {
	h.files, err = store.OpenFiles(store.FilesOptions{
		Dir: filepath.Join(b.dir.path, mediaFolder), Limit: int64(b.cfg.Store.Media), Most: int64(b.cfg.Store.MediaFile), Erased: h.db.Erased, Later: !b.alone, Now: time.Now, Logger: h.log,
	})
	if err != nil {
		return err
	}
	h.seals, err = page.NewSeals()
	return err
}

// loadMedia reads the index of contents beside the first requests. It ends with
// ctx: a task that ends earlier ends the server.
func (h *house) loadMedia(ctx context.Context) error {
	if err := h.files.Load(ctx); err != nil && ctx.Err() == nil {
		h.log.Error("the index of contents cannot be read; what is held is played, and none of it makes room", "err", err)
	}
	<-ctx.Done()
	return nil
}

// purgeMedia forgets the contents of a record in a folder no server uses.
func purgeMedia(dir *folder, a aim) (gone int, err error) {
	path := filepath.Join(dir.path, mediaFolder)
	if _, err := os.Stat(path); err != nil {
		return 0, nil // none was ever held
	}
	files, err := store.OpenFiles(store.FilesOptions{Dir: path, Limit: math.MaxInt64, Now: time.Now})
	if err != nil {
		return 0, err
	}
	return files.Forget(a.source.Name, a.kind, a.id)
}

// mediaStats joins what the mirror counts of contents and what is held.
func (h *house) mediaStats() diagnostics.Media {
	files := h.files.Stats()
	all := diagnostics.Media{
		Files: files.Files, Bytes: files.Bytes, Limit: files.Limit, FileLimit: files.Most, Evicted: files.Evicted, Forgotten: files.Forgotten,
	}
	for _, src := range h.sources {
		m := h.mirror.Stats(src.Name).Media
		all.Requests += m.Requests
		all.Warm += m.Warm
		all.Stale += m.Stale
		all.Cold += m.Cold
		all.Failed += m.Failed
		all.Kept += m.Kept
		all.NotKept += m.NotKept
	}
	return all
}
