// This file answers with changes as JSON, at once or after a wait.

package feed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// answerPage answers with the next changes and the cursor after them. If the request has the parameter wait and
// there is no new change, it waits for the first new change.
func (s *Subscription) answerPage(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	// The wait may be longer than the usual time limits of a request.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(s.feed.o.Now().Add(max(s.query.wait, 0) + answerTime + s.feed.o.Limits.Stall))
	changes, next, err := s.readPage(ctx, r)
	if err != nil {
		s.feed.Refuse(w, r, err)
		return
	}
	body := fmt.Appendf(nil, "{\"changes\":[%s],\"next\":%q}\n", bytes.Join(changes, []byte(",")), next)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // an error means that the subscriber has disconnected
}

// ReadPage checks a request as GET /-/feed.json does, and returns its page: the changes as lines of JSON, which must not be changed, and
// the cursor after them. It waits as long as the request's parameter wait says. Its errors are those of Subscribe.
func (f *Feed) ReadPage(r *http.Request) (changes [][]byte, next string, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	s, err := f.subscribe(ctx, r, true)
	if err == nil {
		err = f.admit(r, s, s.query.wait > 0)
	}
	if err != nil {
		return nil, "", err
	}
	return s.readPage(ctx, r)
}

// readPage reads the page of a subscription and closes the subscription. ctx limits a page without a wait.
func (s *Subscription) readPage(ctx context.Context, r *http.Request) (changes [][]byte, next string, err error) {
	defer func() { s.Close(err) }()
	if s.query.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(r.Context(), s.query.wait+answerTime)
		defer cancel()
	}
	changes, last, err := s.readChanges(ctx)
	if err != nil {
		return nil, "", err
	}
	return changes, s.group.cursor(last), nil
}

// readChanges reads changes until the page is full or no more changes are stored. It also stops when the subscription or its time
// ends. last is the position after the changes.
func (s *Subscription) readChanges(ctx context.Context) (changes [][]byte, last int64, err error) {
	s.query.limit = cmp.Or(s.query.limit, defaultPageChanges)
	for e, err := range s.Follow(ctx) {
		last = e.at
		if errors.Is(err, context.DeadlineExceeded) {
			return changes, last, nil // reading many hidden changes took too long, or the grant has expired, so the page ends here
		}
		switch {
		case err != nil:
			return nil, 0, err
		case e.Kind == EventChange:
			changes = append(changes, e.JSON)
		case e.Kind == EventRead && !e.hasMore && (len(changes) > 0 || s.query.wait <= 0):
			return changes, last, nil
		}
	}
	return changes, last, nil
}
