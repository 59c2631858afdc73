// Single: reads whose answer is one object that no list has.

package infer

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Words in the last segment of a path by which a read does more than to show something, or shows a
// credential. One of a record is no such read where a list shows it, too.
var riskyWords = []string{"auth", "check", "credential", "credentials", "download", "exec", "export", "key", "keys", "kubeconfig", "login",
	"logout", "oauth", "preview", "refresh", "restore", "run", "secret", "secrets", "start", "stop", "sync", "test", "token", "tokens",
	"validate", "verify"}

// versionSegment matches a segment that begins the paths of a version.
var versionSegment = regexp.MustCompile(`^v?\d[\d.-]*$`)

// addSingleObjects makes kinds without an id of the reads that neither list records nor show one of them,
// so that they are kept as whole pages. What is no object passes. seen are the paths of all others.
func (a *api) addSingleObjects(seen map[string]bool) {
	taken := map[string]bool{"number": true, "search": true, "jobs": true}
	for _, k := range a.kinds {
		taken[k.name] = true
	}
	var acting []string
	for _, op := range slices.Concat(a.doc.Reads, a.doc.Others) {
		if seen[op.Path] || !a.isWanted(op.Path) {
			continue
		}
		all := segments(op.Path)
		_, isOne := lastVar(op.Path)
		above := "/" + strings.Join(all[:len(all)-1], "/")
		listed := isOne && slices.ContainsFunc(a.lists, func(l *list) bool { return below(l.op.Path) == above })
		odd := oddPath(op.Path)
		switch last := lastWord(op.Path); {
		case !listed && (hasWord(last, riskyWords...) || strings.HasSuffix(foldName(last), "url")):
			acting = append(acting, op.Path)
			continue
		case odd != "":
			a.unsure(op.Path, "%s: left out", odd)
			continue
		case op.Answer.Type() != "object" || len(op.Answer.Properties()) == 0:
			a.unsure(op.Path, "its answer is neither a list nor an object with members: it passes to role all, and is not kept")
			a.passes = append(a.passes, op.Path)
			continue
		case sizeParam(op) != nil && queryParam(op, pageNumberNames) != nil:
			a.unsure(op.Path, "it takes a page, and its answer has no array of records that is surely its list: each answer is kept by itself")
		}
		k := &kind{why: map[string]string{"name": "of its path: one object that no list has"}}
		k.instances = []*instance{{op: op, record: op.Answer}}
		k.name = objectKindName(all, taken)
		taken[k.name] = true
		a.kinds = append(a.kinds, k)
	}
	for _, path := range acting {
		if !matchInstance(a.kinds, path) {
			a.unsure(path, "it may do something, or show a credential, so it passes unseen: left out")
			continue
		}
		a.unsure(path, "it may do something, or show a credential, and a request for it would be taken for one for a record: "+
			"it passes to role all, and is not kept")
		a.passes = append(a.passes, path)
	}
}

// matchInstance reports whether a drawn path has a variable where a path has a word, so that a request for it is one for a record.
func matchInstance(kinds []*kind, path string) bool {
	want := segments(path)
	same := func(in *instance) bool {
		have := segments(in.op.Path)
		return len(have) == len(want) && slices.EqualFunc(have, want, func(x, y string) bool { return x == y || strings.HasPrefix(x, "{") })
	}
	return slices.ContainsFunc(kinds, func(k *kind) bool { return slices.ContainsFunc(k.instances, same) })
}

// objectKindName returns a name of as many of a path's last words as no other kind has: balance, or
// customer_balance. What a variable names is one of them, in the singular.
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

// isWanted reports whether a path is among those that are drawn.
func (a *api) isWanted(where string) bool {
	return len(a.paths) == 0 || slices.ContainsFunc(a.paths, func(path string) bool { return within(where, a.doc.Base+path) })
}

// findKindByName finds the kind of a record that is shown at a path of its own, /stories/{story_id}, while its
// lists lie below others: the one kind whose lists are called so.
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
		if !k.listed(all[0]) {
			continue
		}
		if found != nil {
			return nil
		}
		found = k
	}
	return found
}
