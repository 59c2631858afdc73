// Source: where the crawler gets pages and removes records, filled by mirror.

package crawl

import (
	"context"

	"understudy/request"
)

// Source is what the crawler needs of package mirror. It is the counterpart of
// mirror.Coverage, which the crawler fills.
type Source interface {
	// Fill fetches a page and saves it. A refusal is a page with its status; a
	// 404 or 410 of an instance removes the record. Errors: ErrUnavailable,
	// ErrNotStored, ErrOutdated (come back later); that of Weigh; the context's.
	Fill(context.Context, request.Fill) (request.PageSaved, error)
	// PollSynced gets the kinds of a source whose newest page has to stay warm,
	// besides the kinds that are polled anyway.
	PollSynced(source string, kinds []string) error
	// Remove removes a record that upstream shows no more and that has no path of
	// its own.
	Remove(ctx context.Context, source, kind, id string) error
}
