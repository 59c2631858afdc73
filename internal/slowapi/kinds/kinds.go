// Package kinds computes the simulated records of each kind. It also has the templates with which they are written as
// at Twilio.
package kinds

import (
	"embed"
	"sync"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

//go:embed shapes
var shapeFiles embed.FS

// Shapes returns the templates by the names of their files.
var Shapes = sync.OnceValue(func() map[string]*table.Template { return table.ParseAll(shapeFiles, "shapes") })

// All are the kinds of all records that belong to an account.
var All = []*world.Kind{
	Calls, Messages, Numbers, Conferences, Participants, Recordings, Media, Transcriptions,
	Notifications, Alerts, Events, Queues, Members, Applications, CallerIDs, ApiKeys, SigningKeys, Addresses,
}

// The tags of random numbers that belong to no kind.
const (
	tagRoles    = 0x726f6c
	tagMedia    = 0x6d6564
	tagServices = 0x736572

	tagIncidents  = 0x74726f
	tagAvailable  = 0x617661
	tagCallEvents = 0x636576
)

// The tags of kinds whose SIDs occur in records of other kinds.
const (
	tagApplications = 0x4150
	tagCallerIDs    = 0x504e
	tagKeys         = 0x534b
	tagSigningKeys  = 0x5353
	tagAddresses    = 0x4144
	tagQueues       = 0x5155
)

// generateHex returns a SID of something that is no simulated record, or a secret. It consists of prefix and 32
// hexadecimal digits.
func generateHex(prefix string, tag uint64, s *world.Sequence, i int64) string {
	d := fake.RngFor(s.Seed, tag, i)
	return string(d.Hex([]byte(prefix), 16))
}
