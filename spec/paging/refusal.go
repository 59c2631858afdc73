// Refusal: whether an answer to a list is an error, or may be one.

package paging

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

var (
	// errorNames are the usual names of what an answer says of an error, written as MoreNames.
	errorNames = []string{"error", "errors", "err", "errormessage", "errorcode", "errmsg", "errcode", "errordescription", "fault",
		"exception", "message", "messages", "msg", "detail", "details", "code", "reason", "title", "warning", "warnings", "status",
		"statuscode"}
	// fine are what they say where there is no error.
	fine = []string{"", "null", "false", "0", "200", "ok", "success", "none", "[]", "{}"}
	// errorsAlone are those of errorNames that name nothing but an error.
	errorsAlone = []string{"error", "errors", "err", "errormessage", "errorcode", "errmsg", "errcode", "errordescription", "fault",
		"exception"}
	// bad matches what a status, a code or a message says of an error.
	bad = regexp.MustCompile(`^[45][0-9][0-9]$|error|fail|exception|fault|denied|forbidden|unauthori|limit|exceed|overload|unavailable|` +
		`time.?out|timed out|try again|invalid|expired`)
)

// ReadsArray reports whether the array under a list's key is read for what it says of other pages or of an error,
// as one of links or of errors is. Of any other it counts alone that it has elements.
func ReadsArray(key string) bool {
	name := plain(key[strings.LastIndexByte(key, '.')+1:])
	return strings.HasPrefix(name, "link") || slices.Contains(errorsAlone, name)
}

// Refuses returns what an answer to a list says of an error, whatever its status and its rows; "" is nothing. Only what is
// clear counts: null, an array that is missing, and words that may mean it are SaysError's.
func Refuses(body []byte, doc jsonspan.Value) string { return refuses(body, doc, "") }

func refuses(body []byte, object jsonspan.Value, under string) (what string) {
	if object.Kind != jsonspan.Object {
		return ""
	}
	jsonspan.VisitMembers(body, object, func(raw []byte, v jsonspan.Value) bool {
		member := jsonspan.Name(raw)
		name := plain(member)
		text := func() string { return strings.ToLower(strings.Trim(string(v.Bytes(body)), `" `)) } // of rows it would be long
		is := false
		switch {
		case slices.Contains(errorsAlone, name):
			is = !slices.Contains(fine, text())
		case name == "failed" && strings.HasSuffix(plain(under), "shards"):
			is = !slices.Contains(fine, text())
		case v.Kind == jsonspan.Object && under == "":
			what = refuses(body, v, member)
		case v.Kind == jsonspan.Array, v.Kind == jsonspan.Object, under != "":
		case name == "success" || name == "ok":
			is = !isYes(text())
		case slices.Contains(errorNames, name):
			is = bad.MatchString(text())
		}
		if is {
			what = understudy.Clip(strings.TrimPrefix(under+"."+member, ".") + ": " + text())
		}
		return what == ""
	})
	return what
}

// partial returns why rows are left out of an answer that has some beside an error; "" is nothing.
func partial(a *Answer) string {
	if what := Refuses(a.Body, a.Doc); what != "" {
		return fmt.Sprintf("the answer says an error beside its rows (%s)", what)
	}
	return ""
}

// SaysError reports whether an object may be an error, by the names that APIs give to what they say
// of one.
func SaysError(body []byte, object jsonspan.Value) (yes bool) {
	jsonspan.VisitMembers(body, object, func(raw []byte, v jsonspan.Value) bool {
		name, text := plain(jsonspan.Name(raw)), strings.ToLower(strings.Trim(string(v.Bytes(body)), `"`))
		switch {
		case slices.Contains([]string{"success", "ok"}, name):
			yes = !isYes(text)
		case slices.Contains(errorNames, name):
			yes = !slices.Contains(fine, text)
		case v.Kind == jsonspan.Object:
			yes = SaysError(body, v)
		}
		return !yes
	})
	return yes
}
