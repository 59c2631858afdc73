// Package kinds makes the records of each kind and shows them as Twilio does.
package kinds

import (
	"embed"
	"sync"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

//go:embed shapes
var files embed.FS

// Shapes returns the templates, by the names of their files.
var Shapes = sync.OnceValue(func() map[string]*table.Template { return table.ParseAll(files, "shapes") })

// All are all the kinds of the world that live in an account.
var All = []*world.Kind{
	Calls, Messages, Numbers, Conferences, Participants, Recordings, Media, Transcriptions,
	Notifications, Alerts, Events, Queues, Members, Applications, CallerIDs, ApiKeys, SigningKeys, Addresses,
}

// Tags of draws that belong to no kind.
const (
	tagRoles    = 0x726f6c
	tagMedia    = 0x6d6564
	tagServices = 0x736572

	tagTroubles   = 0x74726f
	tagAvailable  = 0x617661
	tagCallEvents = 0x636576
)

// Tags of kinds whose SIDs others name too.
const (
	tagApplications = 0x4150
	tagCallerIDs    = 0x504e
	tagKeys         = 0x534b
	tagSigningKeys  = 0x5353
	tagAddresses    = 0x4144
	tagQueues       = 0x5155
)

// drawHex draws a SID, or a secret, of something that is no record of this world.
func drawHex(prefix string, tag uint64, s *world.Sequence, i int64) string {
	d := fake.RngFor(s.Seed, tag, i)
	return string(d.Hex([]byte(prefix), 16))
}
