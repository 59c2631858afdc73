// Caller: the person or program behind a request.

package understudy

import "time"

// Caller is a person or a program, named by its credential. Frontends get it from
// package callers and hand it to the gate. The mirror never gets one.
type Caller struct {
	Name   string // the credential's name, "loopback" for a local person; goes to the access log
	Source string // the one source it may ask; "" = every source (people in the viewer)
	Grant  *Grant // what it may do; nil = nothing
	Flow   uint64 // identifies it where callers are not known: see request.Request
}

// Rate is what a credential may send: Limit requests in a span of time, of which Remaining
// are left. After Reset without a request all of them are.
type Rate struct {
	Limit, Remaining int64
	Reset            time.Duration
}

// CommandCaller is who sends a command with the token of a data folder.
var CommandCaller = Caller{Name: "run.json", Grant: &Grant{Role: RoleAll}}

// Role is the caller's role, "" when it has no grant.
func (c Caller) Role() string {
	if c.Grant == nil {
		return ""
	}
	return c.Grant.Role
}

// OwnerLasts is how long an owner whose role a provider or a proxy tells is believed to
// have it: after so long without a request nothing goes on in its name.
const OwnerLasts = 30 * 24 * time.Hour

// Owner is a caller as it is kept beside its work, with what its role follows from. It
// grants nothing by itself: what the owner may do is found out anew each time.
type Owner struct {
	Name   string    `json:"name"`
	Source string    `json:"source,omitempty"` // of a credential
	Role   string    `json:"role"`             // at the last request
	Groups []string  `json:"groups,omitempty"` // of who came from a provider
	Domain string    `json:"domain,omitempty"` // of the mail address there
	With   string    `json:"with,omitempty"`   // names the provider
	Seen   time.Time `json:"seen"`             // the last request that told this
}
