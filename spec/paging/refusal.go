// Refusal: whether an answer without rows may be an error.

package paging

import (
	"slices"
	"strings"

	"understudy/kit/jsonspan"
)

var (
	// errorNames are the usual names of what an answer says of an error, written as MoreNames.
	errorNames = []string{"error", "errors", "err", "errormessage", "errorcode", "errmsg", "errcode", "errordescription", "fault",
		"exception", "message", "messages", "msg", "detail", "details", "code", "reason", "title", "warning", "warnings", "status",
		"statuscode"}
	// fine are what they say where there is no error.
	fine = []string{"", "null", "false", "0", "200", "ok", "success", "[]", "{}"}
)

// SaysError reports whether an object may be an error, by the names that APIs give to what they say
// of one.
func SaysError(body []byte, object jsonspan.Value) (yes bool) {
	jsonspan.Members(body, object, func(raw []byte, v jsonspan.Value) bool {
		name, text := plain(jsonspan.Name(raw)), strings.ToLower(strings.Trim(string(v.Of(body)), `"`))
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
