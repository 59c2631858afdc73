// Source: one configured upstream, with its polled lists, its roots and its sampled numbers.

package spec

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"understudy"
)

// Source is one configured upstream: an API described by a spec, an account, and the URL of this server for it.
// It contains no secret and does not change after the start.
type Source struct {
	Name       string   // the name of the source, such as "twilio": the first part of viewer paths and of every key
	Spec       *Spec    // the compiled spec
	User       string   // the account, which is the value of the path variables for which the spec says "user"
	PublicURL  string   // the URL that replaces the API's own URL in answers, without a trailing slash
	Polls      []string // the lists whose newest page is kept fresh (ResolvePoll)
	MediaKinds []string // the kinds whose contents (audio, images) are stored
	Roots      []string // further roots in addition to the user's: ids of their records, AllRoots or RequestedRoots
	// UpstreamAges limits an answer's freshness also by the answer's own header (RFC 9111, 5; RFC 5861). The shorter of
	// that time and Understudy's own time applies.
	UpstreamAges bool
	SpecSum      [sha256.Size]byte // the hash of the text of a spec from a file; zero for built-in specs
}

// Words allowed in Source.Roots.
const (
	AllRoots       = "all"   // every record of the roots' kind that the upstream returns is a root
	RequestedRoots = "asked" // the roots are those that callers request
)

// Roots are the records under which most lists of an API are found. A source may have many. A root's id fills
// path variables.
type Roots struct {
	Kind  string   `yaml:"kind"`  // the kind of the root records
	Vars  []string `yaml:"vars"`  // the path variables that form the root's id, one variable for each part of the id
	Field string   `yaml:"field"` // the name of the field that shows the root's name (FormatRoot); it is added to every kind with a root
}

// addFields adds the field with the root's name to kinds that have a root. No record contains the field: its
// value is derived from the record's URL.
func (r *Roots) addFields(s *Spec) error {
	for i, k := range s.Kinds {
		switch {
		case k.Root == "":
		case r.Field == "" || strings.ContainsAny(r.Field, ". "):
			return addPath(fmt.Errorf("field %q: write one word, the name of the field that shows which of the %s a record of %s is under",
				r.Field, r.Kind, k.Name), "roots")
		case slices.ContainsFunc(k.Fields, func(f *Field) bool { return f.Name == r.Field }):
			return addPath(fmt.Errorf("kind %s: root: the kind already has a field %s; write another name in roots.field", k.Name, r.Field),
				"kinds", i, "root")
		default:
			k.Fields = append(k.Fields, &Field{Name: r.Field, Type: TypeSelect, DerivedFrom: k.Root, Link: r.Kind})
		}
	}
	return nil
}

// check checks that the ids of the roots' kind fit the path variables, and sets the paths of root records.
func (r *Roots) check(s *Spec) error {
	if r.Kind == "" && len(r.Vars) == 0 {
		return nil
	}
	k := s.kinds[r.Kind]
	if k == nil {
		return fmt.Errorf("kind %w", describeUnknown(r.Kind, "a kind", s.KindNames()))
	}
	if len(r.Vars) == 0 || len(r.Vars) != len(k.ID) {
		return fmt.Errorf("vars names %d path variables, but the id of %s has %d fields; name one variable for each field", len(r.Vars), k.Name,
			len(k.ID))
	}
	for i, one := range s.Kinds {
		path := ""
		for _, in := range k.Instances {
			if len(in.ID) > 0 && slices.Equal(in.ID, in.template.Vars()) {
				path = in.Path
			}
		}
		if one.Root == "" {
			continue
		}
		if one.fields[r.Field].rootPath = path; one != k {
			one.rootPath = path
		}
		if f := one.fields[one.Root]; !f.AbsoluteURL || one.Parent != "" || path == "" {
			return addPath(fmt.Errorf("kind %s: root: name a field with absolute: true, in a kind without a parent; "+
				"%s also need an instance path of their own", one.Name, k.Title), "kinds", i, "root")
		}
	}
	return nil
}

// RootID returns the id of the root to which the target belongs. It returns "" if the path names no root or if
// a part of the id contains the separator.
func (t *Target) RootID() string {
	parts := make([]string, 0, 2)
	for _, name := range t.Spec.Roots.Vars {
		if value := t.Var(name); value != "" && !strings.Contains(value, IDSeparator) {
			parts = append(parts, value)
		}
	}
	if len(parts) == 0 || len(parts) < len(t.Spec.Roots.Vars) {
		return ""
	}
	return strings.Join(parts, IDSeparator)
}

// ParentIDs returns the values of path variables that name a record above the target, except its root and the
// source's user.
func (t *Target) ParentIDs() (values []string) {
	for _, v := range t.Vars {
		if t.Spec.Vars[v.Name] == "" && !slices.Contains(t.Spec.Roots.Vars, v.Name) {
			values = append(values, v.Value)
		}
	}
	return values
}

// FormatRoot returns the id of a root as people write it.
func FormatRoot(id string) string { return strings.ReplaceAll(id, IDSeparator, "/") }

// ParseRoot returns the id of a root that a person wrote. It reverses FormatRoot.
func ParseRoot(text string) string { return strings.ReplaceAll(text, "/", IDSeparator) }

// RootPath returns the path of a root's record, with variables, for the field that shows a record's root. The field's
// value is derived from the URL in the field DerivedFrom (see RootFromURL). For any other field it returns "".
func (f *Field) RootPath() string { return f.rootPath }

// RootFromURL returns the name of the root in a URL, as the field of Roots shows it, or "" if the URL belongs to no
// root. path is the field's RootPath.
func RootFromURL(path, address string) string { return FormatRoot(idFromURL(path, address)) }

// RootField returns the field that shows the root of the kind's records, by id or by name, or "".
func (s *Spec) RootField(k *Kind) string {
	if k.Root != "" {
		return s.Roots.Field
	}
	if len(s.Roots.Vars) != 1 {
		return ""
	}
	if field := s.VarFields[s.Roots.Vars[0]]; k.fields[field] != nil {
		return field
	}
	return ""
}

// SplitByRoot prepares the spec for a source with several roots. Records are then stored under the root that a field or
// their URL names, so that each root can be found separately. Call it before anything else uses the spec.
func (s *Spec) SplitByRoot() {
	for _, k := range s.Kinds {
		below := func(l *List) bool { return slices.ContainsFunc(s.Roots.Vars, l.template.Has) }
		if k.Root == "" && k.Parent == "" && k.Name != s.Roots.Kind && slices.ContainsFunc(k.Lists, below) {
			k.rootField = s.RootField(k)
		}
	}
}

// ParentRule says where to find the id of a record's parent, in the form for ParseParentRule. It returns "" if
// the kind has no parent.
func (k *Kind) ParentRule() string {
	if k.rootPath != "" {
		return k.Root + " " + k.rootPath
	}
	return cmp.Or(k.Parent, k.rootField)
}

// ParseParentRule parses a rule of ParentRule. It returns the field, and a function that extracts the id from
// the field's value.
func ParseParentRule(rule string) (field string, id func(value string) string) {
	field, template, address := strings.Cut(rule, " ")
	if !address {
		return field, func(value string) string { return value }
	}
	return field, func(value string) string { return idFromURL(template, value) }
}

// idFromURL returns the id in a URL, which is at the places of a template's variables. The URL may be longer than the
// template, and its host is ignored.
func idFromURL(template, address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		at := strings.IndexByte(rest, '/')
		address = rest[max(at, 0):]
	}
	var parts []string
	for want := range strings.SplitSeq(template, "/") {
		var have string
		have, address, _ = strings.Cut(address, "/")
		switch value, err := url.PathUnescape(have); {
		case strings.HasPrefix(want, "{") && strings.HasSuffix(want, "}") && value != "" && err == nil &&
			!strings.ContainsAny(value, IDSeparator+"/"):
			parts = append(parts, value)
		case want != have:
			return ""
		}
	}
	return strings.Join(parts, IDSeparator)
}

// HasRoot reports whether the source includes a root: its user's, a configured one, or any if Roots contains
// AllRoots or RequestedRoots.
func (s *Source) HasRoot(root string) bool {
	return root == "" || root == s.User || slices.ContainsFunc(s.Roots, func(one string) bool {
		return one == AllRoots || one == RequestedRoots || one == root
	})
}

// FindSource returns the source with a name, or nil.
func FindSource(sources []*Source, name string) *Source {
	for _, s := range sources {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// ResolvePoll returns the newest page of the list that an entry of Polls names. An entry is one of these: a
// kind, meaning its first list that needs only the source's settings; the path of such a list or the end of it,
// with filters ("/Calls.json?Status=failed"); the path of any list with its variables filled in
// ("/repos/acme/tracker/issues"). Errors wrap ErrInvalid and say what is wrong with the entry.
func (s *Source) ResolvePoll(entry string) (*Target, error) {
	if !strings.HasPrefix(entry, "/") {
		k := s.Spec.Kind(entry)
		if k == nil || len(k.Lists) == 0 {
			return nil, fmt.Errorf("%w: spec %s has no list of %q", understudy.ErrInvalid, s.Spec.Name, understudy.Clip(entry))
		}
		for _, l := range k.Lists {
			if path, ok := s.FillPath(l.Template()); ok && !l.HasRequiredFilter() {
				everything, _ := l.UnfilteredQuery()
				return s.Spec.Resolve(s.Name, path, everything.String())
			}
		}
		return nil, fmt.Errorf("%w: every list of %q needs the id of a record or a filter, so it cannot be polled", understudy.ErrInvalid,
			understudy.Clip(entry))
	}
	path, query, _ := strings.Cut(entry, "?")
	found := ""
	for _, full := range s.PollPaths() {
		switch {
		case full == path:
			return s.resolvePollPath(full, query)
		case !strings.HasSuffix(full, path):
		case found != "":
			return nil, fmt.Errorf("%w: %q is the end of %s and of %s; write more of the path",
				understudy.ErrInvalid, understudy.Clip(path), found, full)
		default:
			found = full
		}
	}
	if t, err := s.Spec.Resolve(s.Name, path, ""); found == "" && err == nil && t.List != nil && s.CanReach(t) {
		return s.resolvePollPath(path, query)
	}
	if found == "" {
		return nil, fmt.Errorf("%w: spec %s has no list %q that can be requested without the id of a record",
			understudy.ErrInvalid, s.Spec.Name, understudy.Clip(path))
	}
	return s.resolvePollPath(found, query)
}

// CanReach reports whether the path's variables that the settings fill have those values, or name a root of the source.
func (s *Source) CanReach(t *Target) bool {
	root := t.RootID()
	return !slices.ContainsFunc(t.Vars, func(v understudy.Param) bool {
		_, own := s.Spec.Vars[v.Name]
		return own && v.Value != s.User && !(slices.Contains(s.Spec.Roots.Vars, v.Name) && root != "" && s.HasRoot(root))
	})
}

// ResolveSample returns the page with a kind's sampled numbers: its first instance that needs only the source's
// settings. Errors wrap ErrInvalid.
func (s *Source) ResolveSample(k *Kind) (*Target, error) {
	for _, in := range k.Instances {
		if path, ok := s.FillPath(in.Template()); ok {
			return s.Spec.Resolve(s.Name, path, "")
		}
	}
	return nil, fmt.Errorf("%w: no instance of %s.%s can be requested with the settings of the source alone", understudy.ErrInvalid,
		s.Name, k.Name)
}

// PollPaths returns the paths of the lists that can be polled.
func (s *Source) PollPaths() []string {
	var paths []string
	for _, k := range s.Spec.Kinds {
		for _, l := range k.Lists {
			if path, ok := s.FillPath(l.Template()); ok && !l.HasRequiredFilter() {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// resolvePollPath returns the newest page of a list with a query of its filters.
func (s *Source) resolvePollPath(path, query string) (*Target, error) {
	t, err := s.Spec.Resolve(s.Name, path, query)
	switch {
	case err != nil:
		return nil, err
	case t.List == nil:
		return nil, fmt.Errorf("%w: %q is not the path of a list", understudy.ErrInvalid, understudy.Clip(path))
	case !t.First:
		return nil, fmt.Errorf("%w: %q is not the newest page; remove the parameters that lead to later pages", understudy.ErrInvalid,
			understudy.Clip(query))
	case len(t.OwnParams) > 0:
		return nil, fmt.Errorf("%w: %q cannot be polled, because upstream does not have the parameter %q",
			understudy.ErrInvalid, understudy.Clip(query), t.OwnParams[0].Name)
	}
	size := s.Spec.PagingOf(t.List).Size
	for _, p := range t.Query {
		if p.Name != size && t.List.Filter(p.Name) == nil {
			var names []string
			for _, f := range t.List.Filters {
				names = append(names, f.Name)
			}
			return nil, fmt.Errorf("%w: the list has no filter %q; it has %s",
				understudy.ErrInvalid, understudy.Clip(p.Name), strings.Join(names, ", "))
		}
	}
	return t, nil
}

// IsWholeList reports whether the target is a list that no filter narrows, neither by a value in the query nor
// by a default.
func (t *Target) IsWholeList() bool {
	if t.List == nil || t.List.HasRequiredFilter() || t.IsReordered() {
		return false
	}
	for _, f := range t.List.Filters {
		value, there := t.Query.Get(f.Name)
		if !there {
			value = f.Default
		}
		if (there || value != "") && f.isSelecting() && (value == "" || f.IsNarrowing(value)) {
			return false
		}
	}
	return true
}

// FillPath fills a path's variables with the source's settings. ok is false if variables are left.
func (s *Source) FillPath(t Template) (path string, ok bool) { return t.Fill(s.segmentVar) }

// InstancePath returns the path of a record from the escaped parts of its id and the source's settings. ok is
// false if variables are left.
func (s *Source) InstancePath(in *Instance, id []string) (path string, ok bool) {
	return in.Template().Fill(func(name string) (string, bool) {
		if i := slices.Index(in.ID, name); i >= 0 {
			return url.PathEscape(id[i]), true
		}
		return s.segmentVar(name)
	})
}

// segmentVar is like PathVar, but for paths that are not escaped. It refuses a value with characters that are special
// in a path.
func (s *Source) segmentVar(name string) (value string, ok bool) {
	value, ok = s.PathVar(name)
	return value, ok && !strings.ContainsAny(value, "{}/%")
}

// PathVar returns the value of a path variable from the source's settings.
func (s *Source) PathVar(name string) (value string, ok bool) {
	if s.Spec.Vars[name] == "user" {
		return s.User, s.User != ""
	}
	return "", false
}

// SampleInterval returns how often the number is sampled; 0 means never.
func (f *Field) SampleInterval() time.Duration { return f.sampleInterval }

// SampledFields returns the fields whose numbers are stored as series.
func (k *Kind) SampledFields() (fields []*Field) {
	for _, f := range k.Fields {
		if f.sampleInterval > 0 {
			fields = append(fields, f)
		}
	}
	return fields
}

// The limits of a sample interval.
const (
	minSampleInterval = time.Second
	maxSampleInterval = 30 * 24 * time.Hour
)

// checkSamples parses and checks the sample intervals of the fields.
func (k *Kind) checkSamples() error {
	for i, f := range k.Fields {
		if f.Sample == "" {
			continue
		}
		every, err := understudy.ParseDuration(f.Sample)
		switch {
		case err != nil || every < minSampleInterval || every > maxSampleInterval:
			return addPath(fmt.Errorf("field %s: sample: %q is not a duration from %v to %v; write one such as 1h", f.Name, f.Sample,
				minSampleInterval, maxSampleInterval),
				"fields", i)
		case len(k.ID) > 0 || len(k.Instances) == 0:
			return addPath(fmt.Errorf("field %s: sample is only for kinds that have an instance but no id", f.Name), "fields", i)
		case f.Type != TypeDecimal && f.Type != TypeInt || f.Class == ClassSecret:
			return addPath(fmt.Errorf("field %s: sample is only for fields of type decimal or int that are not secret", f.Name), "fields", i)
		}
		f.sampleInterval = every
	}
	return nil
}
