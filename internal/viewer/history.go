// The stored versions of a record, and links to a deleted record's last version.

package viewer

import (
	"context"
	"errors"

	"understudy"
	"understudy/internal/access/seen"
	"understudy/internal/viewer/page"
	"understudy/spec"
)

// readPast reads at most limit versions of a record. It takes at most Visitor.PartTimeout.
func readPast(ctx context.Context, q *page.Exchange, id string, limit int) (seen.Past, error) {
	if q.V.Options.History == nil || !q.Kind.HasRecords() {
		return seen.Past{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, q.V.PartTimeout)
	defer cancel()
	reader := seen.Reader{History: q.V.Options.History, Gate: q.Rights.Gate, Caller: q.Rights.Caller}
	return reader.Read(ctx, q.Source.Name, q.Kind.Spec.Name, id, limit)
}

// explainDeleted adds to a "not found" error when the record was last seen, and links to the last version before its deletion.
func explainDeleted(q *page.Exchange, t *spec.Target, err error) error {
	var p *page.Problem
	if !errors.As(err, &p) || !errors.Is(err, understudy.ErrNotFound) || !q.Clock.AsOf.At.IsZero() || q.DataFormat != "" ||
		!q.Rights.Gate.CanCount(q.Rights.Caller, q.Source.Name, q.Kind.Spec.Name) {
		return err
	}
	past, worse := readPast(q.Ctx, q, t.ID, defaultVersions)
	if worse != nil {
		q.V.Options.Logger.ErrorContext(q.Ctx, "viewer: past of a record that is gone", "error", worse)
		return err
	}
	for _, s := range past.Versions {
		if !s.Kept {
			continue
		}
		p.Title = "This " + q.Kind.Spec.Singular + " was deleted"
		p.Href = page.AddressWith(q.R.URL, page.AsOf{At: s.Version.From}.Param())
		p.Link = "See it as it was on " + q.Clock.FormatMoment(s.Version.From, false).Text
		break
	}
	return p
}
