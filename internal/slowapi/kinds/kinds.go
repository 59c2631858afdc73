// Package kinds computes the records of each kind, and has the templates that show them as Twilio does.
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

// Shapes returns the templates, by the names of their files.
var Shapes = sync.OnceValue(func() map[string]*table.Template { return table.ParseAll(shapeFiles, "shapes") })

// All are the kinds of all records that belong to an account.
var All = []*world.Kind{
	Calls, Messages, Numbers, Conferences, Participants, Recordings, Media, Transcriptions,
	Notifications, Alerts, Events, Queues, Members, Applications, CallerIDs, ApiKeys, SigningKeys, Addresses,
}

// Tags of random generators that belong to no kind.
const (
	tagRoles    = 0x726f6c
	tagMedia    = 0x6d6564
	tagServices = 0x736572

	tagIncidents  = 0x74726f
	tagAvailable  = 0x617661
	tagCallEvents = 0x636576
)

// Tags of kinds whose SIDs appear in records of other kinds.
const (
	tagApplications = 0x4150
	tagCallerIDs    = 0x504e
	tagKeys         = 0x534b
	tagSigningKeys  = 0x5353
	tagAddresses    = 0x4144
	tagQueues       = 0x5155
)

// generateHex returns the SID of something that is not a record of this world, or a secret: prefix and 32 hex digits.
func generateHex(prefix string, tag uint64, s *world.Sequence, i int64) string {
	d := fake.RngFor(s.Seed, tag, i)
	return string(d.Hex([]byte(prefix), 16))
}
