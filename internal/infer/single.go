// This file finds GET operations that return one object which is not a record of a list.

package infer

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// riskyWords are words in the last segment of a path whose GET may have a side effect or show a credential. For the
// record of a list they have no such meaning.
var riskyWords = []string{"auth", "check", "credential", "credentials", "download", "exec", "export", "key", "keys", "kubeconfig", "login",
	"logout", "oauth", "preview", "refresh", "restore", "run", "secret", "secrets", "start", "stop", "sync", "test", "token", "tokens",
	"validate", "verify"}

// versionSegment matches a path segment that is an API version.
var versionSegment = regexp.MustCompile(`^v?\d[\d.-]*$`)

// addSingleObjects adds a kind without an id for each GET that returns one object, so that the response is stored as a
// page. A response that is not an object is passed through. seen contains the paths that other kinds already use.
func (a *api) addSingleObjects(seen map[string]bool) {
	taken := map[string]bool{"number": true, "search": true, "jobs": true}
	for _, k := range a.kinds {
		taken[k.name] = true
	}
	var acting []string
	for _, op := range slices.Concat(a.doc.Reads, a.doc.NonJSONReads) {
		if seen[op.Path] || !a.isWanted(op.Path) {
			continue
		}
		all := segments(op.Path)
		_, isOne := lastVar(op.Path)
		above := "/" + strings.Join(all[:len(all)-1], "/")
		listed := isOne && slices.ContainsFunc(a.lists, func(l *list) bool { return trimExtension(l.op.Path) == above })
		odd := pathProblem(op.Path)
		switch last := lastWord(op.Path); {
		case !listed && (hasWord(last, riskyWords...) || strings.HasSuffix(foldName(last), "url")):
			acting = append(acting, op.Path)
			continue
		case odd != "":
			a.addCaveat(op.Path, "%s, so it is left out", odd)
			continue
		case op.Answer.Type() != "object" || len(op.Answer.Properties()) == 0:
			a.addCaveat(op.Path, "its answer is neither a list nor an object with members; only role all may request it, and the "+
				"answer is not stored")
			a.passThroughPaths = append(a.passThroughPaths, op.Path)
			continue
		case sizeParam(op) != nil && queryParam(op, pageNumberNames) != nil:
			a.addCaveat(op.Path, "it accepts a page number, but its answer has no array that is certainly the list; each answer is "+
				"stored as a page of its own")
		}
		k := &kind{why: map[string]string{"name": "from its path; one object that is in no list"}}
		k.instances = []*instance{{op: op, record: op.Answer}}
		k.name = objectKindName(all, taken)
		taken[k.name] = true
		a.kinds = append(a.kinds, k)
	}
	for _, path := range acting {
		if !matchInstance(a.kinds, path) {
			a.addCaveat(path, "it may change something or show a credential, so it is left out")
			continue
		}
		a.addCaveat(path, "it may change something or show a credential, and its path looks like the path of a record; "+
			"only role all may request it, and the answer is not stored")
		a.passThroughPaths = append(a.passThroughPaths, path)
	}
}

// matchInstance reports whether a path also matches the path of a record in the draft, which has a variable in
// place of a word.
func matchInstance(kinds []*kind, path string) bool {
	want := segments(path)
	same := func(in *instance) bool {
		have := segments(in.op.Path)
		return len(have) == len(want) && slices.EqualFunc(have, want, func(x, y string) bool { return x == y || strings.HasPrefix(x, "{") })
	}
	return slices.ContainsFunc(kinds, func(k *kind) bool { return slices.ContainsFunc(k.instances, same) })
}

// objectKindName returns the shortest unused name from the last words of a path: balance, or customer_balance. A
// word that a variable follows becomes singular.
func objectKindName(all []string, taken map[string]bool) (name string) {
	_, isOne := lastVar(strings.Join(all, "/"))
	for _, s := range slices.Backward(all) {
		if strings.Contains(s, "{") || snakeCase(s) == "" {
			continue
		}
		if s = snakeCase(s); name != "" {
			s += "_" + name
		} else if isOne {
			s = singular(s)
		}
		if name = s; !taken[name] {
			return name
		}
	}
	return numberedName(cmp.Or(name, "object"), taken)
}

// isWanted reports whether the user asked for this path. If the user named no paths, all paths are wanted.
func (a *api) isWanted(where string) bool {
	return len(a.wantedPaths) == 0 || slices.ContainsFunc(a.wantedPaths, func(path string) bool { return isWithin(where, a.doc.Base+path) })
}

// findKindByName returns the kind of the record at a top-level path such as /stories/{story_id}, even if the kind's
// lists have other paths. It returns nil unless exactly one kind has a list with that name.
func findKindByName(kinds []*kind, path string) (found *kind) {
	all := segments(path)
	if len(all) == 3 && versionSegment.MatchString(all[0]) {
		all = all[1:]
	}
	last, ok := lastVar(path)
	if len(all) != 2 || !ok || !strings.HasPrefix(foldName(last), foldName(singular(all[0]))) {
		return nil
	}
	for _, k := range kinds {
		if !k.hasListEnding(all[0]) {
			continue
		}
		if found != nil {
			return nil
		}
		found = k
	}
	return found
}
