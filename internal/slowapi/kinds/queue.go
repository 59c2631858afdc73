// Queues, and the calls that wait in them.
package kinds

import (
	"strconv"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Queues are the queues of an account. Nobody waits in the last of the first.
var Queues = settingKind(world.Kind{
	Name: "queues", Prefix: "QU", Tag: tagQueues, Shape: "queue",
	Writes: world.Writes{CanDelete: true, RefuseDelete: func(w *world.World, s *world.Sequence, i int64) *format.Answer {
		if size, _ := waiting(w, s, i); size > 0 {
			return format.NewInvalid("Queue is not empty, cannot delete")
		}
		return nil
	}},
}, nil, func(w *world.World, s *world.Sequence, i int64, v table.Values) {
	size, waited := waiting(w, s, i)
	most, _ := strconv.ParseInt(text(v, "MaxSize"), 10, 64) // 0 for what a journal of any origin says
	v["current_size"], v["average_wait_time"], v["max_size"] = size, waited/max(size, 1), most
})

// waiting returns how many wait in a queue, and how long they have in all. They are few: all are read.
func waiting(w *world.World, s *world.Sequence, queue int64) (size, waited int64) {
	in := w.Sequences[s.Account][Members]
	for i := range in.Count() {
		if queueOf(in, i) == queue && in.HasRecord(i) {
			size++
			waited += waitOf(w, in, i)
		}
	}
	return size, waited
}

// Members have no SID of their own. The one their tokens carry is never shown.
var Members = &world.Kind{
	Name: "queue_members", Prefix: "QM", Tag: 0x514d,
	Generate: drawMember, Shape: "member",
	Count: func(w *world.World) int64 { return min(w.Records/40, maxMembers) },
	Find:  findMember,
}

// maxMembers is how many wait at most in all queues together.
const maxMembers = 120

// memberCall returns the call that a member is. Every third of the newest calls is one,
// whatever else became of it, the oldest first: who came first is in front.
func memberCall(w *world.World, i int64) int64 { return w.Records - 1 - 3*i }

// queueOf returns the queue that a member waits in.
func queueOf(s *world.Sequence, i int64) int64 {
	d := s.Random(i)
	return int64(min(d.IntBelow(5)/2, len(allRules()["queues"].First)-2))
}

// waitOf returns how long a member has waited, in seconds.
func waitOf(w *world.World, s *world.Sequence, i int64) int64 {
	return max(w.Now().Unix()-w.Sequences[s.Account][Calls].CreationTime(memberCall(w, i)), 0)
}

// drawMember draws a member. Its position is its place in its queue; the front is 1.
func drawMember(w *world.World, s *world.Sequence, i int64) table.Values {
	calls, queue, position := w.Sequences[s.Account][Calls], queueOf(s, i), int64(1)
	for other := i + 1; other < s.Count(); other++ {
		if queueOf(s, other) == queue && s.HasRecord(other) {
			position++
		}
	}
	return table.Values{
		"call": w.SID(calls, memberCall(w, i)), "queue": string(w.Cipher.AppendSID(nil, "QU", s.Account, tagQueues, queue)),
		"enqueued": calls.CreationTime(memberCall(w, i)), "position": position, "wait_time": waitOf(w, s, i),
	}
}

// MembersOf are the members of one queue.
func MembersOf(w *world.World, s *world.Sequence, queue int64) world.Condition {
	sid := w.SID(w.Sequences[s.Account][Queues], queue)
	return world.NewCondition(func(r *world.Row) bool { return r.Value("queue") == sid })
}

// findMember finds a member by its call's SID, or the one in Front.
func findMember(w *world.World, s *world.Sequence, queue int64, name string) (int64, bool) {
	if name == "Front" {
		for i := s.Count() - 1; i >= 0; i-- {
			if queueOf(s, i) == queue && s.HasRecord(i) {
				return i, true
			}
		}
		return 0, false
	}
	call, ok := w.Find(w.Sequences[s.Account][Calls], name)
	i := (w.Records - 1 - call) / 3
	return i, ok && i >= 0 && i < s.Count() && memberCall(w, i) == call
}
