// Refusal: whether an answer to a list is an error, or may be an error.

package paging

import (
	"regexp"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

var (
	// errorNames are the usual names of members that describe an error, in the form of MoreNames.
	errorNames = []string{"error", "errors", "err", "errormessage", "errorcode", "errmsg", "errcode", "errordescription", "fault",
		"exception", "message", "messages", "msg", "detail", "details", "code", "reason", "title", "warning", "warnings", "status",
		"statuscode"}
	// okTexts are the values that a member for errors has in an answer without an error.
	okTexts = []string{"", "null", "false", "0", "200", "ok", "success", "none", "[]", "{}"}
	// strictErrorNames are the errorNames that are never used for anything but an error.
	strictErrorNames = []string{"error", "errors", "err", "errormessage", "errorcode", "errmsg", "errcode", "errordescription", "fault",
		"exception"}
	// errorTexts matches a status, a code or a message of an error.
	errorTexts = regexp.MustCompile(`^[45][0-9][0-9]$|error|fail|exception|fault|denied|forbidden|unauthori|limit|exceed|` +
		`overload|unavailable|` +
		`time.?out|timed out|try again|invalid|expired`)
)

// MustReadArray reports whether the content of the array under a list's key must be read, because it may
// contain links or errors. For any other array only its length matters.
func MustReadArray(key string) bool {
	name := normalizeName(key[strings.LastIndexByte(key, '.')+1:])
	return strings.HasPrefix(name, "link") || slices.Contains(strictErrorNames, name)
}

// FindError returns the part of a list answer that clearly reports an error, or "". It ignores the status and
// the rows. CanBeError also covers unclear signs: null, a missing array, or words that may mean an error.
func FindError(body []byte, doc jsonspan.Value) string { return findError(body, doc, "") }

// findError is FindError for an object inside the body. under is the object's name.
func findError(body []byte, object jsonspan.Value, under string) (what string) {
	if object.Kind != jsonspan.Object {
		return ""
	}
	jsonspan.VisitMembers(body, object, func(raw []byte, v jsonspan.Value) bool {
		member := jsonspan.Name(raw)
		name := normalizeName(member)
		text := func() string { return strings.ToLower(strings.Trim(string(v.Bytes(body)), `" `)) }
		is := false
		switch {
		case slices.Contains(strictErrorNames, name):
			is = !slices.Contains(okTexts, text())
		case name == "failed" && strings.HasSuffix(normalizeName(under), "shards"):
			is = !slices.Contains(okTexts, text())
		case v.Kind == jsonspan.Object && under == "":
			what = findError(body, v, member)
		case v.Kind == jsonspan.Array, v.Kind == jsonspan.Object, under != "":
		case name == "success" || name == "ok":
			is = !isYes(text())
		case slices.Contains(errorNames, name):
			is = errorTexts.MatchString(text())
		}
		if is {
			what = understudy.Clip(strings.TrimPrefix(under+"."+member, ".") + ": " + text())
		}
		return what == ""
	})
	return what
}

// CanBeError reports whether an object may be an error, judged by the usual names of its members.
func CanBeError(body []byte, object jsonspan.Value) (yes bool) {
	jsonspan.VisitMembers(body, object, func(raw []byte, v jsonspan.Value) bool {
		name, text := normalizeName(jsonspan.Name(raw)), strings.ToLower(strings.Trim(string(v.Bytes(body)), `"`))
		switch {
		case slices.Contains([]string{"success", "ok"}, name):
			yes = !isYes(text)
		case slices.Contains(errorNames, name):
			yes = !slices.Contains(okTexts, text)
		case v.Kind == jsonspan.Object:
			yes = CanBeError(body, v)
		}
		return !yes
	})
	return yes
}
