// Owner: the person or program that owns work which goes on without a request.

package understudy

import "time"

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
