// Media: contents of records, answered by mirror/media.

package mirror

import (
	"context"
	"fmt"

	"understudy"
	"understudy/mirror/media"
	"understudy/request"
	"understudy/spec"
)

// mediaMirror is the mirror as its cache of contents needs it.
type mediaMirror struct{ *filler }

var _ media.Mirror = mediaMirror{}

// Enter counts a reader that waits for upstream.
func (mm mediaMirror) Enter(flow uint64) error {
	mm.Lock()
	defer mm.Unlock()
	return mm.admit(mm.limits.Load(), flow, false)
}

// Exit ends what Enter began.
func (mm mediaMirror) Exit(flow uint64) {
	mm.Lock()
	defer mm.Unlock()
	mm.dismiss(flow)
}

// Pruned reports whether upstream no longer keeps the record of a content.
func (mm mediaMirror) Pruned(ctx context.Context, t *spec.Target) bool {
	s := mm.sources[t.Key.Source]
	rec := mm.known(ctx, s, t.Kind, t.ID)
	return rec != nil && mm.forgotten(ctx, s.of(t), rec)
}

// Open is the content a media path names (media.Cache.Open). It must be closed.
// The error is ErrClosed after Run.
func (m *Mirror) Open(ctx context.Context, a request.MediaRequest) (*request.MediaResponse, error) {
	if m.closed.Load() {
		return nil, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	if a.Target != nil && a.Target.Media != nil && m.sources[a.Target.Key.Source] != nil {
		wasRead(&m.sources[a.Target.Key.Source].lastRead, m.monotonic(m.now()))
	}
	return m.media.Open(ctx, a)
}
