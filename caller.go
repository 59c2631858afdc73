// Caller: the person or program behind a request. Grant: what a caller may do, and until when.

package understudy

import (
	"strings"
	"time"
)

// Caller is a person or a program, identified by its credential. Frontends get it from package callers and pass
// it to the access gate. The mirror never receives a caller.
type Caller struct {
	Name   string // name of the credential, for the access log; "loopback" for a local person
	Source string // the only source that the caller may use; "" means every source, as for people in the viewer
	Grant  *Grant // what the caller may do; nil means nothing
	Flow   uint64 // identifies the sender where callers have no credentials: see request.Request
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
	Source   string    `json:"source,omitempty"` // source of a credential
	Role     string    `json:"role"`             // role at the last request
	Groups   []string  `json:"groups,omitempty"` // groups that the sign-in provider named
	Domain   string    `json:"domain,omitempty"` // domain of the mail address at the provider
	Provider string    `json:"with,omitempty"`   // name of the sign-in provider
	LastSeen time.Time `json:"seen"`             // time of the last request that confirmed these facts
}

// RoleAll is the built-in role that sees everything except secrets.
const RoleAll = "all"

// IssuedByViewAs is the IssuedBy of a caller with role "all" who views the data as another role does.
const IssuedByViewAs = "view-as"

// Grant is what a caller may do. Many requests share one Grant. It is never changed after its creation.
type Grant struct {
	Role     string
	IssuedBy string         // who issued the grant: "config", "demo" or IssuedByViewAs
	Expires  time.Time      // when the grant ends; the zero time means never
	MaxStale *time.Duration // oldest data that the caller accepts; nil means the mirror's defaults, 0 means as fresh as the upstream
	Allow    []Allow        // methods and paths allowed beyond GET and HEAD of the spec's kinds
	// Revoked is closed when the grant is revoked. A nil channel means that the grant lasts as long as its
	// policy.
	Revoked <-chan struct{}
}

// IsActive reports whether the grant is valid at the time now: not nil, not revoked and not expired.
func (g *Grant) IsActive(now time.Time) bool {
	return g != nil && !g.IsRevoked() && (g.Expires.IsZero() || now.Before(g.Expires))
}

// IsRevoked reports whether the grant was revoked.
func (g *Grant) IsRevoked() bool {
	if g == nil {
		return false
	}
	select {
	case <-g.Revoked:
		return true
	default:
		return false
	}
}

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
