// Grant: what a caller may do, and until when.

package understudy

import (
	"strings"
	"time"
)

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
