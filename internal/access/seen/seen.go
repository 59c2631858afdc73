// Seen: what was seen of a record, each version through the gate by itself.

// Package seen tells a caller what was seen of a record over time.
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

// Most is how many versions of a record are told at most.
const Most = 500

// History keeps what was seen of records; store.DB fills it.
type History interface {
	// History is what was seen of a record, newest first and at most limit
	// versions, of all shapes, goings included; ErrNotFound: it was never seen.
	ReadHistory(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error)
}

// Version is a version as the caller sees it. Versions that look the same to the
// caller are one, so that what is hidden is not told by when it changed.
type Version struct {
	Version understudy.Version
	Row     access.Row // none when Gone or !Kept
	Kept    bool       // there is a body to show
	Fields  []access.Value
	Before  *Version // the one before in this shape
	First   bool     // nothing of the record was seen before
	Back    bool     // it was gone before
}

// Past is what was seen of one record, newest first.
type Past struct {
	Versions []*Version
	More     bool // there are older ones
	Bound    bool // there may be, further back than is looked
}

// Reader reads what was seen of records as one caller sees it.
type Reader struct {
	History History
	Gate    *access.Gate
	Caller  understudy.Caller
}

// Read reads at most limit versions of a record, Most at most; none of a record that
// the caller may not find. It reads on until there is one more or no older version: a
// page that led on to none would tell that something hidden had changed.
func (r Reader) Read(ctx context.Context, source, kind, id string, limit int) (Past, error) {
	if id == "" || !r.Gate.Finds(r.Caller, source, kind, id) {
		return Past{}, nil
	}
	for n := limit + 1; ; n = min(4*n, Most+1) {
		versions, err := r.History.ReadHistory(ctx, source, kind, id, n+1)
		if errors.Is(err, understudy.ErrNotFound) {
			return Past{}, nil
		}
		if err != nil {
			return Past{}, fmt.Errorf("seen: history of %s %s: %w", kind, id, err)
		}
		cut := len(versions) > n
		p, err := r.see(source, kind, versions, cut)
		if err != nil {
			return Past{}, err
		}
		if cut && len(p.Versions) <= limit && n <= Most {
			continue
		}
		p.More = len(p.Versions) > limit
		p.Bound = p.More && limit >= Most
		p.Versions = p.Versions[:min(len(p.Versions), limit)]
		return p, nil
	}
}

// see makes versions as the caller sees them, oldest first, and leaves out those in which the
// caller sees nothing new. Of a past that is cut the oldest is there to compare
// with and not one of them. A version that is not kept belongs to the one after
// it when the caller does not see everything: what was taken back may have been hidden.
func (r Reader) see(source, kind string, versions []understudy.Version, cut bool) (Past, error) {
	var p Past
	whole := r.Gate.Whole(r.Caller, source)
	last := map[string]*Version{}  // by shape
	lost := map[string]time.Time{} // when the first began that is not kept, by shape
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
		s, err := r.version(source, kind, v)
		if err != nil {
			return Past{}, err
		}
		former := last[v.Shape]
		s.Before, s.First, s.Back = former, len(last) == 0 && !gone && !cut, gone
		if former != nil && !gone && former.Kept && s.Kept && len(Changed(former, s)) == 0 {
			former.Version.Until = s.Version.Until
			continue
		}
		gone, last[v.Shape] = false, s
		p.add(s, beyond)
	}
	slices.Reverse(p.Versions)
	return p, nil
}

func (p *Past) add(s *Version, beyond bool) {
	if !beyond {
		p.Versions = append(p.Versions, s)
	}
}

// version passes the body of one version through the gate.
func (r Reader) version(source, kind string, v understudy.Version) (*Version, error) {
	s := &Version{Version: v}
	if v.Body == nil {
		return s, nil
	}
	view, err := r.Gate.View(r.Caller, &understudy.Page{
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

// Difference is one field in two versions; one that is not in a version is
// Absent there.
type Difference struct {
	Name          string
	Before, After access.Value
}

// Same reports whether the field is the same in both.
func (d Difference) Same() bool {
	return d.Before.State == d.After.State && d.Before.Text == d.After.Text
}

// Differences are the fields of two versions that the caller sees, those of the
// later one in its order, then those only the earlier one has.
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

// Changed are the differences that are any.
func Changed(before, after *Version) []Difference {
	return slices.DeleteFunc(Differences(before, after), Difference.Same)
}

// At is the version of a shape that stood at a moment: the one that began last of
// those that had begun. gone: the record was gone then. nil: nothing of the
// shape was seen yet, or it is not read that far back.
func (p Past) At(t time.Time, shape string) (s *Version, gone bool) {
	for _, s := range p.Versions { // newest first
		if s.Version.From.After(t) || !s.Version.Gone && s.Version.Shape != shape {
			continue
		}
		return s, s.Version.Gone
	}
	return nil, false
}

// Shapes are those there is more than a going of, the page's own first.
func (p Past) Shapes(first string) []string {
	all := []string{first}
	for _, s := range p.Versions {
		if !s.Version.Gone && !slices.Contains(all, s.Version.Shape) {
			all = append(all, s.Version.Shape)
		}
	}
	return all
}
