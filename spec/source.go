// Source: one configured upstream, the lists of it that are polled, and its numbers that are sampled.

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

// Source is one configured upstream: an API by its spec, an account, and the URL of
// this server for it. It holds no secret and does not change after start.
type Source struct {
	Name      string   // "twilio": first part of viewer paths and of every key
	Spec      *Spec    // compiled
	User      string   // the account; fills the spec's path variables that say "user"
	PublicURL string   // what absolute URLs of upstream are rewritten to, no trailing slash
	Polls     []string // lists whose newest page is kept warm (PollTarget)
	Media     []string // kinds whose contents (audio, images) are kept
	Roots     []string // roots besides that of the user: ids of their records, AllRoots, AskedRoots
	// UpstreamAges has an answer go by what its header says of its age, too (RFC 9111, 5861):
	// the shorter of that and of our own ages holds.
	UpstreamAges bool
	SpecSum      [sha256.Size]byte // of the text of a spec from a file; zero for the others
}

// Words in Source.Roots.
const (
	AllRoots   = "all"   // every record of the roots' kind that upstream shows
	AskedRoots = "asked" // those that callers ask for
)

// Roots are the records under which most lists of an API lie: a source may cover many. A
// root's id fills path variables.
type Roots struct {
	Kind  string   `yaml:"kind"`  // the kind of these records
	Vars  []string `yaml:"vars"`  // the path variables that name one, one for each part of its id
	Field string   `yaml:"field"` // a field of every kind with a root: the root's name (SpellRoot)
}

// declare gives kinds with a root the field that shows its name. No record has the field:
// its value is read from the record's address.
func (r *Roots) declare(s *Spec) error {
	for i, k := range s.Kinds {
		switch {
		case k.Root == "":
		case r.Field == "" || strings.ContainsAny(r.Field, ". "):
			return in(fmt.Errorf("field %q: want one word: the field that shows which of the %s a record of %s lies under",
				r.Field, r.Kind, k.Name), "roots")
		case slices.ContainsFunc(k.Fields, func(f *Field) bool { return f.Name == r.Field }):
			return in(fmt.Errorf("kind %s: root: it has a field %s of its own; name another one in roots.field", k.Name, r.Field),
				"kinds", i, "root")
		default:
			k.Fields = append(k.Fields, &Field{Name: r.Field, Type: TypeSelect, From: k.Root, Link: r.Kind})
		}
	}
	return nil
}

// check makes sure that the kind's records name the variables.
func (r *Roots) check(s *Spec) error {
	if r.Kind == "" && len(r.Vars) == 0 {
		return nil
	}
	k := s.kinds[r.Kind]
	if k == nil {
		return fmt.Errorf("kind %w", none(r.Kind, "a kind", s.kindNames()))
	}
	if len(r.Vars) == 0 || len(r.Vars) != len(k.ID) {
		return fmt.Errorf("vars names %d path variables, the id of %s has %d fields", len(r.Vars), k.Name, len(k.ID))
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
		if f := one.fields[one.Root]; !f.Absolute || one.Parent != "" || path == "" {
			return in(fmt.Errorf("kind %s: root: want a field that is an address of the API (absolute: true), of a kind without a parent; "+
				"%s need a path of their own", one.Name, k.Title), "kinds", i, "root")
		}
	}
	return nil
}

// Root is the id of the root under which the target lies, "" when its path names none, or one
// whose parts nobody could tell apart.
func (t *Target) Root() string {
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

// Above returns the values of path variables that name a record the target lies under, which is
// neither its root nor the source's user.
func (t *Target) Above() (values []string) {
	for _, v := range t.Vars {
		if t.Spec.Vars[v.Name] == "" && !slices.Contains(t.Spec.Roots.Vars, v.Name) {
			values = append(values, v.Value)
		}
	}
	return values
}

// SpellRoot is the id of a root as people write it, ParseRoot the id of what they wrote.
func SpellRoot(id string) string { return strings.ReplaceAll(id, IDSeparator, "/") }

// ParseRoot is said at SpellRoot.
func ParseRoot(text string) string { return strings.ReplaceAll(text, "/", IDSeparator) }

// RootPath is the path of a root's record, with variables, for the field that shows a
// record's root: its value is read from the address in the field From (RootAt). It is ""
// for every other field.
func (f *Field) RootPath() string { return f.rootPath }

// RootAt is the name of the root in an address, as the field of Roots shows it; "" when the
// address lies under none. path is the RootPath.
func RootAt(path, address string) string { return SpellRoot(idAt(path, address)) }

// RootField is the field that shows the root of the kind's records: its id, or its name; "":
// none does.
func (s *Spec) RootField(k *Kind) string {
	if k.Root != "" {
		return s.Roots.Field
	}
	if len(s.Roots.Vars) != 1 {
		return ""
	}
	if field := s.Shown[s.Roots.Vars[0]]; k.fields[field] != nil {
		return field
	}
	return ""
}

// Cover says that a source covers several roots. Then records lie under the root that a
// field of theirs shows, as they do under one that their address names: what is held of each
// root is found by itself. It is called before anything else uses the spec.
func (s *Spec) Cover() {
	for _, k := range s.Kinds {
		below := func(l *List) bool { return slices.ContainsFunc(s.Roots.Vars, l.template.Has) }
		if k.Root == "" && k.Parent == "" && k.Name != s.Roots.Kind && slices.ContainsFunc(k.Lists, below) {
			k.rootField = s.RootField(k)
		}
	}
}

// ParentRule is where the id of the record stands that a record of the kind lies under, as
// ParentIn takes it; "" when it lies under none.
func (k *Kind) ParentRule() string {
	if k.rootPath != "" {
		return k.Root + " " + k.rootPath
	}
	return cmp.Or(k.Parent, k.rootField)
}

// ParentIn reads a rule of ParentRule: the field, and how the id is read from its value.
func ParentIn(rule string) (field string, id func(value string) string) {
	field, template, address := strings.Cut(rule, " ")
	if !address {
		return field, func(value string) string { return value }
	}
	return field, func(value string) string { return idAt(template, value) }
}

// idAt is the id that an address has in the places of a template's variables. The address
// may go on behind it, and has another host.
func idAt(template, address string) string {
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

// Covers reports whether the source has a root, among others perhaps: that of its user,
// one that is named, or any when Roots has a word.
func (s *Source) Covers(root string) bool {
	return root == "" || root == s.User || slices.ContainsFunc(s.Roots, func(one string) bool {
		return one == AllRoots || one == AskedRoots || one == root
	})
}

// PollTarget is the newest page that an entry of Polls names. An entry is a kind, for
// its first list that needs only the source's settings. Or it is such a list's path,
// whole or its end, with filters of the list ("/Calls.json?Status=failed"), or the path of
// any list with its variables written out ("/repos/acme/tracker/issues"). Errors wrap
// ErrInvalid and say what is wrong with the entry.
func (s *Source) PollTarget(entry string) (*Target, error) {
	if !strings.HasPrefix(entry, "/") {
		k := s.Spec.Kind(entry)
		if k == nil || len(k.Lists) == 0 {
			return nil, fmt.Errorf("%w: spec %s has no list of %q", understudy.ErrInvalid, s.Spec.Name, understudy.Clip(entry))
		}
		for _, l := range k.Lists {
			if path, ok := s.FillPath(l.Template()); ok && !l.Demands() {
				everything, _ := l.Everything()
				return s.Spec.Target(s.Name, path, everything.String())
			}
		}
		return nil, fmt.Errorf("%w: %q has no list that can be asked for without a record's id", understudy.ErrInvalid, understudy.Clip(entry))
	}
	path, query, _ := strings.Cut(entry, "?")
	found := ""
	for _, full := range s.PollPaths() {
		switch {
		case full == path:
			return s.pollOf(full, query)
		case !strings.HasSuffix(full, path):
		case found != "":
			return nil, fmt.Errorf("%w: %q is the end of %s and of %s; write more of the path",
				understudy.ErrInvalid, understudy.Clip(path), found, full)
		default:
			found = full
		}
	}
	if t, err := s.Spec.Target(s.Name, path, ""); found == "" && err == nil && t.List != nil && s.Reaches(t) {
		return s.pollOf(path, query)
	}
	if found == "" {
		return nil, fmt.Errorf("%w: spec %s has no list %q that can be asked for without a record's id",
			understudy.ErrInvalid, s.Spec.Name, understudy.Clip(path))
	}
	return s.pollOf(found, query)
}

// Reaches reports whether the variables of a path that the source's settings fill have
// those values, or name a root that the source covers.
func (s *Source) Reaches(t *Target) bool {
	root := t.Root()
	return !slices.ContainsFunc(t.Vars, func(v understudy.Param) bool {
		_, own := s.Spec.Vars[v.Name]
		return own && v.Value != s.User && !(slices.Contains(s.Spec.Roots.Vars, v.Name) && root != "" && s.Covers(root))
	})
}

// SampleTarget is the page on which a kind's sampled numbers stand: its first instance
// that needs only the source's settings. Errors wrap ErrInvalid.
func (s *Source) SampleTarget(k *Kind) (*Target, error) {
	for _, in := range k.Instances {
		if path, ok := s.FillPath(in.Template()); ok {
			return s.Spec.Target(s.Name, path, "")
		}
	}
	return nil, fmt.Errorf("%w: %s.%s has no instance that can be asked for with the source's settings alone", understudy.ErrInvalid,
		s.Name, k.Name)
}

// PollPaths are the paths of the lists that can be polled.
func (s *Source) PollPaths() []string {
	var paths []string
	for _, k := range s.Spec.Kinds {
		for _, l := range k.Lists {
			if path, ok := s.FillPath(l.Template()); ok && !l.Demands() {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// pollOf is the newest page of a list under a query of its filters.
func (s *Source) pollOf(path, query string) (*Target, error) {
	t, err := s.Spec.Target(s.Name, path, query)
	switch {
	case err != nil:
		return nil, err
	case t.List == nil:
		return nil, fmt.Errorf("%w: %q is no list", understudy.ErrInvalid, understudy.Clip(path))
	case !t.First:
		return nil, fmt.Errorf("%w: %q is not the newest page: leave out what moves on from it", understudy.ErrInvalid, understudy.Clip(query))
	case len(t.Own) > 0:
		return nil, fmt.Errorf("%w: %q cannot be polled: upstream knows nothing of %q",
			understudy.ErrInvalid, understudy.Clip(query), t.Own[0].Name)
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

// Whole reports whether a target is a whole list: no filter narrows it, nor does one that is
// absent by its default.
func (t *Target) Whole() bool {
	if t.List == nil || t.List.Demands() || t.Reordered() {
		return false
	}
	for _, f := range t.List.Filters {
		value, there := t.Query.Get(f.Name)
		if !there {
			value = f.Default
		}
		if (there || value != "") && f.selects() && (value == "" || f.Narrows(value)) {
			return false
		}
	}
	return true
}

// FillPath puts the source's settings into a path's variables. ok is false when
// that does not fill them all.
func (s *Source) FillPath(t Template) (path string, ok bool) { return t.Fill(s.plainVar) }

// InstancePath is the path of a record: the parts of its id, escaped, and the
// source's settings. ok is false when these do not fill it.
func (s *Source) InstancePath(in *Instance, id []string) (path string, ok bool) {
	return in.Template().Fill(func(name string) (string, bool) {
		if i := slices.Index(in.ID, name); i >= 0 {
			return url.PathEscape(id[i]), true
		}
		return s.plainVar(name)
	})
}

// plainVar is PathVar for paths that are not escaped: it refuses what would be
// more than one segment.
func (s *Source) plainVar(name string) (value string, ok bool) {
	value, ok = s.PathVar(name)
	return value, ok && !strings.ContainsAny(value, "{}/%")
}

// PathVar is what the source's settings put in a path variable.
func (s *Source) PathVar(name string) (value string, ok bool) {
	if s.Spec.Vars[name] == "user" {
		return s.User, s.User != ""
	}
	return "", false
}

// Every is how often the number is looked at to be kept as a series; 0: never.
func (f *Field) Every() time.Duration { return f.every }

// Sampled are the fields whose numbers are kept as series.
func (k *Kind) Sampled() (fields []*Field) {
	for _, f := range k.Fields {
		if f.every > 0 {
			fields = append(fields, f)
		}
	}
	return fields
}

// The shortest and the longest time between two samples.
const (
	leastSample = time.Second
	mostSample  = 30 * 24 * time.Hour
)

// checkSamples reads how often fields are looked at.
func (k *Kind) checkSamples() error {
	for i, f := range k.Fields {
		if f.Sample == "" {
			continue
		}
		every, err := understudy.ParseDuration(f.Sample)
		switch {
		case err != nil || every < leastSample || every > mostSample:
			return in(fmt.Errorf("field %s: sample: %q: want a duration from %v to %v, as 1h", f.Name, f.Sample, leastSample, mostSample),
				"fields", i)
		case len(k.ID) > 0 || len(k.Instances) == 0:
			return in(fmt.Errorf("field %s: sample: it is for a kind without an id that has an instance", f.Name), "fields", i)
		case f.Type != TypeDecimal && f.Type != TypeInt || f.Class == ClassSecret:
			return in(fmt.Errorf("field %s: sample: it is for fields of type decimal or int that are no secret", f.Name), "fields", i)
		}
		f.every = every
	}
	return nil
}
