// Parsing: the path and the paging parameters of a request for a list.

package compose

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/spec"
)

// checkParams returns an error if the request has a parameter that the spec does not name, because upstream's answer
// to it is not known.
func (l *listRequest) checkParams() error {
	p := l.paging
	for _, one := range l.target.Query {
		if one.Name == "" || one.Name != p.Size && !p.IsPosition(one.Name) &&
			l.target.List.Filter(one.Name) == nil {
			return fmt.Errorf("%w: %q is not a filter of this list", understudy.ErrInvalid, understudy.Clip(one.Name))
		}
	}
	return nil
}

// param returns the parameter of a name. If the request has it several times, the last one is returned.
func (l *listRequest) param(name string) (p understudy.Param, there bool) {
	for _, one := range l.target.Query {
		if one.Name == name && name != "" {
			p, there = one, true
		}
	}
	return p, there
}

// narrowToVar adds the condition that follows from a path variable, such as the id of the account or parent record.
func (l *List) narrowToVar(i int) error {
	t, v := l.req.target, l.req.target.Vars[i]
	name := t.Spec.VarFields[v.Name]
	_, own := t.Spec.Vars[v.Name]
	user := own && v.Value == l.req.src.User
	f := t.Kind.Field(name)
	root := slices.Contains(t.Spec.Roots.Vars, v.Name) && l.req.src.HasRoot(t.RootID())
	switch {
	case root && t.Kind.Root != "":
		l.seek.Parent = t.RootID()
		return nil
	case f != nil && user && len(l.req.src.Roots) == 0:
		l.addTest(f.Name, equalTest(v.Value)) // an index would not help, because nearly all stored records have this value
	case f != nil:
		l.addEqual(f.Name, v.Value)
	case i+1 < len(t.Vars): // the next variable names a record that belongs to this one, so it is enough to check that record
	case !user: // without a field for it, only the user's own records are stored (Kind.UnscopedVar)
		return fmt.Errorf("%w: records of this list do not contain their %s", understudy.ErrInvalid, v.Name)
	}
	if f != nil && f.Name == t.Kind.Parent {
		l.seek.Parent = v.Value
	}
	if user || root { // full reads of its lists have shown that the account exists
		return nil
	}
	return l.checkParent(i, f)
}

// checkParent returns an error unless the record that a path variable names is stored and belongs to the records of
// the variables before it.
func (l *List) checkParent(i int, f *spec.Field) error {
	t, v := l.req.target, l.req.target.Vars[i]
	kind := l.req.parentKind(v.Name, f)
	if kind == nil {
		return fmt.Errorf("%w: the spec does not say which kind of record %s names", understudy.ErrInvalid, v.Name)
	}
	var rec *understudy.Record
	if l.req.options.FindRecord != nil {
		rec = l.req.options.FindRecord(kind.Name, v.Value)
	}
	if rec == nil {
		return fmt.Errorf("%w: %s is not stored, so it is not known whether it exists", understudy.ErrInvalid, understudy.Clip(v.Value))
	}
	for _, before := range t.Vars[:i] {
		name := t.Spec.VarFields[before.Name]
		if kind.Field(name) == nil || !find(kind, rec.Body, name).Is(before.Value) {
			return fmt.Errorf("%w: %s does not say that it belongs to %s", understudy.ErrInvalid,
				understudy.Clip(v.Value), understudy.Clip(before.Value))
		}
	}
	// Upstream drops these records together with their parent. If the parent is final, some of the stored records may
	// no longer exist upstream.
	if t.Kind.Retention.WithParent && rec.Final && f != nil && f.Name == t.Kind.Parent {
		l.isEmpty = true
	}
	return nil
}

// parentKind returns the kind of the record that a path variable names. It is the kind that a field for the variable
// links to, in this kind or in another.
func (l *listRequest) parentKind(variable string, f *spec.Field) *spec.Kind {
	sp := l.target.Spec
	if f == nil {
		for _, k := range sp.Kinds {
			if f = k.Field(sp.VarFields[variable]); f != nil && f.Link != "" {
				break
			}
		}
	}
	if f == nil {
		return nil
	}
	return sp.Kind(f.Link)
}

// readPlace parses the parameters that say which page of the list is requested.
func (l *List) readPlace() error {
	p := l.req.paging
	if p.IsOnePage() || p.Size == "" {
		l.place.size = int64(max(p.Max, 1000))
	} else if err := l.readSize(); err != nil {
		return err
	}
	if one, there := l.req.param(p.Page); there && !p.IsOnePage() {
		n, ok := parseNumber(one.Value)
		if !ok || n < int64(p.First) {
			return l.req.refuse("page")
		}
		l.place.page = n - int64(p.First)
	}
	for _, name := range p.Tokens {
		switch one, _ := l.req.param(name); {
		case one.Value == "":
		case name != p.TokenParam() && name != p.Back:
			return fmt.Errorf("%w: the page that %s leads to is not known", understudy.ErrInvalid, understudy.Clip(name))
		case l.place.token != "":
			return fmt.Errorf("%w: the request has two page tokens, and it is not known which one upstream uses", understudy.ErrInvalid)
		default:
			l.place.token, l.place.upward = one.Value, name == p.Back
		}
	}
	if l.place.token != "" {
		return l.readToken()
	}
	switch {
	case l.place.page > 0 && p.IsSliding() && !p.HasFixedRows(l.req.target.Query):
		return fmt.Errorf("%w: the rows of a page with this number are not known", understudy.ErrInvalid)
	case p.Style == "offset":
		l.place.skip = l.place.page
	case p.IsSliding(), l.req.target.Spec.Quirks.Alone == spec.QuirkCounts:
		l.place.skip = l.place.page * l.place.size
	}
	return nil
}

// readSize parses the page size.
func (l *List) readSize() error {
	p, odd := l.req.paging, &l.req.target.Spec.Quirks
	if l.place.size = int64(p.Default); l.place.size <= 0 {
		l.place.size = 1000
	}
	one, there := l.req.param(p.Size)
	if !there {
		return nil
	}
	n, ok := parseNumber(one.Value)
	switch {
	case (!ok || n == 0) && odd.Size == spec.QuirkDefault:
		return nil
	case !ok || n == 0:
		return l.req.refuse("size")
	case p.Max > 0 && n > int64(p.Max):
		if odd.Above == spec.QuirkRefused {
			return l.req.refuse("size_above")
		}
		n = int64(p.Max)
	}
	l.place.size = n
	return nil
}

// parseNumber parses decimal digits. A number with more than 31 bits becomes the largest number of 31 bits.
func parseNumber(text string) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		n = math.MaxInt32
	}
	return n, true
}

// readToken parses the page token, which names a record, in the spec's format. The page begins after that record. If the first
// A of the token is replaced by a B, the page ends before the record, as in upstream's own tokens of this format.
func (l *List) readToken() error {
	id, back, ok := l.place.form.ID(l.place.token)
	l.place.backward = back || l.place.upward
	switch k := l.req.target.Kind; {
	case l.place.form.OwnForm && !ok:
		return fmt.Errorf("%w: only upstream can read this page token", understudy.ErrInvalid)
	case !ok, len(k.Prefixes) > 0 && len(k.ID) == 1 && !k.HasIDPrefix(id):
		return l.req.refuse("token")
	}
	l.place.start = id
	return l.checkTokenOwner()
}

// checkTokenOwner returns upstream's refusal if the record that the page token names belongs to another account.
func (l *List) checkTokenOwner() error {
	t := l.req.target
	var rec *understudy.Record
	if t.Kind.UnscopedVar() != "" {
		if l.req.options.FindRecord != nil {
			rec = l.req.options.FindRecord(t.Kind.Name, l.place.start)
		}
		switch {
		case rec == nil:
			return fmt.Errorf("%w: the owner of the record that the page token names is not known", understudy.ErrInvalid)
		case strings.HasSuffix(rec.Shape, spec.ForeignShapeSuffix):
			return l.req.refuse("token")
		}
	}
	for _, v := range t.Vars {
		name := t.Spec.VarFields[v.Name]
		if _, own := t.Spec.Vars[v.Name]; !own || t.Kind.Field(name) == nil || l.req.options.FindRecord == nil {
			continue
		}
		if rec == nil {
			if rec = l.req.options.FindRecord(t.Kind.Name, l.place.start); rec == nil {
				return nil
			}
		}
		if !find(t.Kind, rec.Body, name).Is(v.Value) {
			return l.req.refuse("token")
		}
	}
	return nil
}

// RefuseToken returns upstream's refusal of a page token that names no record of the list. Callers use it only if the
// record has certainly never existed. It returns ErrInvalid if the spec does not describe the refusal.
func (l *List) RefuseToken() error { return l.req.refuse("token") }
