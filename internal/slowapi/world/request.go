// Requests: what the path of a request names in the world.
package world

import (
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// Request is a request to one of Twilio's paths.
type Request struct {
	In      *table.Request
	W       *World
	Quirks  Quirks
	Q       format.Query
	Account int
	S       *Sequence  // of the kind of the path, nil for none
	Parent  int64      // the record that a list belongs to
	Index   int64      // the record itself
	Narrow  *Condition // what a list shows of the kind; nil for all
	Filters []Filter
	Key     string            // of a list
	Shape   string            // the template of the records
	Preset  map[string]string // what a creation sets beside its form
	Buried  bool              // a record deleted lately is asked for too
}

// Shows reports whether the record is there for this request.
func (x *Request) Shows() bool {
	return x.S.Exists(x.Index) || x.Buried && x.S.Buried(x.Index, x.W.Now().Unix())
}

// NotFound returns the answer when what the path names is not there.
func (x *Request) NotFound() format.Answer { return format.NotFound(x.In.Path).Answer() }
