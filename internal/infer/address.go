// This file turns the URL of a request into the path that a spec uses for it.

package infer

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/openapi"
)

// path returns the path of a URL with variables for the user and for the ids of parent records. A segment is such
// an id if an earlier list had that record, or if isParent returns true for the segment.
func (l *liveList) path(at *url.URL) string {
	given := strings.Split(at.EscapedPath(), "/")
	all := slices.Clone(given)
	for i, s := range given {
		switch {
		case s == "":
		case s == l.api.User:
			all[i] = "{user}"
		case i > 1 && i < len(given)-1:
			name := "{" + snakeCase(singular(given[i-1])) + "_id}"
			if (l.isParent(given[i-1], s) || l.knownRecords[strings.Join(given[:i+1], "/")]) && !slices.Contains(all, name) {
				all[i] = name
			}
		}
	}
	return strings.Join(all, "/")
}

// uuid matches a UUID, an id that needs no other hint to be recognized.
var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

// isParent reports whether a path segment is the id of a parent record: a number or a UUID after a
// plural noun, or a value that the list's rows contain as the id of that record.
func (l *liveList) isParent(before, segment string) bool {
	one := singular(before)
	if one == "" || snakeCase(one) == "" {
		return false
	}
	if _, err := strconv.ParseUint(segment, 10, 64); one != before && (err == nil || uuid.MatchString(segment)) {
		return true
	}
	return l.answer != nil && hasMember(l.answer.body, foldName(one)+"id", segment, 0)
}

// hasMember reports whether v has a member with a given name and value, down to five levels of nesting.
func hasMember(v *openapi.Value, name, value string, depth int) bool {
	if v == nil || depth > 4 {
		return false
	}
	for i, one := range v.Items {
		if v.Kind == openapi.Object && foldName(v.Keys[i]) == name && one.Text == value || hasMember(one, name, value, depth+1) {
			return true
		}
	}
	return false
}

// withVariables replaces each number in a path by a variable: /repositories/{repository_id}/issues.
func withVariables(path string) string {
	all := strings.Split(path, "/")
	for i, s := range all {
		if _, err := strconv.ParseUint(s, 10, 64); err == nil && i > 0 {
			all[i] = "{" + cmp.Or(snakeCase(singular(all[i-1])), "record") + "_id}"
		}
	}
	return strings.Join(all, "/")
}

// pathParams returns a path parameter for each variable of a path.
func pathParams(path string) (all []liveParam) {
	for _, name := range pathVars(path) {
		all = append(all, liveParam{name: name, value: openapi.Text("x"), in: "path"})
	}
	return all
}
