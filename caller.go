// Caller: the person or program behind a request.

package understudy

import "time"

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
