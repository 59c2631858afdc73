// Package understudy holds the domain types of Understudy, a fast, permissioned,
// always-on stand-in for slow APIs.
//
// Requests go from a frontend (proxy, viewer) through one gate (access) to the mirror,
// which answers from the store or goes upstream. Changes go back up as rows of the
// store. Packages know these types and not each other. This package imports the
// standard library only and holds no state that changes.
package understudy

import (
	"log/slog"
	"time"
)

// SetDefaults sets a logger that discards and the machine's clock where none was given. A nil pointer is left out.
func SetDefaults(logger **slog.Logger, now *func() time.Time) {
	if logger != nil && *logger == nil {
		*logger = slog.New(slog.DiscardHandler)
	}
	if now != nil && *now == nil {
		*now = time.Now
	}
}
