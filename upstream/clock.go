// Clock: a record's time in Unix seconds, by the field's type.

package upstream

import (
	"bytes"
	"strconv"
	"time"

	"understudy"
	"understudy/kit/jsonspan"
)

// How the types write time, the usual form first.
var (
	rfc2822Forms = []string{"Mon, 02 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 -0700", time.RFC1123}
	isoForms     = []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly}
	dateForms    = []string{time.DateOnly}
)

// unix is the time a value tells, 0 when it is null, absent or not a time.
func unix(body []byte, v jsonspan.Value, typ string) int64 {
	text := v.Of(body)
	switch {
	case v.Kind == jsonspan.String:
		text = text[1 : len(text)-1]
	case v.Kind != jsonspan.Number || typ != understudy.TypeEpoch:
		return 0
	}
	if len(text) > 64 {
		return 0
	}
	switch typ {
	case understudy.TypeRFC2822:
		return parseTime(text, rfc2822Forms)
	case understudy.TypeISO:
		return parseTime(text, isoForms)
	case understudy.TypeDate:
		return parseTime(text, dateForms)
	case understudy.TypeEpoch:
		whole, _, _ := bytes.Cut(text, []byte("."))
		n, err := strconv.ParseInt(string(whole), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}

func parseTime(text []byte, forms []string) int64 {
	for _, form := range forms {
		if t, err := time.Parse(form, string(text)); err == nil {
			return t.Unix()
		}
	}
	return 0
}
