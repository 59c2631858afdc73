// Queues, and the calls that wait in them.
package kinds

import (
	"math"
	"strconv"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Queues are the queues of an account. Nobody waits in the last of the first.
var Queues = queueKind()

func queueKind() *world.Kind {
	derive := func(w *world.World, c *Setting, v table.Values) {
		in := waiting(w, c.s, c.i)
		most, _ := strconv.ParseInt(c.Field("MaxSize"), 10, 64) // 0 for what a journal of any origin says
		v["current_size"], v["average_wait_time"], v["max_size"] = in.size, in.average(), most
	}
	k := (&settingKind{name: "queues", prefix: "QU", tag: tagQueues, shape: "queue", derive: derive}).kind()
	k.Keeps = func(w *world.World, s *world.Sequence, i int64) *format.Refusal {
		if waiting(w, s, i).size > 0 {
			return format.Invalid("Queue is not empty, cannot delete")
		}
		return nil
	}
	return k
}

// queued is how many wait in a queue, and how long they have in all.
type queued struct{ size, waited int64 }

func (q queued) average() int64 { return q.waited / max(q.size, 1) }

// waiting counts the members of a queue. They are few: all are read.
func waiting(w *world.World, s *world.Sequence, queue int64) (q queued) {
	in := w.Below[s.Account][Members]
	var m member
	for i := range in.Count() {
		if m.Load(w, in, i); m.queue == queue && in.Exists(i) {
			q.size++
			q.waited += m.wait(w)
		}
	}
	return q
}

// Members have no SID of their own. The one their tokens carry is never shown.
var Members = &world.Kind{
	Name: "queue_members", Prefix: "QM", Tag: 0x514d,
	Blank: func() world.Row { return new(member) }, Shape: "member",
	Seed: func(w *world.World, k *world.Kind) *world.Sequence {
		return w.Sequence(k, 0, min(w.Records/40, maxMembers), w.Epoch.Unix(), 0)
	},
	Found: findMember,
}

// maxMembers is how many wait at most in all queues together.
const maxMembers = 120

// member is one call that waits. Every third of the newest calls is one,
// whatever else became of it, the oldest first: who came first is in front.
type member struct {
	s        *world.Sequence
	i        int64
	call     int64
	queue    int64
	enqueued int64
}

// memberCall is the call that a member is.
func memberCall(w *world.World, i int64) int64 { return w.Records - 1 - 3*i }

// Load reads the member with an index.
func (m *member) Load(w *world.World, s *world.Sequence, i int64) {
	d := s.Draw(i)
	*m = member{s: s, i: i, call: memberCall(w, i), queue: int64(min(d.Below(5)/2, len(allRules()["queues"].First)-2))}
	m.enqueued = w.Below[s.Account][Calls].Created(m.call)
}

// wait is how long the member has waited, in seconds.
func (m *member) wait(w *world.World) int64 { return max(w.Now().Unix()-m.enqueued, 0) }

// position is the member's place in its queue; the front is 1.
func (m *member) position(w *world.World) int64 {
	place := int64(1)
	var other member
	for i := m.i + 1; i < m.s.Count(); i++ {
		if other.Load(w, m.s, i); other.queue == m.queue && m.s.Exists(i) {
			place++
		}
	}
	return place
}

// MembersOf are the members of one queue.
func MembersOf(_ *world.World, _ *world.Sequence, queue int64) world.Condition {
	return world.Condition{Test: func(r world.Row) bool { return r.(*member).queue == queue }, Lo: 0, Hi: math.MaxInt64}
}

// findMember finds a member by its call's SID, or the one in Front.
func findMember(w *world.World, s *world.Sequence, queue int64, name string) (int64, bool) {
	var m member
	if name == "Front" {
		for i := s.Count() - 1; i >= 0; i-- {
			if m.Load(w, s, i); m.queue == queue && s.Exists(i) {
				return i, true
			}
		}
		return 0, false
	}
	call, ok := w.Find(w.Below[s.Account][Calls], name)
	i := (w.Records - 1 - call) / 3
	return i, ok && i >= 0 && i < s.Count() && memberCall(w, i) == call
}

// Values are the member as its template shows it.
func (m *member) Values(w *world.World) table.Values {
	return table.Values{
		"call":     w.SID(w.Below[m.s.Account][Calls], m.call),
		"queue":    string(w.Cipher.AppendSID(nil, "QU", m.s.Account, tagQueues, m.queue)),
		"enqueued": m.enqueued, "position": m.position(w), "wait_time": m.wait(w),
	}
}
