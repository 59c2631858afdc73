// Calls: what a part knows of the calls of the simulated API.

package rig

import "time"

// CallRow is what questions are made of.
type CallRow struct {
	SID       string  `json:"sid"`
	To        string  `json:"to"`
	From      string  `json:"from"`
	Status    string  `json:"status"`
	Parent    *string `json:"parent_call_sid"`
	StartTime *string `json:"start_time"`
}

// NewestCall is when the newest record of the simulated world began.
var NewestCall = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// WorldDays are how many days its records are from.
const WorldDays = 90
