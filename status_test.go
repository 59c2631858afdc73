// The one map of errors to statuses.

package understudy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"understudy"
)

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		err         error
		status, own int
	}{
		{nil, 200, 200},
		{errors.New("of no kind"), 500, 503},
		{understudy.ErrInvalid, 400, 400},
		{understudy.ErrTooLong, 414, 414},
		{understudy.ErrUnauthorized, 401, 401},
		{fmt.Errorf("%w: %w", understudy.ErrTooMany, understudy.ErrUnauthorized), 429, 401},
		{understudy.ErrForbidden, 403, 403},
		{understudy.ErrNotFound, 404, 404},
		{understudy.ErrMethod, 405, 405},
		{understudy.ErrUnknownOutcome, 504, 503},
		{understudy.ErrNoStoredAnswer, 504, 503},
		{understudy.ErrNotMirrored, 503, 503},
		{understudy.ErrIndexing, 503, 503},
		{&understudy.UpstreamError{Why: understudy.FailServer, Err: understudy.ErrInvalid}, 503, 503},
		{understudy.ErrClosed, 503, 503},
		{context.Canceled, 503, 503},
		{context.DeadlineExceeded, 503, 503},
	} {
		err := fmt.Errorf("mirror: %w", c.err)
		if c.err == nil {
			err = nil
		}
		if s, own := understudy.Status(err), understudy.OwnPathStatus(err); s != c.status || own != c.own {
			t.Errorf("%v: %d and %d, want %d and %d", err, s, own, c.status, c.own)
		}
	}
}
