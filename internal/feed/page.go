// Page: changes as JSON, at once or after a wait.

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

// page answers with the next changes and the position behind them. With wait, and no
// change yet, it waits for the first.
func (f *Feed) page(ctx context.Context, w http.ResponseWriter, r *http.Request, s *subscription) {
	control := http.NewResponseController(w)
	// Both may be longer than a request usually takes.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(f.o.Now().Add(max(s.query.wait, 0) + answerTime + f.o.Limits.Stall))
	var end <-chan time.Time
	if s.query.wait > 0 {
		wait := s.query.wait
		if g := s.caller.Grant; !g.Expires.IsZero() {
			wait = min(wait, g.Expires.Sub(f.o.Now()))
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		end = timer.C
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(r.Context(), s.query.wait+answerTime)
		defer cancel()
	}
	at := f.positionAt(s.reader, s.start)
	var body bytes.Buffer
	body.WriteString(`{"changes":[`)
	for {
		count, last, moved, err := f.fill(ctx, &body, at, s)
		if err != nil {
			f.refuse(w, r, err)
			return
		}
		if count == 0 && s.query.wait > 0 {
			select {
			case <-moved:
				select {
				case <-end: // both: the time, or the grant, has ended
				default:
					continue
				}
			case <-end:
			case <-s.policy.over:
			case <-s.caller.Grant.Revoked:
			case <-ctx.Done():
			}
		}
		fmt.Fprintf(&body, "],\"next\":%q}\n", s.group.cursor(last))
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
		_, _ = w.Write(body.Bytes()) // the subscriber may have left
		return
	}
}

// fill writes changes until the page is full, no more are there, or another policy is
// in force, or the grant is revoked. last is the position behind them.
func (f *Feed) fill(
	ctx context.Context, body *bytes.Buffer, at *position, s *subscription,
) (count int, last int64, moved <-chan struct{}, err error) {
	limit := s.query.limit
	limit = cmp.Or(limit, defaultPage)
	for {
		if s.isOver() {
			return count, at.at, nil, nil
		}
		rows, recent, moved, err := at.next(ctx)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return count, at.at, nil, nil // many hidden changes and few others: the page ends here
		}
		if err != nil {
			return 0, 0, nil, err
		}
		if len(rows) == 0 {
			return count, at.at, moved, nil
		}
		for i := range rows {
			sight := s.group.view(&rows[i], recent)
			if !sight.shown || !s.query.wants(&sight.seen) {
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
