// Package understudy defines the domain types of Understudy, a fast, permissioned, always-on stand-in for slow
// APIs.
//
// A request enters through a frontend (proxy or viewer) and passes one access gate to the mirror. The mirror
// answers from the store or asks the upstream API. Each saved change of a record becomes a numbered row in the
// store. Other packages share these types and do not import each other. This package imports only the standard
// library and has no mutable state.
package understudy

import (
	"log/slog"
	"time"
)

// SetDefaults sets a nil logger to one that discards everything, and a nil clock to time.Now. Pass a nil
// pointer for an argument that is not needed.
func SetDefaults(logger **slog.Logger, now *func() time.Time) {
	if logger != nil && *logger == nil {
		*logger = slog.New(slog.DiscardHandler)
	}
	if now != nil && *now == nil {
		*now = time.Now
	}
}
