// Forget: contents of records that went or changed.

package media

import (
	"net/http"
	"slices"

	"understudy/request"
)

// Forget makes sure that no content of a record, or of what lies within it, is
// answered any more. Downloads of it end.
func (c *Cache) Forget(source, kind, id string) {
	src := c.sources[source]
	if c.o.Files == nil || src == nil || len(src.keeps) == 0 || id == "" {
		return
	}
	c.mu.Lock()
	for key, b := range c.downloads.running {
		if b.source == src && (b.target.Kind.Name == kind && b.target.ID == id || slices.Contains(b.target.Within(), id)) {
			b.cancel()
			delete(c.downloads.running, key)
		}
	}
	c.mu.Unlock()
	if _, err := c.o.Files.Forget(source, kind, id); err != nil {
		c.o.Logger.Error("mirror: contents of a record that went cannot be removed", "kind", kind, "id", id, "error", err)
	}
}

// Written makes contents follow a write. A record that may have been deleted
// takes its own and what lies within it along; one that may have changed, its own.
func (c *Cache) Written(source, kind string, w request.Write) {
	src := c.sources[source]
	if src != nil && (w.Method == http.MethodDelete || src.keeps[kind]) {
		c.Forget(source, kind, w.Target.ID)
	}
}
