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
func (f *Feed) answerPage(ctx context.Context, w http.ResponseWriter, r *http.Request, s *subscription) {
	control := http.NewResponseController(w)
	// The wait may be longer than the usual time limits of a request.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(f.o.Now().Add(max(s.query.wait, 0) + answerTime + f.o.Limits.Stall))
	var end <-chan time.Time
	if s.query.wait > 0 {
		wait := s.query.wait
		if g := s.caller.Grant; !g.Expires.IsZero() {
			wait = min(wait, g.Expires.Sub(f.o.Now()))
		}
		end = time.After(wait)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(r.Context(), s.query.wait+answerTime)
		defer cancel()
	}
	at := f.newPosition(s.reader, s.start)
	var body bytes.Buffer
	body.WriteString(`{"changes":[`)
	for {
		count, last, moved, err := f.fillPage(ctx, &body, at, s)
		if err != nil {
			f.refuse(w, r, err)
			return
		}
		if count == 0 && s.query.wait > 0 {
			select {
			case <-moved:
				select {
				case <-end: // the wait or the grant has ended
				default:
					continue
				}
			case <-end:
			case <-s.policy.done:
			case <-s.caller.Grant.Revoked:
			case <-ctx.Done():
			}
		}
		fmt.Fprintf(&body, "],\"next\":%q}\n", s.group.cursor(last))
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
		_, _ = w.Write(body.Bytes()) // an error means that the subscriber has disconnected
		return
	}
}

// fillPage writes changes until the page is full or no more changes are stored. It also stops when the policy is
// replaced or the grant is revoked. last is the position after the written changes.
func (f *Feed) fillPage(
	ctx context.Context, body *bytes.Buffer, at *position, s *subscription,
) (count int, last int64, moved <-chan struct{}, err error) {
	limit := s.query.limit
	limit = cmp.Or(limit, defaultPageChanges)
	for {
		if s.isOver() {
			return count, at.at, nil, nil
		}
		rows, recent, moved, err := at.readNext(ctx)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return count, at.at, nil, nil // reading many hidden changes took too long, so the page ends here
		}
		if err != nil {
			return 0, 0, nil, err
		}
		if len(rows) == 0 {
			return count, at.at, moved, nil
		}
		for i := range rows {
			sight := s.group.view(&rows[i], recent)
			if !sight.visible || !s.query.matchChange(&sight.change) {
				continue
			}
			if count > 0 {
				body.WriteByte(',')
			}
			body.Write(sight.data)
			if count++; count == limit {
				return count, rows[i].N, nil, nil
			}
		}
	}
}
