// History: what was seen of a record, each version through the gate by itself.

package viewer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/spec"
)

// seenVersion is a version as the caller sees it. Versions that look the same to the
// caller are one, so that what is hidden is not told by when it changed.
type seenVersion struct {
	understudy.Version
	row    access.Row // none when Gone or !Kept
	Kept   bool       // there is a body to show
	fields []access.Value
	before *seenVersion // the one before in this shape
	first  bool         // nothing of the record was seen before
	back   bool         // it was gone before
}

// recordPast is what was seen of one record, newest first.
type recordPast struct {
	versions []*seenVersion
	more     bool // there are older ones
	bound    bool // there may be, further back than is looked
}

// past reads and draws what was seen of one record.
type past struct{ *page.Exchange }

// readPast reads at most limit versions of a record. It reads on until there is
// one more or no older version: a page that led on to none would tell that
// something hidden had changed.
func (q past) readPast(ctx context.Context, id string, limit int) (recordPast, error) {
	if q.V.History == nil || !q.Kind.Remembered() || id == "" || !q.Gate.Finds(q.Caller, q.Source.Name, q.Kind.Name, id) {
		return recordPast{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, q.V.Glance)
	defer cancel()
	for n := limit + 1; ; n = min(4*n, mostVersions+1) {
		versions, err := q.V.History.History(ctx, q.Source.Name, q.Kind.Name, id, n+1)
		if errors.Is(err, understudy.ErrNotFound) {
			return recordPast{}, nil
		}
		if err != nil {
			return recordPast{}, fmt.Errorf("viewer: history of %s %s: %w", q.Kind.One, id, err)
		}
		cut := len(versions) > n
		p, err := q.see(versions, cut)
		if err != nil {
			return recordPast{}, err
		}
		if cut && len(p.versions) <= limit && n <= mostVersions {
			continue
		}
		p.more = len(p.versions) > limit
		p.bound = p.more && limit >= mostVersions
		p.versions = p.versions[:min(len(p.versions), limit)]
		return p, nil
	}
}

// see makes versions as the caller sees them, oldest first, and leaves out those in which the
// caller sees nothing new. Of a past that is cut the oldest is there to compare
// with and not one of them. A version that is not kept belongs to the one after
// it when the caller does not see everything: what was taken back may have been hidden.
func (q past) see(versions []understudy.Version, cut bool) (recordPast, error) {
	var p recordPast
	whole := q.Gate.Whole(q.Caller, q.Source.Name)
	last := map[string]*seenVersion{} // by shape
	lost := map[string]time.Time{}    // when the first began that is not kept, by shape
	gone := false
	for i, v := range slices.Backward(versions) {
		beyond := cut && i == len(versions)-1
		if v.Gone {
			if !gone {
				p.add(&seenVersion{Version: v}, beyond)
			}
			gone = true
			clear(lost)
			continue
		}
		if v.Body == nil && !whole {
			if _, ok := lost[v.Shape]; !ok {
				lost[v.Shape] = v.From
			}
			continue
		}
		if since, ok := lost[v.Shape]; ok {
			v.From = since
			delete(lost, v.Shape)
		}
		s, err := q.seenVersion(v)
		if err != nil {
			return recordPast{}, err
		}
		former := last[v.Shape]
		s.before, s.first, s.back = former, len(last) == 0 && !gone && !cut, gone
		if former != nil && !gone && former.Kept && s.Kept && len(changed(former, s)) == 0 {
			former.Until = s.Until
			continue
		}
		gone, last[v.Shape] = false, s
		p.add(s, beyond)
	}
	slices.Reverse(p.versions)
	return p, nil
}

func (p *recordPast) add(s *seenVersion, beyond bool) {
	if !beyond {
		p.versions = append(p.versions, s)
	}
}

// seenVersion passes the body of one version through the gate.
func (q past) seenVersion(v understudy.Version) (*seenVersion, error) {
	s := &seenVersion{Version: v}
	if v.Body == nil {
		return s, nil
	}
	view, err := q.Gate.View(q.Caller, &understudy.Page{
		Key: understudy.Key{Source: q.Source.Name}, Kind: q.Kind.Name, Shape: v.Shape, Status: http.StatusOK, ContentType: "application/json",
		Body: v.Body,
	})
	if err != nil {
		return nil, err
	}
	if rows := view.Rows(); len(rows) == 1 {
		s.row, s.fields, s.Kept = rows[0], rows[0].Fields(), true
	}
	return s, nil
}

// difference is one field in two versions; one that is not in a version is
// Absent there.
type difference struct {
	name          string
	before, after access.Value
}

func (d difference) same() bool {
	return d.before.State == d.after.State && d.before.Text == d.after.Text
}

// differences are the fields of two versions that the caller sees, those of the
// later one in its order, then those only the earlier one has.
func differences(before, after *seenVersion) []difference {
	old := map[string]access.Value{}
	if before != nil {
		for _, v := range before.fields {
			old[v.Name] = v
		}
	}
	var all []difference
	for _, v := range after.fields {
		was := old[v.Name]
		delete(old, v.Name)
		if v.State != access.Hidden {
			all = append(all, difference{v.Name, was, v})
		}
	}
	if before != nil {
		for _, v := range before.fields {
			if _, left := old[v.Name]; left && v.State != access.Hidden {
				all = append(all, difference{v.Name, v, access.Value{Name: v.Name, Field: v.Field}})
			}
		}
	}
	return all
}

// changed are the differences that are any.
func changed(before, after *seenVersion) []difference {
	return slices.DeleteFunc(differences(before, after), difference.same)
}

// at is the version of a shape that stood at a moment: the one that began last of
// those that had begun. gone: the record was gone then. nil: nothing of the
// shape was seen yet, or it is not read that far back.
func (p recordPast) at(t time.Time, shape string) (s *seenVersion, gone bool) {
	for _, s := range p.versions { // newest first
		if s.From.After(t) || !s.Gone && s.Shape != shape {
			continue
		}
		return s, s.Gone
	}
	return nil, false
}

// shapes are those there is more than a going of, the page's own first.
func (p recordPast) shapes(first string) []string {
	all := []string{first}
	for _, s := range p.versions {
		if !s.Gone && !slices.Contains(all, s.Shape) {
			all = append(all, s.Shape)
		}
	}
	return all
}

// gone adds to the answer that upstream has no such record when it was last
// seen, and the way there.
func (q past) gone(t *spec.Target, err error) error {
	var p *page.Problem
	if !errors.As(err, &p) || !errors.Is(err, understudy.ErrNotFound) || !q.AsOf.At.IsZero() || q.Data != "" ||
		!q.Gate.Counts(q.Caller, q.Source.Name, q.Kind.Name) {
		return err
	}
	past, worse := q.readPast(q.Ctx, t.ID, fewVersions)
	if worse != nil {
		q.V.Logger.ErrorContext(q.Ctx, "viewer: past of a record that is gone", "error", worse)
		return err
	}
	for _, s := range past.versions {
		if !s.Kept {
			continue
		}
		p.Title = "This " + q.Kind.One + " is gone"
		p.Href = q.AddressWith(page.AsOf{At: s.From}.Param())
		p.Link = "See it as it was on " + page.Say(s.From, q.Start, q.Zone, false).Text
		break
	}
	return p
}
