// Grant: what a caller may do, and until when.

package understudy

import (
	"strings"
	"time"
)

// RoleAll is the built-in role that sees everything but secrets.
const RoleAll = "all"

// ByViewAs is the By of a caller of the role all who looks through another role.
const ByViewAs = "view-as"

// Grant is what a caller may do. It is shared by many requests and never
// changed after it is made.
type Grant struct {
	Role     string
	By       string         // "config", "demo", ByViewAs
	Expires  time.Time      // zero: never
	MaxStale *time.Duration // nil: the mirror's defaults; 0: as fresh as upstream
	Allow    []Allow        // methods and paths beyond GET and HEAD of the spec's kinds
	// Over is closed when the grant is revoked; nil: it is not, while its policy is in
	// force.
	Over <-chan struct{}
}

// Live reports whether the grant is in force at now.
func (g *Grant) Live(now time.Time) bool {
	return g != nil && !g.Revoked() && (g.Expires.IsZero() || now.Before(g.Expires))
}

// Revoked reports whether the grant was revoked.
func (g *Grant) Revoked() bool {
	if g == nil {
		return false
	}
	select {
	case <-g.Over:
		return true
	default:
		return false
	}
}

// Allow names one method and path pattern: "POST
// /2010-04-01/Accounts/*/Messages.json", "*" standing for one whole segment, and "**" at the
// end for any. The method "*" is every method.
type Allow struct{ Method, Path string }

// Covers reports whether a request with that method and decoded path is meant.
func (a Allow) Covers(method, path string) bool {
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
