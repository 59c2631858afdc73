// Queues, and their members, which are calls that wait.
package kinds

import (
	"strconv"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Queues are the queues of an account. The last seeded queue has no members.
var Queues = settingKind(world.Kind{
	Name: "queues", Prefix: "QU", Tag: tagQueues, Shape: "queue",
	Writes: world.Writes{CanDelete: true, RefuseDelete: func(w *world.World, s *world.Sequence, i int64) *format.Answer {
		if size, _ := countWaiting(w, s, i); size > 0 {
			return format.NewInvalid("Queue is not empty, cannot delete")
		}
		return nil
	}},
}, nil, func(w *world.World, s *world.Sequence, i int64, v table.Values) {
	size, waited := countWaiting(w, s, i)
	limit, _ := strconv.ParseInt(text(v, "MaxSize"), 10, 64) // if an edited journal has no number here, the limit is 0
	v["current_size"], v["average_wait_time"], v["max_size"] = size, waited/max(size, 1), limit
})

// countWaiting returns the number of members of a queue, and the sum of their waiting times in seconds. It reads the
// members of all queues, which are only a few.
func countWaiting(w *world.World, s *world.Sequence, queue int64) (size, waited int64) {
	in := w.Sequences[s.Account][Members]
	for i := range in.Count() {
		if queueOf(in, i) == queue && in.HasRecord(i) {
			size++
			waited += waitingSeconds(w, in, i)
		}
	}
	return size, waited
}

// Members are the members of queues. Their SIDs are internal and occur only in page tokens.
var Members = &world.Kind{
	Name: "queue_members", Prefix: "QM", Tag: 0x514d,
	Generate: generateMember, Shape: "member",
	Count: func(w *world.World) int64 { return min(w.Records/40, maxMembers) },
	Find:  findMember,
}

// maxMembers is the maximum number of members in all queues together.
const maxMembers = 120

// memberCall returns the index of the call that is a member. Every third of the newest calls is a member, whatever
// its status. Older calls are nearer to the front of their queue.
func memberCall(w *world.World, i int64) int64 { return w.Records - 1 - 3*i }

// queueOf returns the index of a member's queue.
func queueOf(s *world.Sequence, i int64) int64 {
	d := s.Random(i)
	return int64(min(d.IntBelow(5)/2, len(allRules()["queues"].First)-2))
}

// waitingSeconds returns the waiting time of a member in seconds.
func waitingSeconds(w *world.World, s *world.Sequence, i int64) int64 {
	return max(w.Now().Unix()-w.Sequences[s.Account][Calls].CreationTime(memberCall(w, i)), 0)
}

// generateMember computes the values of a member. Its position in the queue is 1 at the front.
func generateMember(w *world.World, s *world.Sequence, i int64) table.Values {
	calls, queue, position := w.Sequences[s.Account][Calls], queueOf(s, i), int64(1)
	for other := i + 1; other < s.Count(); other++ {
		if queueOf(s, other) == queue && s.HasRecord(other) {
			position++
		}
	}
	return table.Values{
		"call": w.SID(calls, memberCall(w, i)), "queue": string(w.Cipher.AppendSID(nil, "QU", s.Account, tagQueues, queue)),
		"enqueued": calls.CreationTime(memberCall(w, i)), "position": position, "wait_time": waitingSeconds(w, s, i),
	}
}

// MembersOf returns the condition for the members of a queue.
func MembersOf(w *world.World, s *world.Sequence, queue int64) world.Condition {
	sid := w.SID(w.Sequences[s.Account][Queues], queue)
	return world.NewCondition(func(r *world.Row) bool { return r.Value("queue") == sid })
}

// findMember returns the index of a member by the SID of its call. The name "Front" means the first member.
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
