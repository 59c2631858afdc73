// Queues, and the calls that wait in them.
package slowapi

import (
	"math"
	"net/url"
	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
)

var queues = queueKind()

func queueKind() *kind {
	k := tableKind("queues", "QU", tagQueues, int64(len(firstQueues)), &table{
		path: "Queues",
		columns: []column{
			{"account_sid", accountColumn},
			{"average_wait_time", func(o *format.Object, name string, c *tableRow, w *world) {
				o.Number(name, waiting(w, c.s, c.i).average())
			}},
			{"current_size", func(o *format.Object, name string, c *tableRow, w *world) { o.Number(name, waiting(w, c.s, c.i).size) }},
			{"date_created", createdColumn},
			{"date_updated", updatedColumn},
			{"friendly_name", text("FriendlyName")},
			{"max_size", amount("MaxSize")},
			{"sid", sidColumn},
			{"uri", uriColumn},
		},
		may:      map[string][]string{"FriendlyName": nil, "MaxSize": nil},
		whole:    map[string]int64{"MaxSize": maxQueue},
		needs:    []string{"FriendlyName"},
		defaults: map[string]string{"MaxSize": "100"},
		check: func(form url.Values) *format.Refusal {
			if form.Has("MaxSize") && form.Get("MaxSize") == "0" {
				return format.Invalid("MaxSize must be at least 1")
			}
			return nil
		},
		first: func(_ *world, _ *sequence, i int64) map[string]string {
			return map[string]string{"FriendlyName": firstQueues[i], "MaxSize": [...]string{"", "1000", "25", "5"}[i]}
		},
	})
	k.keeps = func(w *world, s *sequence, i int64) *format.Refusal {
		if waiting(w, s, i).size > 0 {
			return format.Invalid("Queue is not empty, cannot delete")
		}
		return nil
	}
	return k
}

// maxQueue is the highest size Twilio lets a queue have.
const maxQueue = 5000

// firstQueues are those the main account begins with. Nobody waits in the last.
var firstQueues = [...]string{"Support", "Sales \"EMEA\"", "Rückrufe", "Overflow <empty>"}

// queued is how many wait in a queue, and how long they have in all.
type queued struct{ size, waited int64 }

func (q queued) average() int64 { return q.waited / max(q.size, 1) }

// waiting counts who waits in a queue. Members are few: all are looked at.
func waiting(w *world, s *sequence, queue int64) (q queued) {
	in := w.below[s.account][members]
	var m member
	for i := range in.count() {
		if m.Load(w, in, i); m.queue == queue && in.exists(i) {
			q.size++
			q.waited += m.wait(w)
		}
	}
	return q
}

// members have no SID of their own. The one their tokens carry is never shown.
var members = &kind{
	name: "queue_members", prefix: "QM", tag: 0x514d,
	blank: func() row { return new(member) },
	seed: func(w *world, k *kind) *sequence {
		return w.sequence(k, 0, min(w.records/40, maxMembers), w.epoch.Unix(), 0)
	},
	found: findMember,
}

// maxMembers is how many wait at most in all queues together.
const maxMembers = 120

// member is one call that waits. Every third of the newest calls is one,
// whatever else became of it, the oldest first: who came first is in front.
type member struct {
	s        *sequence
	i        int64
	call     int64
	queue    int64
	enqueued int64
}

// memberCall is the call that a member is.
func memberCall(w *world, i int64) int64 { return w.records - 1 - 3*i }

// load reads the member with an index.
func (m *member) Load(w *world, s *sequence, i int64) {
	d := fake.RngFor(s.seed, s.kind.tag, i)
	*m = member{s: s, i: i, call: memberCall(w, i), queue: int64(min(d.Below(5)/2, len(firstQueues)-2))}
	m.enqueued = w.below[s.account][calls].created(m.call)
}

// wait is how long the member has waited, in seconds.
func (m *member) wait(w *world) int64 { return max(w.now().Unix()-m.enqueued, 0) }

// position is the member's place in its queue; the front is 1.
func (m *member) position(w *world) int64 {
	place := int64(1)
	var other member
	for i := m.i + 1; i < m.s.count(); i++ {
		if other.Load(w, m.s, i); other.queue == m.queue && m.s.exists(i) {
			place++
		}
	}
	return place
}

// membersOf are those who wait in one queue.
func membersOf(_ *world, _ *sequence, queue int64) condition {
	return condition{test: func(r row) bool { return r.(*member).queue == queue }, lo: 0, hi: math.MaxInt64}
}

// findMember finds a member by its call's SID, or the one in Front.
func findMember(w *world, s *sequence, queue int64, name string) (int64, bool) {
	var m member
	if name == "Front" {
		for i := s.count() - 1; i >= 0; i-- {
			if m.Load(w, s, i); m.queue == queue && s.exists(i) {
				return i, true
			}
		}
		return 0, false
	}
	call, ok := w.find(w.below[s.account][calls], name)
	i := (w.records - 1 - call) / 3
	return i, ok && i >= 0 && i < s.count() && memberCall(w, i) == call
}

// append writes the member's row, which is its instance too.
func (m *member) Append(dst []byte, w *world) []byte {
	call := string(w.appendSID(nil, w.below[m.s.account][calls], m.call))
	queue := string(w.cipher.AppendSID(nil, "QU", m.s.account, tagQueues, m.queue))
	o := format.Object{B: dst}
	o.Open()
	o.Text("call_sid", call)
	o.Date("date_enqueued", m.enqueued)
	o.Number("position", m.position(w))
	o.Text("queue_sid", queue)
	o.Text("uri", format.Version+"/Accounts/"+w.accountSID(m.s.account)+"/Queues/"+queue+"/Members/"+call+".json")
	o.Number("wait_time", m.wait(w))
	o.Close()
	return o.B
}
