// Package seen shows a caller the stored versions of a record.
package seen

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/internal/access"
)

// MaxVersions is the maximum number of versions of a record that are shown.
const MaxVersions = 500

// History reads the stored versions of records; store.DB implements it.
type History interface {
	// ReadHistory returns at most limit versions of a record in all shapes, newest first, including deletions. It
	// returns ErrNotFound if no version was ever stored.
	ReadHistory(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error)
}

// Version is a version as the caller sees it. Versions that look the same to the caller are merged, so that the
// time of a change in hidden data is not revealed.
type Version struct {
	Version understudy.Version
	Row     access.Row // the record as the caller sees it; empty if the record was deleted or Kept is false
	Kept    bool       // whether the body of this version is stored
	Fields  []access.Value
	Before  *Version // the previous version in the same shape
	First   bool     // whether this is the oldest stored version of the record
	Back    bool     // whether the record was deleted just before this version, so that this version restored it
}

// Past are the versions of a record that a caller sees, newest first.
type Past struct {
	Versions []*Version
	More     bool // whether the record has versions older than Versions
	AtLimit  bool // whether older versions may exist but MaxVersions prevents showing them
}

// Reader reads the versions of records as one caller sees them.
type Reader struct {
	History History
	Gate    *access.Gate
	Caller  understudy.Caller
}

// Read returns at most limit versions of a record, and never more than MaxVersions. It returns no version of a
// record that the caller may not find. It reads until it has limit+1 visible versions or there are no older
// versions, because a page that promises more and then shows nothing would reveal a change in hidden data.
func (r Reader) Read(ctx context.Context, source, kind, id string, limit int) (Past, error) {
	if id == "" || !r.Gate.CanFind(r.Caller, source, kind, id) {
		return Past{}, nil
	}
	for n := limit + 1; ; n = min(4*n, MaxVersions+1) {
		versions, err := r.History.ReadHistory(ctx, source, kind, id, n+1)
		if errors.Is(err, understudy.ErrNotFound) {
			return Past{}, nil
		}
		if err != nil {
			return Past{}, fmt.Errorf("seen: history of %s %s: %w", kind, id, err)
		}
		cut := len(versions) > n
		p, err := r.filterVersions(source, kind, versions, cut)
		if err != nil {
			return Past{}, err
		}
		if cut && len(p.Versions) <= limit && n <= MaxVersions {
			continue
		}
		p.More = len(p.Versions) > limit
		p.AtLimit = p.More && limit >= MaxVersions
		p.Versions = p.Versions[:min(len(p.Versions), limit)]
		return p, nil
	}
}

// filterVersions returns versions as the caller sees them, newest first, and leaves out versions in which the
// caller sees no change. versions is newest first. If cut is true, there are older versions, and the oldest version
// is used only for the comparison. If the caller does not see everything, a version whose body is not stored is
// merged into the next version, because only hidden data may have changed.
func (r Reader) filterVersions(source, kind string, versions []understudy.Version, cut bool) (Past, error) {
	var p Past
	whole := r.Gate.CanSeeAll(r.Caller, source)
	last := map[string]*Version{}  // the newest version so far, by shape
	lost := map[string]time.Time{} // the start of the first version without a stored body, by shape
	gone := false
	for i, v := range slices.Backward(versions) {
		beyond := cut && i == len(versions)-1
		if v.Gone {
			if !gone {
				p.add(&Version{Version: v}, beyond)
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
		s, err := r.redactVersion(source, kind, v)
		if err != nil {
			return Past{}, err
		}
		former := last[v.Shape]
		s.Before, s.First, s.Back = former, len(last) == 0 && !gone && !cut, gone
		if former != nil && !gone && former.Kept && s.Kept && len(ChangedFields(former, s)) == 0 {
			former.Version.Until = s.Version.Until
			continue
		}
		gone, last[v.Shape] = false, s
		p.add(s, beyond)
	}
	slices.Reverse(p.Versions)
	return p, nil
}

// add appends a version, unless beyond is true: then the version is older than those to show.
func (p *Past) add(s *Version, beyond bool) {
	if !beyond {
		p.Versions = append(p.Versions, s)
	}
}

// redactVersion removes what the caller may not see from one version.
func (r Reader) redactVersion(source, kind string, v understudy.Version) (*Version, error) {
	s := &Version{Version: v}
	if v.Body == nil {
		return s, nil
	}
	view, err := r.Gate.MakeView(r.Caller, &understudy.Page{
		Key: understudy.Key{Source: source}, Kind: kind, Shape: v.Shape, Status: http.StatusOK, ContentType: "application/json",
		Body: v.Body,
	})
	if err != nil {
		return nil, err
	}
	if rows := view.Rows(); len(rows) == 1 {
		s.Row, s.Fields, s.Kept = rows[0], rows[0].Fields(), true
	}
	return s, nil
}

// Difference is the value of a field in two versions. If a version has no such field, its value is Absent.
type Difference struct {
	Name          string
	Before, After access.Value
}

// IsSame reports whether the field is the same in both versions.
func (d Difference) IsSame() bool {
	return d.Before.State == d.After.State && d.Before.Text == d.After.Text
}

// Differences returns the fields of two versions that the caller sees. The fields of the later version come
// first, in its order, then the fields that only the earlier version has.
func Differences(before, after *Version) []Difference {
	old := map[string]access.Value{}
	if before != nil {
		for _, v := range before.Fields {
			old[v.Name] = v
		}
	}
	var all []Difference
	for _, v := range after.Fields {
		was := old[v.Name]
		delete(old, v.Name)
		if v.State != access.Hidden {
			all = append(all, Difference{v.Name, was, v})
		}
	}
	if before != nil {
		for _, v := range before.Fields {
			if _, left := old[v.Name]; left && v.State != access.Hidden {
				all = append(all, Difference{v.Name, v, access.Value{Name: v.Name, Field: v.Field}})
			}
		}
	}
	return all
}

// ChangedFields returns the fields that differ between two versions.
func ChangedFields(before, after *Version) []Difference {
	return slices.DeleteFunc(Differences(before, after), Difference.IsSame)
}

// VersionAt returns the version of a shape at a moment: the last version that began before it. gone is true if the
// record was deleted at that moment. VersionAt returns nil if no version of the shape was stored yet, or if the
// history was not read that far back.
func (p Past) VersionAt(t time.Time, shape string) (s *Version, gone bool) {
	for _, s := range p.Versions {
		if s.Version.From.After(t) || !s.Version.Gone && s.Version.Shape != shape {
			continue
		}
		return s, s.Version.Gone
	}
	return nil, false
}

// Shapes returns the shapes of the versions that are not deletions. The shape named first comes first.
func (p Past) Shapes(first string) []string {
	all := []string{first}
	for _, s := range p.Versions {
		if !s.Version.Gone && !slices.Contains(all, s.Version.Shape) {
			all = append(all, s.Version.Shape)
		}
	}
	return all
}
