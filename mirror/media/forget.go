// Forget: the audio and images of records that were deleted or changed are deleted.

package media

import (
	"net/http"
	"slices"

	"understudy/request"
)

// Forget deletes the audio and images of a record and of the records below it. It ends their downloads.
func (c *Cache) Forget(source, kind, id string) {
	src := c.sources[source]
	if c.options.Files == nil || src == nil || len(src.keeps) == 0 || id == "" {
		return
	}
	c.mu.Lock()
	for key, b := range c.downloads.running {
		if b.source == src && (b.target.Kind.Name == kind && b.target.ID == id || slices.Contains(b.target.EnclosingIDs(), id)) {
			b.cancel()
			delete(c.downloads.running, key)
		}
	}
	c.mu.Unlock()
	if _, err := c.options.Files.Forget(source, kind, id); err != nil {
		c.options.Logger.Error("mirror: contents of a deleted record cannot be removed", "kind", kind, "id", id, "error", err)
	}
}

// InvalidateWritten deletes the audio and images that a write may have changed. After a DELETE, these are all of the record and
// of the records below it. After other writes, they are only those of kinds whose audio and images are stored.
func (c *Cache) InvalidateWritten(source, kind string, w request.Write) {
	src := c.sources[source]
	if src != nil && (w.Method == http.MethodDelete || src.keeps[kind]) {
		c.Forget(source, kind, w.Target.ID)
	}
}
