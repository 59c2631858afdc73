// Request targets that reach every route of a source.

package proxy

import (
	"strings"
	"testing"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/spec"
	"understudy/spec/spectest"
)

// AllTargets returns request targets that reach every route of a source and every
// kind of refusal. They contain each list plain, with each of its filters, with a
// page size and with an unknown parameter. They also contain each instance, each
// content, and paths that do not exist. id returns a record of a kind, value
// returns a filter's value. Path variables that the spec fills by itself are filled.
func AllTargets(s *spec.Source, id func(kind string) string, value func(f *spec.Filter) string) []string {
	var all []string
	for _, k := range s.Spec.Kinds {
		for _, l := range k.Lists {
			path := fill(s, k, l.Template(), nil, id)
			all = append(all, path, path+"?NobodyKnowsThis=1", path+"?broken=%zz")
			if size := s.Spec.PagingOf(l).Size; size != "" {
				all = append(all, path+"?"+understudy.Query{{Name: size, Value: "2"}}.String())
			}
			for _, f := range l.Filters {
				all = append(all, path+"?"+understudy.Query{{Name: f.Name, Value: value(f)}}.String())
			}
		}
		for _, in := range k.Instances {
			all = append(all, fill(s, k, in.Template(), in, id))
		}
		for _, m := range k.Media {
			all = append(all, fill(s, k, m.Template(), &spec.Instance{ID: m.ID}, id))
		}
	}
	if l := s.Spec.Limits; l.Path != "" {
		all = append(all, l.Path)
	}
	return append(all, "/", "/nothing/here", "/-/health", "/-/stats", "/-/", "/%2e%2e/x")
}

// fill replaces the variables of a path template. Variables that name the record get
// the parts of its id. The source's user is used where the spec says so. Another
// variable gets an id of a kind whose name for one record it begins with.
func fill(s *spec.Source, k *spec.Kind, path spec.Template, in *spec.Instance, id func(kind string) string) string {
	var parts []string
	if in != nil && len(in.ID) > 0 {
		parts = strings.Split(id(k.Name), spec.IDSeparator)
	}
	filled, _ := path.Fill(func(name string) (string, bool) { return variable(s, k, in, name, parts, id), true })
	return filled
}

func variable(s *spec.Source, k *spec.Kind, in *spec.Instance, name string, parts []string, id func(kind string) string) string {
	if in != nil {
		for i, part := range in.ID {
			if part == name && i < len(parts) {
				return parts[i]
			}
		}
	}
	if s.Spec.Vars[name] == "user" {
		return s.User
	}
	// CallSid, conference_id: the kind whose name for one record it begins with.
	for _, other := range s.Spec.Kinds {
		if one := strings.ReplaceAll(other.Singular, " ", ""); one != "" &&
			strings.HasPrefix(strings.ToLower(strings.ReplaceAll(name, "_", "")), one) {
			return id(other.Name)
		}
	}
	return id(k.Name)
}

// A media path and nothing else is asked as one: whatever path comes, the role
// that may have no content gets none, and no request goes where the gate was
// not asked.
func FuzzMediaPath(f *testing.F) {
	for _, s := range []string{
		"Recordings/RE1.wav", "Recordings/RE1.mp3", "Recordings/RE1", "Recordings/RE1.json", "Messages/MM1/Media/ME1", "Recordings/RE1.wav.json",
		"Recordings/RE1%2ewav", "Recordings/RE1.wav/", "Recordings//RE1.wav", "Recordings/../Recordings/RE1.wav", "Recordings/RE1.wav?x=1",
		"Recordings/RE1.WAV", "Recordings/.wav", "Recordings/RE1.wav%00",
	} {
		f.Add(s)
	}
	sp := spectest.BuiltIn(f, "twilio")
	gate, err := access.New(map[string]*spec.Spec{"twilio": sp}, access.Roles{"support": {"twilio": {"*": "see", "body": "hide"}}})
	if err != nil {
		f.Fatal(err)
	}
	caller := understudy.Caller{Name: "masked", Source: "twilio", Grant: &understudy.Grant{Role: "support"}}
	f.Fuzz(func(t *testing.T, path string) {
		path, query, _ := strings.Cut(root+"/"+path, "?")
		at, err := sp.Resolve("twilio", path, query)
		if err != nil {
			return
		}
		if at.Media != nil {
			checktest.MustTrue(t, at.Kind != nil, "%q: at.Kind is nil", path)
			checktest.MustTrue(t, at.List == nil, "%q: at.List is %v", path, at.List)
			checktest.MustTrue(t, at.Instance == nil, "%q: at.Instance is %v", path, at.Instance)
			checktest.MustTrue(t, at.ID != "", "%q: at.ID is empty", path)
			checktest.MustTrue(t, !strings.ContainsAny(at.ID, "./"), `%q: strings.ContainsAny(at.ID, "./") is true`,
				path)
			checktest.MustTrue(t, gate.CheckRead(caller, at) != nil, "gate.CheckRead(caller, at) is nil")
			checktest.MustTrue(t, gate.CheckMedia(caller, at) != nil, "gate.CheckMedia(caller, at) is nil")
			checktest.MustTrue(t, gate.CheckWrite(caller, at, "GET") != nil,
				`gate.CheckWrite(caller, at, "GET") is nil`)
			again, err := sp.Resolve("twilio", at.Key.Path(), at.Key.Query())
			checktest.MustNoError(t, err, "%q means something else once it is a key", path)
			checktest.MustEqual(t, again.Media, at.Media, "%q means something else once it is a key: again.Media",
				path)
			checktest.MustEqual(t, again.ID, at.ID, "%q means something else once it is a key: again.ID", path)
			checktest.MustEqual(t, again.Key, at.Key, "%q means something else once it is a key: again.Key", path)
		}
	})
}
