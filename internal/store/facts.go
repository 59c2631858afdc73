// Facts: what both indexes read of a body, in one walk.

package store

import "understudy/kit/jsonspan"

// facts are a body read once: its outermost value and the members of that.
type facts struct {
	body    []byte
	doc     jsonspan.Value // no kind: the body is no document
	members []member
}

type member struct {
	name  []byte // as it stands in the body
	value jsonspan.Value
}

// factsOf reads a body. The members are appended to room.
func factsOf(body []byte, room []member) (f facts, rest []member) {
	doc, err := jsonspan.Document(body)
	if err != nil {
		return facts{body: body}, room
	}
	f = facts{body: body, doc: doc}
	if doc.Kind == jsonspan.Object {
		start := len(room)
		jsonspan.Members(body, doc, func(name []byte, v jsonspan.Value) bool {
			room = append(room, member{name, v})
			return true
		})
		f.members = room[start:len(room):len(room)]
	}
	return f, room
}
