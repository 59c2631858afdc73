// Calls: what a part knows of the calls of the simulated API.

package rig

import "time"

// CallRow has the fields of a call from which parts make their requests.
type CallRow struct {
	SID       string  `json:"sid"`
	To        string  `json:"to"`
	From      string  `json:"from"`
	Status    string  `json:"status"`
	Parent    *string `json:"parent_call_sid"`
	StartTime *string `json:"start_time"`
}

// NewestCall is the time of the newest record of the simulated API.
var NewestCall = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// WorldDays is the number of days before NewestCall from which the simulated API has records.
const WorldDays = 90
