// Forget: contents of records that were deleted or changed.

package media

import (
	"net/http"
	"slices"

	"understudy/request"
)

// Forget deletes the contents of a record and of everything within it. Their downloads end.
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
		c.options.Logger.Error("mirror: contents of a record that went cannot be removed", "kind", kind, "id", id, "error", err)
	}
}

// InvalidateWritten deletes the contents that a write may have changed. A DELETE deletes the record's
// contents and those of everything within it. Other writes delete only the contents of kinds whose contents
// are stored.
func (c *Cache) InvalidateWritten(source, kind string, w request.Write) {
	src := c.sources[source]
	if src != nil && (w.Method == http.MethodDelete || src.keeps[kind]) {
		c.Forget(source, kind, w.Target.ID)
	}
}
