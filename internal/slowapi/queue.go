// Queues, where calls wait their turn.
package slowapi

import "net/url"

var queues = queueKind()

func queueKind() *kind {
	k := cards("queues", "QU", tagQueues, int64(len(firstQueues)), &layout{
		path: "Queues",
		columns: []column{
			{"account_sid", accountColumn},
			{"average_wait_time", func(o *object, name string, c *card, w *world) { o.number(name, w.waiting(c.s, c.i).average()) }},
			{"current_size", func(o *object, name string, c *card, w *world) { o.number(name, w.waiting(c.s, c.i).size) }},
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
		check: func(form url.Values) *refusal {
			if form.Has("MaxSize") && form.Get("MaxSize") == "0" {
				return invalid("MaxSize must be at least 1")
			}
			return nil
		},
		first: func(_ *world, _ *sequence, i int64) map[string]string {
			return map[string]string{"FriendlyName": firstQueues[i], "MaxSize": [...]string{"", "1000", "25", "5"}[i]}
		},
	})
	k.keeps = func(w *world, s *sequence, i int64) *refusal {
		if w.waiting(s, i).size > 0 {
			return invalid("Queue is not empty, cannot delete")
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
func (w *world) waiting(s *sequence, queue int64) (q queued) {
	in := w.below[s.account][members]
	var m member
	for i := range in.count() {
		if m.load(w, in, i); m.queue == queue && in.exists(i) {
			q.size++
			q.waited += m.wait(w)
		}
	}
	return q
}

var queueRoutes = []route{
	{pattern: "Accounts/*/Queues", kind: queues},
	{pattern: "Accounts/*/Queues/*", kind: queues, instance: true},
	{pattern: "Accounts/*/Queues/*/Members", kind: members, parent: queues, within: membersOf},
	{pattern: "Accounts/*/Queues/*/Members/*", kind: members, parent: queues, within: membersOf, instance: true,
		serve: (*Server).member, methods: "GET, HEAD, POST"},
}
