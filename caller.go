// This file declares Caller, the person or program behind a request, and Grant, what a caller may do and until when.

package understudy

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Caller is a person or a program, identified by its credential. Frontends get it from package callers and pass
// it to the access gate. The mirror never receives a caller.
type Caller struct {
	Name   string // the name of the credential, for the access log; "loopback" for a person on this machine
	Source string // the only source that the caller may use; "" means every source, as for people in the viewer
	Grant  *Grant // what the caller may do; nil means that it may do nothing
	Flow   uint64 // a number that identifies the sender of a request without credentials (see request.Request)
	Usage  *Usage // counts the requests of the caller's credential; nil means that nothing counts them
}

// Rate is the request limit of a credential: at most Limit requests in a period, of which Remaining are left.
// After a pause of Reset all of them are available again.
type Rate struct {
	Limit, Remaining int64
	Reset            time.Duration
}

// CommandCaller is the caller of commands that authenticate with the token of a data folder.
var CommandCaller = Caller{Name: "run.json", Grant: &Grant{Role: RoleAll}}

// Role returns the caller's role, or "" if the caller has no grant.
func (c Caller) Role() string {
	if c.Grant == nil {
		return ""
	}
	return c.Grant.Role
}

// OwnerLifetime is how long after its last request an owner keeps a role that a sign-in provider or a proxy
// gave it. After that no work runs in the owner's name.
const OwnerLifetime = 30 * 24 * time.Hour

// Owner is a caller as stored with its work, together with the facts that decide its role. An Owner grants
// nothing by itself: each run checks again what the owner may do.
type Owner struct {
	Name     string    `json:"name"`
	Source   string    `json:"source,omitempty"` // the source of the owner's credential
	Role     string    `json:"role"`             // the owner's role at its last request
	Groups   []string  `json:"groups,omitempty"` // the groups that the sign-in provider named for the owner
	Domain   string    `json:"domain,omitempty"` // the domain of the owner's mail address at the sign-in provider
	Provider string    `json:"with,omitempty"`   // the name of the sign-in provider
	LastSeen time.Time `json:"seen"`             // the time of the last request that confirmed the facts in Owner
}

// RoleAll is the built-in role that sees everything except secrets.
const RoleAll = "all"

// IssuedByViewAs is the IssuedBy of a caller with role "all" who views the data as another role does.
const IssuedByViewAs = "view-as"

// Grant is what a caller may do. Many requests share one Grant. It is never changed after its creation.
type Grant struct {
	Role     string
	IssuedBy string    // the issuer of the grant: "config", "demo" or IssuedByViewAs
	Expires  time.Time // the time when the grant ends; the zero time means never
	// The maximum age of data that the caller accepts; nil means the mirror's defaults, 0 means as fresh as the upstream
	MaxStale *time.Duration
	Service  string  // ServiceJobs or ServiceMetrics if the caller has no role and may use only this; otherwise ""
	Allow    []Allow // the methods and paths that are allowed in addition to GET and HEAD of the kinds in the spec
	// Revoked is closed when the grant is revoked. A nil channel means that the grant lasts as long as its
	// policy.
	Revoked <-chan struct{}
}

// The values of Grant.Service. Credentials name them under allow.
const (
	ServiceJobs    = "jobs"    // enqueueing and running jobs
	ServiceMetrics = "metrics" // reading /-/metrics
)

// IsActive reports whether the grant is valid at the time now: not nil, not revoked and not expired.
func (g *Grant) IsActive(now time.Time) bool {
	return g != nil && !g.IsRevoked() && (g.Expires.IsZero() || now.Before(g.Expires))
}

// IsRevoked reports whether the grant was revoked.
func (g *Grant) IsRevoked() bool { return g != nil && IsClosed(g.Revoked) }

// Allow is one allowed method and path pattern, such as "POST /2010-04-01/Accounts/*/Messages.json". In the
// path, "*" matches one whole segment, and "**" at the end matches any rest. The method "*" matches every
// method.
type Allow struct{ Method, Path string }

// Match reports whether the pattern matches a request with that method and decoded path.
func (a Allow) Match(method, path string) bool {
	if a.Method != method && a.Method != "*" {
		return false
	}
	for {
		want, wantRest, wantMore := strings.Cut(a.Path, "/")
		have, haveRest, haveMore := strings.Cut(path, "/")
		if want == "**" && !wantMore {
			return true
		}
		if want != have && (want != "*" || have == "") || wantMore != haveMore {
			return false
		}
		if !wantMore {
			return true
		}
		a.Path, path = wantRest, haveRest
	}
}

// Usage counts requests by the way in which they were answered. A nil Usage counts nothing. It is safe for concurrent use.
type Usage [len(usageNames)]atomic.Int64

// usageNames are the names of a Usage's counts. Each request counts once in the first five of them: with its outcome (see
// request.Outcome), or as other. Answers with a status from 400 are also rejected, those with a status from 500 failed instead.
var usageNames = [...]string{"warm", "stale", "cold", "composed", "other", "rejected", "failed"}

// Count counts one request. outcome is the word for its outcome in the access log.
func (u *Usage) Count(outcome string, status int) {
	if u == nil {
		return
	}
	i := slices.Index(usageNames[:4], outcome)
	if i < 0 {
		i = 4
	}
	u[i].Add(1)
	if status >= 400 {
		u[min(status/100+1, 6)].Add(1)
	}
}

// Counts returns the counts by their names.
func (u *Usage) Counts() map[string]int64 {
	counts := map[string]int64{}
	for i, name := range usageNames {
		counts[name] = u[i].Load()
	}
	return counts
}
