// What the tests outside the package read of its insides.
package slowapi

import (
	"time"

	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Bounds.
const (
	CDNPath    = cdnPath
	CDNValid   = cdnLifetime
	MaxRules   = maxRules
	MaxTable   = maxTableRecords
	MaxTargets = maxTargets
)

// Counts and Stats are the counts of requests.
type (
	Counts = counts
	Stats  = stats
)

// AcceptsGzip reports whether a request may be answered with gzip.
var AcceptsGzip = isGzipAccepted

// Add counts a request.
func (c *counts) Add(path, target string) { c.add(path, target) }

// Read returns the counts.
func (c *counts) Read() Stats { return c.read() }

// Busy returns how many requests are under way.
func (s *Server) Busy() int64 { return s.busy.Load() }

// World returns the world of Twilio.
func (s *Server) World() *world.World { return s.twilio.world }

// Journal returns the journal of Twilio.
func (s *Server) Journal() *world.Journal { return s.twilio.journal }

// SignContent returns the address of a medium's content at a time.
func (s *Server) SignContent(account int, sid string, now time.Time) string {
	return s.twilio.cdn.path(account, sid, now)
}

// Sign returns the signature of a path that is valid until a time.
func (s *Server) Sign(path, expires string) string { return s.twilio.cdn.sign(path, expires) }

// Paths returns the routes of Twilio as a server finds them.
func Paths() table.Routes { return (&twilio{}).paths() }

// Route is a list or a record in the table of routes.
type Route struct {
	Pattern      string
	Kind, Parent *world.Kind
	Instance     bool
	Filters      []string
	Allow        string
}

// Routes returns the routes below /2010-04-01/.
func Routes() (all []Route) {
	for i := range routes {
		r := &routes[i]
		all = append(all, Route{r.pattern, r.kind, r.parent, r.instance, world.KeysOf(r.listFilters()), r.allow()})
	}
	return all
}
