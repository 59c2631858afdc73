// Address: the paths of a spec that addresses of an API lead to.

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

// path returns an address's path as a spec has it: the user, and the id of a record that the list lies
// under, are variables. That is a record of a list before, or one that isParent tells.
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

// uuid is the form of an id that stands for itself.
var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

// isParent reports whether a segment of a path is the id of a record: a number or a UUID behind a
// plural, or what the rows show as the id of one.
func (l *liveList) isParent(before, segment string) bool {
	one := singular(before)
	if one == "" || snakeCase(one) == "" {
		return false
	}
	if _, err := strconv.ParseUint(segment, 10, 64); one != before && (err == nil || uuid.MatchString(segment)) {
		return true
	}
	return l.answer != nil && shows(l.answer.body, foldName(one)+"id", segment, 0)
}

// shows reports whether a member of an answer has a name and a value.
func shows(v *openapi.Value, name, value string, depth int) bool {
	if v == nil || depth > 4 {
		return false
	}
	for i, one := range v.Items {
		if v.Kind == openapi.Object && foldName(v.Keys[i]) == name && one.Text == value || shows(one, name, value, depth+1) {
			return true
		}
	}
	return false
}

// withVariables returns a path in which numbers are variables: /repositories/{repository_id}/issues.
func withVariables(path string) string {
	all := strings.Split(path, "/")
	for i, s := range all {
		if _, err := strconv.ParseUint(s, 10, 64); err == nil && i > 0 {
			all[i] = "{" + cmp.Or(snakeCase(singular(all[i-1])), "record") + "_id}"
		}
	}
	return strings.Join(all, "/")
}

// pathParams returns the variables of a path as parameters.
func pathParams(path string) (all []liveParam) {
	for _, name := range pathVars(path) {
		all = append(all, liveParam{name: name, value: openapi.Text("x"), in: "path"})
	}
	return all
}
